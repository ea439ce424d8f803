package sis_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/sis"
)

const (
	refused = "!"
	nothing = "" // the record says nothing but its FLID
)

// flopRow is a row of the dictionary's section 7, written down a second time.
type flopRow struct {
	styp   string
	mode   string // column Mode, with the key
	value  string // a payload
	says   string // what a record says of it: its members in JSON
	absent string // column Absent: what it says then
	empty  string // column Empty: what it says of <STYP></STYP>, or of emptyXML
	rules  []flopRule
}

// flopRule is one of the column Further rules, or of what holds for every list and value.
type flopRule struct {
	name, payload string
	says          string
}

// emptyXML are the empty payloads of kinds without an element of their own name.
func emptyXML(styp string) string {
	switch styp {
	case "HNAG":
		return "<FHAG/><PHAG></PHAG><MHAG> </MHAG>"
	case "TAOP":
		return "<TAOP/><TAFL/><TAID/>"
	case "VIPP":
		return "<VIPP/><VIPR/>"
	case "EXSS":
		return "<EXSC/><EXSR>left over</EXSR>"
	case "FLAB":
		return `<FLAB ARES=""></FLAB>`
	}
	return "<" + styp + "></" + styp + ">"
}

// numbered are the rules of a list whose entries have numbers, after an entry <ELEM NUMBER="1">inside</ELEM>.
func numbered(elem, number, inside string) []flopRule {
	entry := func(n string) string { return "<" + elem + " " + number + `="` + n + `">` + inside + "</" + elem + ">" }
	return []flopRule{
		{"no number", "<" + elem + ">" + inside + "</" + elem + ">", refused},
		{"number 0", entry("0"), refused},
		{"number 128", entry("128"), refused},
		{"number no number", entry("x"), refused},
		{"one number twice", entry("1") + entry("01"), refused},
		{"a number alone", "<" + elem + " " + number + `="1"/>`, refused},
		{"one empty element anywhere", entry("1") + "<" + elem + "> </" + elem + ">", `"` + strings.ToLower(elem) + `":[]`},
		{"a broken entry beside an empty one", "<" + elem + "/><" + elem + " " + number + `="1"/>`, refused},
	}
}

func flopRows() []flopRow {
	return slices.Concat(replaceRows(), keyedRows(), standRows(), groupRows(), timeRows(), textRows())
}

func replaceRows() []flopRow {
	const when = "<AOTM>18MAR260925</AOTM>"
	return []flopRow{
		{
			"ABTM", "REPLACE", `<ABTM ASNO="1"><ABDG>B208</ABDG><ABOP>A</ABOP>` + when + `</ABTM>`,
			`"abtm":[{"asno":1,"abdg":"B208","abop":"A","aotm":"2026-03-18T09:25:00+08:00"}]`, refused, `"abtm":[]`,
			append(numbered("ABTM", "ASNO", `<ABDG>B208</ABDG><ABOP>A</ABOP>`+when),
				flopRule{"no time", `<ABTM ASNO="1"><ABDG>B208</ABDG><ABOP>A</ABOP></ABTM>`, refused},
				flopRule{"no operation", `<ABTM ASNO="1"><ABDG>B208</ABDG>` + when + `</ABTM>`, refused},
				flopRule{"no bridge", `<ABTM ASNO="1"><ABOP>A</ABOP>` + when + `</ABTM>`, refused}),
		},
		{
			"CHDT", "REPLACE", `<CHDT CHNO="1"><CHUT>CH1</CHUT><CTYP>E</CTYP></CHDT>`, `"chdt":[{"chno":1,"chut":"CH1","ctyp":"E"}]`, refused, `"chdt":[]`,
			append(numbered("CHDT", "CHNO", `<CHUT>CH1</CHUT>`), flopRule{"no chute", `<CHDT CHNO="1"><CCLS>Y</CCLS></CHDT>`, refused}),
		},
		{
			"CHOT", "REPLACE", `<CHOT CSNO="127"><CHTM>18MAR260925</CHTM><CHID>ON</CHID><CHST>208</CHST></CHOT>`,
			`"chot":[{"csno":127,"chtm":"2026-03-18T09:25:00+08:00","chid":"ON","chst":"208"}]`, refused, `"chot":[]`,
			append(numbered("CHOT", "CSNO", `<CHTM>18MAR260925</CHTM><CHID>ON</CHID><CHST>208</CHST>`),
				flopRule{"no stand", `<CHOT CSNO="1"><CHTM>18MAR260925</CHTM><CHID>ON</CHID></CHOT>`, refused}),
		},
		{
			"CKDT", "REPLACE", `<CKDT CKNO="2"><CHKC>B</CHKC></CKDT><CKDT CKNO="01"><CHKC>A</CHKC></CKDT>`,
			`"ckdt":[{"ckno":1,"chkc":"A"},{"ckno":2,"chkc":"B"}]`, refused, `"ckdt":[]`,
			append(numbered("CKDT", "CKNO", `<CHKC>A</CHKC>`), flopRule{"no counter", `<CKDT CKNO="1"><CTYP>D</CTYP></CKDT>`, refused}),
		},
		{
			"CLDT", "REPLACE", `<CLDT CLNO="1"><BELT>b7</BELT><FBAG/></CLDT>`, `"cldt":[{"clno":1,"belt":"b7"}]`, refused, `"cldt":[]`,
			append(numbered("CLDT", "CLNO", `<BELT>b7</BELT>`), flopRule{"bad time", `<CLDT CLNO="1"><BELT>b7</BELT><FBAG>0925</FBAG></CLDT>`, refused}),
		},
		{
			"GTDT", "REPLACE", `<GTDT GTNO="1"><GATE>G31</GATE><GTYP>D</GTYP></GTDT>`, `"gtdt":[{"gtno":1,"gate":"G31","gtyp":"D"}]`, refused, `"gtdt":[]`,
			append(numbered("GTDT", "GTNO", `<GATE>G31</GATE>`), flopRule{"no gate", `<GTDT GTNO="1"><GTYP>D</GTYP></GTDT>`, refused}),
		},
		{
			"PSDT", "REPLACE", `<PSDT PSNO="1"><PSST>208</PSST></PSDT>`, `"psdt":[{"psno":1,"psst":"208"}]`, refused, `"psdt":[]`,
			append(numbered("PSDT", "PSNO", `<PSST>208</PSST>`),
				flopRule{"stand twice in an entry", `<PSDT PSNO="1"><PSST>208</PSST><PSST>209</PSST></PSDT>`, refused},
				flopRule{"does not touch STND", `<STND>1</STND><PSDT PSNO="1"><PSST>208</PSST></PSDT>`, `"psdt":[{"psno":1,"psst":"208"}]`}),
		},
	}
}

func keyedRows() []flopRow {
	return []flopRow{
		{
			"DELY", "MERGE by CODE", `<DELY CODE="WR" STRT="18MAR261140" DURA="0125">snow</DELY>`,
			`"dely":[{"code":"WR","strt":"2026-03-18T11:40:00+08:00","duraMinutes":85,"text":"snow"}]`, refused, `"dely":[]`,
			[]flopRule{
				{"one empty element anywhere", `<DELY CODE="WR">snow</DELY><DELY CODE=""/>`, `"dely":[]`},
				{"CODE missing while text is there", `<DELY>snow</DELY>`, refused},
				{"CODE missing while DURA is there", `<DELY DURA="0125"/>`, refused},
				{"CODE missing while STRT is there", `<DELY STRT="18MAR261140"/>`, refused},
				{"CODE alone", `<DELY CODE="WR"/>`, `"dely":[{"code":"WR"}]`},
				{"DURA not four digits", `<DELY CODE="WR" DURA="1:25"/>`, refused},
				{"DURA of three digits", `<DELY CODE="WR" DURA="125"/>`, refused},
				{"bad STRT", `<DELY CODE="WR" STRT="now"/>`, refused},
			},
		},
		{
			"SRVT", "MERGE by SRTC", `<SRVT><SRTC>WCHR</SRTC><SRQT>0</SRQT></SRVT>`, `"srvt":[{"srtc":"WCHR","srqt":0}]`, refused, `"srvt":[]`,
			[]flopRule{
				{"one empty element anywhere", `<SRVT><SRTC/><SRST> </SRST></SRVT><SRVT><SRTC>W</SRTC><SRQT>1</SRQT></SRVT>`, `"srvt":[]`},
				{"SRTC missing", `<SRVT><SRQT>1</SRQT></SRVT>`, refused},
				{"SRQT missing", `<SRVT><SRTC>WCHR</SRTC></SRVT>`, refused},
				{"SRQT empty", `<SRVT><SRTC>WCHR</SRTC><SRQT/></SRVT>`, refused},
				{"SRQT above 127", `<SRVT><SRTC>WCHR</SRTC><SRQT>128</SRQT></SRVT>`, refused},
				{"bad times", `<SRVT><SRTC>W</SRTC><SRQT>1</SRQT><SRST>x</SRST></SRVT>`, refused},
				{"replaced as a whole", `<SRVT><SRTC>W</SRTC><SRQT>1</SRQT><SRPR/></SRVT>`, `"srvt":[{"srtc":"W","srqt":1}]`},
			},
		},
		{
			"ERUT", "MERGE by RTNO", `<ERUT RTNO="1"><APCD>CTU</APCD></ERUT>`, `"erut":[{"rtno":1,"apcd":"CTU"}]`, refused, `"erut":[]`,
			append(numbered("ERUT", "RTNO", `<APCD>CTU</APCD>`),
				flopRule{"APCD missing", `<ERUT RTNO="1"><SCAT>18MAR261140</SCAT></ERUT>`, refused},
				flopRule{"bad times", `<ERUT RTNO="1"><APCD>CTU</APCD><SCAT>1140</SCAT></ERUT>`, refused}),
		},
		{
			"VIPF", "MERGE by VPCD", `<VIPF><VPCD>V1</VPCD><VFES>3</VFES></VIPF>`, `"vipf":[{"vpcd":"V1","vfes":3}]`, nothing, nothing,
			[]flopRule{
				{"entry without VPCD", `<VIPF><VPCD>V1</VPCD></VIPF><VIPF><VFES>9</VFES></VIPF>`, `"vipf":[{"vpcd":"V1"}]`},
				{"no entry with VPCD", `<VIPF><VFES>nine</VFES></VIPF>`, nothing},
				{"empty beside an entry", `<VIPF/><VIPF><VPCD>V1</VPCD></VIPF>`, `"vipf":[{"vpcd":"V1"}]`},
				{"VIPT inside", `<VIPF><VPCD>V1</VPCD><VIPT><VSCD>A</VSCD><VTST>x</VTST></VIPT></VIPF>`, `"vipf":[{"vpcd":"V1"}]`},
				{"party size no number", `<VIPF><VPCD>V1</VPCD><VFES>three</VFES></VIPF>`, refused},
			},
		},
	}
}

func standRows() []flopRow {
	return []flopRow{
		{
			"PSHT", "PATCH by PUST", `<PSHT PSHN="1"><PSTM>18MAR261038</PSTM><PSID>OUT</PSID><PUST>208</PUST></PSHT>`,
			`"psht":[{"pust":"208","pstm":"2026-03-18T10:38:00+08:00","psid":"OUT"}]`, refused, nothing,
			[]flopRule{
				{"PSTM empty", `<PSHT><PSTM/><PSID>IN</PSID><PUST>203</PUST></PSHT>`, `"psht":[{"pust":"203"}]`},
				{"PSTM absent", `<PSHT><PUST>203</PUST></PSHT>`, `"psht":[{"pust":"203"}]`},
				{"two stands", `<PSHT><PUST>9</PUST></PSHT><PSHT><PSTM>18MAR261038</PSTM><PUST>208</PUST></PSHT>`, `"psht":[{"pust":"208","pstm":"2026-03-18T10:38:00+08:00"},{"pust":"9"}]`},
				{"empty beside an entry", `<PSHT/><PSHT><PUST>9</PUST></PSHT>`, `"psht":[{"pust":"9"}]`},
				{"no stand", `<PSHT><PSTM>18MAR261038</PSTM></PSHT>`, refused},
				{"bad time", `<PSHT><PSTM>x</PSTM><PUST>208</PUST></PSHT>`, refused},
			},
		},
		{
			"TIPT", "PATCH by TRST", `<TIPT><TRTM>18MAR261028</TRTM><TRST>208</TRST></TIPT><TIPT><TRST>9</TRST></TIPT>`,
			`"tipt":[{"trst":"208","trtm":"2026-03-18T10:28:00+08:00"},{"trst":"9"}]`, refused, nothing,
			[]flopRule{
				{"TRTM empty", `<TIPT><TRTM/><TRST>208</TRST></TIPT>`, `"tipt":[{"trst":"208"}]`},
				{"no stand", `<TIPT><TRTM>18MAR261028</TRTM></TIPT>`, refused},
				{"bad time", `<TIPT><TRTM>x</TRTM><TRST>208</TRST></TIPT>`, refused},
			},
		},
		{
			"PORT", "SET by POID", `<PORT><POTM>18MAR260930</POTM><POID>O</POID></PORT>`, `"port":{"o":"2026-03-18T09:30:00+08:00"}`, refused, refused,
			[]flopRule{
				{"closed", `<PORT><POTM>18MAR260930</POTM><POID>C</POID></PORT>`, `"port":{"c":"2026-03-18T09:30:00+08:00"}`},
				{"POID missing", `<PORT><POTM>18MAR260930</POTM></PORT>`, refused},
				{"POTM empty", `<PORT><POTM/><POID>C</POID></PORT>`, `"port":{"c":null}`},
				{"POID other than O, C", `<PORT><POTM>18MAR260930</POTM><POID>X</POID></PORT>`, nothing},
				{"two doors", `<PORT><POTM>18MAR260930</POTM><POID>O</POID></PORT><PORT><POID>C</POID></PORT>`, `"port":{"o":"2026-03-18T09:30:00+08:00","c":null}`},
				{"bad time", `<PORT><POTM>x</POTM><POID>O</POID></PORT>`, refused},
				{"one door twice", `<PORT><POID>O</POID></PORT><PORT><POID>O</POID></PORT>`, refused},
				{"two POID", `<PORT><POID>O</POID><POID>C</POID></PORT>`, refused},
			},
		},
	}
}

func groupRows() []flopRow {
	const noLink, noDiversion = `"taop":null,"tafl":null,"taid":null`, `"fdiv":{"ddes":null,"ddir":null,"text":null}`
	const noReturn, noAbort = `"fret":{"reid":null,"text":null}`, `"flab":{"ares":null,"text":null}`
	return []flopRow{
		{
			"HNAG", "GROUP", `<FHAG>1</FHAG><PHAG>2</PHAG><MHAG>3</MHAG>`, `"phag":2,"fhag":1,"mhag":3`,
			`"phag":null,"fhag":null,"mhag":null`, `"phag":null,"fhag":null,"mhag":null`,
			[]flopRule{
				{"an absent one is cleared", `<FHAG>1</FHAG><MHAG>3</MHAG>`, `"phag":null,"fhag":1,"mhag":3`},
				{"an empty one is cleared", `<FHAG/><PHAG>2</PHAG><MHAG>3</MHAG>`, `"phag":2,"fhag":null,"mhag":3`},
				{"not a number", `<FHAG>one</FHAG>`, refused},
				{"one twice", `<FHAG>1</FHAG><FHAG>1</FHAG>`, refused},
			},
		},
		{
			"TAOP", "GROUP", `<TAOP>HU</TAOP><TAFL>HU7769</TAFL><TAID>16</TAID>`, `"taop":"HU","tafl":"HU7769","taid":16`, noLink, noLink,
			[]flopRule{
				{"TAOP absent", `<TAFL>HU7769</TAFL><TAID>16</TAID>`, noLink},
				{"TAFL empty", `<TAOP>HU</TAOP><TAFL/><TAID>16</TAID>`, noLink},
				{"TAID absent", `<TAOP>HU</TAOP><TAFL>HU7769</TAFL>`, noLink},
				{"TAID not a number", `<TAOP>HU</TAOP><TAFL>HU7769</TAFL><TAID>-16</TAID>`, refused},
			},
		},
		{
			"VIPP", "GROUP", `<VIPP>3</VIPP><VIPR>1</VIPR>`, `"vipp":3,"vipr":1`, `"vipp":null,"vipr":null`, `"vipp":null,"vipr":null`,
			[]flopRule{
				{"each on its own", `<VIPP>3</VIPP>`, `"vipp":3,"vipr":null`},
				{"rank alone", `<VIPP/><VIPR>1</VIPR>`, `"vipp":null,"vipr":1`},
				{"not a number", `<VIPP>3</VIPP><VIPR>A</VIPR>`, refused},
			},
		},
		{
			"EXSS", "GROUP", `<EXSC>DLYWX</EXSC><EXSR>snow</EXSR>`, `"exsc":"DLYWX","exsr":"snow"`, refused, `"exsc":null,"exsr":null`,
			[]flopRule{
				{"EXSC absent", `<EXSR>text</EXSR>`, refused},
				{"EXSR absent", `<EXSC>DLYWX</EXSC>`, `"exsc":"DLYWX","exsr":null`},
				{"EXSR empty", `<EXSC>DLYWX</EXSC><EXSR/>`, `"exsc":"DLYWX","exsr":null`},
				{"there is no EXSS element", `<EXSS><EXSC>A</EXSC></EXSS>`, refused},
				{"EXSC twice", `<EXSC>A</EXSC><EXSC>B</EXSC>`, refused},
			},
		},
		{
			"FDIV", "GROUP", `<FDIV DDES="HKG" DDIR="TO">fog</FDIV>`, `"fdiv":{"ddes":"HKG","ddir":"TO","text":"fog"}`, noDiversion, noDiversion,
			[]flopRule{
				{"DDES empty, whatever else is there", `<FDIV DDES="" DDIR="VIA">left over</FDIV>`, noDiversion},
				{"DDES missing, whatever else is there", `<FDIV DDIR="TO">left over</FDIV>`, noDiversion},
				{"from, without a reason", `<FDIV DDES="HKG" DDIR="FROM"/>`, `"fdiv":{"ddes":"HKG","ddir":"FROM","text":null}`},
				{"DDIR missing", `<FDIV DDES="HKG">text</FDIV>`, refused},
				{"DDIR neither TO nor FROM", `<FDIV DDES="HKG" DDIR="to"/>`, refused},
			},
		},
		{
			"FRET", "GROUP", `<FRET REID="A">fuel</FRET>`, `"fret":{"reid":"A","text":"fuel"}`, noReturn, noReturn,
			[]flopRule{
				{"REID with no text", `<FRET REID="G"></FRET>`, `"fret":{"reid":"G","text":null}`},
				{"text but no REID", `<FRET>text</FRET>`, refused},
				{"text but an empty REID", `<FRET REID=" ">text</FRET>`, refused},
				{"REID neither A nor G", `<FRET REID="X">text</FRET>`, refused},
			},
		},
		{
			"FLAB", "GROUP", `<FLAB ARES="O">fog</FLAB>`, `"flab":{"ares":"O","text":"fog"}`, noAbort, noAbort,
			[]flopRule{
				{"ARES with no text", `<FLAB ARES="G"/>`, `"flab":{"ares":"G","text":null}`},
				{"text but no ARES", `<FLAB>fog</FLAB>`, refused},
				{"text but an empty ARES", `<FLAB ARES="">fog</FLAB>`, refused},
				{"ARES neither O nor G", `<FLAB ARES="A"/>`, refused},
			},
		},
	}
}

func timeRows() []flopRow {
	var rows []flopRow
	for _, styp := range strings.Fields("APPT BOTM CNCL EGSR EGST FINT LACL COBT CTOT EOBT TOBT IEST PEDT PADT NEAT NAAT ESTT ACTT") {
		name, value := strings.ToLower(styp), func(text string) string { return "<" + styp + ">" + text + "</" + styp + ">" }
		rows = append(rows, flopRow{
			styp, "SET", value("18Mar260918"), `"` + name + `":"2026-03-18T09:18:00+08:00"`, `"` + name + `":null`, `"` + name + `":null`,
			[]flopRule{
				{"bad date: no such day", value("31APR260918"), refused},
				{"bad date: no such minute", value("18MAR260960"), refused},
				{"bad date: time alone", value("0918"), refused},
				{"twice", value("18MAR260918") + value("18MAR260918"), refused},
			},
		})
	}
	return rows
}

func textRows() []flopRow {
	rows := []flopRow{
		{"MAXP", "SET", `<MAXP>164</MAXP>`, `"maxp":164`, refused, refused, []flopRule{{"not a number", `<MAXP>many</MAXP>`, refused}}},
		{"FDEL", "DELETE", ``, `"delete":true`, `"delete":true`, `"delete":true`, []flopRule{
			{"any text in FDEL", `<FDEL>Y</FDEL>`, refused},
			{"twice", `<FDEL/><FDEL/>`, refused},
		}},
	}
	for _, styp := range strings.Fields("FTSS REMC RENO RUNW STND TRML ACFT FLTY FLIN") {
		name := strings.ToLower(styp)
		row := flopRow{
			styp, "SET", "<" + styp + ">much longer than it should be</" + styp + ">", `"` + name + `":"much longer than it should be"`,
			refused, `"` + name + `":null`,
			[]flopRule{{"twice", "<" + styp + ">a</" + styp + "><" + styp + ">a</" + styp + ">", refused}},
		}
		if styp == "ACFT" || styp == "FLTY" || styp == "FLIN" { // mandatory for a flight
			row.empty = refused
		}
		rows = append(rows, row)
	}
	return rows
}

// TestFlopTable: each of the 50 rows of the dictionary's section 7 in all its columns.
func TestFlopTable(t *testing.T) {
	t.Parallel()
	rows := flopRows()
	require.Len(t, rows, 50)
	for _, row := range rows {
		t.Run(row.styp, func(t *testing.T) {
			t.Parallel()
			t.Run("mode", func(t *testing.T) {
				t.Parallel()
				require.Equal(t, row.mode, modeOf(row.styp))
			})
			for _, rule := range append([]flopRule{
				{"value", row.value, row.says},
				{"other elements are skipped", row.value + "<SODT>broken</SODT><NEW a='1'><STND/></NEW>", row.says},
				{"absent", "", row.absent},
				{"empty", emptyXML(row.styp), row.empty},
				{"empty, short", "<" + row.styp + "/>", shortly(row)},
			}, row.rules...) {
				t.Run(rule.name, func(t *testing.T) {
					t.Parallel()
					requireSays(t, row.styp, rule.payload, rule.says)
				})
			}
		})
	}
}

// shortly is what <STYP/> says: for kinds without an element of that name nothing is there at all.
func shortly(row flopRow) string {
	if row.styp == "HNAG" || row.styp == "EXSS" {
		return row.absent
	}
	return row.empty
}

// modeOf is the column Mode of the catalogue.
func modeOf(styp string) string {
	k, _ := sis.Lookup(message.Kind("FLOP-" + styp))
	p := k.Payload[0]
	switch {
	case p.Door:
		return string(k.Mode) + " by POID"
	case p.List == nil || k.Mode == sis.Replace:
		return string(k.Mode)
	case p.List.Key.Attr != "":
		return string(k.Mode) + " by " + p.List.Key.Attr
	}
	return string(k.Mode) + " by " + p.List.Key.Elem
}

// requireSays decodes a FLOP with that payload and compares what its record says.
func requireSays(t *testing.T, styp, payload, says string) {
	t.Helper()
	m, err := decode(t, msg(meta("FLOP-"+styp)+"<FLOP><FLID>15</FLID>"+payload+"</FLOP>"))
	if says == refused {
		requireFault(t, err, fault.Protocol, "")
		require.Equal(t, "FLOP-"+styp, string(m.Meta.Kind()))
		return
	}
	require.NoError(t, err)
	if says != "" {
		says = "," + says
	}
	require.Equal(t, `{"records":[{"flid":15`+says+`}]}`, body(t, m))
	requireRoundTrip(t, m)
}

// body is the member body of what the command decode prints.
func body(t *testing.T, m sis.Message) string {
	t.Helper()
	var out struct{ Body json.RawMessage }
	require.NoError(t, json.Unmarshal(sis.RenderDecoded(m, nil, shanghai(t)), &out))
	return string(out.Body)
}

// TestListClears: what a list does to the stored one depends on its mode, and in a flight record only PATCH spares it.
func TestListClears(t *testing.T) {
	t.Parallel()
	full := map[string]string{"ROUT": `<ROUT RTNO="1"><APCD>CTU</APCD></ROUT>`}
	for _, row := range flopRows() {
		full[row.styp] = row.value
	}
	full["VIPF"] = `<VIPF><VPCD>V1</VPCD></VIPF>` // in a flight record one without its key is refused
	for _, l := range sis.ListSpecs() {
		m, err := decode(t, fltr(full[l.Elem]))
		require.NoError(t, err)
		require.Equal(t, l.Mode != sis.Patch, m.Records[0].Lists[l.Name].Clear, l.Name)
		if l.Elem == "ROUT" {
			continue // there is no FLOP of it
		}
		m, err = decode(t, msg(meta("FLOP-"+l.Elem)+"<FLOP><FLID>15</FLID>"+full[l.Elem]+"</FLOP>"))
		require.NoError(t, err)
		require.Equal(t, l.Mode == sis.Replace, m.Records[0].Lists[l.Name].Clear, l.Name)
	}
}

// TestFlopBodiesAreAllOrNone: several bodies are read in order, and one broken refuses them all.
func TestFlopBodiesAreAllOrNone(t *testing.T) {
	t.Parallel()
	m, err := decode(t, msg(goodMeta+goodBody+"<FLOP><STND/><FLID>16</FLID></FLOP>"))
	require.NoError(t, err)
	require.Equal(t, `{"records":[{"flid":15,"stnd":"208"},{"flid":16,"stnd":null}]}`, body(t, m))
	for path, broken := range map[string]string{
		"MSG/FLOP[2]/FLID":    "<FLOP><STND/></FLOP>",
		"MSG/FLOP[2]/STND[2]": "<FLOP><FLID>16</FLID><STND/><STND/></FLOP>",
		"MSG/FLOP[2]/FLID[2]": "<FLOP><FLID>16</FLID><FLID>16</FLID><STND/></FLOP>",
	} {
		m, err := decode(t, msg(goodMeta+goodBody+broken))
		requireFault(t, err, fault.Protocol, path)
		require.Nil(t, m.Records)
	}
	for _, id := range []string{"", " ", "x", "-1", "+1", "1.0", "１５", strings.Repeat("9", 19)} {
		_, err := decode(t, msg(goodMeta+"<FLOP><FLID>"+id+"</FLID><STND/></FLOP>"))
		requireFault(t, err, fault.Protocol, "MSG/FLOP[1]/FLID")
	}
}

// TestFLIDNamesAFlight: no number, a negative one, and 0 name none.
func TestFLIDNamesAFlight(t *testing.T) {
	t.Parallel()
	for _, flid := range []string{"", "0", "000", "-5", "x"} {
		_, err := decode(t, msg(meta("FLOP-STND")+"<FLOP><FLID>"+flid+"</FLID><STND>208</STND></FLOP>"))
		require.Equal(t, fault.Protocol, fault.Of(err), flid)
	}
}
