package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/sentinel"
)

// FlightIDs gives the FLIDs of all flights after one, deleted ones too, ascending, at most limit.
func (s *Store) FlightIDs(ctx context.Context, q db.Querier, after int64, limit int) ([]int64, error) {
	ids, err := s.q.FlightIDs(ctx, q, pgq.FlightIDsParams{AfterFlid: after, MaxRows: int32(limit)})
	return ids, db.Classify(err)
}

// FlightsInDoubt gives the FLIDs after one that have an open difference, ascending, at most limit.
func (s *Store) FlightsInDoubt(ctx context.Context, q db.Querier, after int64, limit int) ([]int64, error) {
	ids, err := s.q.FlightsInDoubt(ctx, q, pgq.FlightsInDoubtParams{AfterFlid: after, MaxRows: int32(limit)})
	return ids, db.Classify(err)
}

// Evidence gives, of the flights named that exist, each with all that should agree with it. q must be one snapshot: outside
// of one a message could come between. A flight that cannot be read comes back with its Unreadable said.
func (s *Store) Evidence(ctx context.Context, q db.Querier, flids []int64) ([]sentinel.Evidence, error) {
	flights, err := s.readable(ctx, q, flids)
	if err != nil {
		return nil, err
	}
	byFLID := make(map[int64]*sentinel.Evidence, len(flights))
	for i := range flights {
		byFLID[flights[i].FLID] = &flights[i]
	}
	for _, read := range []func(context.Context, db.Querier, []int64, map[int64]*sentinel.Evidence) error{
		s.addEvents, s.addChanges, s.addChildren, s.addMessages,
	} {
		if err := read(ctx, q, flids, byFLID); err != nil {
			return nil, fmt.Errorf("look at flights: %w", db.Classify(err))
		}
	}
	return flights, nil
}

// readable reads the flights together, and one by one when one of them cannot be read.
func (s *Store) readable(ctx context.Context, q db.Querier, flids []int64) ([]sentinel.Evidence, error) {
	rows, err := s.q.FlightsByID(ctx, q, flids)
	if err != nil {
		return nil, fmt.Errorf("load flights: %w", db.Classify(err))
	}
	all := make([]sentinel.Evidence, len(rows))
	for i := range rows {
		all[i].FLID = rows[i].Flid
		f, err := readFlight(&rows[i])
		if err != nil {
			all[i].Unreadable = err.Error()
			continue
		}
		all[i].Flight, all[i].Doc = f, flight.AppendJSON(nil, f, s.zone)
	}
	return all, nil
}

func (s *Store) addEvents(ctx context.Context, q db.Querier, flids []int64, into map[int64]*sentinel.Evidence) error {
	rows, err := s.q.NewestSchdEvents(ctx, q, flids)
	for _, r := range rows {
		if e := into[r.Flid]; e != nil {
			e.Event = &sentinel.Event{ID: r.EventID, Type: outbox.Type(r.EventType), Version: r.StateVersion, Payload: r.Payload}
		}
	}
	return err
}

func (s *Store) addChanges(ctx context.Context, q db.Querier, flids []int64, into map[int64]*sentinel.Evidence) error {
	rows, err := s.q.NewestChanges(ctx, q, flids)
	for _, r := range rows {
		if e := into[r.Flid]; e != nil {
			e.Changed = r.StateVersion
		}
	}
	return err
}

func (s *Store) addChildren(ctx context.Context, q db.Querier, flids []int64, into map[int64]*sentinel.Evidence) error {
	rows, err := s.q.LiveChildren(ctx, q, flids)
	for _, r := range rows {
		if e := into[r.Maid]; e != nil {
			e.Children = append(e.Children, r.Flno)
		}
	}
	return err
}

func (s *Store) addMessages(ctx context.Context, q db.Querier, _ []int64, into map[int64]*sentinel.Evidence) error {
	var p pgq.MessageStatesParams
	for _, e := range into {
		if e.Flight != nil {
			p.MsgIds = append(p.MsgIds, e.Flight.LastMessage.ID)
			p.Generations = append(p.Generations, e.Flight.LastMessage.Generation)
		}
	}
	rows, err := s.q.MessageStates(ctx, q, p)
	found := make(map[message.Position]sentinel.Message, len(rows))
	for _, r := range rows {
		found[message.Position{Generation: r.Generation, ID: r.MsgID}] = sentinel.Message{
			State: message.State(r.State), Marked: r.BackfillAt != nil, Owed: r.BackfillNextAt != nil, GivenUp: r.BackfillAbandonedAt != nil,
		}
	}
	for _, e := range into {
		if e.Flight == nil {
			continue
		}
		if m, ok := found[e.Flight.LastMessage]; ok {
			e.Message = &m
		}
	}
	return err
}

// Difference is one thing about one flight that does not agree with another.
type Difference struct {
	ID          int64          `json:"id"`
	FLID        int64          `json:"flid"`
	About       sentinel.About `json:"about"`
	Detail      string         `json:"detail"`
	FirstSeenAt time.Time      `json:"firstSeenAt"`
	LastSeenAt  time.Time      `json:"lastSeenAt"`
}

// Place is where it stands in their list.
func (d Difference) Place() Place { return Place{At: d.FirstSeenAt, ID: d.ID} }

// KeepDifferences keeps what was found when the flights named were looked at, and forgets what was found before and not
// again. It gives what is new, and what has gone. now must be later than that of every look before.
func (s *Store) KeepDifferences(ctx context.Context, q db.Querier, flids []int64, found []sentinel.Difference, now time.Time) (opened, closed []sentinel.Difference, err error) {
	if len(found) > 0 {
		type row struct {
			FLID   int64          `json:"flid"`
			About  sentinel.About `json:"about"`
			Detail string         `json:"detail"`
		}
		rows := make([]row, len(found))
		for i, d := range found {
			rows[i] = row(d)
		}
		text, err := json.Marshal(rows)
		if err != nil {
			return nil, nil, fault.Wrap(fault.Infra, "keep differences", err)
		}
		saved, err := s.q.SaveDifferences(ctx, q, pgq.SaveDifferencesParams{Rows: text, Now: now})
		if err != nil {
			return nil, nil, fmt.Errorf("keep differences: %w", db.Classify(err))
		}
		for _, r := range saved {
			if r.IsNew {
				opened = append(opened, sentinel.Difference{FLID: r.Flid, About: sentinel.About(r.About), Detail: r.Detail})
			}
		}
	}
	gone, err := s.q.CloseDifferences(ctx, q, pgq.CloseDifferencesParams{Flids: flids, Now: now})
	if err != nil {
		return nil, nil, fmt.Errorf("close differences: %w", db.Classify(err))
	}
	for _, r := range gone {
		closed = append(closed, sentinel.Difference{FLID: r.Flid, About: sentinel.About(r.About)})
	}
	return opened, closed, nil
}

// DifferenceCounts counts the open differences by what they are about.
func (s *Store) DifferenceCounts(ctx context.Context, q db.Querier) (map[sentinel.About]int64, error) {
	rows, err := s.q.DifferenceCounts(ctx, q)
	out := make(map[sentinel.About]int64, len(rows))
	for _, r := range rows {
		out[sentinel.About(r.About)] = r.Amount
	}
	return out, db.Classify(err)
}

// OpsDifferences lists the open differences with an id below, newest first, at most limit.
func (s *Store) OpsDifferences(ctx context.Context, q db.Querier, below int64, limit int) ([]Difference, error) {
	rows, err := s.q.OpsDifferences(ctx, q, pgq.OpsDifferencesParams{BeforeID: cmp.Or(below, math.MaxInt64), MaxRows: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("list differences: %w", db.Classify(err))
	}
	out := make([]Difference, len(rows))
	for i, r := range rows {
		out[i] = Difference{
			ID: r.ID, FLID: r.Flid, About: sentinel.About(r.About), Detail: r.Detail, FirstSeenAt: r.FirstSeenAt.In(s.zone), LastSeenAt: r.LastSeenAt.In(s.zone),
		}
	}
	return out, nil
}
