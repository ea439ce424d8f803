package poll

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/lease"
	"msgexchange/db/store"
	"msgexchange/jobs"
	"msgexchange/jobs/inbox"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

const (
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
	passed, err := p.passed(ctx, f, c)
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
		held := memories[m.ID]
		held.SameMessage = !held.SameText && sameMessage(held, m)
		switch {
		case inbox.Regressed(c, m.Row, held.Memory):
			return m.ID, nil
		case inbox.Edited(m.Row, held.Memory) && !p.edited[m.ID]:
			p.edited[m.ID] = true
			p.metrics.edited.Inc()
			p.log.WarnContext(ctx, "mailbox row edited", "lane", p.config.Lane, "msg_id", m.ID,
				"trace_id", outbox.TraceID(message.Position{Generation: c.Generation, ID: m.ID}), "hint", "what was taken over stands")
		}
	}
	return 0, nil
}

// sameMessage says that m is what we hold with its text changed in place: it has the same identity, or no text any more.
func sameMessage(held store.Held, m inbox.Message) bool {
	if m.Size == 0 {
		return true
	}
	was, _ := sis.Decode(held.Text, sis.Options{})
	is, _ := sis.Decode([]byte(m.Text), sis.Options{})
	return was.Meta.TYPE != "" && was.Meta.IdentityKey() == is.Meta.IdentityKey()
}

// stop stops the lane until an operator reseeds it.
func (p *Poll) stop(ctx context.Context, f *lease.Fence, c inbox.Cursor, id int64) error {
	var first bool
	err := f.Tx(ctx, func(tx pgx.Tx) (err error) {
		if err := p.lock(ctx, tx, c); err != nil {
			return err
		}
		if first, err = p.store.StopInbox(ctx, tx, p.config.Lane, c.Generation, inbox.IDRegression, p.now()); err != nil {
			return err
		}
		return p.waker.Wake(ctx, tx, jobs.RoleHead) // for what was registered ahead of W
	})
	if err == nil && first {
		p.waker.Ring(jobs.RoleHead)
		p.log.ErrorContext(ctx, "inbox stopped", "lane", p.config.Lane, "reason", string(inbox.IDRegression), "msg_id", id, "watermark", c.W)
	}
	return err
}
