package simulator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/deploy/simulator"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

// desk is both mailboxes in memory: requests go in, answers come out.
type desk struct {
	t       *testing.T
	mu      sync.Mutex // over waiting: somebody asks while another answers
	waiting []string
	answers []string // kind and when it came
	texts   []string
	start   time.Time
}

func (d *desk) Take(context.Context, time.Time) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	texts := d.waiting
	d.waiting = nil
	return texts, nil
}

func (d *desk) Insert(_ context.Context, rows []simulator.Row) error {
	for _, r := range rows {
		m, err := sis.Decode([]byte(r.Text), sis.Options{Zone: d.start.Location()})
		require.NoError(d.t, err)
		d.answers = append(d.answers, fmt.Sprint(m.Meta.Kind(), " after ", r.ReceivedAt.Sub(d.start).Round(time.Second)))
		d.texts = append(d.texts, r.Text)
	}
	return nil
}

func (d *desk) Begin(context.Context, simulator.Row) (simulator.Pending, error) {
	panic("answers are not committed late")
}

func (d *desk) ask(kind message.Kind, from, to time.Time) {
	d.t.Helper()
	text, err := sis.EncodeRequest(sis.Request{SNDR: "MSGX", SEQN: 1, DTTM: d.start, Kind: kind, From: from, To: to}, d.start.Location())
	require.NoError(d.t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, string(text))
}

// A request that was lost is answered when it is made again.
func TestResponderAnswersWhoAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t: t, start: time.Now().In(time.FixedZone("UTC+8", 8*60*60))}
		ctx, stop := context.WithCancel(t.Context())
		r := simulator.Responder{Outbox: d, Mailbox: d, Airport: simulator.Options{Seed: 5, Day: d.start}, Delay: time.Second, LateDelay: time.Second}
		ended := make(chan error)
		go func() { _, err := r.Run(ctx); ended <- err }()
		for range 2 {
			d.ask("RQRD-AIRL", time.Time{}, time.Time{})
			<-time.After(5 * time.Second) // of the bubble
		}
		stop()
		require.NoError(t, <-ended)
		require.Equal(t, []string{"AIRL-RESP after 6s"}, d.answers)
	})
}

// Requests are answered in the manner of the script, also those taken just before the end.
func TestResponder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zone := time.FixedZone("UTC+8", 8*60*60)
		d := &desk{t: t, start: time.Now().In(zone)}
		from := time.Date(2026, 12, 1, 6, 0, 0, 0, zone)
		d.ask("RQFD-NONE", from, from.Add(24*time.Hour))
		for _, kind := range []message.Kind{"RQRD-SLST", "RQRD-STTS", "RQRD-TLST", "RQRD-AIRL"} {
			d.ask(kind, time.Time{}, time.Time{})
		}
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		r := simulator.Responder{
			Outbox: d, Mailbox: d, Airport: simulator.Options{Seed: 5, Flights: 40, Day: from, Zone: zone}, Delay: time.Second, LateDelay: 9 * time.Second,
		}
		done, err := r.Run(ctx)
		require.NoError(t, err)
		require.Equal(t, simulator.Replies{Requests: 5, Answers: 5}, done)
		require.Equal(t, []string{
			"SCHD-RESP after 1s", "SLST-RESP after 1s", "STTS-RESP after 1s", "STTS-RESP after 2s", "TLST-RESP after 9s",
		}, d.answers)

		m, err := sis.Decode([]byte(d.texts[0]), sis.Options{Zone: zone})
		require.NoError(t, err)
		require.NotEmpty(t, m.Records)
		for _, rec := range m.Records {
			sodt := rec.Fields["sodt"].Time()
			require.False(t, sodt.Before(from) || sodt.After(from.Add(24*time.Hour)), "%s", sodt)
		}
	})
}
