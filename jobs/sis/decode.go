package sis

import (
	"crypto/sha256"
	"time"

	"msgexchange/jobs/fault"
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
// The steps are those of dictionary 4, in its order, without the two that need state (6 and 10):
//
//   - nil: the body is read, or Message.Ignored names the rule that spares it;
//   - fault.Malformed, fault.Unsupported, fault.Protocol: as the dictionary says, with path and line;
//   - fault.CodecError: a defect of this package.
//
// With an error the message still has whatever was sure before it: Meta and Hash once Sound, Meta alone when the text after
// META is not well-formed. Time and memory are bounded by MaxBytes whatever the text is. Safe for concurrent use.
func Decode(text []byte, opt Options) (m Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			m.Records = nil
			err = fault.New(fault.CodecError, op, "panic: %v", r)
		}
	}()
	text, err = admit(text)
	if err != nil {
		return Message{}, err
	}
	meta, err := findMeta(text, opt.zone())
	if err != nil {
		return Message{}, err
	}
	m.Meta = meta
	if rule, ok := opt.Ignore.Match(meta.Kind()); ok {
		m.Ignored = rule
	} else if kind, ok := Lookup(meta.Kind()); ok {
		m.Spec = kind
	}
	return m, decodeBody(&m, text, opt.zone())
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

// decodeBody reads the whole text once: steps 1 to 3 of the dictionary go before any rule about the body.
func decodeBody(m *Message, text []byte, zone *time.Location) error {
	d := &decoder{kind: m.Spec, scanner: newScanner(text), zone: zone}
	if err := d.scanner.root(); err != nil {
		return err
	}
	hash := sha256.New()
	hashed := d.scanner.start
	metas, bodies := 0, 0
	for {
		start, ok, err := d.scanner.child()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch name := qualified(start.Name); {
		case name == "META":
			if metas++; metas > 1 {
				return d.scanner.malformed("META stands twice")
			}
			hash.Write(text[hashed:d.scanner.start])
			err = d.scanner.skip()
			hashed = d.scanner.dec.InputOffset()
		case d.kind != nil && name == d.kind.TYPE:
			bodies++
			err = d.body(start, bodies)
		default:
			err = d.scanner.skip()
		}
		if err != nil {
			return err
		}
	}
	hash.Write(text[hashed:d.scanner.dec.InputOffset()])
	if err := d.scanner.finish(); err != nil {
		return err
	}
	m.Sound = true
	hash.Sum(m.Hash[:0])
	return d.outcome(m, bodies)
}

// outcome are steps 5 to 9 of the dictionary, once the text is known to be sound.
func (d *decoder) outcome(m *Message, bodies int) error {
	switch {
	case m.Ignored != "":
		return nil
	case d.kind == nil:
		return fault.New(fault.Unsupported, op, "%s is not in the catalogue", quoted(string(m.Meta.Kind())))
	case bodies == 0:
		return fault.At(fault.Malformed, op, "MSG/"+d.kind.TYPE, 0, "a %s without its body", d.kind.Name)
	case d.broken != nil:
		return d.broken
	}
	m.Records = d.records
	return nil
}
