package sis

import (
	"crypto/sha256"
	"time"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// Options are what decoding needs to know of the site.
type Options struct {
	Zone   *time.Location // of the airport; nil = UTC
	Ignore IgnoreRules    // kinds whose body is not looked at
}

func (o Options) zone() *time.Location {
	if o.Zone == nil {
		return time.UTC
	}
	return o.Zone
}

// Decode reads one message; text is characters already, so what its declaration says of an encoding counts for nothing.
// The steps are those of dictionary 4, in its order, without the ones that need state (6, 10, 11):
//
//   - nil: the body is read, or Message.Ignored names the rule that spares it;
//   - fault.Malformed, fault.Unsupported, fault.Protocol: as the dictionary says, with path and line.
//
// Next to an error Meta and Hash are set when steps 1 to 4 were passed, and only then: the message has an identity, which
// counts before what is wrong with the body does. Time and memory are bounded by MaxBytes whatever the text is. Safe for
// concurrent use.
func Decode(text []byte, opt Options) (Message, error) {
	text, err := admit(text)
	if err != nil {
		return Message{}, err
	}
	meta, err := findMeta(text, opt.zone())
	if err != nil {
		return Message{}, err
	}
	m := Message{Meta: meta}
	if rule, ok := opt.Ignore.Match(meta.Kind()); ok {
		m.Ignored = rule
	} else if kind, ok := Lookup(meta.Kind()); ok {
		m.Spec = kind
	}
	d := &decoder{kind: m.Spec, scanner: newScanner(text), zone: opt.zone()}
	if m.Hash, err = d.read(text); err != nil {
		return Message{}, err
	}
	if m.Ignored == "" {
		m.Records, err = d.outcome(meta)
	}
	return m, err
}

// WellFormed says whether text could be a message at all: one root MSG, nothing forbidden (dictionary 4 #1 to #3;
// contract §8.11). META is not looked at. Its errors are fault.Malformed.
func WellFormed(text []byte) error {
	text, err := admit(text)
	if err != nil {
		return err
	}
	s := newScanner(text)
	if err := s.root(); err != nil {
		return err
	}
	if err := s.skip(); err != nil {
		return err
	}
	return s.finish()
}

// read reads the whole text once, since steps 1 to 3 of the dictionary go before any rule about the body. Its error is about
// the text; what is wrong with the body is kept for outcome. It gives the hash of everything in the root but META.
func (d *decoder) read(text []byte) (hash [sha256.Size]byte, err error) {
	s := d.scanner
	if err := s.root(); err != nil {
		return hash, err
	}
	sum := sha256.New()
	from := s.start
	for metas := 0; ; {
		start, ok, err := s.child()
		if err != nil {
			return hash, err
		}
		if !ok {
			break
		}
		switch name := qualified(start.Name); {
		case name == "META":
			if metas++; metas > 1 {
				return hash, s.malformed("META stands twice")
			}
			sum.Write(text[from:s.start])
			err = s.skip()
			from = s.dec.InputOffset()
		case d.kind != nil && name == d.kind.TYPE:
			err = d.body(start)
		default:
			err = s.skip()
		}
		if err != nil {
			return hash, err
		}
	}
	sum.Write(text[from:s.dec.InputOffset()])
	sum.Sum(hash[:0])
	return hash, s.finish()
}

// outcome is steps 7 to 9 of the dictionary, once the text is known to be sound.
func (d *decoder) outcome(meta message.Meta) ([]Record, error) {
	switch {
	case d.kind == nil:
		return nil, fault.New(fault.Unsupported, op, "%s is not in the catalogue", quoted(string(meta.Kind())))
	case d.bodies == 0:
		return nil, fault.At(fault.Malformed, op, "MSG/"+d.kind.TYPE, 0, "it is missing")
	}
	return d.records, d.broken
}
