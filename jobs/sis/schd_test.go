package sis_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/sis"
)

const flightCore = `<FLID>15</FLID><ALCD>3U</ALCD><FLNO>3U6812</FLNO><MVIN>A</MVIN><SODT>18MAR260925</SODT><FLTY>J</FLTY><FLIN>D</FLIN><ACFT>32N</ACFT>`

// fltr is an ADFT of one flight with more than it must have.
func fltr(more string) string { return schd("<FLTR>" + flightCore + more + "</FLTR>") }

func schd(inside string) string { return msg(meta("SCHD-ADFT") + "<SCHD>" + inside + "</SCHD>") }

func TestPackageRules(t *testing.T) {
	t.Parallel()
	flight := func(id string) string {
		return "<FLTR>" + strings.Replace(flightCore, ">15<", ">"+id+"<", 1) + "</FLTR>"
	}
	for _, c := range []struct {
		name, text, path string // path "" = accepted
	}{
		{"RECS right", schd("<RECS>1</RECS>" + flight("15")), ""},
		{"RECS absent", schd(flight("15") + flight("16")), ""},
		{"RECS after the flights", schd(flight("15") + "<RECS>1</RECS>"), ""},
		{"RECS 0", schd("<RECS>0</RECS>"), ""},
		{"nothing at all", schd(""), ""},
		{"RECS not of the schedule", msg(meta("SCHD-DNLD") + "<RECS>7</RECS><SCHD><X><RECS>7</RECS></X></SCHD>"), ""},
		{"RECS too many", schd("<RECS>2</RECS>" + flight("15")), "MSG/SCHD/RECS"},
		{"RECS 0 with a flight", schd("<RECS>0</RECS>" + flight("15")), "MSG/SCHD/RECS"},
		{"RECS no number", schd("<RECS>one</RECS>" + flight("15")), "MSG/SCHD/RECS"},
		{"RECS empty", schd("<RECS/>" + flight("15")), "MSG/SCHD/RECS"},
		{"RECS twice", schd("<RECS>1</RECS><RECS>1</RECS>" + flight("15")), "MSG/SCHD/RECS"},
		{"SCHD twice", msg(meta("SCHD-ADFT") + "<SCHD/><SCHD/>"), "MSG/SCHD"},
		{"FLID twice in the package", schd(flight("15") + flight("16") + flight("0015")), "MSG/SCHD/FLTR[3]/FLID"},
		{"second flight broken", schd(flight("15") + flight("x")), "MSG/SCHD/FLTR[2]/FLID"},
		{"id not a number", fltr("<TAID>HU7769</TAID>"), "MSG/SCHD/FLTR[1]/TAID"},
		{"number not a number", fltr("<MAXP>1 8 6</MAXP>"), "MSG/SCHD/FLTR[1]/MAXP"},
		{"decimal not a number", fltr("<LBWT>1,5</LBWT>"), "MSG/SCHD/FLTR[1]/LBWT"},
		{"no such day", fltr("<ESTT>31FEB260900</ESTT>"), "MSG/SCHD/FLTR[1]/ESTT"},
		{"no such day in an entry", fltr(`<PSDT PSNO="1"><PSST>1</PSST><STST>31FEB260900</STST></PSDT>`), "MSG/SCHD/FLTR[1]/PSDT/STST"},
		{"single value twice", fltr("<STND>1</STND><STND>1</STND>"), "MSG/SCHD/FLTR[1]/STND[2]"},
		{"neither arrival nor departure", strings.Replace(fltr(""), "<MVIN>A", "<MVIN>X", 1), "MSG/SCHD/FLTR[1]/MVIN"},
		{"number of an entry missing", fltr(`<GTDT><GATE>1</GATE></GTDT>`), "MSG/SCHD/FLTR[1]/GTDT/@GTNO"},
		{"two entries with one number", fltr(`<GTDT GTNO="1"><GATE>1</GATE></GTDT><GTDT GTNO="1"><GATE>2</GATE></GTDT>`), "MSG/SCHD/FLTR[1]/GTDT[2]/@GTNO"},
		{"broken entry beside an empty one", fltr(`<GTDT/><GTDT GTNO="1"/>`), "MSG/SCHD/FLTR[1]/GTDT[2]/GATE"},
		{"VIP without a code", fltr(`<VIPF><VFES>1</VFES></VIPF>`), "MSG/SCHD/FLTR[1]/VIPF/VPCD"},
		{"VIP service with a bad time", fltr(`<VIPF><VPCD>V</VPCD><VIPT><VTST>x</VTST></VIPT></VIPF>`), "MSG/SCHD/FLTR[1]/VIPF/VIPT/VTST"},
		{"diversion without direction", fltr(`<FDIV DDES="HKG"/>`), "MSG/SCHD/FLTR[1]/FDIV/@DDIR"},
		{"return without where", fltr(`<FRET>text</FRET>`), "MSG/SCHD/FLTR[1]/FRET/@REID"},
		{"door without which", fltr(`<PORT><POTM>18MAR260900</POTM></PORT>`), "MSG/SCHD/FLTR[1]/PORT/POID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := decode(t, c.text)
			if c.path == "" {
				require.NoError(t, err)
				return
			}
			requireFault(t, err, fault.Protocol, c.path)
			require.Nil(t, m.Records)
		})
	}
}

func TestMandatoryElements(t *testing.T) {
	t.Parallel()
	for _, elem := range strings.Fields("FLID ALCD FLNO MVIN SODT FLTY FLIN ACFT") {
		before, rest, _ := strings.Cut(fltr(""), "<"+elem+">")
		_, after, _ := strings.Cut(rest, "</"+elem+">")
		for _, instead := range []string{"", "<" + elem + "/>", "<" + elem + ">\n</" + elem + ">"} {
			_, err := decode(t, before+instead+after)
			requireFault(t, err, fault.Protocol, "MSG/SCHD/FLTR[1]/"+elem)
		}
	}
}

// K24: three states of every value, and no 0 and no year 1 among them.
func TestK24_absentEmptyValue(t *testing.T) {
	t.Parallel()
	m, err := decode(t, fltr(""))
	require.NoError(t, err)
	require.Len(t, m.Records[0].Fields, 7)
	require.Empty(t, m.Records[0].Lists)
	for _, f := range sis.ScalarSpecs() {
		if f.Mandatory || f.Group != "" {
			continue
		}
		m, err := decode(t, fltr("<"+f.Elem+"/>"))
		require.NoError(t, err)
		v, there := m.Records[0].Fields[f.Name]
		require.True(t, there, f.Name)
		require.Equal(t, sis.Value{}, v)
	}
	for _, l := range sis.ListSpecs() {
		m, err := decode(t, fltr("<"+l.Elem+"></"+l.Elem+">"))
		require.NoError(t, err)
		require.Equal(t, sis.List{Clear: true}, m.Records[0].Lists[l.Name], l.Name)
	}
}

// TestDoorsOfARecord: the one not named keeps its time; an empty PORT clears what no other sets.
func TestDoorsOfARecord(t *testing.T) {
	t.Parallel()
	opened := `<PORT><POTM>18MAR260930</POTM><POID>O</POID></PORT>`
	m, err := decode(t, fltr(opened))
	require.NoError(t, err)
	require.Contains(t, body(t, m), `"port":{"o":"2026-03-18T09:30:00+08:00"}`)
	m, err = decode(t, fltr("<PORT/>"+opened))
	require.NoError(t, err)
	require.Contains(t, body(t, m), `"port":{"o":"2026-03-18T09:30:00+08:00","c":null}`)
}
