package ops

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/http/problem"
	"msgexchange/jobs"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/replay"
	"msgexchange/jobs/sis"
)

// Replaying is what orders about replays need besides the database.
type Replaying struct {
	Texts    Texts
	Identity message.IdentityPolicy
	Decode   sis.Options    // for dry runs, which show what would change
	Flight   flight.Options // as the head has them
}

// Texts is the mailbox, where a text may still be that we keep no more.
type Texts interface {
	// Text gives the text of a row; found is false when the row is gone.
	Text(ctx context.Context, id int64) (text []byte, found bool, err error)
}

// ReplayOrder names messages by their ids, or by class and time; all that is named must match one of them.
type ReplayOrder struct {
	Order
	IDs   []int64     `json:"ids,omitempty"`
	Class fault.Class `json:"class,omitempty"` // the class or the root class
	From  time.Time   `json:"from,omitzero"`   // by received time, inclusive
	To    time.Time   `json:"to,omitzero"`     // exclusive
	// Force puts back what was skipped though another body had reused its identity: the identity is this message's then.
	Force bool `json:"force,omitempty"`
}

// Bounds of a replay: all of it is one transaction, and the answer names every message.
const (
	maxReplay  = 5000
	maxPreview = 100 // messages of a dry run of which is told what they would change
	// maxPreviewBytes bounds the texts that are read out of the mailbox for it.
	maxPreviewBytes = 16 << 20
)

func (o ReplayOrder) check() error {
	byIDs, byClass := len(o.IDs) > 0, o.Class != "" || !o.From.IsZero() || !o.To.IsZero()
	switch {
	case byIDs == byClass:
		return problem.New(problem.BadRequest, "name messages either by ids, or by class, from and to")
	case len(o.IDs) > maxReplay:
		return problem.New(problem.BadRequest, fmt.Sprintf("more than %d ids", maxReplay))
	case o.Class != "" && !slices.Contains(fault.AllClasses(), o.Class):
		return problem.New(problem.BadRequest, fmt.Sprintf("class must be one of %v", fault.AllClasses()))
	case !o.From.IsZero() && !o.To.IsZero() && !o.From.Before(o.To):
		return problem.New(problem.BadRequest, "from must be before to")
	}
	return nil
}

// Replayed is the answer to a replay.
type Replayed struct {
	Items  []ReplayItem `json:"items"`
	DryRun bool         `json:"dryRun"`
}

// ReplayItem is what became of one message.
type ReplayItem struct {
	Item
	// Would is, in a dry run, what the message could still change: provenance lets it set nothing that something newer set.
	Would []Would `json:"would,omitempty"`
	// Ends says in a dry run how the message would end, when not with SUCCEEDED.
	Ends string `json:"ends,omitempty"`
}

// Would is a change that a replay would make.
type Would struct {
	FLID   int64     `json:"flid"`
	Change flight.Op `json:"change"`
	Fields []string  `json:"fields"`
}

// replay serves POST /ops/replay (contract §8.12).
func (a *API) replay(c *gin.Context) error {
	return servePrepared(a, c, http.StatusOK, "replay", a.lookAtTexts, a.putBack)
}

// Replay carries an order out that did not come by HTTP.
func (a *API) Replay(ctx context.Context, by By, order ReplayOrder) (Replayed, error) {
	order.Class = fault.Class(strings.ToUpper(string(order.Class))) // in any case, as the lists take it
	if err := checkReason(order.Reason); err != nil {
		return Replayed{}, err
	}
	found, err := a.lookAtTexts(ctx, order)
	if err != nil {
		return Replayed{}, err
	}
	answer, err := carryOut(ctx, a, by, "replay", order, func(ctx context.Context, tx pgx.Tx, order ReplayOrder) (Done, error) {
		return a.putBack(ctx, tx, order, found)
	})
	if err != nil {
		return Replayed{}, err
	}
	return answer.(Replayed), nil //nolint:forcetypeassert // putBack's own
}

// lookedAt is what a replay finds out before its transaction: which messages are meant, and the texts that only the
// mailbox has.
type lookedAt struct {
	ids     []int64
	mailbox map[int64]bool
	texts   map[int64]string // of the first ones, for the preview of a dry run
}

func (a *API) lookAtTexts(ctx context.Context, o ReplayOrder) (lookedAt, error) {
	if err := o.check(); err != nil {
		return lookedAt{}, err
	}
	found := lookedAt{ids: o.IDs, mailbox: map[int64]bool{}, texts: map[int64]string{}}
	if len(o.IDs) == 0 {
		var err error
		if found.ids, err = a.Store.ReplayMatches(ctx, a.Pool, o.Class, o.From, o.To, o.Force, maxReplay+1); err != nil {
			return found, err
		}
		if len(found.ids) > maxReplay {
			return found, problem.New(problem.BadRequest, fmt.Sprintf("more than %d messages match: narrow the time", maxReplay))
		}
	}
	found.ids = slices.Compact(slices.Sorted(slices.Values(found.ids)))
	rows, err := a.Store.ReplayRows(ctx, a.Pool, found.ids, a.Now())
	if err != nil {
		return found, err
	}
	room := maxPreviewBytes
	for _, id := range found.ids {
		row, known := rows[id]
		if !known || row.Text {
			continue
		}
		row.Text = true
		if replay.Judge(row.Candidate, o.Force).Why != "" {
			continue // its text makes no difference
		}
		text, there, err := a.Replaying.Texts.Text(ctx, id)
		if err != nil {
			return found, err
		}
		found.mailbox[id] = there
		if there && o.DryRun && len(text) <= room {
			found.texts[id] = string(text)
			room -= len(text)
		}
	}
	return found, nil
}

// putBack does the replay in tx.
func (a *API) putBack(ctx context.Context, tx pgx.Tx, o ReplayOrder, found lookedAt) (Done, error) {
	now := a.Now()
	rows, err := a.Store.ReplayRows(ctx, tx, found.ids, now)
	if err != nil {
		return Done{}, err
	}
	out := Replayed{Items: make([]ReplayItem, len(found.ids)), DryRun: o.DryRun}
	var ids, archived []int64
	var taken []store.Identity
	for i, id := range found.ids {
		row, known := rows[id]
		if !known {
			out.Items[i].Item = Item{ID: id, Result: NotFound, Why: "nobody knows it"}
			continue
		}
		row.Text = row.Text || found.mailbox[id]
		v := replay.Judge(row.Candidate, o.Force)
		if v.Why != "" {
			out.Items[i].Item = Item{ID: id, Result: Skipped, Why: v.Why}
			continue
		}
		out.Items[i].Item = Item{ID: id, Result: Queued}
		ids = append(ids, id)
		if row.Archived {
			archived = append(archived, id)
		}
		if v.Takes {
			taken = append(taken, store.Identity{Key: a.Replaying.Identity.Key(row.Meta), Pos: row.Pos, DTTM: row.Meta.DTTM, Hash: row.Hash})
		}
	}
	if len(ids) == 0 {
		return Done{Answer: out}, nil
	}
	done, err := a.Store.PutBack(ctx, tx, ids, archived, now)
	if err != nil {
		return Done{}, err
	}
	if err := a.Store.Bind(ctx, tx, newestOfEachKey(taken), now); err != nil {
		return Done{}, err
	}
	out.settle(done)
	if o.DryRun {
		err = a.preview(ctx, tx, out, rows, found.texts)
	}
	return Done{Answer: out, Wake: []jobs.Role{jobs.RoleHead}}, err
}

// newestOfEachKey leaves each identity to the last of several messages put back together that would take it.
func newestOfEachKey(all []store.Identity) []store.Identity {
	last := map[string]store.Identity{}
	for _, id := range all { // ascending
		last[id.Key] = id
	}
	out := make([]store.Identity, 0, len(last))
	for _, id := range all {
		if last[id.Key] == id {
			out = append(out, id)
		}
	}
	return out
}

// settle corrects the items of messages that somebody got hold of between the look and the deed.
func (r Replayed) settle(done []int64) {
	for i, item := range r.Items {
		if item.Result == Queued && !slices.Contains(done, item.ID) {
			r.Items[i].Item = Item{ID: item.ID, Result: Skipped, Why: "it is being marked, or was put back, at this moment; try again"}
		}
	}
}

// preview tells what the first messages queued would change, each seeing what those before it would do.
func (a *API) preview(ctx context.Context, q db.Querier, r Replayed, rows map[int64]store.ReplayRow, mailbox map[int64]string) error {
	set := flight.NewSet()
	left := maxPreview
	for i := range r.Items {
		item := &r.Items[i]
		if item.Result != Queued {
			continue
		}
		if left--; left < 0 {
			return nil
		}
		text, err := a.text(ctx, q, rows[item.ID].Pos)
		if err != nil {
			return err
		}
		if theirs, there := mailbox[item.ID]; text == nil && there {
			text = &theirs
		}
		if text == nil {
			item.Ends = "unknown: only the mailbox has its text"
			continue
		}
		if err := a.previewOne(ctx, q, item, set, rows[item.ID].Pos, *text); err != nil {
			return err
		}
	}
	return nil
}

func (a *API) previewOne(ctx context.Context, q db.Querier, item *ReplayItem, set *flight.Set, pos message.Position, text string) error {
	m, err := sis.Decode([]byte(text), a.Replaying.Decode)
	if err != nil {
		item.Ends = fault.Text(err)
		return nil
	}
	if m.Ignored != "" {
		item.Ends = "ignored:" + m.Ignored
		return nil
	}
	flights, err := a.Store.LoadFlights(ctx, q, flight.Needs(m))
	if err != nil {
		return err
	}
	for _, f := range flights {
		if set.Flight(f.FLID) == nil { // else it is as messages before this one would leave it
			set.Put(f)
		}
	}
	outcome, err := flight.Decide(set, m, pos, a.Now(), a.Replaying.Flight)
	if err != nil {
		item.Ends = fault.Text(err)
		return nil
	}
	set.Apply(outcome)
	for _, ch := range outcome.Changes {
		if ch.Op != "" {
			item.Would = append(item.Would, Would{FLID: ch.After.FLID, Change: ch.Op, Fields: ch.Fields})
		}
	}
	return nil
}
