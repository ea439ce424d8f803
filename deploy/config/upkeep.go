package config

import (
	"errors"
	"fmt"
	"time"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
	"msgexchange/jobs/sweep"
)

// Request is what we ask the airport's database for; keys under "request.".
type Request struct {
	// Kinds are the requests this site makes: RQFD-NONE and RQRD-<list>.
	Kinds []string `koanf:"kinds"`
	// SNDR is how we sign; at most 20 characters.
	SNDR string `koanf:"sndr"`
	// RoutingRQFD is the ROUTINGID of schedule requests, agreed with the owner of the mailbox; at most 23 characters.
	RoutingRQFD string `koanf:"routing-rqfd"`
	// RoutingRQRD is the ROUTINGID of reference data requests; at most 23 characters.
	RoutingRQRD string `koanf:"routing-rqrd"`
	// TimeoutRQFD is how long the answer to a schedule request may take. 1s … 1h.
	TimeoutRQFD time.Duration `koanf:"timeout-rqfd"`
	// TimeoutRQRD is how long the answer to a reference data request may take. 1s … 1h.
	TimeoutRQRD time.Duration `koanf:"timeout-rqrd"`
	// Timeouts are those of single kinds, as RQRD-SLST=45s. 1s … 1h.
	Timeouts map[string]time.Duration `koanf:"timeouts"`
}

func defaultRequest() Request {
	return Request{
		Kinds: []string{
			"RQFD-NONE", "RQRD-ABDG", "RQRD-ABNR", "RQRD-AIRC", "RQRD-AIRL", "RQRD-ARPT", "RQRD-BLST", "RQRD-CHLT",
			"RQRD-CLST", "RQRD-DLYL", "RQRD-GLST", "RQRD-HLTR", "RQRD-SLST", "RQRD-STTS", "RQRD-TLST",
		},
		SNDR:        "MSGX",
		RoutingRQFD: "MSGXRQFD",
		RoutingRQRD: "MSGXRQRD",
		TimeoutRQFD: time.Minute,
		TimeoutRQRD: 30 * time.Second,
	}
}

// maxRoutingBytes is the room of ROUTINGID, maxSenderBytes that of SNDR.
const (
	maxRoutingBytes = 23
	maxSenderBytes  = 20
)

// Validate finds everything wrong with the settings.
func (r Request) Validate() error {
	errs := []error{
		filled("sndr", r.SNDR), within("sndr", len(r.SNDR), 0, maxSenderBytes),
		filled("routing-rqfd", r.RoutingRQFD), within("routing-rqfd", len(r.RoutingRQFD), 0, maxRoutingBytes),
		filled("routing-rqrd", r.RoutingRQRD), within("routing-rqrd", len(r.RoutingRQRD), 0, maxRoutingBytes),
		within("timeout-rqfd", r.TimeoutRQFD, time.Second, time.Hour),
		within("timeout-rqrd", r.TimeoutRQRD, time.Second, time.Hour),
	}
	for _, kind := range r.Kinds {
		errs = append(errs, oneOf("kinds", message.Kind(kind), sis.AllRequests()...))
	}
	for kind, timeout := range r.Timeouts {
		errs = append(errs, oneOf("timeouts", message.Kind(kind), sis.AllRequests()...), within("timeouts."+kind, timeout, time.Second, time.Hour))
	}
	return errors.Join(errs...)
}

// Refdata is the refresh of reference data; keys under "refdata.".
type Refdata struct {
	// Schedule is when a list is asked for, a cron line in operation-day.zone: of the airport's database by the kind of request, as
	// RQRD-SLST=0 2 * * *, of the neighbour by the name of its list in admin-api.endpoints.
	Schedule map[string]string `koanf:"schedule"`
}

// Validate finds everything wrong with the settings.
func (r Refdata) Validate() error {
	var errs []error
	for kind, line := range r.Schedule {
		errs = append(errs, cron("schedule."+kind, line))
	}
	return errors.Join(errs...)
}

// Raw is the text of messages as received; keys under "raw.".
type Raw struct {
	// Retention is how long texts are kept, so that a replay needs no mailbox. 1h … 400d.
	Retention time.Duration `koanf:"retention"`
}

func defaultRaw() Raw { return Raw{Retention: 7 * day} }

// Validate finds everything wrong with the settings.
func (r Raw) Validate() error { return within("retention", r.Retention, time.Hour, 400*day) }

// Archive moves what is finished out of the working tables; keys under "archive.".
type Archive struct {
	// Retention is how long finished messages stay in the working tables, by the time they were received. 24h … 168h.
	Retention time.Duration `koanf:"retention"`
	// Schedule is when it runs, a cron line in operation-day.zone.
	Schedule string `koanf:"schedule"`
	// Keep is how long archived messages and events are kept. 7d … 4000d.
	Keep time.Duration `koanf:"keep"`
}

func defaultArchive() Archive { return Archive{Retention: day, Schedule: "0 3 * * *", Keep: 90 * day} }

// Validate finds everything wrong with the settings.
func (a Archive) Validate() error {
	return errors.Join(within("retention", a.Retention, day, 7*day), cron("schedule", a.Schedule), within("keep", a.Keep, 7*day, 4000*day))
}

// History sweeps finished flights out of the live set; keys under "history.". A flight goes when its operation day is over and
// one of the five rules holds.
type History struct {
	// Enabled turns the sweep on.
	Enabled bool `koanf:"enabled"`
	// Schedule is when it runs, a cron line in operation-day.zone.
	Schedule string `koanf:"schedule"`
	// Retention is how many operation days back a flight stays live, whatever the rules say. 1d … 400d.
	Retention time.Duration `koanf:"retention"`
	// Deleted is how long after a message deleted it a flight goes. 1h … 400d; 0 turns the rule off.
	Deleted time.Duration `koanf:"deleted"`
	// Cancelled is how long after its cancellation (CNCL), and after its scheduled time, a flight goes. 1h … 400d; 0 turns the rule off.
	Cancelled time.Duration `koanf:"cancelled"`
	// Departed is how long after its actual time (ACTT) a departure goes, unless it returned (FRET). 1h … 400d; 0 turns the rule off.
	Departed time.Duration `koanf:"departed"`
	// Arrived is how long after its actual time (ACTT) an arrival goes. 1h … 400d; 0 turns the rule off.
	Arrived time.Duration `koanf:"arrived"`
	// Silent is how long after its times are over and the last message about it a flight goes, whatever became of it. 1h … 400d; 0 turns the rule off.
	Silent time.Duration `koanf:"silent"`
	// Keep is how long swept flights are kept in the history. 7d … 4000d.
	Keep time.Duration `koanf:"keep"`
}

func defaultHistory() History {
	return History{
		Schedule: "30 3 * * *", Retention: 3 * day, Deleted: day, Cancelled: day, Departed: day, Arrived: day, Silent: 7 * day, Keep: 400 * day,
	}
}

// Rules are the settings of the five rules.
func (h History) Rules() map[sweep.Rule]time.Duration {
	return map[sweep.Rule]time.Duration{
		sweep.Deleted: h.Deleted, sweep.Cancelled: h.Cancelled, sweep.Departed: h.Departed, sweep.Arrived: h.Arrived, sweep.Silent: h.Silent,
	}
}

// Validate finds everything wrong with the settings.
func (h History) Validate() error {
	errs := []error{cron("schedule", h.Schedule), within("retention", h.Retention, day, 400*day), within("keep", h.Keep, 7*day, 4000*day)}
	if h.Retention%day != 0 {
		errs = append(errs, fmt.Errorf("retention: %v is not a whole number of days", h.Retention))
	}
	on := false
	for _, rule := range sweep.AllRules() {
		after := h.Rules()[rule]
		if on = on || after > 0; after != 0 {
			errs = append(errs, within(string(rule), after, time.Hour, 400*day))
		}
	}
	if h.Enabled && !on {
		errs = append(errs, errors.New("enabled: all five rules are off, so that nothing would ever be swept"))
	}
	return errors.Join(errs...)
}

// Consistency is the sentinel, which compares flights with what should agree with them; keys under "consistency.".
type Consistency struct {
	// OnStartup has all flights compared when a process with the role maintenance starts, at most once an hour.
	OnStartup bool `koanf:"on-startup"`
	// DailySampleRatio is the share of the flights that is compared each day. 0 … 1; 0 turns it off.
	DailySampleRatio float64 `koanf:"daily-sample-ratio"`
	// Schedule is when the sample is compared, a cron line in operation-day.zone.
	Schedule string `koanf:"schedule"`
}

func defaultConsistency() Consistency {
	return Consistency{OnStartup: true, DailySampleRatio: 0.01, Schedule: "15 4 * * *"}
}

// Validate finds everything wrong with the settings.
func (c Consistency) Validate() error {
	return errors.Join(within("daily-sample-ratio", c.DailySampleRatio, 0, 1), cron("schedule", c.Schedule))
}

// Audit is the record of what people ordered and what was asked of others; keys under "audit.".
type Audit struct {
	// Retention is how long orders, requests that ended and batches of reference data stay on record. 7d … 4000d.
	Retention time.Duration `koanf:"retention"`
}

func defaultAudit() Audit { return Audit{Retention: 400 * day} }

// Validate finds everything wrong with the settings.
func (a Audit) Validate() error { return within("retention", a.Retention, 7*day, 4000*day) }
