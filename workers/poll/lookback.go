package poll

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/inbox"
)

const (
	// passedLimit and rangesPerRead bound the look into passed holes: the newest ones, so many in one statement.
	passedLimit   = 1000
	rangesPerRead = 100
	// lateLimit bounds the late rows of one look; the others are found by the next.
	lateLimit = 500
	// tail is how many ids below the end of the mailbox are compared with what we hold.
	tail = 20
	// tailBytes bounds the texts held for that.
	tailBytes = 4 << 20
)

// lookBack looks at what lies at or below the watermark: rows that came late, and ids that run backwards. stopped says
// that the lane is stopped now.
func (p *Poll) lookBack(ctx context.Context, f *lease.Fence, c inbox.Cursor) (stopped bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	extent, step, err := p.server.Facts(ctx)
	if err != nil {
		return false, err
	}
	p.step = step
	p.tellCleaned(ctx, extent, c)
	passed, err := p.store.PassedHoles(ctx, p.pool, p.config.Lane, c.Generation, passedLimit)
	if err != nil {
		return false, err
	}
	regressed, err := p.regressed(ctx, extent, c, passed)
	if err != nil {
		return false, err
	}
	if regressed != 0 {
		return true, p.stop(ctx, f, c, regressed)
	}
	return false, p.late(ctx, f, c, passed)
}

// tellCleaned warns, once, that the mailbox ends below the watermark: by itself only a sign that its owner cleaned up.
func (p *Poll) tellCleaned(ctx context.Context, extent inbox.Extent, c inbox.Cursor) {
	cleaned := extent.Max < c.W
	if cleaned && !p.cleaned {
		p.log.WarnContext(ctx, "mailbox ends below the watermark", "lane", p.config.Lane, "highest_id", extent.Max, "watermark", c.W)
	}
	p.cleaned = cleaned
}

// regressed compares the end of what is at or below the watermark with what we hold; it gives an id that shows that ids
// are given out again, or 0 (K14).
func (p *Poll) regressed(ctx context.Context, extent inbox.Extent, c inbox.Cursor, passed []inbox.Hole) (int64, error) {
	top := min(extent.Max, c.W)
	if top <= 0 {
		return 0, nil
	}
	var (
		msgs  []inbox.Message
		bytes int
	)
	for m, err := range p.mailbox.Texts(ctx, inbox.Range{First: top - tail*p.step + 1, Last: top}) {
		if err != nil {
			return 0, err
		}
		if bytes += len(m.Text); bytes > tailBytes {
			break
		}
		if !slices.ContainsFunc(passed, func(h inbox.Hole) bool { return h.Contains(m.ID) }) {
			msgs = append(msgs, m)
		}
	}
	memories, err := p.store.Memories(ctx, p.pool, c.Generation, msgs)
	if err != nil {
		return 0, err
	}
	for _, m := range msgs {
		if inbox.Regressed(c, m.Row, memories[m.ID]) {
			return m.ID, nil
		}
	}
	return 0, nil
}

// stop stops the lane until an operator reseeds it.
func (p *Poll) stop(ctx context.Context, f *lease.Fence, c inbox.Cursor, id int64) error {
	var first bool
	err := f.Tx(ctx, func(tx pgx.Tx) (err error) {
		if err := p.lock(ctx, tx, c); err != nil {
			return err
		}
		first, err = p.store.StopInbox(ctx, tx, p.config.Lane, c.Generation, inbox.IDRegression, p.now())
		return err
	})
	if err == nil && first {
		p.log.ErrorContext(ctx, "inbox stopped", "lane", p.config.Lane, "reason", string(inbox.IDRegression), "msg_id", id, "watermark", c.W)
	}
	return err
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
		p.log.WarnContext(ctx, "late arrival", "lane", p.config.Lane, "msg_id", r.ID, "policy", string(p.config.Late), "watermark", c.W)
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
