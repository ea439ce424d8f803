package flight

import (
	"fmt"
	"slices"
	"time"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// Bridges knows the airbridges of a stand, in the order of the reference data's key. A remote or unknown stand has none.
type Bridges interface {
	Bridges(stand string) []string
}

// Options are what Decide must be told about the site.
type Options struct {
	// Zone is the operation day's and CutoffHour the hour at which it begins; Zone must not be nil.
	Zone       *time.Location
	CutoffHour int
	// DetachOnMasterDelete keeps the children of a deleted master, unlinked, instead of deleting them with it.
	DetachOnMasterDelete bool
	// Bridges may be nil: then no stand has any.
	Bridges Bridges
}

// Op is what became of a flight.
type Op string

// The closed set of ops, as they are spelled in events.
const (
	Create Op = "CREATE"
	Update Op = "UPDATE"
	Delete Op = "DELETE"
)

// AllOps lists the ops.
func AllOps() []Op { return []Op{Create, Update, Delete} }

// Change is the new state of one flight. All of it must be stored, together or not at all with the rest of the outcome.
type Change struct {
	// Op is empty when nothing changed that anybody sees: only who said it, or a push-back or tractor time of a stand the
	// flight does not have, or a flight that came too late to live. Such a change has no event and no version of its own.
	Op Op
	// Before is nil for a flight never heard of, and deleted for one that is created again.
	Before, After *Flight
	// Fields are the top-level names of the flight JSON that differ, in its order; all that are set for Create.
	Fields []string
	// Lists are the names of the lists whose entries differ from those before, in the order of the catalogue: psht and tipt
	// among them, and what a flight that is created again no longer has.
	Lists []string
	// Master is the live flight through which a change to a child is announced, as it is after the message; else nil.
	Master *Flight
}

// Outcome is everything one message does.
type Outcome struct {
	// Changes has each flight at most once: those the message names in its order, then what follows from them.
	Changes []Change
	// Created, Updated and Unchanged count the flights that the message names.
	Created, Updated, Unchanged int
	// Loops are the flights whose link as a child, made by this message, leads back to themselves: nobody stands for them,
	// so that they are on schd and among all flights no more. A defect of the sender's, to be told.
	Loops []int64
}

// Decide says what m does to the flights it names, at being when. Pure: same input, same outcome; v must hold what Needs
// asks for and is left as it is. A fault.Protocol refuses the whole message and nothing of it may be stored (design §6).
func Decide(v View, m sis.Message, pos message.Position, at time.Time, opt Options) (Outcome, error) {
	d := decision{
		base: v, now: layered{v, NewSet()}, pos: pos, opt: opt,
		at: at.UTC().Truncate(time.Microsecond), // what PostgreSQL keeps, so that an event shows what a query will
	}
	for i := range m.Records {
		r := &m.Records[i]
		switch {
		case r.Delete:
			d.delete(d.now.Flight(r.FLID), pos)
		case m.Meta.TYPE == sis.TypeSCHD:
			if err := d.schedule(i, r); err != nil {
				return Outcome{}, err
			}
		default:
			d.operate(r)
		}
	}
	d.relink()
	return d.outcome(m.Records), nil
}

// decision is the work on one message.
type decision struct {
	base    View    // before the message
	now     layered // with all that was decided so far
	touched []int64 // the flights in now.top, in the order in which they came
	pos     message.Position
	at      time.Time
	opt     Options
}

// edit gives a known flight for changing, in the state that this message has brought it to so far.
func (d *decision) edit(flid int64) edit {
	f := d.now.top.Flight(flid)
	if f == nil {
		f = d.base.Flight(flid).Clone()
		d.touch(f)
	}
	return edit{f, d.pos, d.opt}
}

// touch makes f the state of its flight.
func (d *decision) touch(f *Flight) {
	if d.now.top.Flight(f.FLID) == nil {
		d.touched = append(d.touched, f.FLID)
	}
	d.now.top.Put(f)
}

// schedule applies an FLTR: it creates the flight or changes it. One that is older than the deletion does nothing.
func (d *decision) schedule(i int, r *sis.Record) error {
	day := DayOf(time.Unix(r.Fields["sodt"].Num, 0), d.opt.Zone, d.opt.CutoffHour)
	f := d.now.Flight(r.FLID)
	switch {
	case f == nil:
		d.touch(newFlight(r.FLID, day, d.pos))
	case f.deletion().After(d.pos):
		return nil
	case !f.Live():
		d.touch(f.again(day, d.pos))
	case f.OperationDay != day:
		return d.refuse(i, "flight %d is of operation day %s, SODT now falls on %s", r.FLID, f.OperationDay, day)
	}
	e := d.edit(r.FLID)
	e.record(r)
	if e.takes(keyScheduled) {
		e.f.Provenance[keyScheduled] = d.pos
	}
	if e.f.CreatedBy.After(d.pos) { // late, but in order it would have been the one
		e.f.CreatedBy = d.pos
	}
	d.now.top.Put(e.f)
	if gone := d.now.Flight(e.f.Master()).deletion(); gone.After(d.pos) && e.f.Provenance["maid"] == d.pos {
		d.orphan(e.f, gone) // late: in order, the deletion of its master would have met this child
	}
	return nil
}

func (d *decision) refuse(i int, format string, args ...any) error {
	err := fault.At(fault.Protocol, "decide", fmt.Sprintf("MSG/SCHD/FLTR[%d]/SODT", i+1), 0, format, args...)
	err.MsgID = d.pos.ID
	return err
}

// operate applies a FLOP. It does nothing to a flight that is not there, or was not there yet when the message arrived.
func (d *decision) operate(r *sis.Record) {
	f := d.now.Flight(r.FLID)
	if !f.Live() || f.CreatedBy.After(d.pos) {
		return
	}
	e := d.edit(r.FLID)
	e.record(r)
	d.now.top.Put(e.f)
}

// delete ends a flight by a message that says so, of it or of its master, and its children with it or their link to it. A
// deletion older than the schedule that brought the flight does nothing; one newer than the deletion takes its place, so
// that schedules between the two stay without effect.
func (d *decision) delete(f *Flight, by message.Position) {
	switch {
	case f == nil, f.Swept, f.CreatedBy.After(by), f.Provenance[keyScheduled].After(by), f.DeletedBy.After(by):
		return
	case !f.Live():
		d.edit(f.FLID).f.DeletedBy = by
		return
	}
	e := d.edit(f.FLID)
	e.f.DeletedBy, e.f.DeletedAt, e.f.MAFL = by, d.at, nil
	d.now.top.Put(e.f)
	for _, child := range d.now.Children(f.FLID) {
		d.orphan(child, by)
	}
}

// orphan does to a child what the deletion of its master means for it, unless it was linked only later: it goes too, or it
// stays, unlinked, because the site wants that or because a newer schedule brought it.
func (d *decision) orphan(child *Flight, by message.Position) {
	if child.Provenance["maid"].After(by) {
		return
	}
	if !d.opt.DetachOnMasterDelete {
		d.delete(child, by)
	}
	if !d.now.Flight(child.FLID).Live() {
		return
	}
	e := d.edit(child.FLID)
	e.pos = by
	e.scalars(sis.Fields{"maid": {}, "csop": {}, "csft": {}})
	d.now.top.Put(e.f)
}

// relink brings MAFL of every flight up to date that may have lost or won a child (dictionary 8), each once: one message may
// link 50,000 children to one master.
func (d *decision) relink() {
	counted := map[int64]bool{}
	count := func(flid int64) {
		if !counted[flid] {
			counted[flid] = true
			d.countChildren(flid)
		}
	}
	for _, flid := range slices.Clone(d.touched) {
		count(flid)
		count(d.now.Flight(flid).Master())
		if before := d.base.Flight(flid); before != nil {
			count(before.Master())
		}
	}
}

func (d *decision) countChildren(flid int64) {
	master := d.now.Flight(flid)
	if !master.Live() {
		return
	}
	var mafl []string
	for _, child := range d.now.Children(flid) {
		mafl = append(mafl, child.FLNO())
	}
	slices.Sort(mafl)
	if !slices.Equal(mafl, master.MAFL) {
		d.edit(flid).f.MAFL = mafl
	}
}

// linked says that a change made a flight somebody else's child.
func (c Change) linked() bool {
	is := c.After.Live() && c.After.Master() != 0
	return is && (!c.Before.Live() || c.Before.Master() != c.After.Master())
}

// looped says that the masters of f, a child, lead back to it. What was learned about the flights on the way is kept in known,
// so that a chain of many children is walked once.
func (d *decision) looped(f *Flight, known map[int64]bool) bool {
	var way []int64
	m := f
	for m.Live() {
		if _, met := known[m.FLID]; met {
			break
		}
		known[m.FLID] = false
		way = append(way, m.FLID)
		m = d.now.Flight(m.Master())
	}
	if m.Live() { // met before: on this way, which makes a loop of its end, or on an earlier one
		if i := slices.Index(way, m.FLID); i >= 0 {
			for _, flid := range way[i:] {
				known[flid] = true
			}
		}
	}
	return known[f.FLID]
}

// outcome compares what is with what was: the versions step, and who is announced through whom is settled.
func (d *decision) outcome(records []sis.Record) Outcome {
	o := Outcome{Changes: make([]Change, 0, len(d.touched))}
	known := map[int64]bool{}
	for _, flid := range d.touched {
		c := compare(d.base.Flight(flid), d.now.Flight(flid))
		if c.Op == "" && !c.silent() {
			continue
		}
		if f := c.After; c.Op != "" || c.Before == nil {
			f.Version, f.LastMessage, f.UpdatedAt = f.Version+1, d.pos, d.at
			f.Published = f.Live() && f.Master() == 0
		}
		if c.linked() && d.looped(c.After, known) {
			o.Loops = append(o.Loops, c.After.FLID)
		}
		o.Changes = append(o.Changes, c)
	}
	for i := range o.Changes {
		c := &o.Changes[i]
		if master := d.now.Flight(c.After.Master()); c.Op != "" && master.Live() {
			c.Master = master
		}
	}
	o.count(records)
	return o
}

func (o *Outcome) count(records []sis.Record) {
	if len(records) == 1 { // nearly always: no maps for it
		at := slices.IndexFunc(o.Changes, func(c Change) bool { return c.After.FLID == records[0].FLID })
		if at < 0 {
			o.add("")
		} else {
			o.add(o.Changes[at].Op)
		}
		return
	}
	ops := make(map[int64]Op, len(o.Changes))
	for _, c := range o.Changes {
		ops[c.After.FLID] = c.Op
	}
	named := make(map[int64]bool, len(records))
	for _, r := range records {
		if named[r.FLID] {
			continue
		}
		named[r.FLID] = true
		o.add(ops[r.FLID])
	}
}

func (o *Outcome) add(op Op) {
	switch op {
	case Create:
		o.Created++
	case Update, Delete:
		o.Updated++
	default:
		o.Unchanged++
	}
}
