package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/message"
)

// SweepPlace is a place in the sweep's walk over flights by operation day and SODT; zero is its beginning.
type SweepPlace struct {
	Day  time.Time
	SODT time.Time
	FLID int64
}

// SweepCandidates gives flights of operation days before the one given, deleted ones too, from the place on, at most limit;
// last is where it left off.
func (s *Store) SweepCandidates(ctx context.Context, q db.Querier, before flight.Day, from SweepPlace, limit int) (flids []int64, last SweepPlace, err error) {
	day, err := time.Parse(time.DateOnly, string(before))
	if err != nil {
		return nil, from, fault.Wrap(fault.Infra, "find flights to sweep", err)
	}
	rows, err := s.q.SweepCandidates(ctx, q, pgq.SweepCandidatesParams{
		BeforeDay: day, AfterDay: from.Day, AfterSodt: from.SODT, AfterFlid: from.FLID, MaxRows: int32(limit),
	})
	if err != nil {
		return nil, from, fmt.Errorf("find flights to sweep: %w", db.Classify(err))
	}
	last = from
	for _, r := range rows {
		flids = append(flids, r.Flid)
		last = SweepPlace{r.OperationDay, r.Sodt, r.Flid}
	}
	return flids, last, nil
}

// MessagesWait says whether any message is taken over and not finished.
func (s *Store) MessagesWait(ctx context.Context, q db.Querier) (bool, error) {
	waiting, err := s.q.MessagesWait(ctx, q)
	return waiting, db.Classify(err)
}

// Retiree is a flight that leaves, as it was last, and by which rule. Version is the last one its readers will have seen.
type Retiree struct {
	Flight  *flight.Flight
	Rule    string
	Version int64
}

// historyRow is a row of flight_history; the names are the columns'.
type historyRow struct {
	FLID              int64           `json:"flid"`
	OperationDay      flight.Day      `json:"operation_day"`
	StateVersion      int64           `json:"state_version"`
	Rule              string          `json:"rule"`
	Doc               json.RawMessage `json:"doc"`
	Provenance        json.RawMessage `json:"provenance"`
	LastMsgID         int64           `json:"last_msg_id"`
	LastGeneration    int32           `json:"last_generation"`
	DeletedAt         *time.Time      `json:"deleted_at"`
	DeletedMsgID      int64           `json:"deleted_msg_id"`
	DeletedGeneration int32           `json:"deleted_generation"`
}

// Retire writes flights into the history, with what messages did to them, and then deletes them here. All or nothing; the
// caller holds PIPELINE_LOCK, and the flights are as tx sees them.
func (s *Store) Retire(ctx context.Context, tx pgx.Tx, all []Retiree, now time.Time) error {
	rows, flids := make([]historyRow, len(all)), make([]int64, len(all))
	for i, r := range all {
		f := r.Flight
		flids[i] = f.FLID
		rows[i] = historyRow{
			FLID: f.FLID, OperationDay: f.OperationDay, StateVersion: r.Version, Rule: r.Rule,
			Doc: flight.AppendJSON(nil, f, s.zone), Provenance: flight.AppendProvenance(nil, f),
			LastMsgID: f.LastMessage.ID, LastGeneration: f.LastMessage.Generation,
			DeletedAt: timeOrNil(f.DeletedAt), DeletedMsgID: f.DeletedBy.ID, DeletedGeneration: f.DeletedBy.Generation,
		}
	}
	text, err := plainJSON(rows)
	if err != nil {
		return fault.Wrap(fault.Infra, "write flights into the history", err)
	}
	written, err := s.q.MoveToHistory(ctx, tx, pgq.MoveToHistoryParams{Flids: flids, Rows: text, Now: now})
	if err != nil {
		return fmt.Errorf("write flights into the history: %w", db.Classify(err))
	}
	gone, err := s.q.DeleteFlights(ctx, tx, flids)
	if err != nil {
		return fmt.Errorf("delete flights: %w", db.Classify(err))
	}
	if n := int64(len(all)); written != n || gone != n {
		return fault.New(fault.Infra, "sweep", "of %d flights %d were written into the history and %d deleted", n, written, gone)
	}
	return nil
}

// ghosts gives what is left of those of the flights that were swept.
func (s *Store) ghosts(ctx context.Context, q db.Querier, flids []int64) ([]*flight.Flight, error) {
	if len(flids) == 0 {
		return nil, nil
	}
	rows, err := s.q.SweptFlights(ctx, q, flids)
	if err != nil {
		return nil, fmt.Errorf("look for swept flights: %w", db.Classify(err))
	}
	all := make([]*flight.Flight, len(rows))
	for i, r := range rows {
		last := message.Position{Generation: r.DeletedGeneration, ID: r.DeletedMsgID}
		if r.DeletedAt == nil {
			last = message.Position{Generation: r.LastGeneration, ID: r.LastMsgID}
		}
		all[i] = flight.Ghost(r.Flid, flight.Day(r.OperationDay.Format(time.DateOnly)), r.StateVersion, last, r.SweptAt.UTC())
	}
	return all, nil
}

// SweptLife is a flight as it went into the history.
type SweptLife struct {
	OperationDay flight.Day                  `json:"operationDay"`
	StateVersion int64                       `json:"stateVersion"` // the last its readers have seen
	Rule         string                      `json:"rule"`
	SweptAt      time.Time                   `json:"sweptAt"`
	DeletedAt    *time.Time                  `json:"deletedAt"` // null: no message deleted it
	Last         message.Position            `json:"messageId"` // the one that deleted it, or the last that touched it
	Flight       json.RawMessage             `json:"flight"`
	Provenance   map[string]message.Position `json:"provenance"`
	Changes      []FlightChange              `json:"changes"` // the last first
}

// maxLives is how many lives of one flight are shown: it takes a sender that gives one FLID to flight after flight to have more.
const maxLives = 10

// SweptLives gives the lives of a flight that are over and in the history, the last first; none when there are none.
func (s *Store) SweptLives(ctx context.Context, q db.Querier, flid int64) ([]SweptLife, error) {
	rows, err := s.q.SweptLives(ctx, q, pgq.SweptLivesParams{Flid: flid, MaxRows: maxLives})
	if err != nil {
		return nil, fmt.Errorf("read the history of flight %d: %w", flid, db.Classify(err))
	}
	all := make([]SweptLife, len(rows))
	for i, r := range rows {
		if all[i], err = s.sweptLife(r); err != nil {
			return nil, fault.Wrap(fault.Infra, fmt.Sprintf("read the history of flight %d", flid), err)
		}
	}
	return all, nil
}

func (s *Store) sweptLife(r pgq.FlightHistory) (SweptLife, error) {
	life := SweptLife{
		OperationDay: flight.Day(r.OperationDay.Format(time.DateOnly)), StateVersion: r.StateVersion, Rule: r.Rule, SweptAt: r.SweptAt.In(s.zone),
		Last: message.Position{Generation: r.LastGeneration, ID: r.LastMsgID}, Flight: r.Doc,
	}
	if r.DeletedAt != nil {
		at := r.DeletedAt.In(s.zone)
		life.DeletedAt, life.Last = &at, message.Position{Generation: r.DeletedGeneration, ID: r.DeletedMsgID}
	}
	if err := json.Unmarshal(r.Provenance, &life.Provenance); err != nil {
		return life, err
	}
	var kept []keptChange
	if err := json.Unmarshal(r.Changes, &kept); err != nil {
		return life, err
	}
	rows := make([]pgq.FlightChange, len(kept))
	for i, k := range kept { // kept in the order in which they happened
		rows[len(kept)-1-i] = pgq.FlightChange{
			Flid: r.Flid, ChangeID: k.ChangeID, MsgID: k.MsgID, Generation: k.Generation, Kind: k.Kind, Change: k.Change,
			StateVersion: k.StateVersion, Dttm: k.DTTM, Before: k.Before, Fields: k.Fields, ChangedAt: k.ChangedAt,
		}
	}
	life.Changes = s.changes(rows)
	return life, nil
}

// keptChange is a row of flight_change inside flight_history; the names are the columns'.
type keptChange struct {
	ChangeID     int64           `json:"change_id"`
	MsgID        int64           `json:"msg_id"`
	Generation   int32           `json:"generation"`
	Kind         string          `json:"kind"`
	Change       *string         `json:"change"`
	StateVersion int64           `json:"state_version"`
	DTTM         time.Time       `json:"dttm"`
	Before       json.RawMessage `json:"before"`
	Fields       json.RawMessage `json:"fields"`
	ChangedAt    time.Time       `json:"changed_at"`
}

// plainJSON is json.Marshal that leaves <, > and & as they are: ext must come back byte for byte.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
