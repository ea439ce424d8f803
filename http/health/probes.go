package health

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db"
	"msgexchange/db/store"
	"msgexchange/jobs/fault"
)

// Names of the checks in /readyz (contract §8.9).
const (
	Postgres = "postgres"
	Mailbox  = "mailbox"
	Kafka    = "kafka"
	Schema   = "schema"
	Lane     = "lane"
)

// PostgresProbe looks whether our database answers. Without it there is nothing to serve.
func PostgresProbe(pool *pgxpool.Pool) Probe {
	return Probe{Name: Postgres, Critical: true, Look: func(ctx context.Context) Check {
		if err := pool.Ping(ctx); err != nil {
			return Failed(fault.Text(err))
		}
		return Fine()
	}}
}

// SchemaProbe looks whether every migration that this program knows is applied.
func SchemaProbe(pool *pgxpool.Pool) Probe {
	return Probe{Name: Schema, Critical: true, Look: func(ctx context.Context) Check {
		current, detail, err := db.SchemaCurrent(ctx, pool)
		switch {
		case err != nil:
			return Failed(fault.Text(err))
		case !current:
			return Failed(detail)
		}
		return Check{State: OK, Detail: detail}
	}}
}

// LaneProbe looks whether the lane has been stopped, which only an operator ends (contract §8.10).
func LaneProbe(pool *pgxpool.Pool, st *store.Store, lane string) Probe {
	return Probe{Name: Lane, Look: func(ctx context.Context) Check {
		in, known, err := st.Inbox(ctx, pool, lane)
		switch {
		case err != nil:
			return Failed(fault.Text(err))
		case !known:
			return Check{State: OK, Detail: "has not begun"}
		case in.Stopped != "":
			return Failed("stopped: " + string(in.Stopped))
		}
		return Fine()
	}}
}
