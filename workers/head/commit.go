package head

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

// run is a batch that was judged: what one transaction commits.
type run struct {
	judged  []judged
	saves   []store.Save
	deeds   []store.Deed
	events  *outbox.Batch
	answers []store.Answer // only of messages that succeeded
}

// commit judges the batch and stores everything it does in one transaction under PIPELINE_LOCK (O2, O6). The flights are
// read inside it, or known since a transaction after which nobody else can have changed them.
func (h *Head) commit(ctx context.Context, f *lease.Fence, msgs []input) (run, error) {
	now := h.now().Truncate(time.Microsecond) // what PostgreSQL keeps: finished_at is the flights' updatedAt
	var r run
	committed := false
	defer func() {
		if !committed || h.memory.full() { // not committed: nor after a panic
			h.memory.forget()
		}
	}()
	err := f.Tx(ctx, func(tx pgx.Tx) error {
		g, err := h.seat(ctx, tx, h.memory.recall(f), msgs, now)
		if err != nil {
			return err
		}
		r = run{judged: make([]judged, len(msgs))}
		if err := db.Awake(ctx, tx, func() {
			for i, m := range msgs {
				r.judged[i] = g.next(m)
			}
			r.gather(h.config)
		}); err != nil {
			return err
		}
		if err := h.saveFlights(ctx, tx, r, now); err != nil {
			return err
		}
		if err := h.saveReferences(ctx, tx, &r, now); err != nil {
			return err
		}
		return h.saveMessages(ctx, tx, r, g, now)
	})
	committed = err == nil
	return r, err
}

// seat gives the judge what the batch needs to know.
func (h *Head) seat(ctx context.Context, tx pgx.Tx, m *memory, msgs []input, now time.Time) (*judge, error) {
	var (
		decoded []sis.Message
		keys    []string
	)
	for _, in := range msgs {
		if !hasMeta(in.msg) || in.msg.Ignored != "" {
			continue
		}
		keys = append(keys, h.config.Identity.Key(in.msg.Meta))
		if in.err == nil {
			decoded = append(decoded, in.msg)
		}
	}
	if err := h.learn(ctx, tx, m, flight.Needs(decoded...)); err != nil {
		return nil, err
	}
	ids, err := h.store.Identities(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	asked, err := h.asked(ctx, tx, decoded)
	if err != nil {
		return nil, err
	}
	config := h.config
	stands, err := h.bridgesFor(ctx, tx, decoded)
	if err != nil {
		return nil, err
	}
	if stands != nil {
		config.Flight.Bridges = stands
	}
	return &judge{config: config, set: m.set, ids: ids, rebound: map[string]bool{}, now: now, asked: asked}, nil
}

// learn reads the flights that m does not know.
func (h *Head) learn(ctx context.Context, tx pgx.Tx, m *memory, flids []int64) error {
	unknown := m.unknown(flids)
	flights, err := h.store.LoadFlights(ctx, tx, unknown)
	if err == nil {
		m.learn(unknown, flights)
	}
	return err
}

// gather makes one save a flight, in its last state, its history, and the batch's events; of schd only the newest a flight.
func (r *run) gather(c Config) {
	at := map[int64]int{} // FLID -> index in saves
	r.events = outbox.NewBatch(outbox.Options{Zone: c.Flight.Zone, MsgKey: c.MsgKey})
	for _, j := range r.judged {
		if j.answers != nil && j.verdict.State == message.Succeeded {
			r.answers = append(r.answers, *j.answers)
		}
		for _, ch := range j.outcome.Changes {
			i, ok := at[ch.After.FLID]
			if !ok {
				i = len(r.saves)
				at[ch.After.FLID] = i
				r.saves = append(r.saves, store.Save{})
			}
			s := &r.saves[i]
			s.After = ch.After
			s.Lists = union(s.Lists, ch.Lists)
			r.deeds = append(r.deeds, store.Deed{Pos: j.row.Pos, Meta: j.msg.Meta, Change: ch})
		}
		if len(j.outcome.Changes) > 0 {
			r.events.Add(j.cause(), j.outcome)
		}
	}
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// cause is what events say about the message behind them.
func (j judged) cause() outbox.Cause {
	return outbox.Cause{Pos: j.row.Pos, Meta: j.msg.Meta, ReceivedAt: j.arrived()}
}

// arrived is when the message was received, or taken over when the mailbox does not say.
func (j judged) arrived() time.Time {
	if j.row.ReceivedAt.IsZero() {
		return j.row.CreatedAt
	}
	return j.row.ReceivedAt
}

func (h *Head) saveFlights(ctx context.Context, tx pgx.Tx, r run, now time.Time) error {
	if len(r.saves) > 0 {
		events, err := h.store.EventWrites(ctx, tx, r.events.Len(), r.events.All(), now)
		if err != nil {
			return err
		}
		if err := store.WriteAll(ctx, tx, h.store.SaveFlights(r.saves), h.store.InsertHistory(r.deeds, now), events); err != nil {
			return err
		}
	}
	for _, j := range r.judged {
		if j.verdict.State == message.Succeeded && j.msg.Meta.TYPE == "SCHD" {
			if err := h.store.LogSnapshot(ctx, tx, j.snapshot()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j judged) snapshot() store.Snapshot {
	s := store.Snapshot{
		Pos: j.row.Pos, Kind: j.msg.Meta.Kind(), Records: len(j.msg.Records), ReceivedAt: j.arrived(),
		Created: j.outcome.Created, Updated: j.outcome.Updated, Unchanged: j.outcome.Unchanged,
	}
	for _, r := range j.msg.Records {
		sodt := time.Unix(r.Fields["sodt"].Num, 0)
		if s.From.IsZero() || sodt.Before(s.From) {
			s.From = sodt
		}
		if sodt.After(s.To) {
			s.To = sodt
		}
	}
	return s
}

// saveMessages writes identities and verdicts, and wakes who follows.
func (h *Head) saveMessages(ctx context.Context, tx pgx.Tx, r run, g *judge, now time.Time) error {
	if err := store.WriteAll(ctx, tx, h.bindings(g, now), h.verdicts(r, now)); err != nil {
		return err
	}
	if len(r.answers) > 0 {
		if err := h.store.AnswerRequests(ctx, tx, r.answers, now); err != nil {
			return err
		}
	}
	wake := []jobs.Role{jobs.RoleBackfill}
	if r.events.Len() > 0 {
		wake = followers()
	}
	return h.waker.Wake(ctx, tx, wake...)
}

// bindings makes the statement that binds the batch's identities, in the order of its messages: neighbours in the index come
// together.
func (h *Head) bindings(g *judge, now time.Time) store.Writes {
	return func(yield func(store.Write, error) bool) {
		bind := make([]store.Identity, len(g.order))
		for i, key := range g.order {
			bind[i] = g.ids[key]
		}
		if len(bind) > 0 {
			yield(func(ctx context.Context, tx pgx.Tx) error { return h.store.Bind(ctx, tx, bind, now) }, nil)
		}
	}
}

// verdicts makes the statement that says where each message goes.
func (h *Head) verdicts(r run, now time.Time) store.Writes {
	return func(yield func(store.Write, error) bool) {
		done := make([]store.Finished, len(r.judged))
		for i, j := range r.judged {
			done[i] = j.finished(h.config.Marks)
		}
		finish := h.store.Finish(done, now)
		yield(func(ctx context.Context, tx pgx.Tx) error {
			n, err := finish(ctx, tx)
			if err == nil && n != int64(len(done)) {
				err = fault.New(fault.Outage, "write message states", "%d of %d messages were still unfinished: somebody else moved them", n, len(done))
			}
			return err
		}, nil)
	}
}
