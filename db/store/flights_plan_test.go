package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"msgexchange/db/dbtest"
	"msgexchange/db/store"
	"msgexchange/jobs/message"
)

// TestFlightQueries_areServedByIndexes: none of them reads a table from end to end, whatever has piled up there.
func TestFlightQueries_areServedByIndexes(t *testing.T) {
	t.Parallel()
	s, tx := setup(t), dbtest.Tx(t)
	for _, statement := range []string{
		`INSERT INTO flight_schd (flid, operation_day, state_version, last_msg_id, flno, mvin, sodt, maid, created_at, updated_at, deleted_at)
		 SELECT 1000000 + n, '2026-11-30'::date - n / 500, 1, 1, 'XX' || n, 'A', '2026-11-30'::timestamptz - n * interval '3 minutes',
		        CASE WHEN n % 10 = 0 THEN 1000000 + n - 1 END, now(), now(), CASE WHEN n > 5000 THEN now() END
		 FROM generate_series(1, 100000) n`,
		`INSERT INTO flight_psdt (flid, psno, psst) SELECT 1000000 + n, 1, 'S' || n % 300 FROM generate_series(1, 100000) n`,
		`INSERT INTO proc_state (msg_id, state, created_at, updated_at, finished_at)
		 SELECT n, CASE WHEN n <= 99900 THEN 'SUCCEEDED' ELSE 'PENDING' END, now(), now(), CASE WHEN n <= 99900 THEN now() END
		 FROM generate_series(1, 100000) n`,
		`INSERT INTO flight_change (flid, msg_id, kind, state_version, dttm, before, fields, changed_at)
		 SELECT 1000000 + n % 1000, n / 2, 'FLOP-STND', 1, now(), '{}', '{}', now() FROM generate_series(1, 100000) n`,
		`ANALYZE flight_schd, flight_psdt, proc_state, flight_change`,
	} {
		_, err := tx.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	var ids []int64
	for i := range int64(200) {
		ids = append(ids, 1000000+i*500)
	}
	for name, ask := range map[string]func(q *planner) error{
		"closure and load": func(q *planner) error { _, err := s.LoadFlights(t.Context(), q, ids); return err },
		"page": func(q *planner) error {
			_, err := s.FindFlights(t.Context(), q, store.FlightFilter{Masters: true, Limit: 500, After: store.FlightCursor{SODT: noon.AddDate(0, 0, -5)}})
			return err
		},
		"day": func(q *planner) error {
			_, err := s.FindFlights(t.Context(), q, store.FlightFilter{OperationDay: "2026-11-28", Limit: 500})
			return err
		},
		"history": func(q *planner) error {
			all, known, err := s.History(t.Context(), q, 1000007, 50_000, 10)
			require.Len(t, all, 10)
			require.True(t, known)
			return err
		},
		"no history": func(q *planner) error {
			_, known, err := s.History(t.Context(), q, 1000000+5000, 0, 10)
			require.True(t, known)
			return err
		},
		"what a message did": func(q *planner) error {
			all, err := s.ChangesOf(t.Context(), q, message.Position{ID: 4711}, 0, 10)
			require.Len(t, all, 2)
			return err
		},
		"consistency point": func(q *planner) error { _, err := s.ConsistencyPoint(t.Context(), q); return err },
	} {
		q := &planner{Tx: tx}
		require.NoError(t, ask(q), name)
		require.NotEmpty(t, q.plans)
		for _, plan := range q.plans {
			for line := range strings.Lines(plan) {
				if strings.Contains(line, "Seq Scan on") { // of the lists only psdt has been filled
					require.NotContains(t, line, "flight_schd", "%s:\n%s", name, plan)
					require.NotContains(t, line, "flight_psdt", "%s:\n%s", name, plan)
					require.NotContains(t, line, "flight_change", "%s:\n%s", name, plan)
					require.NotContains(t, line, "proc_state ", "%s:\n%s", name, plan)
				}
			}
		}
	}
}

// planner explains each query before it runs it.
type planner struct {
	pgx.Tx
	plans []string
}

// Query keeps the plan.
func (p *planner) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := p.Tx.Query(ctx, "EXPLAIN "+sql, args...)
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	p.plans = append(p.plans, strings.Join(lines, "\n"))
	return p.Tx.Query(ctx, sql, args...)
}

// QueryRow is Query for one row.
func (p *planner) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := p.Query(ctx, sql, args...)
	return oneRow{rows, err}
}

type oneRow struct {
	rows pgx.Rows
	err  error
}

func (r oneRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	_, err := pgx.CollectExactlyOneRow(r.rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, row.Scan(dest...) })
	return err
}

// Exec is not explained, so no query may go there unnoticed.
func (p *planner) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errors.New("not explained")
}
