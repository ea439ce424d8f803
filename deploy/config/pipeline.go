package config

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"msgexchange/jobs/inbox"
	"msgexchange/jobs/retry"
	"msgexchange/jobs/sis"
)

// OperationDay says when an airport's day begins; keys under "operation-day.".
type OperationDay struct {
	// Zone is the airport's time zone; the times of messages are in it.
	Zone string `koanf:"zone"`
	// CutoffHour is the hour at which a new operation day begins. 0 … 23.
	CutoffHour int `koanf:"cutoff-hour"`
}

func defaultOperationDay() OperationDay { return OperationDay{Zone: "Asia/Shanghai"} }

// Validate finds everything wrong with the settings.
func (o OperationDay) Validate() error {
	return errors.Join(zone("zone", o.Zone), within("cutoff-hour", o.CutoffHour, 0, 23))
}

// Flight is what may be chosen about flights; keys under "flight.".
type Flight struct {
	// FDELMaster says what becomes of the children of a deleted master: delete, or detach.
	FDELMaster string `koanf:"fdel-master"`
}

func defaultFlight() Flight { return Flight{FDELMaster: "delete"} }

// Validate finds everything wrong with the settings.
func (f Flight) Validate() error { return oneOf("fdel-master", f.FDELMaster, "delete", "detach") }

// Pipeline is the way from the mailbox to the flights; keys under "pipeline.".
type Pipeline struct {
	retry.Policy // of a message that fails; checked for itself
	// PollInterval is the pause after an empty read of the mailbox. 50ms … 1m.
	PollInterval time.Duration `koanf:"poll-interval"`
	// BusyInterval is the pause after a read that found something; it doubles up to poll-interval. 1ms … poll-interval.
	BusyInterval time.Duration `koanf:"busy-interval"`
	// ClaimBatch is how many rows one read takes. 1 … 10000.
	ClaimBatch int `koanf:"claim-batch"`
	// HeadBatch is how many messages one transaction works on at most. 1 … 5000.
	HeadBatch int `koanf:"head-batch"`
	// MaxCommitDelay is how long a missing id is waited for. 1s … 24h.
	MaxCommitDelay time.Duration `koanf:"max-commit-delay"`
	// Late says what is done with a message that comes after that: apply, or report.
	Late inbox.Policy `koanf:"late"`
	// LateDetectPeriod is how often late messages are looked for. 1s … 1h.
	LateDetectPeriod time.Duration `koanf:"late-detect-period"`
	// HoleProbe asks the mailbox which transactions are open instead of waiting; needs the PROCESS right.
	HoleProbe bool `koanf:"hole-probe"`
	// CutoverWatermark seeds an empty system: min, zero, max or a message id; empty: not seeded.
	CutoverWatermark inbox.Cutover `koanf:"cutover-watermark"`
}

func defaultPipeline() Pipeline {
	return Pipeline{
		Policy:           retry.Defaults(),
		PollInterval:     time.Second,
		BusyInterval:     20 * time.Millisecond,
		ClaimBatch:       50,
		HeadBatch:        200,
		MaxCommitDelay:   5 * time.Minute,
		Late:             inbox.Apply,
		LateDetectPeriod: time.Minute,
	}
}

// Validate finds everything wrong with the settings.
func (p Pipeline) Validate() error {
	var seed error
	if _, err := p.CutoverWatermark.Watermark(inbox.Extent{}); err != nil {
		seed = fmt.Errorf("cutover-watermark: %w", err)
	}
	return errors.Join(
		within("poll-interval", p.PollInterval, 50*time.Millisecond, time.Minute),
		within("busy-interval", p.BusyInterval, time.Millisecond, max(p.PollInterval, time.Millisecond)),
		within("claim-batch", p.ClaimBatch, 1, 10000),
		within("head-batch", p.HeadBatch, 1, 5000),
		within("max-commit-delay", p.MaxCommitDelay, time.Second, 24*time.Hour),
		oneOf("late", p.Late, inbox.AllPolicies()...),
		within("late-detect-period", p.LateDetectPeriod, time.Second, time.Hour),
		seed,
	)
}

// Ignore names the kinds that are not looked at; keys under "ignore.".
type Ignore struct {
	// Rules are TYPE-STYP or TYPE-*, without regard to case.
	Rules sis.IgnoreRules `koanf:"rules"`
}

func defaultIgnore() Ignore {
	return Ignore{Rules: sis.IgnoreRules{"LDM-*", "REGN-*", "RSTA-*", "EROR-*"}}
}

// Validate finds everything wrong with the settings.
func (i Ignore) Validate() error {
	rule := regexp.MustCompile(`^[A-Za-z0-9]+-([A-Za-z0-9]+|\*)$`)
	var errs []error
	for _, text := range i.Rules {
		if !rule.MatchString(text) {
			errs = append(errs, fmt.Errorf("rules: %q is neither TYPE-STYP nor TYPE-*", text))
		}
	}
	return errors.Join(errs...)
}

// Schd is the topic of whole flights; keys under "schd.".
type Schd struct {
	// FlushPeriod is how long the newest state of a flight may wait to be sent. 10ms … 10m.
	FlushPeriod time.Duration `koanf:"flush-period"`
	// FlushLimit is how many waiting events are sent without waiting. 1 … 100000.
	FlushLimit int `koanf:"flush-limit"`
}

func defaultSchd() Schd { return Schd{FlushPeriod: 3 * time.Second, FlushLimit: 500} }

// Validate finds everything wrong with the settings.
func (s Schd) Validate() error {
	return errors.Join(
		within("flush-period", s.FlushPeriod, 10*time.Millisecond, 10*time.Minute),
		within("flush-limit", s.FlushLimit, 1, 100000),
	)
}

// Delivery is the sending of events; keys under "delivery.".
type Delivery struct {
	// Batch is how many events are sent at once. 1 … 10000.
	Batch int `koanf:"batch"`
}

func defaultDelivery() Delivery { return Delivery{Batch: 500} }

// Validate finds everything wrong with the settings.
func (d Delivery) Validate() error { return within("batch", d.Batch, 1, 10000) }

// Backfill is the writing of processed marks; keys under "backfill.".
type Backfill struct {
	// Batch is how many marks one round writes. 1 … 10000.
	Batch int `koanf:"batch"`
	// MaxAttempts is after how many failures a mark is left to an operator. 1 … 1000.
	MaxAttempts int `koanf:"max-attempts"`
	// Overdue is the age of a message at which its mark is tried whatever the back-off says. 1h … 4000d.
	Overdue time.Duration `koanf:"overdue"`
}

func defaultBackfill() Backfill { return Backfill{Batch: 500, MaxAttempts: 20, Overdue: 30 * day} }

// Validate finds everything wrong with the settings.
func (b Backfill) Validate() error {
	return errors.Join(
		within("batch", b.Batch, 1, 10000),
		within("max-attempts", b.MaxAttempts, 1, 1000),
		within("overdue", b.Overdue, time.Hour, 4000*day),
	)
}
