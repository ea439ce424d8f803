package store

import (
	"context"
	"fmt"
	"time"

	"msgexchange/db"
	"msgexchange/jobs/outbox"
)

// OpsSummary is where everything stands.
type OpsSummary struct {
	Lanes    []OpsLane      `json:"lanes"`
	Leases   []OpsLease     `json:"leases"`
	Messages OpsBacklog     `json:"messages"`
	Events   []OpsOutbox    `json:"events"`
	Marks    OpsMarksBehind `json:"marks"`
	Flights  int64          `json:"liveFlights"`
}

// OpsLane is how far a lane's inbox is.
type OpsLane struct {
	Lane          string     `json:"lane"`
	Generation    int32      `json:"generation"`
	CommittedUpTo int64      `json:"committedUpTo"` // the watermark W
	IDStep        int32      `json:"idStep"`
	SeededAt      *time.Time `json:"seededAt"`
	SeededFrom    *string    `json:"seededFrom"`
	StoppedReason *string    `json:"stoppedReason"`
	StoppedAt     *time.Time `json:"stoppedAt"`
	LastPolledAt  *time.Time `json:"lastPolledAt"`
	HolesOpen     int64      `json:"holesOpen"`
}

// OpsLease is who works on a role.
type OpsLease struct {
	Lane        string    `json:"lane"`
	Role        string    `json:"role"`
	Epoch       int64     `json:"epoch"`
	Holder      string    `json:"holder"`
	HeartbeatAt time.Time `json:"heartbeatAt"`
	// TroubledAt is since when the holder cannot reach what the role needs; nil: it can, or nothing is held.
	TroubledAt *time.Time `json:"troubledAt,omitempty"`
}

// OpsBacklog is what is not finished yet.
type OpsBacklog struct {
	Unfinished    int64   `json:"unfinished"`
	Failed        int64   `json:"failed"`
	Dead          int64   `json:"dead"`   // that are not archived yet
	HeadID        int64   `json:"headId"` // 0 when nothing is unfinished
	OldestSeconds float64 `json:"oldestSeconds"`
}

// OpsOutbox is what is not delivered yet to one target. Targets without any are left out.
type OpsOutbox struct {
	Target        string  `json:"target"`
	Pending       int64   `json:"pending"`
	Dead          int64   `json:"dead"`
	OldestSeconds float64 `json:"oldestSeconds"`
}

// OpsMarksBehind is what is owed to the mailbox.
type OpsMarksBehind struct {
	Owed          int64   `json:"owed"`
	Abandoned     int64   `json:"abandoned"` // whose messages are not archived yet
	OldestSeconds float64 `json:"oldestSeconds"`
}

// OpsSummary reads where everything stands; ages are as of now. Run it in a snapshot, so that the numbers add up.
func (s *Store) OpsSummary(ctx context.Context, q db.Querier, now time.Time) (OpsSummary, error) {
	out := OpsSummary{Lanes: []OpsLane{}, Leases: []OpsLease{}, Events: []OpsOutbox{}}
	lanes, err := s.q.OpsLanes(ctx, q)
	if err != nil {
		return out, fmt.Errorf("summary: lanes: %w", db.Classify(err))
	}
	for _, r := range lanes {
		out.Lanes = append(out.Lanes, OpsLane(r))
	}
	leases, err := s.q.OpsLeases(ctx, q)
	if err != nil {
		return out, fmt.Errorf("summary: leases: %w", db.Classify(err))
	}
	for _, r := range leases {
		out.Leases = append(out.Leases, OpsLease(r))
	}
	for _, t := range outbox.AllTargets() {
		b, err := s.EventBacklog(ctx, q, t)
		if err != nil {
			return out, fmt.Errorf("summary: events: %w", err)
		}
		if b.Pending+b.Dead == 0 {
			continue
		}
		o := OpsOutbox{Target: string(t), Pending: b.Pending, Dead: b.Dead}
		if b.Pending > 0 {
			o.OldestSeconds = now.Sub(b.Oldest).Seconds()
		}
		out.Events = append(out.Events, o)
	}
	backlog, err := s.q.OpsUnfinished(ctx, q, now)
	if err != nil {
		return out, fmt.Errorf("summary: messages: %w", db.Classify(err))
	}
	marks, err := s.q.OpsMarks(ctx, q, now)
	if err != nil {
		return out, fmt.Errorf("summary: marks: %w", db.Classify(err))
	}
	out.Messages, out.Marks = OpsBacklog(backlog), OpsMarksBehind(marks)
	out.Flights, err = s.q.OpsLiveFlights(ctx, q)
	if err != nil {
		return out, fmt.Errorf("summary: flights: %w", db.Classify(err))
	}
	return out, nil
}
