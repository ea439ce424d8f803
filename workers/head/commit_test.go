package head_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs"
	"msgexchange/jobs/message"
	"msgexchange/workers/drain"
	"msgexchange/workers/head"
)

// O6: what the database refuses of a batch is refused whole; then each message goes alone, and the guilty one alone pays.
func TestO6_onlyTheGuiltyPays(t *testing.T) {
	t.Parallel()
	const refuse = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$; `
	for name, ddl := range map[string]string{
		"events":  refuse + `CREATE TRIGGER refuse BEFORE INSERT ON msg_event FOR EACH ROW WHEN (NEW.flid = 16 AND NEW.state_version = 2) EXECUTE FUNCTION refuse()`,
		"flights": `ALTER TABLE flight_schd ADD CONSTRAINT refuse CHECK (stnd <> 'BAD')`,
		"states": refuse + `CREATE TRIGGER refuse BEFORE UPDATE ON proc_state FOR EACH ROW
			WHEN (NEW.msg_id = 3 AND NEW.state = 'SUCCEEDED') EXECUTE FUNCTION refuse()`,
		"at commit": refuse + `CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON msg_event DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
			WHEN (NEW.flid = 16 AND NEW.state_version = 2) EXECUTE FUNCTION refuse()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			r.exec(ddl)
			r.put(schedule(1, 15, 2, ""), stand(2, 15, "2"), stand(3, 16, "BAD"), stand(4, 15, "4"), stand(5, 15, "5"))
			require.Equal(t, drain.Next{Again: true}, r.step())
			r.requireStates("1 PENDING 1x", "2 PENDING 1x", "3 PENDING 1x", "4 PENDING 1x", "5 PENDING 1x")
			require.Empty(t, r.effects())
			require.Empty(t, r.rung, "nothing to tell anybody")
			require.Empty(t, r.one("SELECT identity_key FROM msg_identity"))

			r.step()
			r.requireStates("1 SUCCEEDED 1x", "2 PENDING 1x", "3 PENDING 1x", "4 PENDING 1x", "5 PENDING 1x")
			r.step()
			r.step()
			require.Equal(t, drain.Next{Wait: time.Second}, r.step())
			r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 1x", "3 FAILED INFRA/INFRA 1x", "4 PENDING 1x", "5 PENDING 1x")
			require.Equal(t, []string{"15 stand 2 v2", "16 v1", "event 1 15 v1", "event 1 16 v1", "event 2 15 v2"}, r.effects())

			r.finish()
			r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 1x", "3 DEAD EXHAUSTED/INFRA 5x", "4 SUCCEEDED 1x", "5 SUCCEEDED 1x")
			require.Equal(t, []string{"15 stand 5 v4", "16 v1"}, r.flights())
			require.Equal(t, "5", r.one("SELECT count(backfill_next_at)::text FROM proc_state"))

			r.put(stand(6, 15, "6"), stand(7, 15, "7"))
			r.step()
			require.Equal(t, []string{"15 stand 7 v6", "16 v1"}, r.flights(), "later ones go together again")
		})
	}
}

// O6: a text of ours that cannot be unpacked is its message's trouble, and does not hold the line for ever.
func TestO6_brokenCopy(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""), stand(2, 15, "2"), stand(3, 15, "3"))
	r.exec(`UPDATE msg_raw SET body = '\xdeadbeef' WHERE msg_id = 2`)
	r.finish()
	r.requireStates("1 SUCCEEDED 1x", "2 DEAD EXHAUSTED/INFRA 5x", "3 SUCCEEDED 1x")
	require.Equal(t, []string{"15 stand 3 v2"}, r.flights())
}

// O6: a defect of ours that panics outside the pure core is its message's trouble too.
func TestO6_panic(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.onWake = func(tx pgx.Tx) error {
		var state message.State
		if err := tx.QueryRow(t.Context(), "SELECT state FROM proc_state WHERE msg_id = 2").Scan(&state); err != nil {
			return err
		}
		if state == message.Succeeded {
			panic("a defect")
		}
		return nil
	}
	r.put(schedule(1, 15, 1, ""), stand(2, 15, "2"), stand(3, 15, "3"))
	r.finish()
	r.requireStates("1 SUCCEEDED 1x", "2 DEAD EXHAUSTED/INFRA 5x", "3 SUCCEEDED 1x")
	require.Contains(t, r.one("SELECT last_error FROM proc_state WHERE msg_id = 2"), "a defect")
	require.Equal(t, []string{"15 stand 3 v2"}, r.flights())
}

// A message whose verdict itself cannot be written ends like one that kills its worker, instead of holding the line for ever.
func TestO6_verdictRefused(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.exec(`ALTER TABLE proc_state ADD CONSTRAINT refuse CHECK (msg_id <> 1 OR seqn IS NULL)`)
	r.put(schedule(1, 15, 1, ""), schedule(2, 16, 1, ""))
	require.Eventually(t, func() bool {
		_, err := r.head.Step(t.Context(), r.fence)
		return err == nil && r.states()[0] == "1 DEAD EXHAUSTED/INFRA 5x"
	}, 10*time.Second, time.Millisecond)
	r.finish()
	r.requireStates("1 DEAD EXHAUSTED/INFRA 5x", "2 SUCCEEDED 1x")
}

// O3, O6: who follows is woken in the transaction, and the bell rings after it; a wake-up that fails takes all with it.
func TestO6_wakesInTheTransaction(t *testing.T) {
	t.Parallel()
	r := setup(t)
	seen := ""
	r.onWake = func(tx pgx.Tx) error {
		require.Empty(t, r.rung)
		return tx.QueryRow(t.Context(), "SELECT state FROM proc_state WHERE msg_id = 1").Scan(&seen)
	}
	r.put(schedule(1, 15, 1, ""))
	r.step()
	all := map[jobs.Role]int{jobs.RoleMsg: 1, jobs.RoleSchd: 1, jobs.RoleBackfill: 1}
	require.Equal(t, "SUCCEEDED", seen)
	require.Equal(t, all, r.woken)
	require.Equal(t, all, r.rung)

	r.onWake = nil
	r.put(stand(2, 99, "2"))
	r.step()
	require.Equal(t, map[jobs.Role]int{jobs.RoleMsg: 1, jobs.RoleSchd: 1, jobs.RoleBackfill: 2}, r.woken, "no event, nobody to send it")

	r.onWake = func(pgx.Tx) error { return fmt.Errorf("no job") }
	r.put(stand(3, 15, "3"))
	_, err := r.head.Step(t.Context(), r.fence)
	require.Error(t, err)
	require.Equal(t, []string{"15 v1"}, r.flights())
}

// In shadow mode no processed mark is owed, whatever became of the message (design §8).
func TestShadowOwesNoMarks(t *testing.T) {
	t.Parallel()
	for _, marks := range []bool{true, false} {
		r := setup(t, func(c *head.Config) { c.Marks, c.Shadow = marks, !marks })
		r.put(schedule(1, 15, 1, ""), stand(1, 15, "1"), "<MSG/>", envelope(4, "LDM", "LDM", ""), schedule(1, 15, 1, ""), envelope(6, "FLOP", "XXXX", ""))
		r.step()
		r.requireStates("1 SUCCEEDED 1x", "2 SUCCEEDED 1x", "3 DEAD MALFORMED/MALFORMED 1x", "4 SKIPPED ignored:LDM-* 1x",
			"5 SKIPPED duplicate-of:1 1x", "6 FAILED UNSUPPORTED/UNSUPPORTED 1x")
		owed := r.list("SELECT msg_id::text FROM proc_state WHERE backfill_next_at IS NOT NULL ORDER BY msg_id")
		if marks {
			require.Equal(t, []string{"1", "2", "3", "4", "5"}, owed)
		} else {
			require.Empty(t, owed)
		}
		r.finish()
		require.Equal(t, marks, r.one("SELECT (backfill_next_at IS NOT NULL)::text FROM proc_state WHERE msg_id = 6") == "true")
	}
}

// A batch leaves what one by one leaves, and what a head leaves that remembers nothing: flights, versions, states, identities,
// and the events of msg one for one; of schd the newest of each flight.
func TestBatchEqualsSingles(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			messages := mixed(rand.New(rand.NewPCG(seed, 0)), 60)
			batch := func(n int) *rig { return setup(t, func(c *head.Config) { c.Batch = n }) }
			one, some, all, forgetful := batch(1), batch(7), batch(60), batch(1)
			for _, r := range []*rig{one, some, all, forgetful} {
				r.put(messages...)
			}
			for range messages {
				forgetful.restart()
				forgetful.step()
			}
			for _, r := range []*rig{one, some, all, forgetful} {
				r.finish()
			}
			requireSame(t, one, some)
			requireSame(t, one, all)
			requireSame(t, one, forgetful)
			const schdEvents = "SELECT count(*)::text FROM msg_event WHERE target = 'KAFKA:schd'"
			require.NotEqual(t, one.one(schdEvents), all.one(schdEvents), "coalesced")
		})
	}
}

// requireSame compares everything that two heads left but what batches may leave out.
func requireSame(t *testing.T, one, other *rig) {
	t.Helper()
	require.Empty(t, cmp.Diff(one.states(), other.states()))
	for _, query := range []string{
		"SELECT to_jsonb(p)::text FROM proc_state p ORDER BY msg_id",
		"SELECT to_jsonb(f)::text FROM flight_schd f ORDER BY flid",
		"SELECT flid || ' ' || (SELECT string_agg(e.key || (SELECT string_agg(x::text, ',' ORDER BY x::text) FROM json_array_elements(e.value) x), ' ' ORDER BY e.key) FROM json_each(lists) e) FROM flight_lists ORDER BY flid",
		"SELECT (to_jsonb(c) - 'change_id')::text FROM flight_change c ORDER BY change_id",
		"SELECT to_jsonb(i)::text FROM msg_identity i ORDER BY identity_key",
		"SELECT (to_jsonb(s) - 'id')::text FROM schd_snap_log s ORDER BY id",
		"SELECT (to_jsonb(e) - 'event_id' - 'payload')::text || coalesce((payload::jsonb - 'eventId')::text, '') FROM msg_event e WHERE target = 'KAFKA:msg' ORDER BY event_id",
		"SELECT DISTINCT ON (partition_key) (to_jsonb(e) - 'event_id')::text FROM msg_event e WHERE target = 'KAFKA:schd' ORDER BY partition_key, event_id DESC",
	} {
		want := one.list(query)
		require.NotEmpty(t, want)
		require.Empty(t, cmp.Diff(want, other.list(query)), query)
	}
}

// What a message did is on record with each flight it touched, a child's changes with the child, in the transaction that did
// it; also that nobody saw a difference.
func TestHistory(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""), schedule(2, 16, 1, "<MAID>15</MAID>"), stand(3, 16, "208"), stand(4, 16, "208"), flop(5, 99, "STND", "<STND>1</STND>"),
		flop(6, 16, "STND", ""), flop(7, 15, "FDEL", ""))
	r.finish()
	require.Equal(t, []string{
		"15 1 SCHD-DNLD CREATE v1",
		"16 2 SCHD-DNLD CREATE v1",
		`15 2 SCHD-DNLD UPDATE v2 {"mafl":null} {"mafl":["3U16"]}`,
		`16 3 FLOP-STND UPDATE v2 {"stnd":null} {"stnd":"208"}`,
		"16 4 FLOP-STND v2 {} {}",
		"15 7 FLOP-FDEL DELETE v3 {} {}",
		"16 7 FLOP-FDEL DELETE v3 {} {}",
	}, r.list(`SELECT concat_ws(' ', flid, msg_id, kind, change, 'v' || state_version, CASE WHEN change = 'CREATE' THEN NULL ELSE before || ' ' || fields END)
		FROM flight_change ORDER BY change_id`))
	require.Equal(t, "2026-03-18 08:00:03 2026-03-18 01:00:00",
		r.one(`SELECT concat_ws(' ', (dttm AT TIME ZONE 'Asia/Shanghai')::text, (changed_at AT TIME ZONE 'UTC')::text) FROM flight_change WHERE msg_id = 3`))
}

// A loop of code shares hides its flights: it is told and counted.
func TestCodeShareLoop(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, "<MAID>16</MAID>"), schedule(2, 16, 1, "<MAID>15</MAID>"), stand(3, 16, "1"))
	r.finish()
	require.Contains(t, r.log.String(), `level=WARN msg="code-share loop" msg_id=2 flid=16`)
	require.InDelta(t, 1, r.metric("msgx_codeshare_loops_total"), 0)
}

// A child that comes later than a newer deletion of its master is on record as deleted, and nobody hears of it.
func TestLateChildOfDeletedMaster(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""), "", flop(3, 15, "FDEL", ""))
	r.exec("UPDATE proc_state SET state = 'SUCCEEDED', finished_at = now() WHERE msg_id = 2")
	r.finish()
	r.exec("UPDATE proc_state SET state = 'PENDING', finished_at = NULL WHERE msg_id = 2")
	r.forget(2, schedule(2, 16, 1, "<MAID>15</MAID>"))
	r.finish()
	require.Equal(t, "3 v1", r.one("SELECT concat_ws(' ', deleted_msg_id, 'v' || state_version) FROM flight_schd WHERE flid = 16"))
	require.Equal(t, "0", r.one("SELECT count(*)::text FROM msg_event WHERE flid = 16"))
	require.Equal(t, "16 2 v1", r.one("SELECT concat_ws(' ', flid, msg_id, change, 'v' || state_version) FROM flight_change WHERE flid = 16"))
}

// A schedule that changes nothing leaves its trace too, also when nothing is stored beside it.
func TestScheduleWithoutEffectIsLogged(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""), "", flop(3, 15, "FDEL", ""))
	r.exec("UPDATE proc_state SET state = 'SUCCEEDED', finished_at = now() WHERE msg_id = 2")
	r.finish()
	r.exec("UPDATE proc_state SET state = 'PENDING', finished_at = NULL WHERE msg_id = 2")
	r.forget(2, schedule(2, 15, 1, ""))
	r.finish()
	require.Equal(t, []string{"1 1 0 0", "2 0 0 1"}, r.list("SELECT concat_ws(' ', msg_id, created, updated, unchanged) FROM schd_snap_log ORDER BY msg_id"))
}

// mixed draws a stream of everything about few flights, so that messages meet: changes of texts and lists, code shares,
// deletions and new creations, schedules, duplicates, and messages that end in every other way.
func mixed(rnd *rand.Rand, n int) []string {
	const flights = 5
	all := []string{schedule(1, 1, flights, "")}
	for seqn := 2; len(all) < n; seqn++ {
		flid := 1 + rnd.IntN(flights)
		value := fmt.Sprint(200 + rnd.IntN(3))
		all = append(all, []func() string{
			func() string { return stand(seqn, flid, value) },
			func() string { return stand(seqn, flid, value) },
			func() string { return flop(seqn, flid, "RENO", "<RENO>B"+value+"</RENO>") },
			func() string { return flop(seqn, flid, "ESTT", "<ESTT>18MAR261"+value+"</ESTT>") },
			func() string {
				return flop(seqn, flid, "PSDT", `<PSDT PSNO="1"><PSST>`+value+`</PSST><STST>18MAR260915</STST><STET>18MAR260950</STET></PSDT>`)
			},
			func() string {
				return flop(seqn, flid, "DELY", `<DELY CODE="W`+value[2:]+`" STRT="18MAR261140" DURA="0125">late</DELY>`)
			},
			func() string { return schedule(seqn, flid, 1, fmt.Sprintf("<MAID>%d</MAID>", 1+rnd.IntN(2))) },
			func() string { return schedule(seqn, 1, flights, "<STND>"+value+"</STND>") },
			func() string { return flop(seqn, flid, "FDEL", "<FDEL></FDEL>") },
			func() string { return all[rnd.IntN(len(all))] },
			func() string { return stand(rnd.IntN(seqn), flid, "again") },
			func() string { return envelope(seqn, "LDM", "LDM", "") },
			func() string { return flop(seqn, flid, "ACFT", "<ACFT></ACFT>") },
			func() string { return envelope(seqn, "SCHD", "RESP", schd(flid, 1, "")) },
			func() string { return "<MSG><META/></MSG>" },
			func() string { return envelope(seqn, "FLOP", "XXXX", "") },
		}[rnd.IntN(16)]())
	}
	return all
}

// The stream of TestBatchEqualsSingles ends in every way there is.
func TestMixedIsMixed(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for seed := range uint64(3) {
		r.put(mixed(rand.New(rand.NewPCG(seed+1, 0)), 60)...)
	}
	r.finish()
	states := strings.Join(r.states(), "\n")
	for _, s := range message.AllStates() {
		if s.Terminal() {
			require.Contains(t, states, s)
		}
	}
	for _, s := range []string{"duplicate-of", "ignored", "unmatched-resp", "MALFORMED", "PROTOCOL", "EXHAUSTED"} {
		require.Contains(t, states, s)
	}
}

// Everything that is promised to be counted is.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(schedule(1, 15, 1, ""), stand(2, 15, "2"), stand(3, 15, "3"), stand(3, 15, "3"), stand(3, 15, "other"), envelope(4, "LDM", "LDM", ""), "<MSG/>", envelope(5, "FLOP", "XXXX", ""))
	r.step()
	require.InDelta(t, 1, r.metric("msgx_process_seconds"), 0)
	r.finish()
	for _, c := range []struct {
		name   string
		labels []string // in the order of their names: class, kind, state
		want   float64
	}{
		{"msgx_messages_total", []string{"", "SCHD-DNLD", "SUCCEEDED"}, 1},
		{"msgx_messages_total", []string{"", "FLOP-STND", "SUCCEEDED"}, 2},
		{"msgx_messages_total", []string{"", "FLOP-STND", "SKIPPED"}, 2},
		{"msgx_messages_total", []string{"", "LDM-LDM", "SKIPPED"}, 1},
		{"msgx_messages_total", []string{"MALFORMED", "none", "DEAD"}, 1},
		{"msgx_messages_total", []string{"UNSUPPORTED", "other", "FAILED"}, 4},
		{"msgx_messages_total", []string{"EXHAUSTED", "other", "DEAD"}, 1},
		{"msgx_duplicates_total", []string{"duplicate"}, 1},
		{"msgx_duplicates_total", []string{"content"}, 1},
		{"msgx_head_attempts", nil, 0},
	} {
		require.InDelta(t, c.want, r.metric(c.name, c.labels...), 0, "%s %v", c.name, c.labels)
	}
}

// The gauges of the line are read from the database; what cannot be read is left out.
func TestBacklog(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.metrics.MustRegister(head.NewBacklog(lane, r.pool, r.deps.Store, r.deps.Now))
	r.put(schedule(1, 15, 1, ""), stand(2, 15, "2"))
	r.clock = r.clock.Add(time.Minute)
	require.InDelta(t, 2, r.metric("msgx_backlog_unfinished"), 0)
	require.InDelta(t, 60, r.metric("msgx_backlog_oldest_unprocessed_seconds"), 0)
	require.InDelta(t, 1, r.metric("msgx_lease_epoch"), 0)
	r.finish()
	require.InDelta(t, 2, r.metric("msgx_backlog_unfinished"), 0, "read every ten seconds at most")
	r.clock = r.clock.Add(10 * time.Second)
	require.InDelta(t, 0, r.metric("msgx_backlog_unfinished"), 0)
	require.InDelta(t, 0, r.metric("msgx_backlog_oldest_unprocessed_seconds"), 0)

	r.pool.Close()
	r.clock = r.clock.Add(10 * time.Second)
	families, err := r.metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		require.NotContains(t, f.GetName(), "backlog")
	}
}
