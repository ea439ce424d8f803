package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
)

// Home is what a lane belongs to. Empty: nobody has settled it yet.
type Home struct {
	Mailbox string // server/schema.table
	Mode    string // live or shadow
	Topics  string // full names of the topics of changes and of states
}

// ErrOtherLane says that the database is another lane's (decision 0020).
var ErrOtherLane = errors.New("this database belongs to another lane")

// EnsureInbox makes the lane's row if it is missing, also when several processes begin in the same moment. ErrOtherLane when another
// lane was here first.
func (s *Store) EnsureInbox(ctx context.Context, q db.Querier, lane string, now time.Time) error {
	if err := s.q.OpenLane(ctx, q, pgq.OpenLaneParams{Lane: lane, Now: now}); err != nil {
		return fmt.Errorf("open the lane: %w", db.Classify(err))
	}
	lanes, err := s.Lanes(ctx, q)
	if err == nil && !slices.Contains(lanes, lane) {
		err = fmt.Errorf("lane %s: %w: set lane to the name it has, or give each lane a PostgreSQL database of its own", lane, ErrOtherLane)
	}
	return err
}

// ClaimMode settles the lane's mode if nobody has, and gives the settled one. ErrOtherLane when another lane was here first.
func (s *Store) ClaimMode(ctx context.Context, q db.Querier, lane, mode string, now time.Time) (settled string, err error) {
	if err := s.EnsureInbox(ctx, q, lane, now); err != nil {
		return "", err
	}
	got, err := s.q.ClaimMode(ctx, q, pgq.ClaimModeParams{Lane: lane, Mode: &mode})
	if err != nil {
		return "", fmt.Errorf("claim the lane's mode: %w", db.Classify(err))
	}
	return *got, nil
}

// ClaimTopics settles the lane's topics if nobody has, or if they were settled as renamedFrom, and gives the settled ones.
func (s *Store) ClaimTopics(ctx context.Context, q db.Querier, lane, topics, renamedFrom string) (settled string, err error) {
	got, err := s.q.ClaimTopics(ctx, q, pgq.ClaimTopicsParams{Lane: lane, Topics: &topics, RenamedFrom: renamedFrom})
	if err != nil {
		return "", fmt.Errorf("claim the lane's topics: %w", db.Classify(err))
	}
	return orEmpty(got), nil
}

// Lanes names the lanes that have begun here.
func (s *Store) Lanes(ctx context.Context, q db.Querier) ([]string, error) {
	names, err := s.q.Lanes(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read the lanes: %w", db.Classify(err))
	}
	return names, nil
}

// Home reads what the lane belongs to.
func (s *Store) Home(ctx context.Context, q db.Querier, lane string) (Home, error) {
	r, err := s.q.LaneHome(ctx, q, lane)
	if errors.Is(err, pgx.ErrNoRows) {
		return Home{}, nil
	}
	if err != nil {
		return Home{}, fmt.Errorf("read the lane's home: %w", db.Classify(err))
	}
	return Home{Mailbox: orEmpty(r.Mailbox), Mode: orEmpty(r.Mode), Topics: orEmpty(r.Topics)}, nil
}

// SettleMailbox replaces the mailbox that was read before, "" for none; ok is false when another process was quicker, or
// the lane has no row yet.
func (s *Store) SettleMailbox(ctx context.Context, q db.Querier, lane, before, mailbox string, now time.Time) (ok bool, err error) {
	n, err := s.q.SettleMailbox(ctx, q, pgq.SettleMailboxParams{Lane: lane, Before: orNil(before), Mailbox: &mailbox, Now: now})
	if err != nil {
		return false, fmt.Errorf("settle the lane's mailbox: %w", db.Classify(err))
	}
	return n == 1, nil
}

// NewestReceived gives the newest messages of the lane's present ids with the times at which the mailbox received them.
func (s *Store) NewestReceived(ctx context.Context, q db.Querier, lane string, limit int) (map[int64]time.Time, error) {
	rows, err := s.q.NewestReceived(ctx, q, pgq.NewestReceivedParams{Lane: lane, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("read the newest messages: %w", db.Classify(err))
	}
	out := make(map[int64]time.Time, len(rows))
	for _, r := range rows {
		out[r.MsgID] = *r.ReceivedAt
	}
	return out, nil
}
