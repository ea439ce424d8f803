package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"msgexchange/jobs/backfill"
	"msgexchange/jobs/refdata"
	"msgexchange/jobs/sis"
)

// Mailbox is the shared MySQL; keys under "mailbox.".
type Mailbox struct {
	// DSN is the connection string in the form of the Go driver: user:password@tcp(host:3306)/database. Required.
	DSN string `koanf:"dsn" secret:"true"`
	// Identity allows the lane to move to another mailbox: set it to what the refused start prints. Never needed otherwise.
	Identity string `koanf:"identity"`
	// Zone is the time zone in which the mailbox writes its times.
	Zone string `koanf:"zone"`
	// TableIn is the table we read, found without regard to case.
	TableIn string `koanf:"table-in"`
	// TableOut is the table of our requests, found without regard to case.
	TableOut string `koanf:"table-out"`
	// ProcessedValue is the status written with the mark where the status map names none.
	ProcessedValue string `koanf:"processed-value"`
	// StatusMap is the status by outcome: SUCCESS, SKIPPED, DUPLICATE, DEAD.
	StatusMap map[backfill.Outcome]string `koanf:"status-map"`
}

func defaultMailbox() Mailbox {
	return Mailbox{Zone: "Asia/Shanghai", TableIn: "CMINMSGS", TableOut: "COUTMSGS", ProcessedValue: "PROCESSED"}
}

// maxStatusBytes is the room of CMINMSGS_STATUS.
const maxStatusBytes = 20

// Validate finds everything wrong with the settings.
func (m Mailbox) Validate() error {
	errs := []error{
		filled("dsn", m.DSN), zone("zone", m.Zone), filled("table-in", m.TableIn), filled("table-out", m.TableOut),
		filled("processed-value", m.ProcessedValue), within("processed-value", len(m.ProcessedValue), 0, maxStatusBytes),
	}
	if _, err := mysql.ParseDSN(m.DSN); m.DSN != "" && err != nil {
		errs = append(errs, errors.New("dsn: not of the form user:password@tcp(host:3306)/database")) // err may show the password
	}
	for outcome, status := range m.StatusMap {
		errs = append(errs,
			oneOf("status-map", outcome, backfill.AllOutcomes()...),
			within("status-map."+string(outcome), len(status), 1, maxStatusBytes))
	}
	return errors.Join(errs...)
}

// AdminAPI is the neighbour that serves reference data over HTTP; keys under "admin-api.".
type AdminAPI struct {
	// URL is where it is; empty: not used.
	URL string `koanf:"url"`
	// Token is sent as its bearer token; empty: none.
	Token string `koanf:"token" secret:"true"`
	// Timeout is how long one call may take. 1s … 1m.
	Timeout time.Duration `koanf:"timeout"`
	// Schedule is when all lists are asked for, a cron line in operation-day.zone; empty: never by itself. Single lists have
	// theirs in refdata.schedule.
	Schedule string `koanf:"schedule"`
	// Endpoints are where the lists are and how their records are told apart, by the name of the list, as
	// AIRL=/refdata/airl itop: path, key (dots go down, + joins parts), and where the list is in the answer if not at its top.
	Endpoints map[string]string `koanf:"endpoints"`
	// InShadow lets a shadow refresh too, so that it can equal the live system.
	InShadow bool `koanf:"in-shadow"`
}

func defaultAdminAPI() AdminAPI {
	a := AdminAPI{Timeout: 30 * time.Second, Endpoints: map[string]string{
		"ORMS_STAND":            "/orms/stands code",
		refdata.StandBridgeList: "/orms/stand-airbridges stand+airbridge",
	}}
	for _, spec := range sis.ReferenceSpecs() {
		if spec.Type != refdata.StandList && spec.Type != refdata.BridgeList {
			name := strings.ToLower(spec.Type)
			a.Endpoints[spec.Type] = "/refdata/" + name + " " + spec.Key.JSON
		}
	}
	return a
}

// Validate finds everything wrong with the settings.
func (a AdminAPI) Validate() error {
	var when, address error
	if a.Schedule != "" {
		when = cron("schedule", a.Schedule)
	}
	if u, err := url.Parse(a.URL); a.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "") {
		address = errors.New("url: not of the form https://host/path; secrets belong into admin-api.token") // it may hold one, so it is not shown
	}
	errs := []error{address, within("timeout", a.Timeout, time.Second, time.Minute), when}
	for rtype, text := range a.Endpoints {
		if _, err := refdata.ParseEndpoint(rtype, text); err != nil {
			errs = append(errs, fmt.Errorf("endpoints: %w", err))
		}
	}
	return errors.Join(errs...)
}
