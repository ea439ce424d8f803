package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
)

// LoadFlights gives the flights named, deleted ones too, with their masters and children all the way: what a flight.View
// must hold. By FLID; of those that were swept the ghost, and those that never existed are left out.
func (s *Store) LoadFlights(ctx context.Context, q db.Querier, flids []int64) ([]*flight.Flight, error) {
	if len(flids) == 0 {
		return nil, nil
	}
	ids, err := s.q.FlightClosure(ctx, q, flids)
	if err != nil {
		return nil, fmt.Errorf("find linked flights: %w", db.Classify(err))
	}
	flights, err := s.flightsByID(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	ghosts, err := s.ghosts(ctx, q, missing(ids, flights))
	if err != nil {
		return nil, err
	}
	flights = append(flights, ghosts...)
	slices.SortFunc(flights, func(a, b *flight.Flight) int { return cmp.Compare(a.FLID, b.FLID) })
	return flights, nil
}

// missing are those of the ids that no flight has.
func missing(ids []int64, flights []*flight.Flight) []int64 {
	if len(flights) == len(ids) {
		return nil
	}
	found := make(map[int64]bool, len(flights))
	for _, f := range flights {
		found[f.FLID] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return found[id] })
}

// Flight gives one flight, also a deleted one; nil when there never was one.
func (s *Store) Flight(ctx context.Context, q db.Querier, flid int64) (*flight.Flight, error) {
	flights, err := s.flightsByID(ctx, q, []int64{flid})
	if err != nil || len(flights) == 0 {
		return nil, err
	}
	return flights[0], nil
}

// FlightFilter chooses live flights; empty fields choose all.
type FlightFilter struct {
	OperationDay flight.Day // a real day, "2026-11-30"
	FLNO, MVIN   string
	Stand        string // the current stand or one of psdt
	Gate         string // one of gtdt
	Masters      bool   // no code-share children
	After        FlightCursor
	Limit        int // at least 1
}

// FlightCursor is a place in the order of flights: SODT, then FLID. The zero cursor is before all.
type FlightCursor struct {
	SODT time.Time
	FLID int64
}

// FlightPage is a page of flights, by SODT and FLID, before they are read.
type FlightPage struct {
	FLIDs []int64
	Next  *FlightCursor // after which the next page begins; nil when there is no more
}

// FindFlights gives the page of live flights that f chooses, at most f.Limit of them.
func (s *Store) FindFlights(ctx context.Context, q db.Querier, f FlightFilter) (FlightPage, error) {
	found, err := s.q.FindFlights(ctx, q, pgq.FindFlightsParams{
		Masters: f.Masters, OperationDay: orNil(string(f.OperationDay)), Flno: orNil(f.FLNO), Mvin: orNil(f.MVIN),
		Stand: orNil(f.Stand), Gate: orNil(f.Gate),
		AfterSodt: f.After.SODT, AfterFlid: f.After.FLID, MaxRows: int32(f.Limit + 1), // one more tells whether there is more
	})
	if err != nil {
		return FlightPage{}, fmt.Errorf("find flights: %w", db.Classify(err))
	}
	var page FlightPage
	if len(found) > f.Limit {
		found = found[:f.Limit]
		last := found[f.Limit-1]
		page.Next = &FlightCursor{SODT: last.Sodt, FLID: last.Flid}
	}
	page.FLIDs = make([]int64, len(found))
	for i, r := range found {
		page.FLIDs[i] = r.Flid
	}
	return page, nil
}

// flightChunk is how many flights are in memory at a time while a page is streamed.
const flightChunk = 250

// EachFlight calls each with the flights named, in that order; those that do not exist are left out. With a page of
// FindFlights, q should be the same snapshot (db.InSnapshot): outside one a flight may have changed meanwhile.
func (s *Store) EachFlight(ctx context.Context, q db.Querier, flids []int64, each func(*flight.Flight) error) error {
	for chunk := range slices.Chunk(flids, flightChunk) {
		flights, err := s.flightsByID(ctx, q, chunk)
		if err != nil {
			return err
		}
		place := make(map[int64]int, len(chunk))
		for i, flid := range chunk {
			place[flid] = i
		}
		slices.SortFunc(flights, func(a, b *flight.Flight) int { return cmp.Compare(place[a.FLID], place[b.FLID]) })
		for _, f := range flights {
			if err := each(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// ConsistencyPoint is the newest finished message below which none is unfinished (contract §8.3); zero when there is none.
func (s *Store) ConsistencyPoint(ctx context.Context, q db.Querier) (message.Position, error) {
	rows, err := s.q.ConsistencyPoint(ctx, q)
	if err != nil || len(rows) == 0 {
		return message.Position{}, db.Classify(err)
	}
	return message.Position{Generation: rows[0].Generation, ID: rows[0].MsgID}, nil
}

// flightsByID gives whole flights, those that exist, in no order.
func (s *Store) flightsByID(ctx context.Context, q db.Querier, flids []int64) ([]*flight.Flight, error) {
	rows, err := s.q.FlightsByID(ctx, q, flids)
	if err != nil {
		return nil, fmt.Errorf("load flights: %w", db.Classify(err))
	}
	flights := make([]*flight.Flight, len(rows))
	for i := range rows {
		if flights[i], err = readFlight(&rows[i]); err != nil {
			return nil, fmt.Errorf("load flight %d: %w", rows[i].Flid, err)
		}
	}
	return flights, nil
}
