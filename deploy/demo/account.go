//go:build demo

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"msgexchange/deploy/simulator"
)

// Summary is what went in and what came out.
type Summary struct {
	Written  simulator.Counts `json:"written"` // by the simulated airport
	Mailbox  int              `json:"mailbox"` // rows in it, those sent by HTTP too
	Messages Messages         `json:"messages"`
	Marked   int              `json:"marked"` // rows of the mailbox that carry the processed mark
	Msg      Events           `json:"msg"`
	Schd     Events           `json:"schd"`
	Flights  int              `json:"flights"` // live ones
	Requests Requests         `json:"requests"`
	Problems []string         `json:"problems"`
}

// Messages are the messages taken over, by what became of them.
type Messages struct {
	Succeeded  int `json:"succeeded"`
	Skipped    int `json:"skipped"`
	Dead       int `json:"dead"`
	Unfinished int `json:"unfinished"`
}

// Requests are what was asked of the airport database, and what became of it.
type Requests struct {
	Made     int `json:"made"`
	Answered int `json:"answered"`
	Expired  int `json:"expired"`
	Open     int `json:"open"`
	Refused  int `json:"refused"` // answers that came late, twice or unasked
}

// Processed are those that are done with.
func (m Messages) Processed() int { return m.Succeeded + m.Skipped + m.Dead }

// Events are the events of one topic. A superseded one is SENT without a record of its own: a newer one stood for it.
type Events struct {
	Created    int `json:"created"`
	Sent       int `json:"sent"`
	Superseded int `json:"superseded"`
	Dead       int `json:"dead"`
	Records    int `json:"records"` // in the topic
}

// What the databases hold, the archive included.
const (
	countMessages = `
SELECT count(*) FILTER (WHERE state = 'SUCCEEDED'), count(*) FILTER (WHERE state = 'SKIPPED'), count(*) FILTER (WHERE state = 'DEAD'),
	count(*) FILTER (WHERE state IN ('PENDING', 'FAILED')), (SELECT count(*) FROM flight_schd WHERE deleted_at IS NULL)
FROM (SELECT state FROM proc_state UNION ALL SELECT state FROM proc_state_hst) AS messages`

	countRequests = `
SELECT count(*), count(*) FILTER (WHERE state = 'DONE'), count(*) FILTER (WHERE state = 'EXPIRED'), count(*) FILTER (WHERE state IN ('REGISTERED', 'SENT', 'WAITING')),
	(SELECT count(*) FROM (SELECT skip_reason FROM proc_state UNION ALL SELECT skip_reason FROM proc_state_hst) AS m WHERE skip_reason = 'unmatched-resp')
FROM req_track`

	countEvents = `
SELECT count(*), count(*) FILTER (WHERE state = 'SENT'), count(*) FILTER (WHERE superseded_by IS NOT NULL), count(*) FILTER (WHERE state = 'DEAD')
FROM (SELECT target, state, superseded_by FROM msg_event UNION ALL SELECT target, state, superseded_by FROM msg_event_hst) AS events
WHERE target = $1`
)

// count reads the numbers, all of the database's at one moment.
func (w *world) count(ctx context.Context) (Summary, error) {
	var s Summary
	err := pgx.BeginTxFunc(ctx, w.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		m := &s.Messages
		if err := tx.QueryRow(ctx, countMessages).Scan(&m.Succeeded, &m.Skipped, &m.Dead, &m.Unfinished, &s.Flights); err != nil {
			return err
		}
		r := &s.Requests
		if err := tx.QueryRow(ctx, countRequests).Scan(&r.Made, &r.Answered, &r.Expired, &r.Open, &r.Refused); err != nil {
			return err
		}
		for target, e := range map[string]*Events{"KAFKA:msg": &s.Msg, "KAFKA:schd": &s.Schd} {
			if err := tx.QueryRow(ctx, countEvents, target).Scan(&e.Created, &e.Sent, &e.Superseded, &e.Dead); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("demo: count: %w", err)
	}
	s.Mailbox, s.Marked = w.mailbox.marked()
	s.Msg.Records, s.Schd.Records = w.records(w.cfg.Kafka.MsgTopic()), w.records(w.cfg.Kafka.SchdTopic())
	return s, nil
}

// records says how many records a topic got.
func (w *world) records(topic string) (n int) {
	for p := range w.cfg.Kafka.Partitions {
		n += int(w.kafka.PartitionInfo(topic, p).HighWatermark)
	}
	return n
}

// settled says that nothing is left to do.
func (s *Summary) settled() bool {
	return s.Mailbox == s.Messages.Processed() && s.Mailbox == s.Marked && s.Messages.Unfinished == 0 && s.Requests.Open == 0 &&
		s.Msg.Created == s.Msg.Sent+s.Msg.Dead && s.Schd.Created == s.Schd.Sent+s.Schd.Dead
}

// done counts everything that was done; it grows while there is progress.
func (s *Summary) done() int { return s.Messages.Processed() + s.Marked + s.Msg.Sent + s.Schd.Sent }

// check finds everything that does not add up.
func (s *Summary) check() {
	s.Problems = []string{}
	must := func(ok bool, format string, args ...any) {
		if !ok {
			s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
		}
	}
	must(s.Written.Rows <= s.Mailbox, "%d messages were written, the mailbox has %d", s.Written.Rows, s.Mailbox)
	must(s.Mailbox == s.Messages.Processed(), "the mailbox has %d messages, %d are processed", s.Mailbox, s.Messages.Processed())
	must(s.Messages.Unfinished == 0, "%d messages are unfinished", s.Messages.Unfinished)
	must(s.Requests.Open == 0, "%d requests are neither answered nor expired", s.Requests.Open)
	must(s.Mailbox == s.Marked, "the mailbox has %d messages, %d are marked", s.Mailbox, s.Marked)
	for i, e := range []Events{s.Msg, s.Schd} {
		topic := []string{"msg", "schd"}[i]
		must(e.Created == e.Sent, "%s: %d events were created, %d sent", topic, e.Created, e.Sent)
		must(e.Records >= e.Sent-e.Superseded, "%s: %d events were sent, the topic has %d records", topic, e.Sent-e.Superseded, e.Records)
	}
}

// print writes the summary for people, or as JSON.
func (s *Summary) print(out io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(s)
	}
	m := s.Messages
	lines := []string{
		"",
		fmt.Sprintf("messages  %d written, %d in the mailbox, %d processed (%d succeeded, %d skipped, %d dead), %d marked",
			s.Written.Rows, s.Mailbox, m.Processed(), m.Succeeded, m.Skipped, m.Dead, s.Marked),
		"msg       " + s.Msg.line(),
		"schd      " + s.Schd.line(),
		fmt.Sprintf("flights   %d live", s.Flights),
	}
	if r := s.Requests; r.Made > 0 {
		lines = append(lines, fmt.Sprintf("requests  %d made, %d answered, %d expired; %d answers refused: late or twice", r.Made, r.Answered, r.Expired, r.Refused))
	}
	for _, p := range s.Problems {
		lines = append(lines, "PROBLEM   "+p)
	}
	if len(s.Problems) == 0 {
		lines = append(lines, "Everything adds up.")
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(out, l); err != nil {
			return err
		}
	}
	return nil
}

func (e Events) line() string {
	s := fmt.Sprintf("%d events created, %d sent", e.Created, e.Sent)
	if e.Superseded > 0 {
		s += fmt.Sprintf(", of these %d superseded by a newer one", e.Superseded)
	}
	if e.Dead > 0 {
		s += fmt.Sprintf(", %d dead", e.Dead)
	}
	return s + fmt.Sprintf("; %d records", e.Records)
}
