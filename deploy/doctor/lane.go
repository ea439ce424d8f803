package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db/mailbox"
	"msgexchange/db/store"
)

// Lane keeps a lane at home: in the mode in which it began, and at the mailbox from which its messages came (decision 0012).
type Lane struct {
	Name   string
	Mode   string
	Expect mailbox.Identity // mailbox.identity: the mailbox to move to on purpose; empty: none
	// Topics are the full names of the topics, RenamedFrom those they had before if they were renamed on purpose.
	Topics, RenamedFrom string

	Pool  *pgxpool.Pool
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time
	// LookOnly judges and records nothing.
	LookOnly bool
}

// What keeps a process from working for a lane.
var (
	ErrOtherMode    = errors.New("this database belongs to a system of the other mode")
	ErrOtherTopics  = errors.New("the lane's records are in other topics")
	ErrOtherMailbox = errors.New("this is not the mailbox from which the lane's messages came")
)

// ClaimMode records the mode of a lane that has none, and refuses another one: ErrOtherMode. In the database of another lane it is
// refused too: store.ErrOtherLane.
func (l Lane) ClaimMode(ctx context.Context) error {
	settled, err := l.Store.ClaimMode(ctx, l.Pool, l.Name, l.Mode, l.Now())
	if err == nil && settled != l.Mode {
		err = l.otherMode(settled)
	}
	return err
}

func (l Lane) otherMode(settled string) error {
	return fmt.Errorf("lane %s is %s, not %s: %w: give each mode a PostgreSQL database of its own", l.Name, settled, l.Mode, ErrOtherMode)
}

// ClaimTopics records the topics of a lane that has none, or that says with kafka.renamed-from what they were called, and refuses
// others: ErrOtherTopics. Two pods with different names would each send a part of the records to where the other's readers are not.
func (l Lane) ClaimTopics(ctx context.Context) error {
	before, err := l.Store.Home(ctx, l.Pool, l.Name)
	if err != nil {
		return err
	}
	settled, err := l.Store.ClaimTopics(ctx, l.Pool, l.Name, l.Topics, l.RenamedFrom)
	switch {
	case err != nil:
		return err
	case settled != l.Topics:
		return l.otherTopics(settled)
	case before.Topics != "" && before.Topics != settled:
		l.Log.WarnContext(ctx, "topics renamed", "lane", l.Name, "topics", settled, "before", before.Topics)
	}
	return nil
}

func (l Lane) otherTopics(settled string) error {
	return fmt.Errorf("lane %s sends to %q, not %q: %w: give both pods the same kafka.topic-*; if they are renamed, stop every pod and set kafka.renamed-from=%q",
		l.Name, settled, l.Topics, ErrOtherTopics, settled)
}

// evidence is how many of the newest messages must speak for a mailbox on another server.
const evidence = 20

// Recognise is what mailbox.Config wants. The first mailbox is recorded. One on another server is accepted when its rows
// are those we know (a fail-over), or when mailbox.identity names it; else ErrOtherMailbox.
func (l Lane) Recognise(ctx context.Context, id mailbox.Identity, received mailbox.Received) error {
	home, err := l.Store.Home(ctx, l.Pool, l.Name)
	if err != nil || home.Mailbox == string(id) {
		return err
	}
	why := "first seen"
	if home.Mailbox != "" {
		if why, err = l.judge(ctx, id, received); err != nil {
			return err
		}
	}
	if why == "" {
		return fmt.Errorf("it is %s, the lane's is %s: %w: if it is meant, set mailbox.identity=%s", id, home.Mailbox, ErrOtherMailbox, id)
	}
	if l.LookOnly {
		return nil
	}
	ok, err := l.Store.SettleMailbox(ctx, l.Pool, l.Name, home.Mailbox, string(id), l.Now())
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("another process has just recorded a mailbox; asking again")
	}
	l.Log.WarnContext(ctx, "mailbox recorded", "lane", l.Name, "mailbox", string(id), "before", home.Mailbox, "why", why)
	return nil
}

// judge says why a mailbox other than the recorded one may be used; empty: it may not.
func (l Lane) judge(ctx context.Context, id mailbox.Identity, received mailbox.Received) (why string, err error) {
	if l.Expect == id {
		return "mailbox.identity", nil
	}
	ours, err := l.Store.NewestReceived(ctx, l.Pool, l.Name, evidence)
	if err != nil {
		return "", err
	}
	ids := make([]int64, 0, len(ours))
	for msg := range ours {
		ids = append(ids, msg)
	}
	theirs, err := received(ctx, ids)
	if err != nil || !mailbox.Agree(ours, theirs) {
		return "", err
	}
	return "same rows", nil
}

// laneName looks for a database of another lane, whose start would be refused (decision 0020).
func (s Subject) laneName(ctx context.Context) Finding {
	names, err := s.Lane.Store.Lanes(ctx, s.Pool)
	switch {
	case err != nil:
		return unread(err)
	case len(names) > 0 && !slices.Contains(names, s.Lane.Name):
		return bad(Refuse, "set lane to the name it has, or give each lane a PostgreSQL database of its own",
			"this database belongs to lane %s, not %s", strings.Join(names, ", "), s.Lane.Name)
	}
	return well("%s", s.Lane.Name)
}

func (s Subject) laneTopics(ctx context.Context) Finding {
	home, err := s.Lane.Store.Home(ctx, s.Pool, s.Lane.Name)
	switch {
	case err != nil:
		return unread(err)
	case home.Topics == "" || home.Topics == s.Lane.Topics:
		return well("%s", s.Lane.Topics)
	case home.Topics == s.Lane.RenamedFrom:
		return well("%s, renamed from %s by the first start", s.Lane.Topics, home.Topics)
	}
	return bad(Refuse, fmt.Sprintf("give all pods the same kafka.topic-*; if they are renamed, stop every pod and set kafka.renamed-from=%q", home.Topics),
		"lane %s sends to %q, not %q", s.Lane.Name, home.Topics, s.Lane.Topics)
}

func (s Subject) laneMode(ctx context.Context) Finding {
	home, err := s.Lane.Store.Home(ctx, s.Pool, s.Lane.Name)
	if err != nil {
		return unread(err)
	}
	if home.Mode != "" && home.Mode != s.Lane.Mode {
		return bad(Refuse, "give each mode a PostgreSQL database of its own: pg.dsn", "lane %s is %s, not %s", s.Lane.Name, home.Mode, s.Lane.Mode)
	}
	return well("%s", s.Lane.Mode)
}

func (s Subject) laneRuns(ctx context.Context) Finding {
	in, found, err := s.Lane.Store.Inbox(ctx, s.Pool, s.Lane.Name)
	switch {
	case err != nil:
		return unread(err)
	case !found:
		return well("lane %s has not begun", s.Lane.Name)
	case in.Stopped != "":
		return bad(Fail, "docs/runbook.md, id regression: POST /ops/lane/reseed", "lane %s is stopped: %s", s.Lane.Name, in.Stopped)
	}
	return well("watermark %d, %d open holes, generation %d", in.Cursor.W, len(in.Cursor.Holes), in.Cursor.Generation)
}
