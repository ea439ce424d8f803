package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/replay"
)

// ReplayRow is a message that somebody wants put back, as it stands.
type ReplayRow struct {
	Pos      message.Position
	Archived bool
	Meta     message.Meta // zero when it could not be read
	Hash     [32]byte
	replay.Candidate
}

// ReplayMatches gives the finished messages that an order by class and time means, at most limit; force adds those that
// were skipped because their identity was reused.
func (s *Store) ReplayMatches(ctx context.Context, q db.Querier, class fault.Class, from, to time.Time, force bool, limit int) ([]int64, error) {
	ids, err := s.q.ReplayMatches(ctx, q, pgq.ReplayMatchesParams{
		Class: orNil(string(class)), FromTime: timeOrNil(from), ToTime: timeOrNil(to), Force: force, MaxRows: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("look for messages to replay: %w", db.Classify(err))
	}
	return ids, nil
}

// ReplayRows gives what is known of the messages named, by id; unknown ones are missing. Text says whether we keep it.
func (s *Store) ReplayRows(ctx context.Context, q db.Querier, ids []int64, now time.Time) (map[int64]ReplayRow, error) {
	rows, err := s.q.ReplayRows(ctx, q, pgq.ReplayRowsParams{Ids: ids, Now: &now})
	if err != nil {
		return nil, fmt.Errorf("read messages to replay: %w", db.Classify(err))
	}
	out := make(map[int64]ReplayRow, len(rows))
	for _, r := range rows {
		if _, newer := out[r.MsgID]; newer {
			continue
		}
		row := ReplayRow{
			Pos: message.Position{Generation: r.Generation, ID: r.MsgID}, Archived: r.Archived,
			Candidate: replay.Candidate{
				State: message.State(r.State), Class: fault.Class(orEmpty(r.ErrorClass)), Skip: orEmpty(r.SkipReason),
				Reuse: message.Reuse(orEmpty(r.IdentityReuse)), Marking: r.Marking, Text: r.Kept, Closed: r.Closed,
			},
		}
		if r.Type != nil && r.Seqn != nil {
			row.Meta = message.Meta{SNDR: orEmpty(r.Sndr), TYPE: *r.Type, STYP: orEmpty(r.Styp), SEQN: *r.Seqn, DTTM: orZero(r.Dttm).In(s.zone)}
		}
		copy(row.Hash[:], r.ContentHash)
		out[r.MsgID] = row
	}
	return out, nil
}

// PutBack makes the messages PENDING again, out of the archive where archived says so, and gives those it did: not what is
// being marked at this moment or was put back by somebody else.
func (s *Store) PutBack(ctx context.Context, tx pgx.Tx, ids, archived []int64, now time.Time) ([]int64, error) {
	if len(archived) > 0 {
		if err := s.q.RestoreArchived(ctx, tx, archived); err != nil {
			return nil, fmt.Errorf("restore archived messages: %w", db.Classify(err))
		}
	}
	done, err := s.q.PutBack(ctx, tx, pgq.PutBackParams{Ids: ids, Now: now})
	if err != nil {
		return nil, fmt.Errorf("put messages back: %w", db.Classify(err))
	}
	return done, nil
}
