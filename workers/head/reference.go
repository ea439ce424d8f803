package head

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db/store"
	"msgexchange/jobs/message"
	"msgexchange/jobs/outbox"
	"msgexchange/jobs/refdata"
	"msgexchange/jobs/sis"
)

// bridges are the airbridges of the stands, kept from batch to batch as long as the lists they were read from are the same.
type bridges struct {
	versions []int64
	stands   *refdata.Stands
}

// bridgesFor gives the airbridges as tx sees them, when a message of the batch assigns a stand. A list that is refreshed
// while the batch is decided counts for later batches. Bridges that were configured are asked instead.
func (h *Head) bridgesFor(ctx context.Context, tx pgx.Tx, decoded []sis.Message) (*refdata.Stands, error) {
	if h.config.Flight.Bridges != nil || !slices.ContainsFunc(decoded, assignsStand) {
		return nil, nil //nolint:nilnil // nobody will ask
	}
	versions, err := h.store.ReferenceVersions(ctx, tx, refdata.BridgeLists())
	if err != nil {
		return nil, err
	}
	if h.bridges.stands != nil && slices.Equal(versions, h.bridges.versions) {
		return h.bridges.stands, nil
	}
	lists, err := h.store.ReferenceLists(ctx, tx, refdata.BridgeLists())
	if err != nil {
		return nil, err
	}
	stands, err := refdata.NewStands(lists)
	if err != nil {
		return nil, err
	}
	h.bridges = bridges{versions, stands}
	return stands, nil
}

func assignsStand(m sis.Message) bool {
	return slices.ContainsFunc(m.Records, func(r sis.Record) bool { _, ok := r.Lists["psdt"]; return ok })
}

// refer takes what a message says about a list. The list is written after the batch was judged, so a message that may move
// airbridges is the last of its batch.
func (g *judge) refer(in input, j *judged) {
	b := refdata.Of(in.msg, in.row.Pos)
	b.At = in.row.ReceivedAt
	j.batch = &b
	g.held = refdata.MovesBridges(b.RType)
}

// saveReferences applies what the batch says about reference data, in the order in which it was said.
func (h *Head) saveReferences(ctx context.Context, tx pgx.Tx, r *run, now time.Time) error {
	for i := range r.judged {
		j := &r.judged[i]
		if j.batch == nil || j.verdict.State != message.Succeeded {
			continue
		}
		var err error
		if j.applied, err = h.store.ApplyReference(ctx, tx, *j.batch, "", now); err != nil {
			return err
		}
	}
	return nil
}

// tellReference logs what became of a list: names and numbers only, for the records may be about persons.
func (h *Head) tellReference(ctx context.Context, j judged) {
	if j.batch == nil || j.verdict.State != message.Succeeded {
		return
	}
	level := slog.LevelInfo
	if j.applied.Stale || len(j.msg.Reference.Remarks) > 0 {
		level = slog.LevelWarn
	}
	h.log.LogAttrs(ctx, level, "reference data applied",
		slog.Int64("msg_id", j.row.Pos.ID), slog.String("trace_id", outbox.TraceID(j.row.Pos)), slog.String("rtype", j.batch.RType), slog.String("mode", string(j.batch.Mode)),
		slog.Int("records", len(j.batch.Records)), slog.Int64("changed", j.applied.Changed), slog.Int64("removed", j.applied.Removed),
		slog.Bool("stale", j.applied.Stale), slog.Any("remarks", j.msg.Reference.Remarks))
}

// reference is what a message says about a list, and what came of it.
type reference struct {
	batch   *refdata.Batch // nil when it says nothing about any
	applied store.Applied
}
