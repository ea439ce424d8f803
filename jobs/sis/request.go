package sis

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
)

// The families of the requests we send.
const (
	typeRQRD = "RQRD"
	typeRQFD = "RQFD"
)

// ScheduleRequest is the kind of the request for a flight schedule; SCHD-RESP answers it.
const ScheduleRequest message.Kind = "RQFD-NONE"

// ReferenceRequest is the kind of the request for a list of reference data; its RESP answers it.
func ReferenceRequest(typ string) message.Kind { return message.Kind(typeRQRD + "-" + typ) }

// AllRequests lists the 24 kinds of requests there are (dictionary 10): the schedule, then the lists in the dictionary's order.
func AllRequests() []message.Kind {
	all := []message.Kind{ScheduleRequest}
	for i := range wire.references {
		all = append(all, ReferenceRequest(wire.references[i].Type))
	}
	return all
}

// MaxSEQN is the last number of our counter; 1 follows it.
const MaxSEQN = 999_999

// Request is what we ask the airport database for (dictionary 10).
type Request struct {
	SNDR string
	SEQN int64        // 1 … MaxSEQN
	DTTM time.Time    // when it is made, second resolution
	Kind message.Kind // one of AllRequests
	// From and To are the window of a ScheduleRequest, minute resolution, From not after To; zero for a list.
	From, To time.Time
}

// Validate says everything that keeps r from being sent.
func (r Request) Validate() error {
	var errs []error
	typ, list, _ := strings.Cut(string(r.Kind), "-")
	_, known := wire.byType[list]
	schedule := r.Kind == ScheduleRequest
	switch {
	case !schedule && (typ != typeRQRD || !known):
		errs = append(errs, fmt.Errorf("%s is not a kind of request", quoted(string(r.Kind))))
	case schedule && (r.From.IsZero() || r.To.IsZero() || r.From.After(r.To)):
		errs = append(errs, errors.New("the window has no beginning, no end, or ends before it begins"))
	case !schedule && (!r.From.IsZero() || !r.To.IsZero()):
		errs = append(errs, errors.New("a list has no window"))
	}
	if strings.Trim(r.SNDR, whiteSpace) != r.SNDR || r.SNDR == "" || len(r.SNDR) > maxCodeBytes {
		errs = append(errs, fmt.Errorf("%s is not a sender", quoted(r.SNDR)))
	}
	if r.SEQN < 1 || r.SEQN > MaxSEQN {
		errs = append(errs, fmt.Errorf("SEQN %d is not within 1 and %d", r.SEQN, MaxSEQN))
	}
	if r.DTTM.IsZero() {
		errs = append(errs, errors.New("it has no time"))
	}
	return errors.Join(errs...)
}

// EncodeRequest writes r as it goes into COUTMSGS: one line, no white space between elements. A nil zone is UTC. Its errors
// are those of Validate.
func EncodeRequest(r Request, zone *time.Location) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, fault.Wrap(fault.CodecError, "encode "+string(r.Kind), err)
	}
	typ, styp, _ := strings.Cut(string(r.Kind), "-")
	e := encoder{zone: orUTC(zone), buf: []byte(declaration)}
	e.envelope(message.Meta{SNDR: r.SNDR, SEQN: r.SEQN, DTTM: r.DTTM, TYPE: typ, STYP: styp})
	e.open(typ)
	if r.Kind == ScheduleRequest {
		e.text(windowBegin, string(FormDateTime.write(nil, MomentValue(r.From), e.zone)))
		e.text(windowEnd, string(FormDateTime.write(nil, MomentValue(r.To), e.zone)))
	} else {
		e.text(wantedList, styp)
	}
	e.close(typ)
	e.close(rootElem)
	return e.buf, nil
}

// The children of a request.
const (
	windowBegin = "STDB"
	windowEnd   = "STDE"
	wantedList  = "RTYP"
)

// DecodeRequest reads a request as the airport database would, which simulators and tests need. A nil zone is UTC. What is no
// request is refused with fault.Malformed or fault.Protocol, as Decode refuses messages.
func DecodeRequest(text []byte, zone *time.Location) (Request, error) {
	zone = orUTC(zone)
	text, err := admit(text)
	if err != nil {
		return Request{}, err
	}
	meta, err := findMeta(text, zone)
	if err != nil {
		return Request{}, err
	}
	s := newScanner(text)
	if err := s.root(); err != nil {
		return Request{}, err
	}
	r := Request{SNDR: meta.SNDR, SEQN: meta.SEQN, DTTM: meta.DTTM, Kind: meta.Kind()}
	bodies := 0
	for {
		start, ok, err := s.child()
		if err != nil {
			return Request{}, err
		}
		if !ok {
			break
		}
		if start.name != meta.TYPE {
			err = s.skip()
		} else {
			bodies++
			err = r.read(s, start, zone)
		}
		if err != nil {
			return Request{}, err
		}
	}
	if bodies != 1 {
		return Request{}, fault.At(fault.Malformed, op, "MSG/"+meta.TYPE, 0, "there are %d of it", bodies)
	}
	if err := r.Validate(); err != nil {
		return Request{}, fault.Wrap(fault.Protocol, op, err)
	}
	return r, s.finish()
}

// read reads the body of r.
func (r *Request) read(s *scanner, start token, zone *time.Location) error {
	d := &decoder{scanner: s, zone: zone}
	n, err := d.record(start, rootElem, 0)
	switch {
	case err != nil:
		return err
	case n == nil:
		return d.broken
	case r.Kind != ScheduleRequest:
		if list := n.childText(wantedList); ReferenceRequest(list) != r.Kind {
			return n.broken(wantedList, "%s is not the list that META names", quoted(list))
		}
		return nil
	}
	if r.From, err = windowEdge(n, windowBegin, zone); err == nil {
		r.To, err = windowEdge(n, windowEnd, zone)
	}
	return err
}

// windowEdge is the time in a child of n; zero when there is none.
func windowEdge(n *node, elem string, zone *time.Location) (time.Time, error) {
	v, err := FormDateTime.read(n.childText(elem), zone)
	if err != nil {
		return time.Time{}, n.broken(elem, "%w", err)
	}
	if v.IsEmpty() {
		return time.Time{}, nil
	}
	return v.Time().In(zone), nil
}
