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

// seed sets the watermark of an empty lane, once. What is missing just below it is remembered, so that a writer who had
// his id before the cut-over and commits after it is late, and not lost.
func (p *Poll) seed(ctx context.Context, f *lease.Fence, extent inbox.Extent, now time.Time) error {
	w, err := p.config.Cutover.Watermark(extent)
	if err != nil {
		return err
	}
	rows, err := p.mailbox.In(ctx, []inbox.Range{{First: w - seedTail*p.step + 1, Last: w}}, seedTail*int(p.step))
	if err != nil {
		return err
	}
	var done bool
	err = f.Tx(ctx, func(tx pgx.Tx) (err error) {
		done, err = p.store.SeedInbox(ctx, tx, p.config.Lane, p.config.Cutover, w, newest(rows), now)
		if err != nil || !done {
			return err
		}
		return p.store.ReplacePassedHoles(ctx, tx, p.config.Lane, 0, nil, inbox.Gaps(rows, p.step, now), now)
	})
	switch {
	case err != nil:
		return err
	case done:
		p.log.InfoContext(ctx, "lane seeded", "lane", p.config.Lane, "from", string(p.config.Cutover), "watermark", w)
	default:
		p.log.WarnContext(ctx, "cut-over refused", "lane", p.config.Lane, "from", string(p.config.Cutover), "why", "the lane has begun already")
	}
	return nil
}

// seedTail is how many ids below the watermark a cut-over looks at.
const seedTail = 1000

// newest is the latest received time of rows: what is received after it with an id below the watermark, and was not
// missing, is a sign that ids run backwards (K14).
func newest(rows []inbox.Row) time.Time {
	var at time.Time
	for _, r := range rows {
		if r.ReceivedAt.After(at) {
			at = r.ReceivedAt
		}
	}
	return at
}
