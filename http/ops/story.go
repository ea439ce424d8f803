package ops

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/http/access"
	"msgexchange/http/param"
	"msgexchange/http/problem"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sis"
)

// textState says why a message's text is, or is not, in the answer.
type textState string

// The closed set of text states.
const (
	textKept     textState = "KEPT"
	textTooLarge textState = "TOO_LARGE" // larger than any message may be; never loaded (contract §8.17)
	textGone     textState = "GONE"      // raw.retention is over; the mailbox may still have it
	textWithheld textState = "WITHHELD"  // it is about persons, and the caller is no operator
)

// messageView is the whole story of one message.
type messageView struct {
	messageItem
	TraceID     string               `json:"traceId"` // of the traceparent of its records
	Text        *string              `json:"text"`    // as received; null when TextState is not KEPT
	TextState   textState            `json:"textState"`
	TextBytes   *int32               `json:"textBytes"`
	TextUntil   *time.Time           `json:"textUntil"` // the text goes with the first archive run after it
	AttemptLog  []attempt            `json:"attemptLog"`
	Owner       *store.IdentityOwner `json:"identityOwner"` // null: its identity is unknown, or past its retention
	Changes     []store.FlightChange `json:"changes"`       // the first of them
	ChangeCount int64                `json:"changeCount"`
	Events      []store.StoryEvent   `json:"events"` // the first of them
	EventCount  int64                `json:"eventCount"`
	Jobs        []store.StoryJob     `json:"jobs"`
}

// Message serves GET /ops/messages/{id}.
func (a *API) Message(c *gin.Context) error {
	var view messageView
	err := a.aboutMessage(c, func(ctx context.Context, tx pgx.Tx, m store.OpsMessage, archived bool) error {
		story, err := a.Store.Story(ctx, tx, m, a.identity(m))
		if err != nil {
			return err
		}
		view = messageView{
			messageItem: messageItem{OpsMessage: m, Mark: m.Mark(), Archived: archived},
			TraceID:     outbox.TraceID(position(m)), AttemptLog: attempts(m, story.Failures), Owner: story.Owner,
			Changes: story.Changes, ChangeCount: story.ChangeCount, Events: story.Events, EventCount: story.EventCount, Jobs: story.Jobs,
		}
		return a.tellText(ctx, tx, &view, story.Text)
	})
	if err != nil {
		return err
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, view)
}

// MessageChanges serves GET /ops/messages/{id}/changes: all that the message did to flights, in the order in which it did it.
func (a *API) MessageChanges(c *gin.Context) error {
	q := param.Of(c.Request.URL.Query())
	after, _, _ := q.Cursor()
	limit := q.Limit(defaultLimit, maxLimit)
	q.NoOthers()
	if err := q.Err(); err != nil {
		return err
	}
	var answer page[store.FlightChange]
	err := a.aboutMessage(c, func(ctx context.Context, tx pgx.Tx, m store.OpsMessage, _ bool) error {
		rows, err := a.Store.ChangesOf(ctx, tx, position(m), after, limit+1)
		answer.Items = rows
		if len(rows) > limit {
			next := param.Mark(rows[limit-1].ID, 0)
			answer.Items, answer.Next = rows[:limit], &next
		}
		return err
	})
	if err != nil {
		return err
	}
	return problem.WriteJSON(c.Writer, http.StatusOK, answer)
}

// aboutMessage finds the message of the path and has read look at it at one moment.
func (a *API) aboutMessage(c *gin.Context, read func(ctx context.Context, tx pgx.Tx, m store.OpsMessage, archived bool) error) error {
	id, generation, err := param.PathPosition(c.Param("id"))
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	return db.InSnapshot(ctx, a.Pool, func(tx pgx.Tx) error {
		m, archived, ok, err := a.Store.OpsMessage(ctx, tx, id, generation)
		if err != nil {
			return err
		}
		if !ok {
			return problem.New(problem.NotFound, "no such message")
		}
		return read(ctx, tx, m, archived)
	})
}

func position(m store.OpsMessage) message.Position {
	return message.Position{Generation: m.Generation, ID: m.MsgID}
}

// identity is the message's identity; of one that was skipped for it the one that it would have had.
func (a *API) identity(m store.OpsMessage) string {
	switch {
	case m.IdentityKey != nil:
		return *m.IdentityKey
	case m.Sndr == nil || m.Type == nil || m.Styp == nil || m.Seqn == nil || m.Dttm == nil:
		return ""
	}
	return a.Replaying.Identity.Key(message.Meta{SNDR: *m.Sndr, TYPE: *m.Type, STYP: *m.Styp, SEQN: *m.Seqn, DTTM: *m.Dttm})
}

func (a *API) tellText(ctx context.Context, q db.Querier, view *messageView, kept *store.KeptText) (err error) {
	if kept == nil {
		view.TextState = textGone
		return nil
	}
	until := kept.Since.Add(a.TextsKept)
	view.TextBytes, view.TextUntil = &kept.SizeBytes, &until
	if kept.Oversize {
		view.TextState = textTooLarge
		return nil
	}
	view.TextState = textKept
	view.Text, err = a.text(ctx, q, position(view.OpsMessage))
	if view.Text != nil && sis.AboutPersons(*view.Text) && access.From(ctx).May(access.Operator) != nil {
		view.Text, view.TextState = nil, textWithheld
	}
	return err
}
