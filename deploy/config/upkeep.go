package config

import (
	"errors"
	"fmt"
	"time"

	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
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
}

func defaultArchive() Archive { return Archive{Retention: day, Schedule: "0 3 * * *"} }

// Validate finds everything wrong with the settings.
func (a Archive) Validate() error {
	return errors.Join(within("retention", a.Retention, day, 7*day), cron("schedule", a.Schedule))
}

// History sweeps finished flights out of the live set; keys under "history.".
type History struct {
	// Enabled turns the sweep on.
	Enabled bool `koanf:"enabled"`
	// Schedule is when it runs, a cron line in operation-day.zone.
	Schedule string `koanf:"schedule"`
	// Retention is how many operation days back a flight stays live. 1d … 400d.
	Retention time.Duration `koanf:"retention"`
}

func defaultHistory() History { return History{Schedule: "30 3 * * *", Retention: 3 * day} }

// Validate finds everything wrong with the settings.
func (h History) Validate() error {
	if h.Retention%day != 0 {
		return fmt.Errorf("retention: %v is not a whole number of days", h.Retention)
	}
	return errors.Join(cron("schedule", h.Schedule), within("retention", h.Retention, day, 400*day))
}
