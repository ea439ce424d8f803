package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/sis"
)

// flights compares the stored flights with the replay's, whole: every field, list, provenance, version and time.
func (a *auditor) flights(ctx context.Context) error {
	rows, err := a.world.Pool.Query(ctx, "SELECT flid FROM flight_schd ORDER BY flid")
	if err != nil {
		return err
	}
	flids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	want := slices.Sorted(maps.Keys(a.replay.flids))
	a.must(slices.Equal(flids, want), "flights", "%d are stored, %d must be", len(flids), len(want))
	return a.store.EachFlight(ctx, a.world.Pool, flids, func(f *flight.Flight) error {
		a.count("flights", 1)
		must := a.replay.set.Flight(f.FLID)
		if must == nil {
			a.differ("flights", "%d must not be", f.FLID)
			return nil
		}
		is, err := whole(f)
		if err != nil {
			return err
		}
		should, err := whole(must)
		if err != nil {
			return err
		}
		a.must(is == should, "flights", "%d\n    is   %s\n    must %s", f.FLID, is, should)
		is, should = string(flight.AppendJSON(nil, f, a.replay.zone)), string(flight.AppendJSON(nil, must, a.replay.zone))
		a.must(is == should, "flights", "%d\n    shows     %s\n    must show %s", f.FLID, is, should)
		return nil
	})
}

// whole is everything about a flight as one text.
func whole(f *flight.Flight) (string, error) {
	c := f.Clone()
	if len(c.MAFL) == 0 {
		c.MAFL = nil
	}
	maps.DeleteFunc(c.Lists, func(_ string, l []sis.Entry) bool { return len(l) == 0 })
	c.DeletedAt, c.UpdatedAt = c.DeletedAt.UTC(), c.UpdatedAt.UTC()
	b, err := json.Marshal(c)
	return string(b), err
}

// history compares what is kept of each message's deeds, in order.
func (a *auditor) history(ctx context.Context) error {
	rows, err := a.world.Pool.Query(ctx,
		"SELECT flid, msg_id, coalesce(change, ''), state_version, before::text, fields::text FROM flight_change ORDER BY change_id")
	if err != nil {
		return err
	}
	type line struct {
		flid, id      int64
		op            string
		version       int64
		before, after string
	}
	kept, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (l line, err error) {
		err = r.Scan(&l.flid, &l.id, &l.op, &l.version, &l.before, &l.after)
		return l, err
	})
	if err != nil {
		return err
	}
	a.count("changes", len(kept))
	a.must(len(kept) == len(a.replay.deeds), "changes", "%d are kept, %d must be", len(kept), len(a.replay.deeds))
	for i := range min(len(kept), len(a.replay.deeds)) {
		d := a.replay.deeds[i]
		must := line{
			d.change.After.FLID, d.id, string(d.change.Op), d.change.After.Version,
			string(flight.AppendBefore(nil, d.change, a.replay.zone)), string(flight.AppendFields(nil, d.change, a.replay.zone)),
		}
		if kept[i] != must {
			a.differ("changes", "no. %d is %+v, must be %+v", i, kept[i], must)
			return nil // what follows is out of step
		}
	}
	return nil
}
