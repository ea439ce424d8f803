package sis

import (
	"time"

	"msgexchange/jobs/fault"
)

// decoder reads the body of one message.
type decoder struct {
	scanner   *scanner
	zone      *time.Location
	ignore    IgnoreRules
	message   Message // Meta.TYPE is empty until META was read
	grove     grove
	bodies    int
	end       int // line where the root ends
	records   []Record
	flids     map[int64]struct{} // of a package
	parts     int                // records and entries so far
	strangers int                // unknown elements of records so far
	broken    error              // the first broken content rule; nothing is read in earnest after it

	reference referenceReader
}

// body reads one SCHD, one FLOP or one record of reference data. Its error is about the text; broken content rules go to d.broken.
func (d *decoder) body(start token) error {
	d.bodies++
	switch {
	case d.broken != nil:
		return d.scanner.skip()
	case d.message.Spec.TYPE == TypeSCHD:
		return d.schedule()
	case d.message.Spec.Reference != nil:
		return d.referenceRecord(start)
	}
	n, err := d.record(start, "MSG", d.bodies)
	if n == nil || err != nil {
		return err
	}
	rec, err := d.flop(n)
	d.keep(rec, err)
	return nil
}

// record reads one record whole; nil when there is too much of it.
func (d *decoder) record(start token, above string, nth int) (*node, error) {
	n, whole, err := d.grove.tree(d.scanner, start)
	if err != nil {
		return nil, err
	}
	n.above, n.nth = above, nth
	if d.parts++; !whole || d.parts > maxParts {
		d.broken = n.broken("", "more than %d elements in a record, or %d records and entries in a message", maxElements, maxParts)
		return nil, nil
	}
	return n, nil
}

func (d *decoder) keep(rec Record, err error) {
	if err != nil {
		d.broken, d.records = err, nil
		return
	}
	d.records = append(d.records, rec)
}

// schedule reads SCHD: RECS and the FLTR.
func (d *decoder) schedule() error {
	const above = "MSG/SCHD"
	if d.bodies > 1 {
		d.keep(Record{}, fault.At(fault.Protocol, op, above, d.scanner.line(), "it may stand only once"))
		return d.scanner.skip()
	}
	d.flids = map[int64]struct{}{}
	var recs *recs
	count := 0
	for {
		child, ok, err := d.scanner.child()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch name := child.name; {
		case d.broken != nil:
			err = d.scanner.skip()
		case name == recsElem:
			recs, err = d.declared(child, recs)
		case name == "FLTR":
			count++
			err = d.flight(child, count)
		default:
			err = d.scanner.skip()
		}
		if err != nil {
			return err
		}
	}
	if d.broken == nil && recs != nil && recs.number != int64(count) {
		d.keep(Record{}, fault.At(fault.Protocol, op, above+"/RECS", recs.line, "RECS is %d and there are %d FLTR", recs.number, count))
	}
	return nil
}

// recs is the declared number of records.
type recs struct {
	number int64
	line   int
}

func (d *decoder) declared(start token, before *recs) (*recs, error) {
	n, err := d.record(start, "MSG/SCHD", 0)
	if n == nil || err != nil {
		return nil, err
	}
	v, err := FormInteger.read(n.text, d.zone)
	switch {
	case before != nil:
		d.broken = n.broken("", "it may stand only once")
	case err != nil:
		d.broken = n.broken("", "%w", err)
	case v.IsEmpty():
		d.broken = n.broken("", "it is not a number")
	}
	return &recs{number: v.Num, line: n.line}, nil
}

// flight reads one FLTR.
func (d *decoder) flight(start token, nth int) error {
	n, err := d.record(start, "MSG/SCHD", nth)
	if n == nil || err != nil {
		return err
	}
	rec, err := d.fltr(n)
	if _, twice := d.flids[rec.FLID]; err == nil && twice {
		err = n.broken("FLID", "%d stands twice in one package", rec.FLID)
	}
	d.flids[rec.FLID] = struct{}{}
	d.keep(rec, err)
	return nil
}
