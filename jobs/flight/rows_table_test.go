package flight_test

import (
	"fmt"
	"slices"
	"strings"
)

func allRows() []row {
	rows := slices.Concat(replaceRows(), mergeRows(), patchRows(), groupRows(), reasonRows(), numberRows())
	for _, styp := range strings.Fields("APPT BOTM CNCL EGSR EGST FINT LACL COBT CTOT EOBT TOBT IEST PEDT PADT NEAT NAAT ESTT ACTT") {
		rows = append(rows, momentRow(styp))
	}
	for _, styp := range strings.Fields("FTSS REMC RENO RUNW STND TRML") {
		rows = append(rows, textRow(styp))
	}
	for _, styp := range strings.Fields("ACFT FLTY FLIN") {
		rows = append(rows, mandatoryRow(styp))
	}
	return append(rows, row{styp: "FDEL", steps: []step{
		{"filled", `<FDEL>gone</FDEL>`, refused},
		{"filled: twice", `<FDEL/><FDEL/>`, refused},
		{"absent", ``, deleted},
		{"empty: of a flight that is gone; the sample deletes one", `<FDEL></FDEL>`, nothing},
	}})
}

// of writes the steps for the sub type: X is its element, "x" its field.
func (r row) of(styp string) row {
	into := strings.NewReplacer("<X", "<"+styp, "/X>", "/"+styp+">", `"x"`, `"`+strings.ToLower(styp)+`"`)
	r.styp = styp
	r.steps = slices.Clone(r.steps)
	for i := range r.steps {
		r.steps[i].body, r.steps[i].want = into.Replace(r.steps[i].body), into.Replace(r.steps[i].want)
	}
	return r
}

func momentRow(styp string) row {
	return row{steps: []step{
		{"absent: nothing to clear", ``, nothing},
		{"filled", `<X>@1030</X>`, `{"x":"@1030"}`},
		{"filled: with white space", "<X>\n @1031 </X>", `{"x":"@1031"}`},
		{"filled: months in any case", `<X>18Mar261032</X>`, `{"x":"@1032"}`},
		{"filled: no such day", `<X>30FEB261030</X>`, refused},
		{"filled: no such hour", `<X>18MAR262430</X>`, refused},
		{"filled: no such minute", `<X>18MAR261060</X>`, refused},
		{"filled: no date", `<X>soon</X>`, refused},
		{"filled: twice", `<X>@1030</X><X>@1030</X>`, refused},
		{"absent", ``, `{"x":null}`},
		{"filled: again", `<X>@1030</X>`, `{"x":"@1030"}`},
		{"empty", `<X></X>`, `{"x":null}`},
	}}.of(styp)
}

func textRow(styp string) row {
	return row{steps: []step{
		{"filled", `<X>203</X>`, `{"x":"203"}`},
		{"filled: as sent, however long", `<X> 机位 b203 &amp; more than any column holds </X>`, `{"x":"机位 b203 & more than any column holds"}`},
		{"filled: twice", `<X>203</X><X>203</X>`, refused},
		{"absent", ``, refused},
		{"absent: other elements are skipped", `<MAXP>7</MAXP>`, refused},
		{"empty", `<X></X>`, `{"x":null}`},
		{"filled: again", `<X>203</X>`, `{"x":"203"}`},
		{"empty: by itself", `<X/>`, `{"x":null}`},
		{"filled: beside what is skipped", `<X>208</X><MAXP>x</MAXP><ABTM/>`, `{"x":"208"}`},
		{"empty: white space", `<X> </X>`, `{"x":null}`},
	}}.of(styp)
}

func mandatoryRow(styp string) row {
	return row{steps: []step{
		{"filled", `<X>M</X>`, `{"x":"M"}`},
		{"absent", ``, refused},
		{"empty", `<X></X>`, refused},
		{"empty: by itself", `<X/>`, refused},
		{"filled: twice", `<X>M</X><X>M</X>`, refused},
	}}.of(styp)
}

// replaced is what all lists have in common that are replaced: n is the number attribute, full an entry's elements, json the same
// in JSON, and without the entry's elements with each mandatory one left out.
func replaced(styp, n, full, json string, without ...string) row {
	into := strings.NewReplacer("N=", n+"=", `"n":`, `"`+strings.ToLower(n)+`":`, "FULL", full, `"full":0`, json)
	r := row{steps: []step{
		{"empty: nothing to clear", `<X></X>`, nothing},
		{"filled", `<X N="2">FULL</X><X N="1">FULL</X>`, `{"x":[{"n":1,"full":0},{"n":2,"full":0}]}`},
		{"filled: fewer", `<X  N= " 3 " >FULL</X>`, `{"x":[{"n":3,"full":0}]}`},
		{"absent", ``, refused},
		{"filled: without a number", `<X>FULL</X>`, refused},
		{"filled: an empty number", `<X N="">FULL</X>`, refused},
		{"filled: no number", `<X N="one">FULL</X>`, refused},
		{"filled: number 0", `<X N="0">FULL</X>`, refused},
		{"filled: number 128", `<X N="128">FULL</X>`, refused},
		{"filled: one number twice", `<X N="1">FULL</X><X N="1">FULL</X>`, refused},
		{"empty: one of several", `<X N="1">FULL</X><X/>`, `{"x":null}`},
		{"filled: again", `<X N="127">FULL</X>`, `{"x":[{"n":127,"full":0}]}`},
		{"empty", `<X></X>`, `{"x":null}`},
	}}
	for i := range r.steps {
		r.steps[i].body, r.steps[i].want = into.Replace(r.steps[i].body), into.Replace(r.steps[i].want)
	}
	for _, elements := range without {
		r.steps = append(r.steps, step{"filled: something is missing", fmt.Sprintf(`<X %s="1">%s</X>`, n, elements), refused})
	}
	return r.of(styp)
}

func replaceRows() []row {
	return []row{
		replaced("ABTM", "ASNO", `<ABDG>B1</ABDG><ABOP>A</ABOP><AOTM>@1030</AOTM>`, `"abdg":"B1","abop":"A","aotm":"@1030"`,
			`<ABDG>B1</ABDG><ABOP>A</ABOP>`, `<ABDG>B1</ABDG><AOTM>@1030</AOTM>`, `<ABOP>A</ABOP><AOTM>@1030</AOTM>`, `<ABDG>B1</ABDG><ABOP>A</ABOP><AOTM>1030</AOTM>`),
		replaced("CHDT", "CHNO", `<CHUT>CH1</CHUT><CCLS>Y</CCLS><PCBT>@0935</PCBT><PCET/><CBTM>@0936</CBTM><CETM>@1105</CETM><CTYP>E</CTYP>`,
			`"chut":"CH1","ccls":"Y","pcbt":"@0935","cbtm":"@0936","cetm":"@1105","ctyp":"E"`, `<CCLS>Y</CCLS>`, `<CHUT>CH1</CHUT><PCBT>x</PCBT>`),
		replaced("CHOT", "CSNO", `<CHTM>@1030</CHTM><CHID>ON</CHID><CHST>208</CHST>`, `"chtm":"@1030","chid":"ON","chst":"208"`,
			`<CHTM>@1030</CHTM><CHID>ON</CHID>`, `<CHTM>@1030</CHTM><CHST>208</CHST>`, `<CHID>ON</CHID><CHST>208</CHST>`),
		replaced("CKDT", "CKNO", `<CHKC>K05</CHKC><CCLS>F</CCLS><PCOT>@0935</PCOT><PCCT>@1105</PCCT><COTM>@0936</COTM><CCTM></CCTM><CTYP>D</CTYP>`,
			`"chkc":"K05","ccls":"F","pcot":"@0935","pcct":"@1105","cotm":"@0936","ctyp":"D"`, `<CCLS>F</CCLS>`, `<CHKC/><CCLS>F</CCLS>`),
		replaced("CLDT", "CLNO", `<BELT>b07</BELT><BCLS>X</BCLS><PCOT>@0935</PCOT><FBAG>@1001</FBAG><LBAG>@1021</LBAG><BTYP>D</BTYP>`,
			`"belt":"b07","bcls":"X","pcot":"@0935","fbag":"@1001","lbag":"@1021","btyp":"D"`, `<BCLS>X</BCLS>`, `<BELT>b07</BELT><LBAG>18MAR26</LBAG>`),
		replaced("GTDT", "GTNO", `<GATE>G16</GATE><PGOT>@1055</PGOT><PGCT>@1130</PGCT><GOTM>@1056</GOTM><GCTM>@1131</GCTM><GTYP>D</GTYP>`,
			`"gate":"G16","pgot":"@1055","pgct":"@1130","gotm":"@1056","gctm":"@1131","gtyp":"D"`, `<GTYP>D</GTYP>`),
		replaced("PSDT", "PSNO", `<PSST>131</PSST><STST>@1000</STST><STET>@1150</STET>`, `"psst":"131","stst":"@1000","stet":"@1150"`, `<STST>@1000</STST>`).
			and(step{
				"filled: contact stands", `<PSDT PSNO="2"><PSST>209</PSST></PSDT><PSDT PSNO="1"><PSST>208</PSST></PSDT>`,
				`{"psdt":[{"psno":1,"psst":"208"},{"psno":2,"psst":"209"}],"abdg":"B7,B8,B9"}`,
			},
				step{"filled: a remote stand", `<PSDT PSNO="1"><PSST>131</PSST></PSDT>`, `{"psdt":[{"psno":1,"psst":"131"}],"abdg":null}`}),
	}
}

// and adds steps.
func (r row) and(steps ...step) row {
	r.steps = append(r.steps, steps...)
	return r
}

func mergeRows() []row {
	return []row{
		{styp: "DELY", steps: []step{
			{"filled", `<DELY CODE="WR" STRT="@1140" DURA="0145">fog</DELY>`, `{"dely":[{"code":"WR","strt":"@1140","duraMinutes":105,"text":"fog"}]}`},
			{"filled: another joins", `<DELY CODE="AT"></DELY>`, `{"dely":[{"code":"AT"},{"code":"WR","strt":"@1140","duraMinutes":105,"text":"fog"}]}`},
			{"filled: one is replaced as a whole", `<DELY CODE="WR" STRT="" DURA="0005"/>`, `{"dely":[{"code":"AT"},{"code":"WR","duraMinutes":5}]}`},
			{"absent", ``, refused},
			{"filled: STRT without CODE", `<DELY STRT="@1140"/>`, refused},
			{"filled: DURA without CODE", `<DELY CODE="" DURA="0145"/>`, refused},
			{"filled: text without CODE", `<DELY>fog</DELY>`, refused},
			{"filled: DURA of three digits", `<DELY CODE="AT" DURA="145"/>`, refused},
			{"filled: DURA no number", `<DELY CODE="AT" DURA="01h5"/>`, refused},
			{"filled: a bad STRT", `<DELY CODE="AT" STRT="1140"/>`, refused},
			{"empty: one of several", `<DELY CODE="AT"/><DELY/>`, `{"dely":null}`},
			{"filled: again", `<DELY CODE="AT"/>`, `{"dely":[{"code":"AT"}]}`},
			{"empty", `<DELY CODE="" STRT="" DURA=""></DELY>`, `{"dely":null}`},
		}},
		{styp: "SRVT", steps: []step{
			{
				"filled", `<SRVT><SRTC>GPU</SRTC><SRQT>1</SRQT><SRST>@1000</SRST><SRET>@1100</SRET><SRPR>31</SRPR><SANR>A1</SANR><SARR>late</SARR></SRVT>`,
				`{"srvt":[{"srtc":"GPU","srqt":1,"srst":"@1000","sret":"@1100","srpr":31,"sanr":"A1","sarr":"late"}]}`,
			},
			{
				"filled: another joins", `<SRVT><SRTC>BUS</SRTC><SRQT>0</SRQT><SRST/></SRVT>`,
				`{"srvt":[{"srtc":"BUS","srqt":0},{"srtc":"GPU","srqt":1,"srst":"@1000","sret":"@1100","srpr":31,"sanr":"A1","sarr":"late"}]}`,
			},
			{"filled: one is replaced as a whole", `<SRVT><SRTC>GPU</SRTC><SRQT>127</SRQT></SRVT>`, `{"srvt":[{"srtc":"BUS","srqt":0},{"srtc":"GPU","srqt":127}]}`},
			{"absent", ``, refused},
			{"filled: no SRTC", `<SRVT><SRQT>1</SRQT></SRVT>`, refused},
			{"filled: no SRQT", `<SRVT><SRTC>GPU</SRTC></SRVT>`, refused},
			{"filled: SRQT no number", `<SRVT><SRTC>GPU</SRTC><SRQT>x</SRQT></SRVT>`, refused},
			{"filled: a bad time", `<SRVT><SRTC>GPU</SRTC><SRQT>1</SRQT><SRET>x</SRET></SRVT>`, refused},
			{"empty: one of several", `<SRVT><SRTC>GPU</SRTC><SRQT>1</SRQT></SRVT><SRVT></SRVT>`, `{"srvt":null}`},
			{"filled: again", `<SRVT><SRTC>GPU</SRTC><SRQT>1</SRQT></SRVT>`, `{"srvt":[{"srtc":"GPU","srqt":1}]}`},
			{"empty", `<SRVT/>`, `{"srvt":null}`},
		}},
		{styp: "ERUT", steps: []step{
			{
				"filled", `<ERUT RTNO="2"><APCD>LXA</APCD><SCAT>@1405</SCAT></ERUT><ERUT RTNO="1"><APCD>CTU</APCD><SCDT>@1140</SCDT></ERUT>`,
				`{"erut":[{"rtno":1,"apcd":"CTU","scdt":"@1140"},{"rtno":2,"apcd":"LXA","scat":"@1405"}]}`,
			},
			{
				"filled: fewer, the rest stays", `<ERUT RTNO="10"><APCD>SHA</APCD></ERUT><ERUT RTNO="2"><APCD>KWE</APCD></ERUT>`,
				`{"erut":[{"rtno":1,"apcd":"CTU","scdt":"@1140"},{"rtno":2,"apcd":"KWE"},{"rtno":10,"apcd":"SHA"}]}`,
			},
			{"absent", ``, refused},
			{"filled: no RTNO", `<ERUT><APCD>LXA</APCD></ERUT>`, refused},
			{"filled: no APCD", `<ERUT RTNO="1"><SCAT>@1405</SCAT></ERUT>`, refused},
			{"filled: a bad time", `<ERUT RTNO="1"><APCD>LXA</APCD><SCAT>1405</SCAT></ERUT>`, refused},
			{"filled: one number twice", `<ERUT RTNO="1"><APCD>LXA</APCD></ERUT><ERUT RTNO="1"><APCD>CTU</APCD></ERUT>`, refused},
			{"empty: one of several", `<ERUT/><ERUT RTNO="1"><APCD>LXA</APCD></ERUT>`, `{"erut":null}`},
			{"filled: again", `<ERUT RTNO="1"><APCD>LXA</APCD></ERUT>`, `{"erut":[{"rtno":1,"apcd":"LXA"}]}`},
			{"empty", `<ERUT></ERUT>`, `{"erut":null}`},
		}},
		{styp: "VIPF", steps: []step{
			{"absent", ``, nothing},
			{"filled", `<VIPF><VPCD>VC2</VPCD><VFES>4</VFES></VIPF>`, `{"vipf":[{"vpcd":"VC2","vfes":4}]}`},
			{
				"filled: another joins, VIPT is not applied", `<VIPF><VPCD>VC1</VPCD><VIPT><VSCD>CAR</VSCD><VTQY>1</VTQY></VIPT></VIPF>`,
				`{"vipf":[{"vpcd":"VC1"},{"vpcd":"VC2","vfes":4}]}`,
			},
			{"filled: one is replaced", `<VIPF><VPCD>VC2</VPCD><VFES></VFES></VIPF>`, `{"vipf":[{"vpcd":"VC1"},{"vpcd":"VC2"}]}`},
			{"filled: no VPCD is skipped", `<VIPF><VFES>9</VFES></VIPF><VIPF><VPCD>VC1</VPCD><VFES>1</VFES></VIPF>`, `{"vipf":[{"vpcd":"VC1","vfes":1},{"vpcd":"VC2"}]}`},
			{"empty", `<VIPF></VIPF>`, nothing},
			{"filled: VFES no number", `<VIPF><VPCD>VC1</VPCD><VFES>many</VFES></VIPF>`, refused},
		}},
	}
}

// patchRows are about a flight with the stands 131 and 203. What is told of 208 waits for it.
func patchRows() []row {
	return []row{
		{styp: "PSHT", stands: []string{"131", "203"}, steps: []step{
			{"absent", ``, refused},
			{"empty", `<PSHT></PSHT>`, nothing},
			{"filled: a stand the flight does not have", `<PSHT PSHN="1"><PSTM>@1139</PSTM><PSID>IN</PSID><PUST>208</PUST></PSHT>`, nothing},
			{
				"filled", `<PSHT><PSTM>@1139</PSTM><PSID>OUT</PSID><PUST>203</PUST></PSHT><PSHT/>`,
				`{"psdt":[{"psno":1,"psst":"131"},{"psno":2,"psst":"203","psht":{"pstm":"@1139","psid":"OUT"}}]}`,
			},
			{
				"filled: stands not mentioned keep theirs", `<PSHT PSHN="2"><PSTM>@1140</PSTM><PUST>131</PUST></PSHT>`,
				`{"psdt":[{"psno":1,"psst":"131","psht":{"pstm":"@1140"}},{"psno":2,"psst":"203","psht":{"pstm":"@1139","psid":"OUT"}}]}`,
			},
			{
				"filled: no PSTM clears the indicator too", `<PSHT><PSTM></PSTM><PSID>IN</PSID><PUST>203</PUST></PSHT>`,
				`{"psdt":[{"psno":1,"psst":"131","psht":{"pstm":"@1140"}},{"psno":2,"psst":"203"}]}`,
			},
			{"filled: no stand", `<PSHT><PSTM>@1139</PSTM></PSHT>`, refused},
			{"filled: a bad time", `<PSHT><PSTM>1139</PSTM><PUST>203</PUST></PSHT>`, refused},
			{"filled: the last", `<PSHT><PUST>131</PUST></PSHT>`, `{"psdt":[{"psno":1,"psst":"131"},{"psno":2,"psst":"203"}]}`},
		}},
		{styp: "TIPT", stands: []string{"131", "203"}, steps: []step{
			{"absent", ``, refused},
			{"empty", `<TIPT/>`, nothing},
			{"filled: a stand the flight does not have", `<TIPT><TRTM>@1139</TRTM><TRST>208</TRST></TIPT>`, nothing},
			{
				"filled", `<TIPT/><TIPT><TRTM>@1139</TRTM><TRST>203</TRST></TIPT><TIPT><TRTM>@1140</TRTM><TRST>131</TRST></TIPT>`,
				`{"psdt":[{"psno":1,"psst":"131","tipt":{"trtm":"@1140"}},{"psno":2,"psst":"203","tipt":{"trtm":"@1139"}}]}`,
			},
			{"filled: no TRTM clears it", `<TIPT><TRTM/><TRST>203</TRST></TIPT>`, `{"psdt":[{"psno":1,"psst":"131","tipt":{"trtm":"@1140"}},{"psno":2,"psst":"203"}]}`},
			{"filled: no stand", `<TIPT><TRTM>@1139</TRTM></TIPT>`, refused},
			{"filled: a bad time", `<TIPT><TRTM>1139</TRTM><TRST>203</TRST></TIPT>`, refused},
		}},
	}
}

func numberRows() []row {
	return []row{
		{styp: "MAXP", steps: []step{
			{"filled", `<MAXP>186</MAXP>`, `{"maxp":186}`},
			{"filled: none", `<MAXP>0</MAXP>`, `{"maxp":0}`},
			{"absent", ``, refused},
			{"empty", `<MAXP/>`, refused},
			{"filled: no number", `<MAXP>many</MAXP>`, refused},
		}},
		{styp: "PORT", steps: []step{
			{"filled", `<PORT><POTM>@1055</POTM><POID>O</POID></PORT>`, `{"port":{"o":"@1055"}}`},
			{"filled: the other door", `<PORT><POTM>@1130</POTM><POID>C</POID></PORT>`, `{"port":{"o":"@1055","c":"@1130"}}`},
			{"filled: another POID", `<PORT><POTM>@1130</POTM><POID>X</POID></PORT>`, nothing},
			{"absent", ``, refused},
			{"empty", `<PORT></PORT>`, refused},
			{"filled: no POID", `<PORT><POTM>@1130</POTM></PORT>`, refused},
			{"filled: a bad time", `<PORT><POTM>1130</POTM><POID>C</POID></PORT>`, refused},
			{"filled: no POTM", `<PORT><POID>O</POID></PORT>`, `{"port":{"c":"@1130"}}`},
			{"filled: an empty POTM", `<PORT><POTM/><POID>C</POID></PORT>`, `{"port":null}`},
		}},
		{styp: "HNAG", steps: []step{
			{"filled", `<FHAG>1</FHAG><PHAG>2</PHAG><MHAG>3</MHAG>`, `{"fhag":1,"phag":2,"mhag":3}`},
			{"filled: always all three", `<FHAG>4</FHAG><PHAG></PHAG>`, `{"fhag":4,"phag":null,"mhag":null}`},
			{"filled: no number", `<FHAG>1</FHAG><PHAG>x</PHAG><MHAG>3</MHAG>`, refused},
			{"absent", ``, `{"fhag":null}`},
			{"filled: again", `<MHAG>3</MHAG>`, `{"mhag":3}`},
			{"empty", `<FHAG/><PHAG/><MHAG/>`, `{"mhag":null}`},
		}},
		{styp: "VIPP", steps: []step{
			{"filled", `<VIPP>2</VIPP><VIPR>1</VIPR>`, `{"vipp":2,"vipr":1}`},
			{"filled: each on its own", `<VIPR>3</VIPR>`, `{"vipp":null,"vipr":3}`},
			{"filled: no number", `<VIPP>two</VIPP><VIPR>3</VIPR>`, refused},
			{"absent", ``, `{"vipr":null}`},
			{"filled: again", `<VIPP>2</VIPP>`, `{"vipp":2}`},
			{"empty", `<VIPP></VIPP><VIPR></VIPR>`, `{"vipp":null}`},
		}},
	}
}

func groupRows() []row {
	return []row{
		{styp: "TAOP", steps: []step{
			{"filled", `<TAOP>CA</TAOP><TAFL>CA4906</TAFL><TAID>82600103</TAID>`, `{"taop":"CA","tafl":"CA4906","taid":82600103}`},
			{"filled: TAID is empty", `<TAOP>CA</TAOP><TAFL>CA4906</TAFL><TAID></TAID>`, `{"taop":null,"tafl":null,"taid":null}`},
			{"filled: again", `<TAOP>CA</TAOP><TAFL>CA4906</TAFL><TAID>82600103</TAID>`, `{"taop":"CA","tafl":"CA4906","taid":82600103}`},
			{"filled: no number", `<TAOP>CA</TAOP><TAFL>CA4906</TAFL><TAID>CA4906</TAID>`, refused},
			{"absent: one of them", `<TAOP>CA</TAOP><TAID>82600103</TAID>`, `{"taop":null,"tafl":null,"taid":null}`},
			{"filled: another", `<TAOP>CA</TAOP><TAFL>CA4908</TAFL><TAID>82600104</TAID>`, `{"taop":"CA","tafl":"CA4908","taid":82600104}`},
			{"absent", ``, `{"taop":null,"tafl":null,"taid":null}`},
			{"filled: the last", `<TAOP>CA</TAOP><TAFL>CA4908</TAFL><TAID>82600104</TAID>`, `{"taop":"CA","tafl":"CA4908","taid":82600104}`},
			{"empty", `<TAOP/><TAFL/><TAID/>`, `{"taop":null,"tafl":null,"taid":null}`},
		}},
		{styp: "EXSS", steps: []step{
			{"filled", `<EXSC>DLY</EXSC><EXSR>snow</EXSR>`, `{"exsc":"DLY","exsr":"snow"}`},
			{"absent", ``, refused},
			{"absent: EXSC", `<EXSR>snow</EXSR>`, refused},
			{"absent: EXSR", `<EXSC>DLY</EXSC>`, `{"exsr":null}`},
			{"filled: again", `<EXSC>DLY</EXSC><EXSR>snow</EXSR>`, `{"exsr":"snow"}`},
			{"empty: EXSR", `<EXSC>CNL</EXSC><EXSR></EXSR>`, `{"exsc":"CNL","exsr":null}`},
			{"filled: both", `<EXSC>DLY</EXSC><EXSR>snow</EXSR>`, `{"exsc":"DLY","exsr":"snow"}`},
			{"empty", `<EXSC></EXSC><EXSR>snow</EXSR>`, `{"exsc":null,"exsr":null}`},
			{"filled: there is no such element", `<EXSS>DLY</EXSS>`, refused},
		}},
	}
}

func reasonRows() []row {
	return []row{
		{styp: "FDIV", steps: []step{
			{"absent: nothing to clear", ``, nothing},
			{"filled", `<FDIV DDES="HKG" DDIR = "TO">fog</FDIV>`, `{"fdiv":{"ddes":"HKG","ddir":"TO","text":"fog"}}`},
			{"filled: no reason", `<FDIV DDES="SZX" DDIR="FROM"></FDIV>`, `{"fdiv":{"ddes":"SZX","ddir":"FROM"}}`},
			{"filled: another direction", `<FDIV DDES="HKG" DDIR="VIA">fog</FDIV>`, refused},
			{"filled: no direction", `<FDIV DDES="HKG">fog</FDIV>`, refused},
			{"empty: no airport, whatever else is there", `<FDIV DDES="" DDIR="VIA">fog</FDIV>`, `{"fdiv":null}`},
			{"filled: again", `<FDIV DDES="HKG" DDIR="TO">fog</FDIV>`, `{"fdiv":{"ddes":"HKG","ddir":"TO","text":"fog"}}`},
			{"empty: only a reason", `<FDIV>fog</FDIV>`, `{"fdiv":null}`},
			{"filled: once more", `<FDIV DDES="HKG" DDIR="TO">fog</FDIV>`, `{"fdiv":{"ddes":"HKG","ddir":"TO","text":"fog"}}`},
			{"absent", ``, `{"fdiv":null}`},
			{"filled: the last", `<FDIV DDES="HKG" DDIR="TO"/>`, `{"fdiv":{"ddes":"HKG","ddir":"TO"}}`},
			{"empty", `<FDIV></FDIV>`, `{"fdiv":null}`},
		}},
		reason("FRET", "REID", "A", "G"), reason("FLAB", "ARES", "O", "G"),
	}
}

// reason is FRET or FLAB: a reason and an attribute that says what kind of thing happened.
func reason(styp, attr, one, other string) row {
	r := row{steps: []step{
		{"absent: nothing to clear", ``, nothing},
		{"filled", `<X AT="1">bird</X>`, `{"x":{"at":"1","text":"bird"}}`},
		{"filled: no text clears the reason", `<X AT="2"/>`, `{"x":{"at":"2"}}`},
		{"filled: text alone", `<X>bird</X>`, refused},
		{"filled: text and an empty attribute", `<X AT="">bird</X>`, refused},
		{"filled: another kind", `<X AT="Q">bird</X>`, refused},
		{"absent", ``, `{"x":null}`},
		{"filled: again", `<X AT="1">bird</X>`, `{"x":{"at":"1","text":"bird"}}`},
		{"empty", `<X AT=""></X>`, `{"x":null}`},
	}}
	into := strings.NewReplacer("AT=", attr+"=", `"at"`, `"`+strings.ToLower(attr)+`"`, `"1"`, `"`+one+`"`, `"2"`, `"`+other+`"`)
	for i := range r.steps {
		r.steps[i].body, r.steps[i].want = into.Replace(r.steps[i].body), into.Replace(r.steps[i].want)
	}
	return r.of(styp)
}

// scheduleSteps are about a flight that has what every record has.
func scheduleSteps() []step {
	steps := []step{
		{"no change", `<FLTR>BASE</FLTR>`, nothing},
		{"no RECS", `<FLTR>BASE</FLTR><RECS></RECS>`, refused},
		{
			"filled sets", `<FLTR>BASE<STND>131</STND><MAXP>0</MAXP><LBWT>12.50</LBWT><ESTT>@1150</ESTT><FDIV DDES="HKG" DDIR="TO">fog</FDIV></FLTR>`,
			`{"stnd":"131","maxp":0,"lbwt":12.50,"estt":"@1150","fdiv":{"ddes":"HKG","ddir":"TO","text":"fog"}}`,
		},
		{"absent keeps", `<FLTR>BASE</FLTR>`, nothing},
		{"only what differs", `<FLTR>BASE<STND>131</STND><MAXP>120</MAXP></FLTR>`, `{"maxp":120}`},
		{
			"lists", `<FLTR>BASE<ROUT RTNO="1"><APCD>LXA</APCD></ROUT><DELY CODE="AT"/><DELY CODE="WR"/><VIPF><VPCD>V1</VPCD><VIPT><VSCD>CAR</VSCD></VIPT></VIPF></FLTR>`,
			`{"rout":[{"rtno":1,"apcd":"LXA"}],"dely":[{"code":"AT"},{"code":"WR"}],"vipf":[{"vpcd":"V1","vipt":[{"vscd":"CAR"}]}]}`,
		},
		{"a list replaces, also one that a FLOP merges", `<FLTR>BASE<DELY CODE="WR"/></FLTR>`, `{"dely":[{"code":"WR"}]}`},
		{
			"both doors", `<FLTR>BASE<PORT><POTM>@1055</POTM><POID>O</POID></PORT><PORT><POTM>@1130</POTM><POID>C</POID></PORT></FLTR>`,
			`{"port":{"o":"@1055","c":"@1130"}}`,
		},
		{
			"a stand with its tractor", `<FLTR>BASE<PSDT PSNO="1"><PSST>203</PSST></PSDT><TIPT><TRTM>@1125</TRTM><TRST>203</TRST></TIPT></FLTR>`,
			`{"psdt":[{"psno":1,"psst":"203","tipt":{"trtm":"@1125"}}],"abdg":"B1"}`,
		},
		{"what the dictionary does not know", `<FLTR>BASE<NEWS KIND="1">x</NEWS><MORE>y</MORE></FLTR>`, `{"ext":{"news":{"kind":"1","text":"x"},"more":"y"}}`},
		{"and no more, for an empty attribute is none", `<FLTR>BASE<NEWS KIND=""/></FLTR>`, `{"ext":{"news":null}}`},
		{
			"empty clears", `<FLTR>BASE<STND></STND><MAXP/><LBWT/><ESTT/><FDIV/><ROUT/><DELY/><VIPF/><PORT/><PSDT/></FLTR>`,
			`{"stnd":null,"maxp":null,"lbwt":null,"estt":null,"fdiv":null,"rout":null,"dely":null,"vipf":null,"port":null,"psdt":null,"abdg":null}`,
		},
		{"another time of the same day", `<FLTR>` + strings.ReplaceAll(mandatory("", ""), "@1140", "@2355") + `</FLTR>`, `{"sodt":"@2355"}`},
		{"and back", `<FLTR>BASE</FLTR>`, `{"sodt":"@1140"}`},
		{"another day", `<FLTR>` + strings.ReplaceAll(mandatory("", ""), "@1140", "19MAR260010") + `</FLTR>`, refused},
		{"RECS too few", `<RECS>0</RECS><FLTR>BASE</FLTR>`, refused},
		{"RECS too many", `<RECS>2</RECS><FLTR>BASE</FLTR>`, refused},
		{"RECS no number", `<RECS>one</RECS><FLTR>BASE</FLTR>`, refused},
		{"a FLID twice", `<FLTR>BASE</FLTR><FLTR>BASE</FLTR>`, refused},
		{"a bad entry", `<FLTR>BASE<GTDT GTNO="1"><GTYP>D</GTYP></GTDT></FLTR>`, refused},
		{"a bad date", `<FLTR>BASE<STND>131</STND><ESTT>31APR261150</ESTT></FLTR>`, refused},
		{"a bad number", `<FLTR>BASE<TAID>CA4906</TAID></FLTR>`, refused},
		{"a FLID that is no number", `<FLTR>` + strings.ReplaceAll(mandatory("", ""), "<FLID>7", "<FLID>seven") + `</FLTR>`, refused},
	}
	for _, name := range strings.Fields("FLID ALCD FLNO MVIN SODT FLTY FLIN ACFT") {
		steps = append(steps, step{name + " missing", `<FLTR>` + mandatory(name, "") + `</FLTR>`, refused},
			step{name + " empty", `<FLTR>` + mandatory(name, "<"+name+"/>") + `</FLTR>`, refused})
	}
	return steps
}

// mandatory is what every record has, with one element replaced.
func mandatory(name, by string) string {
	record := ""
	for _, e := range [][2]string{{"FLID", "7"}, {"ALCD", "CA"}, {"FLNO", "CA4907"}, {"MVIN", "D"}, {"SODT", "@1140"}, {"FLTY", "J"}, {"FLIN", "D"}, {"ACFT", "320"}} {
		if e[0] == name {
			record += by
		} else {
			record += "<" + e[0] + ">" + e[1] + "</" + e[0] + ">"
		}
	}
	return record
}
