//go:build demo

package demo

import (
	"fmt"
	"math"

	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// GetIndexes gives the primary key, the only index.
func (t *table) GetIndexes(*sql.Context) ([]sql.Index, error) { return []sql.Index{primary{t}}, nil }

// PreciseMatch says that the engine must check the rows of a lookup itself.
func (t *table) PreciseMatch() bool { return false }

// IndexedAccess reads only what the lookup may want.
func (t *table) IndexedAccess(_ *sql.Context, l sql.IndexLookup) sql.IndexedTable {
	return &lookup{table: t, ranges: l.Ranges}
}

// lookup is the table seen through its index.
type lookup struct {
	*table
	ranges sql.RangeCollection
}

// LookupPartitions gives a partition for each range of ids.
func (l *lookup) LookupPartitions(ctx *sql.Context, _ sql.IndexLookup) (sql.PartitionIter, error) {
	ranges, ok := l.ranges.(sql.MySQLRangeCollection)
	if !ok {
		return nil, fmt.Errorf("demo: ranges %T are not ours", l.ranges)
	}
	parts := make([]sql.Partition, 0, len(ranges))
	for _, r := range ranges {
		first, err := cut(ctx, r[0].LowerBound, 0)
		if err != nil {
			return nil, err
		}
		last, err := cut(ctx, r[0].UpperBound, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		parts = append(parts, ids{first, last})
	}
	return sql.PartitionsToPartitionIter(parts...), nil
}

// cut is the id at a bound, counted in on both sides, or the value for no bound.
func cut(ctx *sql.Context, c sql.MySQLRangeCut, none int64) (int64, error) {
	if !sql.MySQLRangeCutIsBinding(c) {
		return none, nil
	}
	v, _, err := types.Int64.Convert(ctx, sql.GetMySQLRangeCutKey(c))
	if err != nil {
		return 0, err
	}
	return v.(int64), nil
}

// primary is the index on the id.
type primary struct{ table *table }

var _ sql.OrderedIndex = primary{}

func (primary) ID() string       { return "PRIMARY" }
func (primary) Database() string { return schemaName }
func (p primary) Table() string  { return p.table.name }
func (p primary) Expressions() []string {
	return []string{p.table.name + "." + p.table.schema[0].Name}
}
func (primary) IsUnique() bool    { return true }
func (primary) IsSpatial() bool   { return false }
func (primary) IsFullText() bool  { return false }
func (primary) IsVector() bool    { return false }
func (primary) Comment() string   { return "" }
func (primary) IndexType() string { return "BTREE" }
func (primary) IsGenerated() bool { return false }
func (p primary) ColumnExpressionTypes() []sql.ColumnExpressionType {
	return []sql.ColumnExpressionType{{Expression: p.Expressions()[0], Type: p.table.schema[0].Type}}
}
func (primary) CanSupport(*sql.Context, ...sql.Range) bool { return true }
func (primary) CanSupportOrderBy(sql.Expression) bool      { return false }
func (primary) PrefixLengths() []uint16                    { return nil }
func (primary) Order() sql.IndexOrder                      { return sql.IndexOrderAsc }
func (primary) Reversible() bool                           { return false }
