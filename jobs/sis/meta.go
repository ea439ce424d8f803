package sis

import (
	"fmt"
	"strings"
	"time"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// maxCodeBytes bounds the codes of META. They name things everywhere; nothing that long is a code.
const maxCodeBytes = 256

const metaElem = "META"

// missingMeta is told at the line where the root ends: only there it is certain.
func missingMeta(line int) error {
	return fault.At(fault.Malformed, op, "MSG/META", line, "it is missing")
}

// findMeta reads the first META under the root, behind whatever it stands.
func findMeta(text []byte, zone *time.Location) (message.Meta, error) {
	s := newScanner(text)
	if err := s.root(); err != nil {
		return message.Meta{}, err
	}
	for {
		start, ok, err := s.child()
		switch {
		case err != nil:
			return message.Meta{}, err
		case !ok:
			return message.Meta{}, missingMeta(s.line())
		case start.name == metaElem:
			return metaOf(s, &grove{}, start, zone)
		}
		if err := s.skip(); err != nil {
			return message.Meta{}, err
		}
	}
}

// metaOf reads the META whose start tag was read last.
func metaOf(s *scanner, g *grove, start token, zone *time.Location) (message.Meta, error) {
	n, whole, err := g.tree(s, start)
	if err != nil {
		return message.Meta{}, err
	}
	n.above = "MSG"
	if !whole {
		return message.Meta{}, fault.At(fault.Malformed, op, n.path(), n.line, "more than %d elements", maxElements)
	}
	return readMeta(n, zone)
}

func readMeta(n *node, zone *time.Location) (message.Meta, error) {
	var texts [5]string
	for i, name := range [...]string{"SNDR", "SEQN", "DTTM", "TYPE", "STYP"} {
		text, err := metaText(n, name)
		if err != nil {
			return message.Meta{}, err
		}
		texts[i] = text
	}
	sndr, typ, styp := texts[0], strings.ToUpper(texts[3]), strings.ToUpper(texts[4])
	seqn, err := FormID.read(texts[1], zone)
	if err != nil {
		return message.Meta{}, fault.At(fault.Malformed, op, n.path()+"/SEQN", n.line, "%w", err)
	}
	dttm, err := readEnvelopeTime(texts[2], zone)
	if err != nil {
		return message.Meta{}, fault.At(fault.Malformed, op, n.path()+"/DTTM", n.line, "%w", err)
	}
	return message.Meta{SNDR: sndr, SEQN: seqn.Num, DTTM: dttm, TYPE: typ, STYP: styp}, nil
}

func metaText(n *node, name string) (string, error) {
	kid, err := n.only(name)
	problem := ""
	switch {
	case err != nil:
		problem = "it may stand only once"
	case kid == nil:
		problem = "it is missing"
	case kid.text == "":
		problem = "it is empty"
	case len(kid.text) > maxCodeBytes:
		problem = fmt.Sprintf("it is longer than %d bytes", maxCodeBytes)
	default:
		return kid.text, nil
	}
	return "", fault.At(fault.Malformed, op, n.path()+"/"+name, n.line, "%s", problem)
}
