package head_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"msgexchange/jobs/refdata"
	"msgexchange/jobs/sis"
	"msgexchange/workers/head"
)

// bridgeList writes an ABDG message; each bridge is "B1 208 209": its code, then its stands.
func bridgeList(seqn int, styp string, bridges ...string) string {
	return envelope(seqn, "ABDG", styp, fmt.Sprintf("<RECS>%d</RECS>", len(bridges))+bridgeRecords(bridges...))
}

func bridgeRecords(bridges ...string) string {
	var b strings.Builder
	for _, bridge := range bridges {
		words := strings.Fields(bridge)
		b.WriteString("<ABDG><ABCD>" + words[0] + "</ABCD>")
		for _, stand := range words[1:] {
			b.WriteString("<STND>" + stand + "</STND>")
		}
		b.WriteString("</ABDG>")
	}
	return b.String()
}

// planned writes the planned stands of a flight.
func planned(seqn, flid int, stands ...string) string {
	var b strings.Builder
	for i, s := range stands {
		fmt.Fprintf(&b, `<PSDT PSNO="%d"><PSST>%s</PSST></PSDT>`, i+1, s)
	}
	if len(stands) == 0 {
		b.WriteString("<PSDT></PSDT>")
	}
	return flop(seqn, flid, "PSDT", b.String())
}

// bridges tells what is stored of ABDG: "B1 [208] by 3".
func (r *rig) bridges() []string {
	r.t.Helper()
	return r.list(`SELECT rkey || ' ' || coalesce(doc->>'stnd', '-') || ' by ' || msg_id FROM ref_master WHERE rtype = 'ABDG' ORDER BY rkey`)
}

// DNLD states the whole list, ADD and UPD put, DEL drops; each in its place in the line, together or one by one.
func TestReferenceLists(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 100} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			t.Parallel()
			r := setup(t, func(c *head.Config) { c.Batch = batch })
			r.put(bridgeList(1, "DNLD", "B1 1", "B2 2", "B3 3"))
			r.finish()
			require.Equal(t, []string{`B1 ["1"] by 1`, `B2 ["2"] by 1`, `B3 ["3"] by 1`}, r.bridges())
			r.put(bridgeList(2, "ADD", "B4 4"), bridgeList(3, "UPD", "B1 9"), bridgeList(4, "DEL", "B2", "B9"))
			r.finish()
			require.Equal(t, []string{`B1 ["9"] by 3`, `B3 ["3"] by 1`, `B4 ["4"] by 2`}, r.bridges())
			r.put(bridgeList(5, "DNLD", "B3 3", "B5"))
			r.finish()
			require.Equal(t, []string{`B3 ["3"] by 5`, `B5 - by 5`}, r.bridges())
			r.put(bridgeList(6, "DNLD"))
			r.finish()
			require.Empty(t, r.bridges())
			for _, s := range r.states() {
				require.Contains(t, s, "SUCCEEDED 1x")
			}
			require.Equal(t, "1 COMPLETE 3 0\n2 PUT 1 0\n3 PUT 1 0\n4 DROP 0 1\n5 COMPLETE 2 2\n6 COMPLETE 0 2",
				r.one("SELECT concat_ws(' ', msg_id, mode, changed, removed) FROM ref_batch ORDER BY id"))
			require.Equal(t, "0 AODB", r.one("SELECT concat_ws(' ', row_count, source) FROM ref_set WHERE rtype = 'ABDG'"))
			require.Equal(t, "6", r.one("SELECT count(backfill_next_at)::text FROM proc_state"), "marks are owed for them too")
			require.Equal(t, "0", r.one("SELECT count(*)::text FROM msg_event"))
		})
	}
}

// A list is whole or as it was: a broken record refuses the message, a refusal of the database leaves nothing behind.
func TestReferenceWholeOrNothing(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(bridgeList(1, "DNLD", "B1 1", "B2 2"))
	r.finish()
	before := r.bridges()
	r.put(envelope(2, "ABDG", "DNLD", bridgeRecords("B3 3")+"<ABDG><ABCD>B4</ABCD><AMNO>x</AMNO></ABDG>"), bridgeList(3, "DNLD", "B3 3", "B3 4"))
	r.finish()
	r.requireStates("1 SUCCEEDED 1x", "2 DEAD PROTOCOL/PROTOCOL 1x", "3 DEAD PROTOCOL/PROTOCOL 1x")
	require.Equal(t, before, r.bridges())

	r.exec("ALTER TABLE ref_master ADD CONSTRAINT refuse CHECK (rkey <> 'B9')")
	r.put(bridgeList(4, "DNLD", "B8 8", "B9 9"))
	r.step()
	require.Equal(t, before, r.bridges())
	r.exec("ALTER TABLE ref_master DROP CONSTRAINT refuse")
	r.finish()
	require.Equal(t, []string{`B8 ["8"] by 4`, `B9 ["9"] by 4`}, r.bridges())
}

// While a new list is being written, readers see the old one.
func TestReferenceReadersSeeTheOldList(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.put(bridgeList(1, "DNLD", "B1 1"))
	r.finish()
	r.onWake = func(pgx.Tx) error { // everything is written, nothing is committed
		require.Equal(t, []string{`B1 ["1"] by 1`}, r.bridges())
		return nil
	}
	r.put(bridgeList(2, "DNLD", "B2 2"))
	r.step()
	r.onWake = nil
	require.Equal(t, []string{`B2 ["2"] by 2`}, r.bridges())
}

// A list is as old as its row says: one that lay in the mailbox over an outage is not fresh when it is applied (design §9).
func TestReferenceIsAsOldAsItsRow(t *testing.T) {
	t.Parallel()
	r := setup(t)
	age := "SELECT extract(epoch FROM $1 - refreshed_at)::bigint || ' ' || (SELECT count(*) FROM ref_master m WHERE m.refreshed_at = s.refreshed_at) FROM ref_set s WHERE rtype = 'ABDG'"
	r.put(bridgeList(1, "DNLD", "B1 1"))
	r.clock = r.clock.Add(30 * time.Hour)
	r.finish()
	require.Equal(t, "108000 1", r.one(age, r.clock))
	r.clock = r.clock.Add(-31 * time.Hour)
	r.put(bridgeList(2, "DNLD", "B1 1", "B2 2"))
	r.exec("UPDATE proc_state SET received_at = $1 WHERE msg_id = 2", r.clock.Add(time.Hour))
	r.finish()
	require.Equal(t, "0 2", r.one(age, r.clock), "a mailbox whose clock is ahead says nothing in the future")
}

// A message that comes late changes only what an older one set: it takes back no whole list and no removal.
func TestReferenceLate(t *testing.T) {
	t.Parallel()
	r := setup(t)
	late := func(id int, text string) {
		r.exec("INSERT INTO proc_state (msg_id, created_at, updated_at) VALUES ($1, now(), now())", id)
		r.mailbox[int64(id)] = text
		r.finish()
	}
	r.last = 9
	r.put(bridgeList(10, "DNLD", "B1 1", "B2 2"))
	r.last = 19
	r.put(bridgeList(20, "UPD", "B1 9"))
	r.finish()
	late(5, bridgeList(5, "DNLD", "B5 5"))
	late(6, bridgeList(6, "ADD", "B6 6"))
	require.Equal(t, []string{`B1 ["9"] by 20`, `B2 ["2"] by 10`}, r.bridges(), "older than the whole list")
	late(15, bridgeList(15, "UPD", "B1 5", "B3 3"))
	require.Equal(t, []string{`B1 ["9"] by 20`, `B2 ["2"] by 10`, `B3 ["3"] by 15`}, r.bridges(), "newer than the list, older than B1")
	late(16, bridgeList(16, "DNLD", "B2 8"))
	require.Equal(t, []string{`B1 ["9"] by 20`, `B2 ["8"] by 16`}, r.bridges(), "takes away what is older only")
	late(18, bridgeList(18, "DEL", "B1", "B2"))
	late(17, bridgeList(17, "ADD", "B2 7"))
	require.Equal(t, []string{`B1 ["9"] by 20`}, r.bridges(), "what was dropped does not come back")
	for _, s := range r.states() {
		require.Contains(t, s, "SUCCEEDED 1x")
	}
}

// An answer about reference data counts with an open request of its list only, once (design §9).
func TestReferenceAnswers(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.asks("RQRD-SLST", "WAITING", 7, 1)
	r.put(bridgeList(2, "RESP", "B1 1"))
	r.finish()
	r.asks("RQRD-ABDG", "WAITING", 8, 5)
	r.put(bridgeList(4, "RESP", "B4 4"), bridgeList(6, "RESP", "B6 6"), bridgeList(7, "RESP", "B7 7"))
	r.finish()
	r.requireStates("1 SKIPPED unmatched-resp 1x", "2 SKIPPED unmatched-resp 1x", "3 SUCCEEDED 1x", "4 SKIPPED unmatched-resp 1x")
	require.Equal(t, []string{`B6 ["6"] by 3`}, r.bridges())
	require.Equal(t, []string{"RQRD-SLST WAITING", "RQRD-ABDG DONE by 3 inferred"}, r.requests())
}

// PSDT gives the airbridges of its stands as the lists are at its place in the line, in one batch or one by one; a list that
// changes later changes later decisions only (contract §8.23).
func TestBridges(t *testing.T) {
	t.Parallel()
	abdg := func(r *rig) string { return r.one("SELECT coalesce(abdg, '-') FROM flight_schd WHERE flid = 15") }
	for _, batch := range []int{1, 100} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			t.Parallel()
			r := setup(t, func(c *head.Config) { c.Batch = batch })
			remote := envelope(3, "SLST", "DNLD", "<SLST><SCOD>300</SCOD><REMT>Y</REMT></SLST>")
			r.put(schedule(1, 15, 1, ""), bridgeList(2, "DNLD", "B2 208", "B1 208 209", "B3 300"), remote, planned(4, 15, "208"))
			r.finish()
			require.Equal(t, "B1,B2", abdg(r))
			r.put(planned(5, 15, "209", "208"))
			r.finish()
			require.Equal(t, "B1,B2", abdg(r), "each once")
			r.put(planned(6, 15, "300"))
			r.finish()
			require.Equal(t, "-", abdg(r), "a remote stand has none")
			r.put(planned(7, 15, "208"), bridgeList(8, "DNLD", "B9 208"))
			r.finish()
			require.Equal(t, "B1,B2", abdg(r), "the new list is for later decisions")
			r.put(planned(9, 15, "208", "999"))
			r.finish()
			require.Equal(t, "B9", abdg(r))

			neighbour := refdata.Batch{
				RType: refdata.StandBridgeList, Mode: sis.Complete, Source: refdata.AdminAPI,
				Records: []refdata.Record{{Key: "208|N2", Doc: []byte(`{}`)}, {Key: "208|N1", Doc: []byte(`{}`)}},
			}
			require.NoError(t, pgx.BeginFunc(t.Context(), r.pool, func(tx pgx.Tx) error {
				_, err := r.deps.Store.ApplyReference(t.Context(), tx, neighbour, "", r.clock)
				return err
			}))
			require.Equal(t, "B9", abdg(r))
			r.put(planned(10, 15), planned(11, 15, "208"))
			r.finish()
			require.Equal(t, "N1,N2", abdg(r))
			r.put(planned(12, 15))
			r.finish()
			require.Equal(t, "-", abdg(r), "cleared")
		})
	}
}
