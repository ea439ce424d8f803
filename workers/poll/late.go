package poll

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
)

const (
	// passedLimit is how many passed holes are remembered, the newest ones, and passedKeep how long: a row that comes later
	// still is not found. rangesPerRead bounds one statement.
	passedLimit   = 1000
	passedKeep    = 7 * 24 * time.Hour
	rangesPerRead = 100
	// lateLimit bounds the late rows of one look; the others are found by the next.
	lateLimit = 500
)

// passed gives where late rows may turn up: the holes that were passed and, where ids come in steps, what lies between.
// It forgets those that have been passed for too long.
func (p *Poll) passed(ctx context.Context, f *lease.Fence, c inbox.Cursor) ([]inbox.Hole, error) {
	read := func() ([]inbox.Hole, time.Time, error) {
		return p.store.PassedHoles(ctx, p.pool, p.config.Lane, c.Generation, passedLimit+1)
	}
	holes, since, err := read()
	if err != nil {
		return nil, err
	}
	if before := p.now().Add(-passedKeep); len(holes) > passedLimit || len(holes) > 0 && since.Before(before) {
		err := f.Tx(ctx, func(tx pgx.Tx) error {
			if err := p.lock(ctx, tx, c); err != nil {
				return err
			}
			_, err := p.store.PrunePassedHoles(ctx, tx, p.config.Lane, c.Generation, before, passedLimit)
			return err
		})
		if err != nil {
			return nil, err
		}
		if holes, _, err = read(); err != nil {
			return nil, err
		}
	}
	between, err := p.between(ctx, c)
	holes = append(holes, between...)
	slices.SortFunc(holes, func(a, b inbox.Hole) int { return cmp.Compare(a.First, b.First) })
	return holes, err
}

// between gives, where ids come in steps, the newest rows with ids between those we took. Fewer ids than a step are no
// hole (K13), but a second writer with another offset is given just those, and may commit after W has gone by (K11). When
// we know none of the rows that are there, ids were given out again, and none of them is late.
func (p *Poll) between(ctx context.Context, c inbox.Cursor) ([]inbox.Hole, error) {
	if p.step == 1 || c.W == 0 {
		return nil, nil
	}
	rows, err := p.mailbox.In(ctx, []inbox.Range{inbox.TailOf(c.W, p.step)}, inbox.StartTail*int(p.step))
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	unknown, err := p.store.Unknown(ctx, p.pool, c.Generation, ids)
	if err != nil || len(unknown) == len(ids) {
		return nil, err
	}
	out := make([]inbox.Hole, len(unknown))
	for i, id := range unknown {
		out[i] = inbox.Hole{Range: inbox.Range{First: id, Last: id}, FirstSeen: p.now()}
	}
	return out, nil
}

// late finds rows in holes that were passed, tells them and, by policy, enqueues them.
func (p *Poll) late(ctx context.Context, f *lease.Fence, c inbox.Cursor, passed []inbox.Hole) error {
	var found []inbox.Row
	for part := range slices.Chunk(passed, rangesPerRead) {
		rows, err := p.mailbox.In(ctx, ranges(part), lateLimit)
		if err != nil {
			return err
		}
		if found = append(found, rows...); len(found) >= lateLimit {
			break
		}
	}
	found = slices.DeleteFunc(found, func(r inbox.Row) bool { return p.told[r.ID] })
	if len(found) > 0 && p.config.Late == inbox.Apply {
		var err error
		if found, err = p.apply(ctx, f, c, passed, found); err != nil {
			return err
		}
	}
	for _, r := range found {
		p.metrics.late.Inc()
		p.log.WarnContext(ctx, "late arrival", "lane", p.config.Lane, "msg_id", r.ID,
			"trace_id", outbox.TraceID(message.Position{Generation: c.Generation, ID: r.ID}), "policy", string(p.config.Late), "watermark", c.W)
		if p.config.Late == inbox.Report { // it stays in its hole, so that it is never taken for a sign of ids running backwards
			p.told[r.ID] = true
		}
	}
	return nil
}

// apply enqueues late rows, as many as fit into memory together, and gives those. They are in no passed hole any more.
func (p *Poll) apply(ctx context.Context, f *lease.Fence, c inbox.Cursor, passed []inbox.Hole, found []inbox.Row) ([]inbox.Row, error) {
	rows, _ := inbox.Late(passed, found)
	incoming, err := p.loadEach(ctx, rows)
	if err != nil {
		return nil, err
	}
	rows = rows[:len(incoming)]
	filled := slices.DeleteFunc(slices.Clone(passed), func(h inbox.Hole) bool {
		return !slices.ContainsFunc(rows, func(r inbox.Row) bool { return h.Contains(r.ID) })
	})
	_, remaining := inbox.Late(filled, rows)
	now := p.now()
	err = f.Tx(ctx, func(tx pgx.Tx) error {
		if err := p.lock(ctx, tx, c); err != nil {
			return err
		}
		if err := p.store.ReplacePassedHoles(ctx, tx, p.config.Lane, c.Generation, filled, remaining, now); err != nil {
			return err
		}
		if _, err := p.store.Enqueue(ctx, tx, c.Generation, incoming, true, now); err != nil {
			return err
		}
		return p.waker.Wake(ctx, tx, jobs.RoleHead)
	})
	if err == nil {
		p.waker.Ring(jobs.RoleHead)
	}
	return rows, err
}

// loadEach loads rows that may lie far apart, as many as fit into memory together.
func (p *Poll) loadEach(ctx context.Context, rows []inbox.Row) ([]store.Incoming, error) {
	var out []store.Incoming
	bytes := 0
	for _, r := range rows {
		if bytes >= maxPackedBytes {
			break
		}
		in, _, err := p.load(ctx, []inbox.Row{r})
		if err != nil {
			return nil, err
		}
		out = append(out, in...)
		bytes += in[0].PackedBytes()
	}
	return out, nil
}

func ranges(holes []inbox.Hole) []inbox.Range {
	out := make([]inbox.Range, len(holes))
	for i, h := range holes {
		out[i] = h.Range
	}
	return out
}
