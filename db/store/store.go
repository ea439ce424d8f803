// Package store turns rows of our own database into the types of jobs/* and back: one file an area, all methods on Store.
// It takes the connection or the transaction as an argument and opens none itself; who may write when is the caller's
// business (design §3). Texts of SQL are in db/queries.
package store

import (
	"time"

	"msgexchange/db/pgq"
)

// Store has the queries of all areas. It holds no connection; safe for concurrent use.
type Store struct {
	q *pgq.Queries
	// zone is the airport's: times inside stored JSON are written with its offset, as in the flight JSON.
	zone *time.Location
	zip  *zip
}

// New makes a store that writes times inside JSON in the airport's zone.
func New(zone *time.Location) *Store { return &Store{q: pgq.New(), zone: zone, zip: newZip()} }
