package sis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/sis"
)

const (
	goodMeta = `<META><SNDR>AODB</SNDR><SEQN>410001</SEQN><DTTM>20260318083015</DTTM><TYPE>FLOP</TYPE><STYP>STND</STYP></META>`
	goodBody = `<FLOP><FLID>15</FLID><STND>208</STND></FLOP>`
)

// msg is a message around what stands inside its root.
func msg(inside string) string { return "<MSG>" + inside + "</MSG>" }

// meta is META of a kind.
func meta(kind string) string {
	typ, styp, _ := strings.Cut(kind, "-")
	return strings.NewReplacer("FLOP", typ, ">STND", ">"+styp).Replace(goodMeta)
}

func decode(t testing.TB, text string) (sis.Message, error) {
	t.Helper()
	return sis.Decode([]byte(text), sis.Options{Zone: shanghai(t), Ignore: siteRules()})
}

// requireFault holds err to its class and path.
func requireFault(t *testing.T, err error, class fault.Class, path string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, class, fault.Of(err), "%v", err)
	var fe *fault.Error
	require.ErrorAs(t, err, &fe)
	require.Equal(t, "decode", fe.Op)
	if path != "" {
		require.Equal(t, path, fe.Path, "%v", err)
	}
}

// TestDispatch: each row of the dictionary's section 4 that needs no state, in its situations. Rows 6, 10 and 11 are those of
// workers/head and jobs/flight.
func TestDispatch(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("<a>", n-1) + strings.Repeat("</a>", n-1) }
	for _, c := range []struct {
		row        int
		name, text string
		class      fault.Class // "" = read, or ignored
		hasMeta    bool        // the identity counts
	}{
		// 1: not a message at all
		{1, "nothing", "", fault.Malformed, false},
		{1, "blank", " \r\n\t", fault.Malformed, false},
		{1, "only U+FEFF", "\uFEFF", fault.Malformed, false},
		{1, "NUL", msg(goodMeta+goodBody) + "\x00", fault.Malformed, false},
		{1, "control character", msg(goodMeta + "<FLOP><FLID>15</FLID><STND>\x1b</STND></FLOP>"), fault.Malformed, false},
		{1, "U+FFFE", msg(goodMeta + goodBody + "\uFFFE"), fault.Malformed, false},
		{1, "not UTF-8", msg(goodMeta + goodBody + "\xd0\xd0"), fault.Malformed, false},
		{1, "surrogate half by number", msg(goodMeta + `<FLOP><FLID>15</FLID><STND>&#xD800;</STND></FLOP>`), fault.Malformed, false},
		{1, "surrogate half by number beside U+FFFD", msg(goodMeta + `<FLOP><FLID>15</FLID><STND>�&#56320;</STND></FLOP>`), fault.Malformed, false},
		{1, "surrogate half in an attribute", msg(goodMeta + `<FLOP><FLID>15</FLID><STND a="�&#x00DFFF;">1</STND></FLOP>`), fault.Malformed, false},
		{1, "NUL by number", msg(goodMeta + `<FLOP><FLID>15</FLID><STND>&#0;</STND></FLOP>`), fault.Malformed, false},
		{1, "plain text", "hello", fault.Malformed, false},
		{1, "JSON", `{"MSG":1}`, fault.Malformed, false},
		{1, "only a declaration", `<?xml version="1.0"?>`, fault.Malformed, false},
		{1, "truncated", "<MSG>" + goodMeta + goodBody, fault.Malformed, false},
		{1, "end tag of another", "<MSG>" + goodMeta + "<FLOP></MSG></FLOP>", fault.Malformed, false},
		{1, "case of end tag", "<MSG>" + goodMeta + goodBody + "</msg>", fault.Malformed, false},
		{1, "attribute without quotes", "<MSG a=1>" + goodMeta + goodBody + "</MSG>", fault.Malformed, false},
		{1, "attribute twice", `<MSG a="1" a="2">` + goodMeta + goodBody + "</MSG>", fault.Malformed, false},
		{1, "attributes joined", `<MSG a="1"b="2">` + goodMeta + goodBody + "</MSG>", fault.Malformed, false},
		{1, "less-than in attribute", `<MSG a="<">` + goodMeta + goodBody + "</MSG>", fault.Malformed, false},
		{1, "bare ampersand", msg(goodMeta + "<FLOP><FLID>15</FLID><STND>A & B</STND></FLOP>"), fault.Malformed, false},
		{1, "]]> in text", msg(goodMeta + "<FLOP>]]></FLOP>"), fault.Malformed, false},
		{1, "-- in comment", msg(goodMeta + goodBody + "<!-- a -- b -->"), fault.Malformed, false},
		{1, "DOCTYPE", "<!DOCTYPE MSG>" + msg(goodMeta+goodBody), fault.Malformed, false},
		{1, "DOCTYPE with entity", `<!DOCTYPE MSG [<!ENTITY x SYSTEM "file:///etc/passwd">]>` + msg(goodMeta+"<FLOP><FLID>15</FLID><STND>&x;</STND></FLOP>"), fault.Malformed, false},
		{1, "DOCTYPE after the root", msg(goodMeta+goodBody) + "<!DOCTYPE MSG>", fault.Malformed, false},
		{1, "unknown entity", msg(goodMeta + "<FLOP><FLID>15</FLID><STND>&nbsp;</STND></FLOP>"), fault.Malformed, false},
		{1, "another root", "<MESSAGE>" + goodMeta + goodBody + "</MESSAGE>", fault.Malformed, false},
		{1, "root in lower case", "<msg>" + goodMeta + goodBody + "</msg>", fault.Malformed, false},
		{1, "root with a prefix", `<x:MSG xmlns:x="u">` + goodMeta + goodBody + "</x:MSG>", fault.Malformed, false},
		{1, "text before the root", "x" + msg(goodMeta+goodBody), fault.Malformed, false},
		{1, "declaration in the middle", msg(goodMeta + `<?xml version="1.0"?>` + goodBody), fault.Malformed, false},
		{1, "100 levels", msg(goodMeta + goodBody + deep(100)), "", true},
		{1, "101 levels", msg(goodMeta + goodBody + deep(101)), fault.Malformed, false},
		// 2: tolerated after the root
		{2, "leading U+FEFF", "\uFEFF" + `<?xml version="1.0" encoding="x-unheard-of"?>` + msg(goodMeta+goodBody), "", true},
		{2, "stray end tag", msg(goodMeta+goodBody) + "\n</MSG>\n", "", true},
		{2, "comments and instructions", msg(goodMeta+goodBody) + "<!-- c --><?pi x?>\r\n\t", "", true},
		// 3: not tolerated after the root
		{3, "text after the root", msg(goodMeta+goodBody) + "x", fault.Malformed, false},
		{3, "CDATA after the root", msg(goodMeta+goodBody) + "<![CDATA[ ]]>", fault.Malformed, false},
		{3, "reference after the root", msg(goodMeta+goodBody) + "&#32;", fault.Malformed, false},
		{3, "second root", msg(goodMeta+goodBody) + msg(goodMeta+goodBody), fault.Malformed, false},
		{3, "empty element after the root", msg(goodMeta+goodBody) + "<x/>", fault.Malformed, false},
		{3, "another stray end tag", msg(goodMeta+goodBody) + "</FLOP>", fault.Malformed, false},
		// 4: META
		{4, "no META", msg(goodBody), fault.Malformed, false},
		{4, "META in lower case", msg(strings.ToLower(goodMeta) + goodBody), fault.Malformed, false},
		{4, "META inside the body", msg("<FLOP>" + goodMeta + "</FLOP>"), fault.Malformed, false},
		{4, "META twice", msg(goodMeta + goodBody + goodMeta), fault.Malformed, false},
		{4, "META of an ignored kind twice", msg(meta("LDM-NONE") + goodMeta), fault.Malformed, false},
		{4, "SNDR missing", msg(strings.Replace(goodMeta, "<SNDR>AODB</SNDR>", "", 1) + goodBody), fault.Malformed, false},
		{4, "SEQN twice", msg(strings.Replace(goodMeta, "<SEQN>", "<SEQN>1</SEQN><SEQN>", 1) + goodBody), fault.Malformed, false},
		{4, "STYP empty", msg(strings.Replace(goodMeta, "STND", " ", 1) + goodBody), fault.Malformed, false},
		{4, "SEQN with a sign", msg(strings.Replace(goodMeta, "410001", "+41001", 1) + goodBody), fault.Malformed, false},
		{4, "SEQN with a letter", msg(strings.Replace(goodMeta, "410001", "41000l", 1) + goodBody), fault.Malformed, false},
		{4, "SEQN beyond all counters", msg(strings.Replace(goodMeta, "410001", strings.Repeat("9", 20), 1) + goodBody), fault.Malformed, false},
		{4, "DTTM on no day", msg(strings.Replace(goodMeta, "20260318083015", "20260229083015", 1) + goodBody), fault.Malformed, false},
		{4, "DTTM at no time", msg(strings.Replace(goodMeta, "20260318083015", "20260318240000", 1) + goodBody), fault.Malformed, false},
		{4, "DTTM in another form", msg(strings.Replace(goodMeta, "20260318083015", "18MAR260830", 1) + goodBody), fault.Malformed, false},
		{4, "SNDR beyond all names", msg(strings.Replace(goodMeta, "AODB", strings.Repeat("A", 300), 1) + goodBody), fault.Malformed, false},
		{4, "unknown element in META", msg(strings.Replace(goodMeta, "<SEQN>", "<X><SEQN>1</SEQN></X><SEQN>", 1) + goodBody), "", true},
		// 5: ignored whatever the body is, but well-formed
		{5, "ignored", msg(meta("LDM-NONE") + "<anything/>"), "", true},
		{5, "ignored and truncated", "<MSG>" + meta("LDM-NONE"), fault.Malformed, false},
		{5, "a reference type that is ignored", msg(meta("REGN-DNLD")), "", true},
		// 7: not in the catalogue
		{7, "unknown family", msg(meta("ERROR-NONE") + goodBody), fault.Unsupported, true},
		{7, "unknown sub type", msg(meta("FLOP-XXXX") + "<FLOP/>"), fault.Unsupported, true},
		{7, "deletion of a schedule", msg(meta("SCHD-DEL") + "<SCHD/>"), fault.Unsupported, true},
		{7, "season", msg(meta("SCHS-DNLD") + "<SCHS/>"), fault.Unsupported, true},
		{7, "unknown and without a body", msg(meta("FLOP-XXXX")), fault.Unsupported, true},
		{7, "unknown and truncated", "<MSG>" + meta("FLOP-XXXX"), fault.Malformed, false},
		// 8: no body
		{8, "no FLOP", msg(goodMeta), fault.Malformed, true},
		{8, "SCHD in a FLOP", msg(goodMeta + "<SCHD><RECS>0</RECS></SCHD>"), fault.Malformed, true},
		{8, "no SCHD", msg(meta("SCHD-DNLD") + goodBody), fault.Malformed, true},
		{8, "no record of a list", msg(meta("STTS-DNLD") + "<RECS>3</RECS>"), fault.Malformed, true},
		{8, "FLOP too deep", msg(goodMeta + "<X>" + goodBody + "</X>"), fault.Malformed, true},
		// 9: content
		{9, "content", msg(goodMeta + "<FLOP><STND>208</STND></FLOP>"), fault.Protocol, true},
		{9, "content of a list", msg(meta("STTS-ADD") + "<STTS><STTC>A</STTC></STTS><STTS><STTC>A</STTC></STTS>"), fault.Protocol, true},
		{9, "content, then not well-formed", "<MSG>" + goodMeta + "<FLOP><STND>208</STND></FLOP><x>", fault.Malformed, false},
		// 12: otherwise
		{12, "operation", msg(goodMeta + goodBody), "", true},
		{12, "schedule without flights", msg(meta("SCHD-DNLD") + "<SCHD><RECS>0</RECS></SCHD>"), "", true},
		{12, "answer, open or not", msg(meta("SCHD-RESP") + "<SCHD/>"), "", true},
		{12, "list", msg(meta("STTS-DEL") + "<STTS><STTC>A</STTC></STTS>"), "", true},
		{12, "what would be a surrogate half, in CDATA and in a comment", msg(goodMeta + `<FLOP><FLID>15</FLID><STND><!--&#xD800;--><![CDATA[&#xD800;]]>&#xD7FF;</STND></FLOP>`), "", true},
		{12, "kind in lower case", msg(meta("flop-stnd") + goodBody), "", true},
	} {
		t.Run(fmt.Sprintf("#%d %s", c.row, c.name), func(t *testing.T) {
			t.Parallel()
			m, err := decode(t, c.text)
			require.Equal(t, c.class, fault.Of(err), "%v", err)
			require.Equal(t, c.hasMeta, m.Meta.TYPE != "")
			require.Equal(t, c.hasMeta, m.Hash != [32]byte{})
			if err != nil {
				requireFault(t, err, c.class, "")
				require.Nil(t, m.Records)
			}
			if wellFormed := sis.WellFormed([]byte(c.text)); err == nil || c.hasMeta {
				require.NoError(t, wellFormed)
			} else if wellFormed != nil {
				requireFault(t, wellFormed, fault.Malformed, "")
			}
		})
	}
}

func TestWellFormedDoesNotLookAtMeta(t *testing.T) {
	t.Parallel()
	require.NoError(t, sis.WellFormed([]byte(msg(""))))
	require.NoError(t, sis.WellFormed([]byte(msg("<META/><META/>")+"</MSG>")))
	requireFault(t, sis.WellFormed([]byte("<!DOCTYPE MSG>"+msg(""))), fault.Malformed, "")
	requireFault(t, sis.WellFormed([]byte("<LDM/>")), fault.Malformed, "")
}

func TestMetaIsTrimmedAndUpperCase(t *testing.T) {
	t.Parallel()
	m, err := decode(t, msg(`<META><SNDR> aodb </SNDR><SEQN> 000777 </SEQN><DTTM>
20260318083015</DTTM><TYPE>flop</TYPE><STYP>Stnd</STYP></META>`+goodBody))
	require.NoError(t, err)
	require.Equal(t, "AODB|FLOP|STND|777", m.Meta.IdentityKey())
	require.Equal(t, "aodb", m.Meta.SNDR)
	require.Equal(t, "2026-03-18T08:30:15+08:00", m.Meta.DTTM.Format("2006-01-02T15:04:05Z07:00"))
}

func TestIgnoredNamesTheRule(t *testing.T) {
	t.Parallel()
	m, err := decode(t, msg(meta("regn-dnld")))
	require.NoError(t, err)
	require.Equal(t, "REGN-*", m.Ignored)
	require.Nil(t, m.Spec)
}

// TestHashIsOfEverythingButMeta: a counter that restarted and a repeated message are told apart by it (K26).
func TestHashIsOfEverythingButMeta(t *testing.T) {
	t.Parallel()
	hash := func(text string) [32]byte {
		m, err := decode(t, text)
		require.NoError(t, err)
		return m.Hash
	}
	first := hash(msg(goodMeta + goodBody))
	require.Equal(t, first, hash(msg(strings.Replace(goodMeta, "410001", "410002", 1)+goodBody)))
	require.Equal(t, first, hash("\uFEFF<?xml version='1.0'?>\n"+msg(goodBody+goodMeta)+"\n</MSG>"))
	require.NotEqual(t, first, hash(msg(goodMeta+strings.Replace(goodBody, "208", "209", 1))))
}

// TestErrorsStayShort: an error is stored, and text of the message may be huge.
func TestErrorsStayShort(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("名", 100_000)
	for _, text := range []string{
		msg(goodMeta + "<FLOP><FLID>" + huge + "</FLID></FLOP>"),
		"<MSG><" + huge + ">",
		"<MSG><" + huge + "><b></MSG>",
		"<MSG>" + strings.Repeat("<"+huge+">", 20) + "<b></MSG>",
		msg(meta("SLST-ADD") + "<SLST><SCOD>" + huge + "</SCOD><MABS>" + huge + "</MABS></SLST>"),
		msg(strings.Replace(goodMeta, "STND", strings.Repeat("X", 250), 1)),
		msg(strings.Replace(goodMeta, "STND", huge, 1)),
		"<MSG>" + goodMeta + "<FLOP>&" + huge + ";</FLOP></MSG>",
		msg(meta("SCHD-DNLD") + "<SCHD><RECS>" + huge + "</RECS></SCHD>"),
	} {
		_, err := decode(t, text)
		var fe *fault.Error
		require.ErrorAs(t, err, &fe)
		require.Less(t, len(fe.Error()), 500)
	}
}

// What is missing is told with the line where it is certain, that of the root's end.
func TestWhatIsMissingHasALine(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"META":               "<MSG>\n" + goodBody + "\n</MSG>\n\n",
		"META before":        "<MSG>\n\n</MSG>\n\n",
		"a body":             "<MSG>\n" + goodMeta + "\n</MSG>\n\n",
		"a list":             "<MSG>\n" + meta("STTS-DNLD") + "\n</MSG>\n\n",
		"the keys of a list": "<MSG>\n" + meta("STTS-DNLD") + "<STTS/>\n</MSG>\n\n",
	} {
		_, err := decode(t, text)
		var fe *fault.Error
		require.ErrorAs(t, err, &fe, name)
		require.Equal(t, 3, fe.Line, "%s: %v", name, err)
	}
}
