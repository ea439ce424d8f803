package compat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"msgexchange/http/access"
	"msgexchange/http/param"
	"msgexchange/http/problem"
	"msgexchange/jobs/message"
	"msgexchange/jobs/request"
)

// Requests is where requests to the airport's database are registered and sent.
type Requests interface {
	// Ask registers a request; the open one of its kind expires. request.KindError when the site does not make such requests.
	Ask(ctx context.Context, kind message.Kind, window request.Window, actor string) (request.Request, error)
	// Sent waits until the request is in the mailbox; ok is false, and the request expired, when that takes too long.
	Sent(ctx context.Context, id int64, patience time.Duration) (mailboxID int64, ok bool, err error)
}

// Syncer serves POST /schd/sync. Safe for concurrent use.
type Syncer struct {
	Requests Requests
	Zone     *time.Location // of the airport: the times in the body are in it
	// Shadow refuses everything: a shadow asks for nothing.
	Shadow bool
	// Patience is how long a caller waits for the mailbox; 0: 5 s (contract §8.28).
	Patience time.Duration
}

const defaultPatience = 5 * time.Second

// Sync asks for the schedule of a window. 200 means: the request is in the mailbox.
func (s *Syncer) Sync(c *gin.Context) error {
	if s.Shadow {
		return problem.New(problem.ShadowMode, "this is a shadow: it asks for nothing")
	}
	window, err := readWindow(c.Request.Body, s.Zone)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	asked, err := s.Requests.Ask(ctx, request.Schedule, window, access.From(ctx).Actor())
	var kind request.KindError
	switch {
	case errors.As(err, &kind):
		return problem.New(problem.BadRequest, kind.Error())
	case err != nil:
		return err
	}
	patience := s.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	// A caller who hangs up must not leave a request behind that nobody waits for.
	id, ok, err := s.Requests.Sent(context.WithoutCancel(ctx), asked.ID, patience)
	switch {
	case err != nil:
		return err
	case !ok:
		return problem.New(problem.MailboxUnavailable, "the request did not get into the mailbox, or a newer one took its place; try again")
	}
	problem.WriteID(c.Writer, id)
	return nil
}

func readWindow(body io.Reader, zone *time.Location) (w request.Window, err error) {
	b, err := io.ReadAll(body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return w, err
	case err != nil:
		return w, &problem.Error{Code: problem.BadRequest, Detail: "the body ended before its end", Err: err}
	case len(b) == 0:
		return w, problem.New(problem.EmptyBody, "the body is empty")
	}
	var said struct {
		StartTime, EndTime string
	}
	if err := json.Unmarshal(b, &said); err != nil {
		return w, &problem.Error{Code: problem.BadRequest, Detail: `the body is not {"startTime":"…","endTime":"…"}`, Err: err}
	}
	return param.Window(said.StartTime, said.EndTime, zone)
}
