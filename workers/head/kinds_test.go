package head_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/sis"
)

// The ends of a message of a kind.
const (
	changes = "SUCCEEDED 1x, told 1" // an event on each topic
	silent  = "SUCCEEDED 1x, told 0"
	refused = "DEAD PROTOCOL/PROTOCOL 1x, told 0"
)

// kindCase is what a message of a kind says, and how the one that takes it away ends.
type kindCase struct {
	styp, filled, broken string
	clear, cleared       string
}

// kindCases are the sub types of FLOP, about a flight with the stand 131 until PSDT takes it away. FDEL is by itself.
func kindCases() []kindCase {
	cases := []kindCase{
		{"PSHT", `<PSHT><PSTM>18MAR261030</PSTM><PUST>131</PUST></PSHT>`, ``, `<PSHT><PSTM/><PUST>131</PUST></PSHT>`, changes},
		{"TIPT", `<TIPT><TRTM>18MAR261030</TRTM><TRST>131</TRST></TIPT>`, `<TIPT><TRTM>1030</TRTM><TRST>131</TRST></TIPT>`, `<TIPT><TRST>131</TRST></TIPT>`, changes},
		{"ABTM", `<ABTM ASNO="1"><ABDG>B203A</ABDG><ABOP>A</ABOP><AOTM>18MAR261030</AOTM></ABTM>`, `<ABTM ASNO="1"><ABDG>B203A</ABDG></ABTM>`, `<ABTM/>`, changes},
		{"CHDT", `<CHDT CHNO="1"><CHUT>C07</CHUT></CHDT>`, `<CHDT><CHUT>C07</CHUT></CHDT>`, `<CHDT/>`, changes},
		{"CHOT", `<CHOT CSNO="1"><CHTM>18MAR261030</CHTM><CHID>ON</CHID><CHST>203</CHST></CHOT>`, `<CHOT CSNO="1"><CHID>ON</CHID></CHOT>`, `<CHOT/>`, changes},
		{"CKDT", `<CKDT CKNO="1"><CHKC>D05</CHKC></CKDT>`, `<CKDT CKNO="128"><CHKC>D05</CHKC></CKDT>`, `<CKDT/>`, changes},
		{"CLDT", `<CLDT CLNO="1"><BELT>b3</BELT></CLDT>`, `<CLDT CLNO="1"><BCLS>Y</BCLS></CLDT>`, `<CLDT/>`, changes},
		{"GTDT", `<GTDT GTNO="1"><GATE>103</GATE></GTDT>`, ``, `<GTDT/>`, changes},
		{"PSDT", `<PSDT PSNO="1"><PSST>203</PSST></PSDT>`, `<PSDT PSNO="1"><PSST>203</PSST></PSDT><PSDT PSNO="1"><PSST>204</PSST></PSDT>`, `<PSDT/>`, changes},
		{"DELY", `<DELY CODE="AT" DURA="0145">late</DELY>`, `<DELY DURA="0145">late</DELY>`, `<DELY/>`, changes},
		{"SRVT", `<SRVT><SRTC>GPU</SRTC><SRQT>1</SRQT></SRVT>`, `<SRVT><SRTC>GPU</SRTC></SRVT>`, `<SRVT/>`, changes},
		{"ERUT", `<ERUT RTNO="1"><APCD>CTU</APCD></ERUT>`, `<ERUT RTNO="1"><SCAT>18MAR261030</SCAT></ERUT>`, `<ERUT/>`, changes},
		{"VIPF", `<VIPF><VPCD>V1</VPCD><VFES>3</VFES></VIPF>`, `<VIPF><VPCD>V1</VPCD><VFES>some</VFES></VIPF>`, `<VIPF/>`, silent},
		{"PORT", `<PORT><POTM>18MAR261030</POTM><POID>O</POID></PORT>`, `<PORT/>`, `<PORT><POTM/><POID>O</POID></PORT>`, changes},
		{"HNAG", `<FHAG>1</FHAG><PHAG>2</PHAG><MHAG>3</MHAG>`, `<FHAG>one</FHAG>`, ``, changes},
		{"TAOP", `<TAOP>CA</TAOP><TAFL>CA1</TAFL><TAID>9</TAID>`, `<TAOP>CA</TAOP><TAFL>CA1</TAFL><TAID>nine</TAID>`, `<TAOP>CA</TAOP>`, changes},
		{"VIPP", `<VIPP>2</VIPP><VIPR>1</VIPR>`, `<VIPP>two</VIPP>`, ``, changes},
		{"EXSS", `<EXSC>DLY</EXSC><EXSR>snow</EXSR>`, `<EXSR>snow</EXSR>`, `<EXSC/>`, changes},
		{"FDIV", `<FDIV DDES="HKG" DDIR="TO">fog</FDIV>`, `<FDIV DDES="HKG">fog</FDIV>`, `<FDIV/>`, changes},
		{"FRET", `<FRET REID="A">bird</FRET>`, `<FRET>bird</FRET>`, `<FRET/>`, changes},
		{"FLAB", `<FLAB ARES="O">wind</FLAB>`, `<FLAB ARES="Q">wind</FLAB>`, `<FLAB ARES=""/>`, changes},
	}
	for _, styp := range strings.Fields("APPT BOTM CNCL EGSR EGST FINT LACL COBT CTOT EOBT TOBT IEST PEDT PADT NEAT NAAT ESTT ACTT") {
		cases = append(cases, kindCase{styp, "<" + styp + ">18MAR261030</" + styp + ">", "<" + styp + ">31APR261030</" + styp + ">", "", changes})
	}
	for _, styp := range strings.Fields("FTSS REMC RENO RUNW STND TRML") {
		cases = append(cases, kindCase{styp, "<" + styp + ">T2</" + styp + ">", "", "<" + styp + "></" + styp + ">", changes})
	}
	for _, styp := range strings.Fields("ACFT FLTY FLIN") {
		cases = append(cases, kindCase{styp, "<" + styp + ">X</" + styp + ">", "", "<" + styp + "/>", refused})
	}
	return append(cases, kindCase{"MAXP", `<MAXP>186</MAXP>`, `<MAXP>many</MAXP>`, `<MAXP/>`, refused})
}

// The last of the five faces, for every kind of message about one flight: how it ends in proc_state when it changes the flight,
// comes again under another number, is about a flight we do not have, breaks a rule, or takes away what it set; and that there
// is an event on either topic exactly when something changed. The other faces are those of jobs/flight's TestRows.
func TestEveryKindEnds(t *testing.T) {
	t.Parallel()
	r := setup(t)
	const known, unknown = 15, 99
	r.put(schedule(1, known, 1, `<PSDT PSNO="1"><PSST>131</PSST></PSDT>`))
	r.finish()
	seen := map[string]bool{}
	seqn := 1
	for _, c := range append(kindCases(), kindCase{"FDEL", "", "<FDEL>gone</FDEL>", "", silent}) {
		seen[c.styp] = true
		want, first := []string{}, r.last+1
		for _, step := range [][3]any{{known, c.broken, refused}, {known, c.filled, changes}, {known, c.filled, silent}, {unknown, c.filled, silent}, {known, c.clear, c.cleared}} {
			seqn++
			r.put(flop(seqn, step[0].(int), c.styp, step[1].(string)))
			want = append(want, fmt.Sprint(step[2]))
		}
		r.finish()
		ends := r.list(`SELECT concat_ws(' ', state, error_class || '/' || root_error_class, skip_reason, attempts || 'x') || ', told ' ||
			(SELECT count(*) FROM msg_event WHERE msg_event.msg_id = p.msg_id AND target = 'KAFKA:msg') FROM proc_state p WHERE msg_id >= $1 ORDER BY msg_id`, first)
		require.Equal(t, want, ends, "%s: broken, filled, again, of an unknown flight, cleared", c.styp)
	}
	require.Empty(t, r.list(`SELECT msg_id::text FROM msg_event GROUP BY msg_id HAVING count(*) FILTER (WHERE target = 'KAFKA:msg') <> 1`))
	require.Equal(t, "0", r.one(`SELECT count(*)::text FROM proc_state WHERE backfill_next_at IS NULL`), "each is to be marked")
	for k := range sis.Catalogue() {
		require.True(t, k.TYPE != sis.TypeFLOP || seen[k.STYP], "%s has no case", k.Name)
	}
}
