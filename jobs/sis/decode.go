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

func orUTC(zone *time.Location) *time.Location {
	if zone == nil {
		return time.UTC
	}
	return zone
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
	d := &decoder{scanner: newScanner(text), zone: orUTC(opt.Zone), ignore: opt.Ignore}
	if err := d.read(); err != nil {
		return Message{}, err
	}
	if d.message.Ignored == "" {
		err = d.outcome()
	}
	return d.message, err
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
// the text or META; what is wrong with the body is kept for outcome. The hash is of everything in the root but META.
func (d *decoder) read() error {
	s := d.scanner
	if err := s.root(); err != nil {
		return err
	}
	hash := sha256.New()
	from := s.start
	for metas := 0; ; {
		start, ok, err := s.child()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if start.name == metaElem {
			if metas++; metas > 1 {
				return s.malformed("META stands twice")
			}
			hash.Write(s.text[from:s.start])
			err = d.envelope(start)
			from = s.pos
		} else {
			err = d.content(start)
		}
		if err != nil {
			return err
		}
	}
	d.end = s.line()
	if d.message.Meta.TYPE == "" {
		return missingMeta(d.end)
	}
	hash.Write(s.text[from:s.pos])
	hash.Sum(d.message.Hash[:0])
	return s.finish()
}

// envelope reads META where it stands, unless it had to be found before.
func (d *decoder) envelope(start token) error {
	if d.message.Meta.TYPE != "" {
		return d.scanner.skip()
	}
	meta, err := metaOf(d.scanner, &d.grove, start, d.zone)
	if err == nil {
		d.begin(meta)
	}
	return err
}

// content reads any other element. What it means is said by META, which is looked for first should it stand behind.
func (d *decoder) content(start token) error {
	if d.message.Meta.TYPE == "" {
		meta, err := findMeta(d.scanner.text, d.zone)
		if err != nil {
			return err
		}
		d.begin(meta)
	}
	switch spec, name := d.message.Spec, start.name; {
	case spec == nil:
	case name == spec.TYPE:
		return d.body(start)
	case name == recsElem && spec.Reference != nil:
		return d.declaredRecords(start)
	}
	return d.scanner.skip()
}

// begin makes of META what is to be read: the body of a kind, or nothing.
func (d *decoder) begin(meta message.Meta) {
	d.message.Meta = meta
	rule, ignored := d.ignore.Match(meta.Kind())
	if ignored {
		d.message.Ignored = rule
	} else if kind, ok := Lookup(meta.Kind()); ok {
		d.message.Spec = kind
	}
}

// outcome is steps 7 to 9 of the dictionary, once the text is known to be sound.
func (d *decoder) outcome() (err error) {
	switch kind := d.message.Spec; {
	case kind == nil:
		return fault.New(fault.Unsupported, op, "%s is not in the catalogue", quoted(string(d.message.Meta.Kind())))
	case kind.Reference != nil:
		d.message.Reference, err = d.outcomeOfReference(kind)
		return err
	case d.bodies == 0:
		return fault.At(fault.Malformed, op, "MSG/"+kind.TYPE, d.end, "it is missing")
	}
	d.message.Records = d.records
	return d.broken
}
