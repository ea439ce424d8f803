package sis_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/sis"
)

const (
	refused = "!"
	nothing = "" // the record says nothing but its FLID
)

// flopRow is a row of the dictionary's section 7, written down a second time: payload XML and what a record says of it.
type flopRow struct {
	styp   string
	value  string // payload
	says   string // members of the record
	absent string
	empty  string // for <STYP></STYP>, or what emptyXML says
	broken []string
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
	case "FDIV":
		return `<FDIV DDES="" DDIR="VIA">left over</FDIV>`
	case "FLAB":
		return `<FLAB ARES=""></FLAB>`
	}
	return "<" + styp + "></" + styp + ">"
}

func flopRows() []flopRow {
	rows := []flopRow{
		{
			"ABTM", `<ABTM ASNO="1"><ABDG>B208</ABDG><ABOP>A</ABOP><AOTM>18MAR260925</AOTM></ABTM>`,
			`"abtm":[{"asno":1,"abdg":"B208","abop":"A","aotm":"2026-03-18T09:25:00+08:00"}]`, refused, `"abtm":[]`,
			[]string{`<ABTM ASNO="1"><ABDG>B208</ABDG><ABOP>A</ABOP></ABTM>`, `<ABTM ASNO="1"></ABTM>`},
		},
		{
			"CHDT", `<CHDT CHNO="1"><CHUT>CH1</CHUT></CHDT>`, `"chdt":[{"chno":1,"chut":"CH1"}]`, refused, `"chdt":[]`,
			[]string{`<CHDT><CHUT>CH1</CHUT></CHDT>`, `<CHDT CHNO="x"><CHUT>CH1</CHUT></CHDT>`},
		},
		{
			"CHOT", `<CHOT CSNO="127"><CHTM>18MAR260925</CHTM><CHID>ON</CHID><CHST>208</CHST></CHOT>`,
			`"chot":[{"csno":127,"chtm":"2026-03-18T09:25:00+08:00","chid":"ON","chst":"208"}]`, refused, `"chot":[]`,
			[]string{`<CHOT CSNO="128"><CHTM>18MAR260925</CHTM><CHID>ON</CHID><CHST>208</CHST></CHOT>`},
		},
		{
			"CKDT", `<CKDT CKNO="2"><CHKC>B</CHKC></CKDT><CKDT CKNO="01"><CHKC>A</CHKC></CKDT>`,
			`"ckdt":[{"ckno":1,"chkc":"A"},{"ckno":2,"chkc":"B"}]`, refused, `"ckdt":[]`,
			[]string{`<CKDT CKNO="1"><CHKC>A</CHKC></CKDT><CKDT CKNO="01"><CHKC>B</CHKC></CKDT>`},
		},
		{
			"CLDT", `<CLDT CLNO="1"><BELT>b7</BELT><FBAG/></CLDT>`, `"cldt":[{"clno":1,"belt":"b7"}]`, refused, `"cldt":[]`,
			[]string{`<CLDT CLNO="1"><BELT>b7</BELT><FBAG>0925</FBAG></CLDT>`},
		},
		{
			"GTDT", `<GTDT GTNO="1"><GATE>G31</GATE><GTYP>D</GTYP></GTDT>`, `"gtdt":[{"gtno":1,"gate":"G31","gtyp":"D"}]`, refused, `"gtdt":[]`,
			[]string{`<GTDT GTNO="1"><GTYP>D</GTYP></GTDT>`},
		},
		{
			"PSDT", `<PSDT PSNO="1"><PSST>208</PSST></PSDT>`, `"psdt":[{"psno":1,"psst":"208"}]`, refused, `"psdt":[]`,
			[]string{`<PSDT PSNO="1"><PSST>208</PSST><PSST>209</PSST></PSDT>`, `<PSDT PSNO="1"><PSST>208</PSST></PSDT><PSDT PSNO="2"/>`},
		},
		{
			"DELY", `<DELY CODE="WR" STRT="18MAR261140" DURA="0125">snow</DELY>`,
			`"dely":[{"code":"WR","strt":"2026-03-18T11:40:00+08:00","duraMinutes":85,"text":"snow"}]`, refused, `"dely":[]`,
			[]string{`<DELY>snow</DELY>`, `<DELY DURA="0125"/>`, `<DELY CODE="WR" DURA="1:25"/>`, `<DELY CODE="WR" STRT="now"/>`},
		},
		{
			"SRVT", `<SRVT><SRTC>WCHR</SRTC><SRQT>0</SRQT></SRVT>`, `"srvt":[{"srtc":"WCHR","srqt":0}]`, refused, `"srvt":[]`,
			[]string{`<SRVT><SRQT>1</SRQT></SRVT>`, `<SRVT><SRTC>WCHR</SRTC></SRVT>`, `<SRVT><SRTC>W</SRTC><SRQT>1</SRQT><SRST>x</SRST></SRVT>`},
		},
		{
			"ERUT", `<ERUT RTNO="1"><APCD>CTU</APCD></ERUT>`, `"erut":[{"rtno":1,"apcd":"CTU"}]`, refused, `"erut":[]`,
			[]string{`<ERUT><APCD>CTU</APCD></ERUT>`, `<ERUT RTNO="1"><SCAT>18MAR261140</SCAT></ERUT>`, `<ERUT RTNO="1"><APCD>CTU</APCD><SCAT>1140</SCAT></ERUT>`},
		},
		{
			"VIPF", `<VIPF><VPCD>V1</VPCD><VFES>3</VFES></VIPF><VIPF><VFES>9</VFES></VIPF>`, `"vipf":[{"vpcd":"V1","vfes":3}]`, nothing, nothing,
			[]string{`<VIPF><VPCD>V1</VPCD><VFES>three</VFES></VIPF>`},
		},
		{
			"PSHT", `<PSHT PSHN="1"><PSTM/><PSID>IN</PSID><PUST>203</PUST></PSHT><PSHT><PSTM>18MAR261038</PSTM><PSID>OUT</PSID><PUST>208</PUST></PSHT>`,
			`"psht":[{"pust":"203"},{"pust":"208","pstm":"2026-03-18T10:38:00+08:00","psid":"OUT"}]`, refused, nothing,
			[]string{`<PSHT><PSTM>18MAR261038</PSTM></PSHT>`, `<PSHT><PSTM>x</PSTM><PUST>208</PUST></PSHT>`},
		},
		{
			"TIPT", `<TIPT><TRTM>18MAR261028</TRTM><TRST>208</TRST></TIPT><TIPT><TRST>9</TRST></TIPT>`,
			`"tipt":[{"trst":"208","trtm":"2026-03-18T10:28:00+08:00"},{"trst":"9"}]`, refused, nothing,
			[]string{`<TIPT><TRTM>18MAR261028</TRTM></TIPT>`, `<TIPT><TRTM>x</TRTM><TRST>208</TRST></TIPT>`},
		},
		{
			"PORT", `<PORT><POTM>18MAR260930</POTM><POID>O</POID></PORT>`, `"port":{"o":"2026-03-18T09:30:00+08:00"}`, refused, refused,
			[]string{
				`<PORT><POTM>18MAR260930</POTM></PORT>`, `<PORT><POTM>x</POTM><POID>O</POID></PORT>`,
				`<PORT><POID>O</POID></PORT><PORT><POID>O</POID></PORT>`, `<PORT><POID>O</POID><POID>C</POID></PORT>`,
			},
		},
		{
			"HNAG", `<FHAG>1</FHAG><MHAG>3</MHAG>`, `"phag":null,"fhag":1,"mhag":3`,
			`"phag":null,"fhag":null,"mhag":null`, `"phag":null,"fhag":null,"mhag":null`,
			[]string{`<FHAG>one</FHAG>`, `<FHAG>1</FHAG><FHAG>1</FHAG>`},
		},
		{
			"TAOP", `<TAOP>HU</TAOP><TAFL>HU7769</TAFL><TAID>16</TAID>`, `"taop":"HU","tafl":"HU7769","taid":16`,
			`"taop":null,"tafl":null,"taid":null`, `"taop":null,"tafl":null,"taid":null`,
			[]string{`<TAOP>HU</TAOP><TAFL>HU7769</TAFL><TAID>-16</TAID>`},
		},
		{"VIPP", `<VIPP>3</VIPP>`, `"vipp":3,"vipr":null`, `"vipp":null,"vipr":null`, `"vipp":null,"vipr":null`, []string{`<VIPP>3</VIPP><VIPR>A</VIPR>`}},
		{
			"EXSS", `<EXSC>DLYWX</EXSC>`, `"exsc":"DLYWX","exsr":null`, refused, `"exsc":null,"exsr":null`,
			[]string{`<EXSR>text</EXSR>`, `<EXSC>A</EXSC><EXSC>B</EXSC>`},
		},
		{
			"FDIV", `<FDIV DDES="HKG" DDIR="FROM"/>`, `"fdiv":{"ddes":"HKG","ddir":"FROM","text":null}`,
			`"fdiv":{"ddes":null,"ddir":null,"text":null}`, `"fdiv":{"ddes":null,"ddir":null,"text":null}`,
			[]string{`<FDIV DDES="HKG">text</FDIV>`, `<FDIV DDES="HKG" DDIR="to"/>`},
		},
		{
			"FRET", `<FRET REID="G"></FRET>`, `"fret":{"reid":"G","text":null}`,
			`"fret":{"reid":null,"text":null}`, `"fret":{"reid":null,"text":null}`,
			[]string{`<FRET>text</FRET>`, `<FRET REID="X">text</FRET>`},
		},
		{
			"FLAB", `<FLAB ARES="O">fog</FLAB>`, `"flab":{"ares":"O","text":"fog"}`,
			`"flab":{"ares":null,"text":null}`, `"flab":{"ares":null,"text":null}`,
			[]string{`<FLAB ARES="">fog</FLAB>`, `<FLAB ARES="A"/>`},
		},
		{"MAXP", `<MAXP>164</MAXP>`, `"maxp":164`, refused, refused, []string{`<MAXP>many</MAXP>`}},
		{"FDEL", ``, `"delete":true`, `"delete":true`, `"delete":true`, []string{`<FDEL>Y</FDEL>`, `<FDEL/><FDEL/>`}},
	}
	for _, styp := range strings.Fields("APPT BOTM CNCL EGSR EGST FINT LACL COBT CTOT EOBT TOBT IEST PEDT PADT NEAT NAAT ESTT ACTT") {
		name := strings.ToLower(styp)
		rows = append(rows, flopRow{
			styp, "<" + styp + ">18Mar260918</" + styp + ">", `"` + name + `":"2026-03-18T09:18:00+08:00"`, `"` + name + `":null`, `"` + name + `":null`,
			[]string{"<" + styp + ">31APR260918</" + styp + ">", "<" + styp + ">18MAR260960</" + styp + ">"},
		})
	}
	for _, styp := range strings.Fields("FTSS REMC RENO RUNW STND TRML ACFT FLTY FLIN") {
		name := strings.ToLower(styp)
		row := flopRow{
			styp, "<" + styp + ">much longer than it should be</" + styp + ">", `"` + name + `":"much longer than it should be"`,
			refused, `"` + name + `":null`,
			[]string{"<" + styp + ">a</" + styp + "><" + styp + ">a</" + styp + ">"},
		}
		if styp == "ACFT" || styp == "FLTY" || styp == "FLIN" {
			row.empty = refused
		}
		rows = append(rows, row)
	}
	return rows
}

func TestFlopTable(t *testing.T) {
	t.Parallel()
	rows := flopRows()
	require.Len(t, rows, 50)
	for _, row := range rows {
		t.Run(row.styp, func(t *testing.T) {
			t.Parallel()
			requireSays(t, row.styp, row.value, row.says)
			requireSays(t, row.styp, row.value+"<SODT>broken</SODT><NEW a='1'><STND/></NEW>", row.says)
			requireSays(t, row.styp, "", row.absent)
			requireSays(t, row.styp, emptyXML(row.styp), row.empty)
			for _, broken := range row.broken {
				requireSays(t, row.styp, broken, refused)
			}
		})
	}
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
