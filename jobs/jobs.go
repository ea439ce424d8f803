// Package jobs names what River carries: one args struct a kind, its queue and how it is inserted (design §3).
// A job is a wake-up, never the truth: every row it would work on is in our own tables, so a job may run twice, be lost,
// be deleted by hand or come late, and nothing is lost with it (O3, K01, K02).
package jobs

import (
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Role is one kind of work that one worker in the whole system does at a time. It is the second part of the key of
// pipeline_lease, and the name of River's queue.
type Role string

// The closed set of roles.
const (
	RolePoll     Role = "poll"     // mailbox -> proc_state
	RoleHead     Role = "head"     // proc_state -> flights and events; its lease is PIPELINE_LOCK
	RoleMsg      Role = "msg"      // outbox -> topic msg
	RoleSchd     Role = "schd"     // outbox -> topic schd
	RoleBackfill Role = "backfill" // processed marks -> mailbox
	RoleRequest  Role = "request"  // requests -> COUTMSGS, and their ends
)

// AllRoles lists the roles in the order in which a message meets them; the last one brings messages about.
func AllRoles() []Role {
	return []Role{RolePoll, RoleHead, RoleMsg, RoleSchd, RoleBackfill, RoleRequest}
}

// Wake is what all drain jobs carry: whose work, and under which fencing epoch. A job of an epoch that is over does nothing.
type Wake struct {
	Lane  string `json:"lane"`
	Epoch int64  `json:"epoch"`
}

// Args is a drain job's arguments.
type Args interface {
	river.JobArgs
	river.JobArgsWithInsertOpts
	// For gives lane and epoch.
	For() Wake
	// Role says whose lease the job runs under.
	Role() Role
}

// For returns w itself, so that every args type embedding Wake has it.
func (w Wake) For() Wake { return w }

// PollInbox takes new mailbox rows over (design §4).
type PollInbox struct{ Wake }

// ProcessHead works on the smallest unfinished messages (design §3).
type ProcessHead struct{ Wake }

// DeliverMsg sends msg events in the order of their ids (design §7).
type DeliverMsg struct{ Wake }

// FlushSchd sends the newest state of each changed flight (design §7).
type FlushSchd struct{ Wake }

// Backfill writes the processed marks owed (design §8).
type Backfill struct{ Wake }

// SendRequest sends requests to the airport's database and gives up those nobody answers (design §9).
type SendRequest struct{ Wake }

// The kinds, as stored in river_job; never renamed without an alias.
func (PollInbox) Kind() string   { return "poll_inbox" }
func (ProcessHead) Kind() string { return "process_head" }
func (DeliverMsg) Kind() string  { return "deliver_msg" }
func (FlushSchd) Kind() string   { return "flush_schd" }
func (Backfill) Kind() string    { return "backfill" }
func (SendRequest) Kind() string { return "send_request" }

// The role under whose lease each kind runs.
func (PollInbox) Role() Role   { return RolePoll }
func (ProcessHead) Role() Role { return RoleHead }
func (DeliverMsg) Role() Role  { return RoleMsg }
func (FlushSchd) Role() Role   { return RoleSchd }
func (Backfill) Role() Role    { return RoleBackfill }
func (SendRequest) Role() Role { return RoleRequest }

// Insert options: one open job per lane and epoch on the role's own queue.
func (PollInbox) InsertOpts() river.InsertOpts   { return drainOpts(RolePoll) }
func (ProcessHead) InsertOpts() river.InsertOpts { return drainOpts(RoleHead) }
func (DeliverMsg) InsertOpts() river.InsertOpts  { return drainOpts(RoleMsg) }
func (FlushSchd) InsertOpts() river.InsertOpts   { return drainOpts(RoleSchd) }
func (Backfill) InsertOpts() river.InsertOpts    { return drainOpts(RoleBackfill) }
func (SendRequest) InsertOpts() river.InsertOpts { return drainOpts(RoleRequest) }

// maxAttempts lets a wake-up come back through long outages; truth is in the tables, so being discarded loses nothing either.
const maxAttempts = 1000

func drainOpts(r Role) river.InsertOpts { return openOnce(string(r)) }

// openOnce: of the same arguments one job that is not over, whatever it is doing.
func openOnce(queue string) river.InsertOpts {
	return river.InsertOpts{
		Queue:       queue,
		MaxAttempts: maxAttempts,
		UniqueOpts: river.UniqueOpts{
			ByArgs: true,
			ByState: []rivertype.JobState{
				rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
				rivertype.JobStateRunning, rivertype.JobStateScheduled,
			},
		},
	}
}

// For makes the wake-up job of a role.
func For(r Role, w Wake) river.JobArgs {
	switch r {
	case RolePoll:
		return PollInbox{w}
	case RoleHead:
		return ProcessHead{w}
	case RoleMsg:
		return DeliverMsg{w}
	case RoleSchd:
		return FlushSchd{w}
	case RoleBackfill:
		return Backfill{w}
	case RoleRequest:
		return SendRequest{w}
	}
	panic("jobs: no such role: " + string(r)) // a programming error: roles are a closed set
}

// QueueMaintenance is River's queue of the work that is done by the clock; no lease goes with it.
const QueueMaintenance = "maintenance"

// Tick asks which periodic work is due; the answer is in periodic_run, not in any leader's memory (K03).
type Tick struct{}

// Maintain does one piece of periodic work, by the clock or because an operator asked for it.
type Maintain struct {
	Task string `json:"task"`
}

// The kinds, as stored in river_job; never renamed without an alias.
func (Tick) Kind() string     { return "maintenance_tick" }
func (Maintain) Kind() string { return "maintain" }

// Insert options: one open tick, one open run of each task.
func (Tick) InsertOpts() river.InsertOpts     { return openOnce(QueueMaintenance) }
func (Maintain) InsertOpts() river.InsertOpts { return openOnce(QueueMaintenance) }
