//go:build demo

package demo

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	vitess "github.com/dolthub/vitess/go/mysql"
)

// table is a table of the mailbox: its first column is the id and counts by itself, rows are kept in the order of their
// ids and never go. Every change takes effect at once: there are no transactions, and none of ours is ever rolled back.
// (The engine's own memory tables copy the whole table for each statement, and one of two writers at a time loses.)
type table struct {
	name   string
	schema sql.Schema

	mu   sync.RWMutex
	rows []sql.Row
	next uint64
}

var (
	_ sql.InsertableTable       = (*table)(nil)
	_ sql.UpdatableTable        = (*table)(nil)
	_ sql.AutoIncrementTable    = (*table)(nil)
	_ sql.PrimaryKeyTable       = (*table)(nil)
	_ sql.IndexAddressableTable = (*table)(nil)
	_ sql.IndexedTable          = (*lookup)(nil)
)

// newTable makes an empty table. The id column comes first.
func newTable(name string, columns ...*sql.Column) *table {
	for _, c := range columns {
		c.Source = name
	}
	columns[0].PrimaryKey, columns[0].AutoIncrement = true, true
	return &table{name: name, schema: columns, next: 1}
}

func (t *table) Name() string                           { return t.name }
func (t *table) String() string                         { return t.name }
func (t *table) Schema() sql.Schema                     { return t.schema }
func (t *table) Collation() sql.CollationID             { return sql.Collation_Default }
func (t *table) PrimaryKeySchema() sql.PrimaryKeySchema { return sql.NewPrimaryKeySchema(t.schema, 0) }

// count says how many rows there are, and for how many of them the predicate holds.
func (t *table) count(holds func(sql.Row) bool) (all, some int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, r := range t.rows {
		if holds(r) {
			some++
		}
	}
	return len(t.rows), some
}

// The status of a row that a drill holds, and that with which it lets go (simulator.Drill).
const held, released = "HELD", "VALID"

// status is the row's, nil in a table that has none.
func (t *table) status(r sql.Row) any {
	if i := t.schema.IndexOfColName("CMINMSGS_STATUS"); i >= 0 {
		return r[i]
	}
	return nil
}

// find gives the place of the first row with an id of at least id. The lock must be held.
func (t *table) find(id int64) int {
	i, _ := slices.BinarySearchFunc(t.rows, id, func(r sql.Row, id int64) int { return int(idOf(r) - id) })
	return i
}

func idOf(r sql.Row) int64 { return r[0].(int64) }

// ids is a partition: the rows with ids from first to last.
type ids struct{ first, last int64 }

// Key names the partition.
func (p ids) Key() []byte { return fmt.Appendf(nil, "%d-%d", p.first, p.last) }

// Partitions is the whole table.
func (t *table) Partitions(*sql.Context) (sql.PartitionIter, error) {
	return sql.PartitionsToPartitionIter(ids{0, math.MaxInt64}), nil
}

// PartitionRows reads the rows of a partition; rows that come meanwhile are seen too.
func (t *table) PartitionRows(_ *sql.Context, p sql.Partition) (sql.RowIter, error) {
	part, ok := p.(ids)
	if !ok {
		return nil, fmt.Errorf("demo: partition %T is not ours", p)
	}
	return &rows{table: t, ids: part}, nil
}

// rows walks through a partition.
type rows struct {
	table *table
	ids   // what is left
}

// Next gives the next row.
func (r *rows) Next(*sql.Context) (sql.Row, error) {
	r.table.mu.RLock()
	defer r.table.mu.RUnlock()
	i := r.table.find(r.first)
	if i == len(r.table.rows) || idOf(r.table.rows[i]) > r.last {
		return nil, io.EOF
	}
	row := r.table.rows[i]
	r.first = idOf(row) + 1
	return row, nil
}

// Close has nothing to do.
func (r *rows) Close(*sql.Context) error { return nil }

// PeekNextAutoIncrementValue is the next id.
func (t *table) PeekNextAutoIncrementValue(*sql.Context) (uint64, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.next, nil
}

// GetNextAutoIncrementValue takes the next id, or the one that was given in the statement.
func (t *table) GetNextAutoIncrementValue(ctx *sql.Context, given any) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := t.next
	if given != nil {
		v, _, err := types.Uint64.Convert(ctx, given)
		if err != nil {
			return 0, err
		}
		if n := v.(uint64); n != 0 {
			id = n
		}
	}
	t.next = max(t.next, id+1)
	return id, nil
}

// AutoIncrementSetter, Inserter and Updater give the one editor there is.
func (t *table) AutoIncrementSetter(*sql.Context) sql.AutoIncrementSetter { return editor{t} }
func (t *table) Inserter(*sql.Context) sql.RowInserter                    { return editor{t} }
func (t *table) Updater(*sql.Context) sql.RowUpdater                      { return editor{t} }

// editor changes the table, each row at once.
type editor struct{ table *table }

// Insert adds a row.
func (e editor) Insert(_ *sql.Context, row sql.Row) error {
	t := e.table
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok := row[0].(int64)
	if !ok {
		return errors.New("demo: a row without an id")
	}
	i := t.find(id)
	if i < len(t.rows) && idOf(t.rows[i]) == id {
		return sql.NewUniqueKeyErr(fmt.Sprint(id), true, t.rows[i])
	}
	t.rows = slices.Insert(t.rows, i, row.Copy())
	t.next = max(t.next, uint64(id)+1)
	return nil
}

// Update replaces a row; ids do not change. A row that changed since it was read, or that a drill holds, is refused with the
// words of a server whose other client has it locked.
func (e editor) Update(ctx *sql.Context, old, row sql.Row) error {
	t := e.table
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.find(idOf(old))
	if i == len(t.rows) || idOf(t.rows[i]) != idOf(row) {
		return fmt.Errorf("demo: no row %d, or its id changes", idOf(old))
	}
	same, err := t.rows[i].Equals(ctx, old, t.schema)
	if err != nil {
		return err
	}
	if !same || t.status(old) == held && t.status(row) != released {
		return vitess.NewSQLError(vitess.ERLockWaitTimeout, "HY000", "Lock wait timeout exceeded; try restarting transaction")
	}
	t.rows[i] = row.Copy()
	return nil
}

// SetAutoIncrementValue moves the counter.
func (e editor) SetAutoIncrementValue(_ *sql.Context, n uint64) error {
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	e.table.next = n
	return nil
}

// What the engine calls around statements needs nothing from us.
func (editor) AcquireAutoIncrementLock(*sql.Context) (func(), error) { return func() {}, nil }
func (editor) StatementBegin(*sql.Context)                           {}
func (editor) DiscardChanges(*sql.Context, error) error              { return nil }
func (editor) StatementComplete(*sql.Context) error                  { return nil }
func (editor) Close(*sql.Context) error                              { return nil }
