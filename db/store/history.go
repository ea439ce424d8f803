package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
)

// Deed is what one message did to one flight.
type Deed struct {
	Pos    message.Position
	Meta   message.Meta
	Change flight.Change
}

// InsertHistory keeps what messages did, in the order given. Whoever sends it holds the head's fence.
func (s *Store) InsertHistory(deeds []Deed, now time.Time) Writes {
	return func(yield func(Write, error) bool) {
		for len(deeds) > 0 {
			p := pgq.InsertFlightChangesParams{Now: now}
			n, size := 0, 0
			for ; n < len(deeds) && size < maxInsertBytes; n++ {
				size += s.appendDeed(&p, deeds[n])
			}
			deeds = deeds[n:]
			if !yield(func(ctx context.Context, tx pgx.Tx) error {
				return wrapped("insert flight history", s.q.InsertFlightChanges(ctx, tx, p))
			}, nil) {
				return
			}
		}
	}
}

// appendDeed says how many bytes it added.
func (s *Store) appendDeed(p *pgq.InsertFlightChangesParams, d Deed) int {
	before := flight.AppendBefore(nil, d.Change, s.zone)
	fields := flight.AppendFields(nil, d.Change, s.zone)
	p.Flids = append(p.Flids, d.Change.After.FLID)
	p.MsgIds = append(p.MsgIds, d.Pos.ID)
	p.Generations = append(p.Generations, d.Pos.Generation)
	p.Kinds = append(p.Kinds, string(d.Meta.Kind()))
	p.Changes = append(p.Changes, string(d.Change.Op))
	p.StateVersions = append(p.StateVersions, d.Change.After.Version)
	p.Dttms = append(p.Dttms, d.Meta.DTTM)
	p.Befores = append(p.Befores, string(before))
	p.Fields = append(p.Fields, string(fields))
	return len(before) + len(fields)
}

// FlightChange is a Deed as it is shown: the names are those of events on msg.
type FlightChange struct {
	ID           int64            `json:"-"` // ascends with every change of any flight
	FLID         int64            `json:"flid"`
	Message      message.Position `json:"messageId"`
	Kind         message.Kind     `json:"kind"`
	Change       *flight.Op       `json:"change"` // null: nobody could see a difference
	StateVersion int64            `json:"stateVersion"`
	DTTM         time.Time        `json:"dttm"`
	ChangedAt    time.Time        `json:"changedAt"`
	// Before is what Fields were before an update, null where they were not set.
	Before json.RawMessage `json:"before"`
	Fields json.RawMessage `json:"fields"`
}

// History gives what was done to a flight, the last first, at most limit of it; before is the id of the change before which
// it begins, 0 for the end. known is false when there never was such a flight.
func (s *Store) History(ctx context.Context, q db.Querier, flid, before int64, limit int) (all []FlightChange, known bool, err error) {
	rows, err := s.q.FlightHistory(ctx, q, pgq.FlightHistoryParams{Flid: flid, BeforeID: cmp.Or(before, math.MaxInt64), MaxRows: int32(limit)})
	if err != nil {
		return nil, false, fmt.Errorf("read history of flight %d: %w", flid, db.Classify(err))
	}
	all = s.changes(rows)
	if len(all) > 0 {
		return all, true, nil
	}
	known, err = s.q.FlightKnown(ctx, q, flid)
	return all, known, db.Classify(err)
}

// ChangesOf gives what a message did to flights, in the order in which it did it, at most limit of it after the change with
// the id after.
func (s *Store) ChangesOf(ctx context.Context, q db.Querier, m message.Position, after int64, limit int) ([]FlightChange, error) {
	rows, err := s.q.FlightChangesOf(ctx, q, pgq.FlightChangesOfParams{MsgID: m.ID, Generation: m.Generation, AfterID: after, MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("read what message %s did: %w", m, db.Classify(err))
	}
	return s.changes(rows), nil
}

func (s *Store) changes(rows []pgq.FlightChange) []FlightChange {
	all := make([]FlightChange, len(rows))
	for i, r := range rows {
		all[i] = FlightChange{
			ID: r.ChangeID, FLID: r.Flid, Message: message.Position{Generation: r.Generation, ID: r.MsgID},
			Kind: message.Kind(r.Kind), Change: (*flight.Op)(r.Change), StateVersion: r.StateVersion,
			DTTM: r.Dttm.In(s.zone), ChangedAt: r.ChangedAt.In(s.zone), Before: r.Before, Fields: r.Fields,
		}
	}
	return all
}
