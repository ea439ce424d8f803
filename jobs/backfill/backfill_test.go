package backfill

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/message"
)

var now = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

func TestStatus(t *testing.T) {
	t.Parallel()
	plain := Values{Processed: "PROCESSED"}
	mapped := Values{Processed: "PROCESSED", ByOutcome: map[Outcome]string{Duplicate: "DUPLICATE", Dead: "DEAD"}}
	for name, tc := range map[string]struct {
		state  message.State
		skip   string
		want   Outcome
		mapped string
	}{
		"succeeded": {message.Succeeded, "", Success, "PROCESSED"},
		"ignored":   {message.Skipped, "ignored:LDM-*", Skipped, "PROCESSED"},
		"unmatched": {message.Skipped, "unmatched-resp", Skipped, "PROCESSED"},
		"duplicate": {message.Skipped, "duplicate-of:4711", Duplicate, "DUPLICATE"},
		"dead":      {message.Dead, "", Dead, "DEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, OutcomeOf(tc.state, tc.skip))
			require.Equal(t, "PROCESSED", plain.Status(tc.want))
			d := Debt{Pos: message.Position{ID: 7}, State: tc.state, SkipReason: tc.skip, Meta: message.Meta{SNDR: "AODB"}}
			require.Equal(t, Mark{ID: 7, Status: tc.mapped, Meta: d.Meta}, d.Mark(mapped))
		})
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	p := Policy{MaxAttempts: 20, Overdue: 720 * time.Hour}
	locked := errors.New("row is locked")
	for name, tc := range map[string]struct {
		debt   Debt
		answer Answer
		want   Settlement
	}{
		"written":         {Debt{Attempts: 1}, Answer{Result: Written}, Settlement{At: now}},
		"already":         {Debt{Attempts: 3}, Answer{Result: Already}, Settlement{At: now}},
		"missing":         {Debt{Attempts: 1}, Answer{Result: Missing}, Settlement{AbandonedAt: now, Reason: RowMissing}},
		"transient":       {Debt{Attempts: 1}, Answer{Result: Transient, Err: locked}, Settlement{Next: now.Add(30 * time.Second), Error: locked.Error()}},
		"transient again": {Debt{Attempts: 3}, Answer{Result: Transient, Err: locked}, Settlement{Next: now.Add(2 * time.Minute), Error: locked.Error()}},
		"capped":          {Debt{Attempts: 19}, Answer{Result: Transient, Err: locked}, Settlement{Next: now.Add(15 * time.Minute), Error: locked.Error()}},
		"last attempt":    {Debt{Attempts: 20}, Answer{Result: Transient, Err: locked}, Settlement{AbandonedAt: now, Reason: AttemptsSpent, Error: locked.Error()}},
		"overdue":         {Debt{Attempts: 10, ReceivedAt: now.Add(-720 * time.Hour)}, Answer{Result: Transient, Err: locked}, Settlement{Next: now.Add(30 * time.Second), Error: locked.Error()}},
		"not yet overdue": {Debt{Attempts: 10, ReceivedAt: now.Add(-719 * time.Hour)}, Answer{Result: Transient, Err: locked}, Settlement{Next: now.Add(15 * time.Minute), Error: locked.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.want.Debt = tc.debt
			require.Equal(t, tc.want, p.Settle(tc.debt, tc.answer, now))
		})
	}
}

func TestUnasked(t *testing.T) {
	t.Parallel()
	s := Unasked(Debt{Attempts: 4}, now)
	require.Equal(t, 3, s.Debt.Attempts)
	require.Equal(t, now, s.Next)
}

// TestLife plays a debt against a mailbox that answers anything: it ends paid or given up, tries never come closer than
// the first pause nor further apart than the longest, and an outage costs nothing.
func TestLife(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{MaxAttempts: rapid.IntRange(1, 25).Draw(t, "max"), Overdue: 720 * time.Hour}
		clock, d := now, Debt{ReceivedAt: now.Add(-time.Duration(rapid.IntRange(0, 1000).Draw(t, "age")) * time.Hour)}
		for refused := 0; ; {
			d.Attempts++
			if rapid.Float64Range(0, 1).Draw(t, "outage") < 0.2 {
				d = Unasked(d, clock).Debt
				continue
			}
			r := rapid.SampledFrom([]Result{Transient, Transient, Transient, Written, Already, Missing}).Draw(t, "result")
			s := p.Settle(d, Answer{Result: r, Err: errors.New("no")}, clock)
			n := 0
			for _, at := range []time.Time{s.At, s.Next, s.AbandonedAt} {
				if !at.IsZero() {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("not exactly one of paid, owed, given up: %+v", s)
			}
			if s.Next.IsZero() {
				if r == Transient && refused+1 != p.MaxAttempts {
					t.Fatalf("given up after %d refusals, want %d", refused+1, p.MaxAttempts)
				}
				return
			}
			refused++
			if pause := s.Next.Sub(clock); pause < firstPause || pause > longestPause {
				t.Fatalf("pause of %v", pause)
			}
			clock = s.Next
		}
	})
}
