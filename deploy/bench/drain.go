package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"msgexchange/deploy/systemtest/rig"
)

// The flights that the backlog is about, and how many rows one read of the mailbox, one transaction, one flush of schd and one
// request to the broker take: these keys are meant to be raised where backlogs come in one piece.
const (
	backlogFlights = 500
	claimBatch     = 1000
	headBatch      = 5000
	flushLimit     = 5000
	sendBatch      = 2000
	pollInterval   = time.Second // an idle poller's
	brokerPause    = 2 * time.Millisecond
	copyTopic      = "copy"
)

// drain measures a backlog of FLOP that came together while the program stood still, from the moment it goes on until the last
// record is in Kafka, in turns with pgbench and with a copy that does nothing but copy.
func drain(ctx context.Context, b *bench) error {
	if _, err := b.tool(ctx, "-i", "-q", "-s", "10"); err != nil {
		return err
	}
	d := &drains{bench: b, cpu: cpu{}}
	err := b.with(ctx, func(pod *rig.Pod) error {
		d.pod = pod
		if _, err := b.put(ctx, schedules(b.next(), backlogFlights)); err != nil {
			return err
		}
		if err := b.drained(ctx); err != nil {
			return err
		}
		if err := d.settleIn(ctx); err != nil {
			return err
		}
		for range b.rounds {
			if err := d.round(ctx); err != nil {
				return err
			}
		}
		return nil
	}, forBacklogs()...)
	if err != nil {
		return err
	}
	d.tell()
	return nil
}

// drains is what the rounds gave, in messages or transactions a second.
type drains struct {
	*bench
	pod                      *rig.Pod
	tps, copied, quick, slow []float64
	cpu                      cpu // of the quick drains
}

func (d *drains) round(ctx context.Context) error {
	for _, m := range []struct {
		into *[]float64
		run  func() (float64, error)
	}{
		{&d.tps, func() (float64, error) { return d.pgbench(ctx, max(1, d.backlog/4000)) }},
		{&d.quick, func() (rate float64, err error) {
			before, err := spent()
			if err != nil {
				return 0, err
			}
			if rate, err = d.backlogRate(ctx, 0); err != nil {
				return 0, err
			}
			after, err := spent()
			d.cpu.plus(after.minus(before))
			return rate, err
		}},
		{&d.copied, func() (float64, error) { return d.copyRate(ctx) }},
		{&d.slow, func() (float64, error) { return d.backlogRate(ctx, brokerPause) }},
	} {
		rate, err := m.run()
		if err != nil {
			return err
		}
		*m.into = append(*m.into, rate)
	}
	n := len(d.tps) - 1
	d.say("pgbench %.0f, drain %.0f (%.2f), copy %.0f, drain with a slow broker %.0f, processor time of a message %s",
		d.tps[n], d.quick[n], d.quick[n]/d.tps[n], d.copied[n], d.slow[n], d.cpu.per(len(d.quick)*d.backlog))
	return nil
}

func (d *drains) tell() {
	ratio, slowly := median(ratios(d.quick, d.tps)), median(ratios(d.slow, d.quick))
	d.table.limit("pgbench -N -c 1", "%.0f transactions/s", median(d.tps))
	d.table.limit("copy mailbox to Kafka, nothing else", "%.0f messages/s", median(d.copied))
	const goal = 3
	d.table.goal(fmt.Sprintf("backlog of %d FLOP", d.backlog), ratio >= goal, "≥ 3.0 × pgbench", "%.0f messages/s = %.2f × pgbench, %.3f of the copy",
		median(d.quick), ratio, median(ratios(d.quick, d.copied)))
	d.table.limit("processor time of one of them, all processes, marks too", "%s", d.cpu.per(len(d.quick)*d.backlog))
	const half = 0.5
	d.table.goal("the same, the broker takes 2 ms to answer", slowly >= half, "≥ 0.5 of it", "%.0f messages/s = %.2f of it", median(d.slow), slowly)
}

// forBacklogs are the settings of a program that is to work off backlogs.
func forBacklogs() []string {
	return []string{
		fmt.Sprintf("MSGX_PIPELINE_CLAIM_BATCH=%d", claimBatch), fmt.Sprintf("MSGX_PIPELINE_HEAD_BATCH=%d", headBatch),
		fmt.Sprintf("MSGX_SCHD_FLUSH_LIMIT=%d", flushLimit), fmt.Sprintf("MSGX_DELIVERY_BATCH=%d", sendBatch),
	}
}

// settleIn makes PostgreSQL know its tables as it does in a system that has run for some minutes.
func (b *bench) settleIn(ctx context.Context) error {
	const few = 1000
	if _, err := b.put(ctx, b.backlogTexts(few)...); err != nil {
		return err
	}
	if err := b.drained(ctx); err != nil {
		return err
	}
	_, err := b.world.Pool.Exec(ctx, "VACUUM ANALYZE")
	return err
}

func ratios(of, by []float64) []float64 {
	out := make([]float64, len(of))
	for i := range of {
		out[i] = of[i] / by[i]
	}
	return out
}

// backlogRate drains one backlog; the system is empty and awake before it and empty after it. The pod is stopped while the backlog
// is written, and for longer than an idle poller sleeps: half a second of waiting for its look says nothing about a rate.
func (d *drains) backlogRate(ctx context.Context, pause time.Duration) (float64, error) {
	texts := d.backlogTexts(d.backlog)
	before := d.records("msg")
	d.world.Broker.Delay(pause)
	defer d.world.Broker.Delay(0)
	if err := d.pod.Signal(syscall.SIGSTOP); err != nil {
		return 0, err
	}
	stopped := time.Now()
	_, err := d.put(ctx, texts...)
	time.Sleep(time.Until(stopped.Add(pollInterval)))
	at := time.Now()
	if err = errors.Join(err, d.pod.Signal(syscall.SIGCONT)); err != nil {
		return 0, err
	}
	err = d.until(ctx, 5*time.Minute, func() (bool, error) { return d.records("msg") >= before+d.backlog, nil })
	took := time.Since(at)
	if err == nil {
		err = d.drained(ctx)
	}
	return float64(d.backlog) / took.Seconds(), err
}

// backlogTexts are n messages of one backlog, about flights in any order.
func (b *bench) backlogTexts(n int) []string {
	rnd := rand.New(rand.NewPCG(uint64(b.seqn), 0))
	texts := make([]string, n)
	for i := range texts {
		texts[i] = flop(b.next(), 1+rnd.IntN(backlogFlights), i)
	}
	return texts
}

// copyRate reads the same number of rows from the mailbox and sends their texts to a topic of their own, one batch after the
// other.
func (b *bench) copyRate(ctx context.Context) (float64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.world.Broker.ListenAddrs()...), kgo.DefaultProduceTopic(copyTopic))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, kgo.StringRecord("first")).FirstErr(); err != nil {
		return 0, err
	}
	last, err := b.lastID(ctx)
	if err != nil {
		return 0, err
	}
	at, copied := time.Now(), 0
	for id := last - int64(b.backlog); id < last; id += claimBatch {
		batch, err := b.read(ctx, id, min(id+claimBatch, last))
		if err != nil {
			return 0, err
		}
		copied += len(batch)
		if err := client.ProduceSync(ctx, batch...).FirstErr(); err != nil {
			return 0, err
		}
	}
	return float64(copied) / time.Since(at).Seconds(), nil
}

func (b *bench) read(ctx context.Context, after, upTo int64) (batch []*kgo.Record, err error) {
	rows, err := b.world.Mailbox.DB().QueryContext(ctx, "SELECT CMINMSGS_CLOB_MSG FROM cminmsgs WHERE CMINMSGS_ID > ? AND CMINMSGS_ID <= ?", after, upTo)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		batch = append(batch, &kgo.Record{Value: text})
	}
	return batch, rows.Err()
}

// next numbers our messages.
func (b *bench) next() int { b.seqn++; return b.seqn }

// envelope writes a message.
func envelope(seqn int, typ, styp, body string) string {
	at := time.Date(2026, 3, 18, 0, 0, 0, 0, time.UTC).Add(time.Duration(seqn) * time.Second)
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><MSG><META><SNDR>BNCH</SNDR><SEQN>%d</SEQN><DTTM>%s</DTTM><TYPE>%s</TYPE><STYP>%s</STYP></META>%s</MSG>`,
		seqn%1_000_000, at.Format("20060102150405"), typ, styp, body)
}

// schedules writes the flights 1 … n, with what a departure usually carries.
func schedules(seqn, n int) string {
	var t strings.Builder
	fmt.Fprintf(&t, "<SCHD><RECS>%d</RECS>", n)
	for i := range n {
		fmt.Fprintf(&t, `<FLTR><FLID>%d</FLID><ALCD>3U</ALCD><FLNO>3U%d</FLNO><MVIN>D</MVIN><SODT>18MAR26%02d%02d</SODT><FLTY>J</FLTY><FLIN>D</FLIN><ACFT>320</ACFT>`+
			`<RENO>B%04d</RENO><TRML>T2</TRML><MAXP>180</MAXP><STND>%d</STND><FTSS>SCH</FTSS></FLTR>`, i+1, i+1, i/60%24, i%60, i, 200+i%100)
	}
	t.WriteString("</SCHD>")
	return envelope(seqn, "SCHD", "DNLD", t.String())
}

// flop writes a change of one flight, as they come on a day: a stand, an estimate, a remark, or the list of stands. No two
// values are the same, so that each has an effect.
func flop(seqn, flid, i int) string {
	moment := strings.ToUpper(time.Date(2026, 3, 18, 0, seqn, 0, 0, time.UTC).Format("02Jan061504"))
	const above = 1000 // every stand that schedules gives
	styp, value := "STND", strconv.Itoa(above+seqn)
	switch i % 4 {
	case 1:
		styp, value = "ESTT", moment
	case 2:
		styp, value = "REMC", fmt.Sprintf("note %d", seqn)
	case 3:
		body := fmt.Sprintf(`<FLOP><FLID>%d</FLID><PSDT PSNO="1"><PSST>%d</PSST><STST>%s</STST></PSDT></FLOP>`, flid, seqn, moment)
		return envelope(seqn, "FLOP", "PSDT", body)
	}
	return envelope(seqn, "FLOP", styp, fmt.Sprintf("<FLOP><FLID>%d</FLID><%s>%s</%s></FLOP>", flid, styp, value, styp))
}
