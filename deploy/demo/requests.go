//go:build demo

package demo

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"msgexchange/deploy/simulator"
)

// The demo's requests: how long their answers take, and how soon they are given up.
const (
	askPeriod      = time.Minute
	answerDelay    = 500 * time.Millisecond
	requestTimeout = 4 * time.Second
	lateAnswer     = requestTimeout + 2*time.Second
	askTimeout     = 10 * time.Second
)

// The lists that are asked for: two are answered, one twice, one late, one never; so MannerOf has it.
func askedLists() []string {
	return []string{"RQRD-SLST", "RQRD-ABDG", "RQRD-STTS", "RQRD-TLST", "RQRD-AIRL"}
}

// responder is the simulated airport's other hand: it answers what is asked of it, with flights of its own for tomorrow.
func (w *world) responder(db *sql.DB) *simulator.Responder {
	const otherDigit, flights = 5, 12
	return &simulator.Responder{
		Outbox:  simulator.NewRequests(db, w.mailbox.out.name, w.zone),
		Mailbox: simulator.NewTable(db, w.mailbox.in.name, w.zone),
		Airport: simulator.Options{Seed: w.Seed + otherDigit, Flights: flights, Zone: w.zone, Day: time.Now().In(w.zone)},
		Delay:   answerDelay, LateDelay: lateAnswer,
	}
}

// ask makes the requests an operator would make, again and again until ctx ends. A round that fails is told in the log: the
// workers may be starting or ending.
func (w *world) ask(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if now.Before(next) {
				continue
			}
			if err := w.askAll(ctx); err != nil {
				w.log.WarnContext(ctx, "demo asked in vain", "error", err.Error())
				continue
			}
			next = now.Add(askPeriod)
		}
	}
}

func (w *world) askAll(ctx context.Context) error {
	tomorrow := time.Now().In(w.zone).AddDate(0, 0, 1).Format(time.DateOnly)
	window := map[string]string{"startTime": tomorrow + " 00:00", "endTime": tomorrow + " 23:59"}
	if err := w.post(ctx, "/schd/sync", window); err != nil {
		return err
	}
	for _, kind := range askedLists() {
		if err := w.post(ctx, "/ops/requests", map[string]string{"kind": kind, "reason": "the demo shows it"}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) post(ctx context.Context, path string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.listener.Addr().String()+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", path, resp.Status)
	}
	return nil
}
