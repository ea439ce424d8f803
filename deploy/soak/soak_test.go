package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/db/dbserver"
	"msgexchange/deploy/systemtest/rig"
)

// A short run ends without a difference, and the auditor sees what is done to its results afterwards: one that finds nothing
// because it looks at nothing would pass every soak.
func TestSoak(t *testing.T) {
	t.Parallel()
	w, err := rig.NewWorld(t.Context(), rig.Needs{Partitions: partitions})
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	if errors.Is(err, dbserver.ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
	o := options{Duration: 20 * time.Second, Settle: 3 * time.Minute, Seed: 3, Rate: 40, Flights: 60, Pods: 3}
	found, err := run(t.Context(), w, o, t.Logf)
	require.NoError(t, err)
	require.Empty(t, found.problems, "%s", found.logs)

	for _, statement := range []string{
		"UPDATE flight_schd SET updated_at = updated_at + interval '1 second' WHERE flid = (SELECT min(flid) FROM flight_schd)",
		"UPDATE flight_change SET fields = '{}' WHERE change_id = (SELECT max(change_id) FROM flight_change)",
		"UPDATE proc_state SET state = 'SKIPPED', skip_reason = 'ignored:*' WHERE msg_id = (SELECT max(msg_id) FROM proc_state WHERE state = 'SUCCEEDED')",
		"DELETE FROM msg_raw WHERE msg_id = (SELECT min(msg_id) FROM msg_raw)",
		"DELETE FROM msg_event WHERE event_id = (SELECT max(event_id) FROM msg_event WHERE target = 'KAFKA:msg')",
		"UPDATE msg_event SET state = 'DEAD' WHERE event_id = (SELECT max(event_id) FROM msg_event WHERE target = 'KAFKA:schd')",
	} {
		_, err := w.Pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	_, err = w.Mailbox.DB().ExecContext(t.Context(), "UPDATE cminmsgs SET CMINMSGS_DATE_PROCESSED = NULL LIMIT 1")
	require.NoError(t, err)
	var tampered report
	require.NoError(t, audit(t.Context(), w, &tampered))
	all := strings.Join(tampered.problems, "\n")
	for _, kind := range []string{"messages", "marks", "texts", "flights", "changes", "events", "spans", "msg"} {
		require.Contains(t, all, kind+": ")
	}
}
