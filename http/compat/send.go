// Package compat is the door of the system being replaced: it puts a message into the mailbox and says so, nothing more
// (contract §4, §8.11; design §4). It decides nothing about the message and never moves the watermark.
package compat

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"msgexchange/http/problem"
	"msgexchange/jobs/fault"
)

// Mailbox is where messages are written.
type Mailbox interface {
	// Insert stores text as a new row of CMINMSGS and gives its id. ErrTooLarge when the mailbox takes nothing of that size;
	// any other error means that it is not known whether the row is there.
	Insert(ctx context.Context, text string, receivedAt time.Time) (id int64, err error)
}

// ErrTooLarge says that the mailbox refuses a text for its size.
var ErrTooLarge = errors.New("larger than the mailbox takes")

// Inbox is told about new rows, so that they need not wait for the next poll.
type Inbox interface {
	Register(ctx context.Context, id int64, text string, receivedAt time.Time) error
}

// Sender serves POST /cminmsgs/send. Safe for concurrent use.
type Sender struct {
	Mailbox Mailbox
	// Inbox may be nil: the poller then finds the rows.
	Inbox Inbox
	// Shadow refuses everything: a shadow never writes to the mailbox.
	Shadow bool
	Now    func() time.Time
	Log    *slog.Logger
}

// How long a caller waits: for the mailbox, which must answer, and for our own database, which need not.
const (
	insertTimeout   = 10 * time.Second
	registerTimeout = time.Second
)

// Send stores the body as a message. 200 means: it is in the mailbox.
func (s *Sender) Send(c *gin.Context) error {
	if s.Shadow {
		return problem.New(problem.ShadowMode, "this is a shadow: it writes nothing to the mailbox")
	}
	text, err := readText(c.Request)
	if err != nil {
		return err
	}
	// A caller who hangs up must not leave it open whether the row is there.
	ctx := context.WithoutCancel(c.Request.Context())
	receivedAt := s.Now().Truncate(time.Second) // a DATETIME holds no more
	id, err := s.insert(ctx, text, receivedAt)
	if err != nil {
		return err
	}
	s.register(ctx, id, text, receivedAt)
	answer(c, id)
	return nil
}

func (s *Sender) insert(ctx context.Context, text string, receivedAt time.Time) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	id, err := s.Mailbox.Insert(ctx, text, receivedAt)
	switch {
	case errors.Is(err, ErrTooLarge):
		return 0, &problem.Error{Code: problem.TooLarge, Detail: "the mailbox takes no message of this size", Err: err}
	case err != nil:
		return 0, &problem.Error{Code: problem.MailboxUnavailable, Detail: "the mailbox is not available; try again", Err: err}
	}
	return id, nil
}

// register is a favour: when it fails, the poller finds the row.
func (s *Sender) register(ctx context.Context, id int64, text string, receivedAt time.Time) {
	if s.Inbox == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	if err := s.Inbox.Register(ctx, id, text, receivedAt); err != nil {
		s.Log.WarnContext(ctx, "message not registered at once", "msg_id", id, "error", fault.Text(err))
	}
}

// answer is the ResponseDto, or the bare id for callers that ask for plain text (design §12).
func answer(c *gin.Context, id int64) {
	if c.NegotiateFormat("application/json", "text/plain") == "text/plain" {
		c.Data(http.StatusOK, "text/plain; charset=utf-8", strconv.AppendInt(nil, id, 10))
		return
	}
	problem.WriteID(c.Writer, id)
}

// readText gives the body as characters, once it is sure that it is an XML message.
func readText(r *http.Request) (string, error) {
	charset, err := mediaType(r.Header)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return "", err
	case err != nil:
		return "", &problem.Error{Code: problem.BadRequest, Detail: "the body ended before its end", Err: err}
	case len(bytes.TrimSpace(body)) == 0:
		return "", problem.New(problem.EmptyBody, "the body is empty")
	}
	return decode(body, charset)
}

// mediaType gives the charset parameter of a body we can read, empty when there is none. Compressed bodies are refused
// before a byte is read: a small one can hold a very large one (K28).
func mediaType(h http.Header) (charset string, err error) {
	for _, e := range strings.Split(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		if e = strings.TrimSpace(e); e != "" && !strings.EqualFold(e, "identity") {
			return "", problem.New(problem.UnsupportedMediaType, "the body must not be compressed")
		}
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	switch {
	case err != nil:
	case media == "text/xml", media == "application/xml", media == "text/plain":
		return params["charset"], nil
	}
	return "", &problem.Error{
		Code: problem.UnsupportedMediaType, Detail: "send text/xml, application/xml or text/plain", Err: err,
	}
}
