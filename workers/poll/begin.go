package poll

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/lease"
	"msgexchange/jobs/inbox"
)

// begin makes the lane's row, learns the server's id step and seeds the watermark where that is wanted and allowed.
func (p *Poll) begin(ctx context.Context, f *lease.Fence) error {
	now := p.now()
	err := f.Tx(ctx, func(tx pgx.Tx) error { return p.store.EnsureInbox(ctx, tx, p.config.Lane, now) })
	if err != nil {
		return err
	}
	in, _, err := p.store.Inbox(ctx, p.pool, p.config.Lane)
	if err != nil {
		return err
	}
	extent, step, err := p.server.Facts(ctx)
	if err != nil {
		return err
	}
	p.step = step
	if p.config.Cutover != "" && in.SeededAt.IsZero() {
		return p.seed(ctx, f, extent, now)
	}
	if p.config.Cutover == "" && in.Cursor.W == 0 && extent.Min > step {
		p.log.WarnContext(ctx, "ids below the lowest are waited for", "lane", p.config.Lane, "lowest_id", extent.Min,
			"wait", time.Duration(p.config.MaxCommitDelay).String(), "hint", "pipeline.cutover-watermark=min begins there at once")
	}
	return nil
}

// seed sets the watermark of an empty lane, once.
func (p *Poll) seed(ctx context.Context, f *lease.Fence, extent inbox.Extent, now time.Time) error {
	start, err := startOf(ctx, p.mailbox, p.config.Cutover, extent, p.step, now)
	if err != nil {
		return err
	}
	var done bool
	err = f.Tx(ctx, func(tx pgx.Tx) (err error) {
		done, err = p.store.SeedInbox(ctx, tx, p.config.Lane, start, now)
		return err
	})
	switch {
	case err != nil:
		return err
	case done:
		p.log.InfoContext(ctx, "lane seeded", "lane", p.config.Lane, "from", string(start.From), "watermark", start.W)
	default:
		p.log.WarnContext(ctx, "cut-over refused", "lane", p.config.Lane, "from", string(start.From), "why", "the lane has begun already")
	}
	return nil
}

// startOf looks at where a lane is to begin.
func startOf(ctx context.Context, m Mailbox, from inbox.Cutover, extent inbox.Extent, step int64, now time.Time) (inbox.Start, error) {
	w, err := from.Watermark(extent)
	if err != nil {
		return inbox.Start{}, err
	}
	tail, err := m.In(ctx, []inbox.Range{inbox.TailOf(w, step)}, inbox.StartTail*int(step))
	if err != nil {
		return inbox.Start{}, err
	}
	return inbox.StartAt(from, w, tail, step, now), nil
}
