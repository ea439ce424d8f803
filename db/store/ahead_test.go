package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/db/store"
)

// counting makes statements 1 … n that note when they are made and when they are sent; the one at bad fails as fail says.
func counting(log *[]string, name string, n, bad int, fail func() (store.Write, error)) store.Writes {
	return func(yield func(store.Write, error) bool) {
		for i := 1; i <= n; i++ {
			write := func(context.Context, pgx.Tx) error { *log = append(*log, name); return nil }
			var err error
			if i == bad {
				write, err = fail()
			}
			if !yield(write, err) {
				return
			}
		}
	}
}

// Statements are sent in their order, also while the next ones are made; the first error ends it, wherever it comes from.
func TestWriteAll(t *testing.T) {
	t.Parallel()
	sorry := errors.New("sorry")
	for name, c := range map[string]struct {
		fail func() (store.Write, error)
		want error
	}{
		"made":   {func() (store.Write, error) { return nil, sorry }, sorry},
		"sent":   {func() (store.Write, error) { return func(context.Context, pgx.Tx) error { return sorry }, nil }, sorry},
		"nobody": {func() (store.Write, error) { return func(context.Context, pgx.Tx) error { return nil }, nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log []string
			err := store.WriteAll(t.Context(), nil, counting(&log, "a", 3, 0, nil), counting(&log, "b", 3, 2, c.fail), counting(&log, "c", 1, 0, nil))
			require.ErrorIs(t, err, c.want)
			want := []string{"a", "a", "a", "b"}
			if c.want == nil {
				want = append(want, "b", "c")
			}
			require.Equal(t, want, log)
		})
	}
	require.PanicsWithValue(t, "a defect", func() {
		_ = store.WriteAll(t.Context(), nil, func(func(store.Write, error) bool) { panic("a defect") })
	})
}
