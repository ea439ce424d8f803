package simulator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Incident is something that goes wrong once, for whoever is on call to find and to resolve by docs/runbook.md. The stored
// spelling is the value.
type Incident string

// The closed set of incidents.
const (
	Poison         Incident = "poison"          // a message is broken; at the end its sender sends it anew
	DeadEvent      Incident = "dead-event"      // a record is larger than Kafka takes; at the end Kafka takes it
	StuckHead      Incident = "stuck-head"      // messages of a kind that nobody knows: each is tried until it is given up
	Unmarked       Incident = "unmarked"        // somebody's transaction holds the row of a finished message until the end
	HoleOpen       Incident = "hole"            // an id is missing; its transaction commits at the end
	LateRow        Incident = "late-row"        // the same, but the end is after the hole was passed
	ExpiredRequest Incident = "expired-request" // the simulated airport takes no requests until the end
	StaleList      Incident = "stale-list"      // a list of reference data comes thirty hours after it was made
)

// AllIncidents lists the incidents.
func AllIncidents() []Incident {
	return []Incident{Poison, DeadEvent, StuckHead, Unmarked, HoleOpen, LateRow, ExpiredRequest, StaleList}
}

// Drill lets an incident happen in a mailbox and ends it as those would whom the runbook tells to ask: the sender, the
// mailbox's owner, the airport's operators, Kafka's administrators. It uses a flight of its own.
type Drill struct {
	DB    *sql.DB
	Table string         // the inbound table
	Zone  *time.Location // of the mailbox's times
	// Airport is whose flight it is. Its seed's last digit must differ from that of every other stream in the mailbox.
	Airport Options
	// Lasts is how long an incident goes on that has an end; 0: until ctx ends. A late row must outlast max-commit-delay.
	Lasts time.Duration
	Rows  int // how many messages are poison, or stuck; 0 means one
	// Raise is what Kafka's administrators do about a dead event; nil: nobody raises the limit, the sender shortens the text.
	Raise func(context.Context) error
	Say   func(string)     // is told what happens, in sentences
	Now   func() time.Time // default time.Now

	made int64
}

// ending ends an incident.
type ending struct {
	who string // and does what: "the sender sends it anew"
	do  func(context.Context) error
}

// Run lets i happen, and ends it when its time is over or ctx ends, which is no error. It must not be called again.
func (d *Drill) Run(ctx context.Context, i Incident) error {
	if d.Now == nil {
		d.Now = time.Now
	}
	d.Rows = max(d.Rows, 1)
	begin := map[Incident]func(context.Context) (ending, error){
		Poison: d.poison, DeadEvent: d.deadEvent, StuckHead: d.stuckHead, Unmarked: d.unmarked, HoleOpen: d.hole, LateRow: d.hole,
		ExpiredRequest: d.expiredRequest, StaleList: d.staleList,
	}[i]
	if begin == nil {
		return fmt.Errorf("simulator: there is no incident %q", i)
	}
	end, err := begin(ctx)
	if err != nil {
		return fmt.Errorf("simulator: %s: %w", i, err)
	}
	if end.do == nil {
		return nil
	}
	d.wait(ctx, end.who)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := end.do(ctx); err != nil {
		return fmt.Errorf("simulator: end %s: %w", i, err)
	}
	d.say("Done: %s.", end.who)
	return nil
}

func (d *Drill) say(format string, args ...any) { d.Say(fmt.Sprintf(format, args...)) }

// wait waits for the end.
func (d *Drill) wait(ctx context.Context, who string) {
	if d.Lasts == 0 {
		d.say("Ctrl-C: %s.", who)
		<-ctx.Done()
		return
	}
	d.say("In %s, or at Ctrl-C: %s.", d.Lasts, who)
	select {
	case <-ctx.Done():
	case <-time.After(d.Lasts):
	}
}

func (d *Drill) poison(ctx context.Context) (ending, error) {
	f, err := d.flight()
	if err != nil {
		return ending{}, err
	}
	for n := range d.Rows {
		id, err := d.insert(ctx, 0, spoil(d.text(*schedule("ADFT", []*flight{f})), n), d.Now())
		if err != nil {
			return ending{}, err
		}
		d.say("Row %d is broken.", id)
	}
	return ending{"the sender sends it anew", func(ctx context.Context) error { return d.announce(ctx, f) }}, nil
}

// announce sends a flight as an additional one.
func (d *Drill) announce(ctx context.Context, f *flight) error {
	id, err := d.send(ctx, *schedule("ADFT", []*flight{f}))
	if err == nil {
		d.say("Row %d brings flight %d, %s.", id, f.id, f.number)
	}
	return err
}

// hugeBytes is more than a topic takes by default (1 MB), and stays more when it is compressed.
const hugeBytes = 3 << 20

func (d *Drill) deadEvent(ctx context.Context) (ending, error) {
	f, err := d.flight()
	if err != nil {
		return ending{}, err
	}
	if err := d.announce(ctx, f); err != nil {
		return ending{}, err
	}
	id, err := d.send(ctx, *f.flop("REMC", el("REMC", noise(hugeBytes))))
	if err != nil {
		return ending{}, err
	}
	d.say("Row %d gives flight %d a remark of %d MiB.", id, f.id, hugeBytes>>20)
	if d.Raise != nil {
		return ending{"Kafka's administrators raise max.message.bytes", d.Raise}, nil
	}
	return ending{"the sender shortens the remark", func(ctx context.Context) error {
		_, err := d.send(ctx, *f.flop("REMC", el("REMC", "short again")))
		return err
	}}, nil
}

// noise is text that compresses badly, the same each time.
func noise(n int) string {
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789 .,;:-"
	rnd := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		b.WriteByte(letters[rnd.IntN(len(letters))])
	}
	return b.String()
}

func (d *Drill) stuckHead(ctx context.Context) (ending, error) {
	for range d.Rows {
		id, err := d.send(ctx, draft{typ: "FLOP", styp: "ZZZZ", body: []element{group("FLOP", num("FLID", 1))}})
		if err != nil {
			return ending{}, err
		}
		d.say("Row %d is of a kind that nobody knows. It holds the line until it is given up.", id)
	}
	return ending{}, nil
}

// held is the status of a row whose transaction is still open. On a real server nobody else ever sees it; the demo's mailbox,
// which has no transactions, lets nobody else change such a row.
const held = "HELD"

func (d *Drill) unmarked(ctx context.Context) (ending, error) {
	f, err := d.flight()
	if err != nil {
		return ending{}, err
	}
	const tries = 20 // it may be marked before we hold it
	for range tries {
		id, err := d.send(ctx, *schedule("ADFT", []*flight{f}))
		if err != nil {
			return ending{}, err
		}
		tx, err := d.hold(ctx, id)
		if err != nil {
			return ending{}, err
		}
		if tx == nil {
			continue
		}
		d.say("Row %d is held by an open transaction.", id)
		return ending{"the mailbox's owner ends the transaction", func(ctx context.Context) error {
			_, err := tx.ExecContext(ctx, "UPDATE "+quote(d.Table)+" SET CMINMSGS_STATUS = 'VALID' WHERE CMINMSGS_ID = ?", id)
			return errors.Join(err, tx.Commit())
		}}, nil
	}
	return ending{}, errors.New("every row was marked sooner than it could be held")
}

// hold opens a transaction that has changed the row, or gives none when the row is marked already.
func (d *Drill) hold(ctx context.Context, id int64) (*sql.Tx, error) {
	tx, err := d.DB.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return nil, err
	}
	const change = " SET CMINMSGS_STATUS = ? WHERE CMINMSGS_ID = ? AND CMINMSGS_DATE_PROCESSED IS NULL"
	r, err := tx.ExecContext(ctx, "UPDATE "+quote(d.Table)+change, held, id)
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	if n, err := r.RowsAffected(); n == 0 || err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx, nil
}

// hole leaves out an id, as a transaction does that is not committed yet.
func (d *Drill) hole(ctx context.Context) (ending, error) {
	f, err := d.flight()
	if err != nil {
		return ending{}, err
	}
	missing, err := d.skip(ctx, f)
	if err != nil {
		return ending{}, err
	}
	d.say("Row %d is missing.", missing)
	return ending{fmt.Sprintf("the mailbox's owner commits row %d", missing), func(ctx context.Context) error {
		_, err := d.insert(ctx, missing, d.text(*f.flop("REMC", el("REMC", "late by a transaction"))), d.Now())
		return err
	}}, nil
}

// skip sends two messages with one id between them left out, and gives that.
func (d *Drill) skip(ctx context.Context, f *flight) (missing int64, err error) {
	var step int64
	if err := d.DB.QueryRowContext(ctx, "SELECT @@auto_increment_increment").Scan(&step); err != nil {
		return 0, err
	}
	const tries = 20 // somebody else may take the id first
	for range tries {
		first, err := d.send(ctx, *schedule("ADFT", []*flight{f}))
		if err != nil {
			return 0, err
		}
		missing = first + step
		if _, err = d.insert(ctx, missing+step, d.text(*f.flop("FTSS", el("FTSS", "DLY"))), d.Now()); err != nil {
			continue
		}
		var taken int
		err = d.DB.QueryRowContext(ctx, "SELECT count(*) FROM "+quote(d.Table)+" WHERE CMINMSGS_ID = ?", missing).Scan(&taken)
		if err != nil || taken == 0 {
			return missing, err
		}
	}
	return 0, errors.New("somebody else took every id that was to be left out")
}

func (d *Drill) expiredRequest(ctx context.Context) (ending, error) {
	release, got, err := lockTransport(ctx, d.DB, transportPatience)
	if err == nil && !got {
		err = errors.New("somebody else keeps the transport from working already")
	}
	if err != nil {
		return ending{}, err
	}
	d.say("Nobody takes requests any more.")
	return ending{"the airport's operators start the transport again", release}, nil
}

// staleAge is how old the list is.
const staleAge = 30 * time.Hour

func (d *Drill) staleList(ctx context.Context) (ending, error) {
	id, err := d.insert(ctx, 0, d.text(list("DLYL", delayRecords())), d.Now().Add(-staleAge))
	if err == nil {
		d.say("Row %d brings the list DLYL as it was %s ago.", id, staleAge)
	}
	return ending{}, err
}

// flight is the drill's own, the first master of its day.
func (d *Drill) flight() (*flight, error) {
	o := d.Airport.withDefaults()
	y, m, day := o.Day.In(o.Zone).Date()
	flights, err := flightsOf(o, time.Date(y, m, day, 0, 0, 0, 0, o.Zone))
	if err != nil {
		return nil, err
	}
	for _, f := range flights {
		if f.master == nil {
			f.link = nil
			f.remark = "drill of " + d.Now().In(o.Zone).Format(time.TimeOnly)
			return f, nil
		}
	}
	return nil, errors.New("the day has no flights")
}

// drillSender signs, so that no counter of another sender is met.
const drillSender = "DRIL"

// text puts the envelope on. Its number comes from the clock: drills may be repeated.
func (d *Drill) text(body draft) string {
	d.made++
	now := d.Now()
	seqn := firstSEQN + (now.UnixMilli()/10+d.made)%(lastSEQN-firstSEQN)
	return enclosed(drillSender, seqn, now.In(d.Airport.withDefaults().Zone), body)
}

func (d *Drill) send(ctx context.Context, body draft) (id int64, err error) {
	return d.insert(ctx, 0, d.text(body), d.Now())
}

// insert writes one row, under an id of its own or, with 0, the next one, and gives the id.
func (d *Drill) insert(ctx context.Context, id int64, text string, received time.Time) (int64, error) {
	columns, places, args := "", "", []any{text, received.In(d.Zone).Format(time.DateTime)}
	if id != 0 {
		columns, places, args = ", CMINMSGS_ID", ", ?", append(args, id)
	}
	r, err := d.DB.ExecContext(ctx, "INSERT INTO "+quote(d.Table)+
		" (CMINMSGS_CLOB_MSG, CMINMSGS_DATE_RECEIVED, CMINMSGS_STATUS"+columns+") VALUES (?, ?, 'VALID'"+places+")", args...)
	if err != nil || id != 0 {
		return id, err
	}
	return r.LastInsertId()
}
