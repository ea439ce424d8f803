package sis_test

import (
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

func TestDispatch(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("<a>", n-1) + strings.Repeat("</a>", n-1) }
	for _, c := range []struct {
		name, text string
		class      fault.Class // "" = read, or ignored
		hasMeta    bool        // the identity counts
	}{
		// 1: not a message at all
		{"nothing", "", fault.Malformed, false},
		{"blank", " \r\n\t", fault.Malformed, false},
		{"only U+FEFF", "\uFEFF", fault.Malformed, false},
		{"NUL", msg(goodMeta+goodBody) + "\x00", fault.Malformed, false},
		{"control character", msg(goodMeta + "<FLOP><FLID>15</FLID><STND>\x1b</STND></FLOP>"), fault.Malformed, false},
		{"U+FFFE", msg(goodMeta + goodBody + "\uFFFE"), fault.Malformed, false},
		{"not UTF-8", msg(goodMeta + goodBody + "\xd0\xd0"), fault.Malformed, false},
		{"surrogate half by number", msg(goodMeta + `<FLOP><FLID>15</FLID><STND>&#xD800;</STND></FLOP>`), fault.Malformed, false},
		{"NUL by number", msg(goodMeta + `<FLOP><FLID>15</FLID><STND>&#0;</STND></FLOP>`), fault.Malformed, false},
		{"plain text", "hello", fault.Malformed, false},
		{"JSON", `{"MSG":1}`, fault.Malformed, false},
		{"only a declaration", `<?xml version="1.0"?>`, fault.Malformed, false},
		{"truncated", "<MSG>" + goodMeta + goodBody, fault.Malformed, false},
		{"end tag of another", "<MSG>" + goodMeta + "<FLOP></MSG></FLOP>", fault.Malformed, false},
		{"case of end tag", "<MSG>" + goodMeta + goodBody + "</msg>", fault.Malformed, false},
		{"attribute without quotes", "<MSG a=1>" + goodMeta + goodBody + "</MSG>", fault.Malformed, false},
		{"attribute twice", `<MSG a="1" a="2">` + goodMeta + goodBody + "</MSG>", fault.Malformed, false},
		{"attributes joined", `<MSG a="1"b="2">` + goodMeta + goodBody + "</MSG>", fault.Malformed, false},
		{"less-than in attribute", `<MSG a="<">` + goodMeta + goodBody + "</MSG>", fault.Malformed, false},
		{"bare ampersand", msg(goodMeta + "<FLOP><FLID>15</FLID><STND>A & B</STND></FLOP>"), fault.Malformed, false},
		{"]]> in text", msg(goodMeta + "<FLOP>]]></FLOP>"), fault.Malformed, false},
		{"-- in comment", msg(goodMeta + goodBody + "<!-- a -- b -->"), fault.Malformed, false},
		{"DOCTYPE", "<!DOCTYPE MSG>" + msg(goodMeta+goodBody), fault.Malformed, false},
		{"DOCTYPE with entity", `<!DOCTYPE MSG [<!ENTITY x SYSTEM "file:///etc/passwd">]>` + msg(goodMeta+"<FLOP><FLID>15</FLID><STND>&x;</STND></FLOP>"), fault.Malformed, false},
		{"DOCTYPE after the root", msg(goodMeta+goodBody) + "<!DOCTYPE MSG>", fault.Malformed, false},
		{"unknown entity", msg(goodMeta + "<FLOP><FLID>15</FLID><STND>&nbsp;</STND></FLOP>"), fault.Malformed, false},
		{"another root", "<MESSAGE>" + goodMeta + goodBody + "</MESSAGE>", fault.Malformed, false},
		{"root in lower case", "<msg>" + goodMeta + goodBody + "</msg>", fault.Malformed, false},
		{"root with a prefix", `<x:MSG xmlns:x="u">` + goodMeta + goodBody + "</x:MSG>", fault.Malformed, false},
		{"text before the root", "x" + msg(goodMeta+goodBody), fault.Malformed, false},
		{"declaration in the middle", msg(goodMeta + `<?xml version="1.0"?>` + goodBody), fault.Malformed, false},
		{"100 levels", msg(goodMeta + goodBody + deep(100)), "", true},
		{"101 levels", msg(goodMeta + goodBody + deep(101)), fault.Malformed, false},
		// 2: tolerated after the root
		{"leading U+FEFF", "\uFEFF" + `<?xml version="1.0" encoding="x-unheard-of"?>` + msg(goodMeta+goodBody), "", true},
		{"stray end tag", msg(goodMeta+goodBody) + "\n</MSG>\n", "", true},
		{"comments and instructions", msg(goodMeta+goodBody) + "<!-- c --><?pi x?>\r\n\t", "", true},
		// 3: not tolerated after the root
		{"text after the root", msg(goodMeta+goodBody) + "x", fault.Malformed, false},
		{"CDATA after the root", msg(goodMeta+goodBody) + "<![CDATA[ ]]>", fault.Malformed, false},
		{"reference after the root", msg(goodMeta+goodBody) + "&#32;", fault.Malformed, false},
		{"second root", msg(goodMeta+goodBody) + msg(goodMeta+goodBody), fault.Malformed, false},
		{"empty element after the root", msg(goodMeta+goodBody) + "<x/>", fault.Malformed, false},
		{"another stray end tag", msg(goodMeta+goodBody) + "</FLOP>", fault.Malformed, false},
		// 4: META
		{"no META", msg(goodBody), fault.Malformed, false},
		{"META in lower case", msg(strings.ToLower(goodMeta) + goodBody), fault.Malformed, false},
		{"META inside the body", msg("<FLOP>" + goodMeta + "</FLOP>"), fault.Malformed, false},
		{"META twice", msg(goodMeta + goodBody + goodMeta), fault.Malformed, false},
		{"META of an ignored kind twice", msg(meta("LDM-NONE") + goodMeta), fault.Malformed, false},
		{"SNDR missing", msg(strings.Replace(goodMeta, "<SNDR>AODB</SNDR>", "", 1) + goodBody), fault.Malformed, false},
		{"SEQN twice", msg(strings.Replace(goodMeta, "<SEQN>", "<SEQN>1</SEQN><SEQN>", 1) + goodBody), fault.Malformed, false},
		{"STYP empty", msg(strings.Replace(goodMeta, "STND", " ", 1) + goodBody), fault.Malformed, false},
		{"SEQN with a sign", msg(strings.Replace(goodMeta, "410001", "+41001", 1) + goodBody), fault.Malformed, false},
		{"SEQN with a letter", msg(strings.Replace(goodMeta, "410001", "41000l", 1) + goodBody), fault.Malformed, false},
		{"SEQN beyond all counters", msg(strings.Replace(goodMeta, "410001", strings.Repeat("9", 20), 1) + goodBody), fault.Malformed, false},
		{"DTTM on no day", msg(strings.Replace(goodMeta, "20260318083015", "20260229083015", 1) + goodBody), fault.Malformed, false},
		{"DTTM at no time", msg(strings.Replace(goodMeta, "20260318083015", "20260318240000", 1) + goodBody), fault.Malformed, false},
		{"DTTM in another form", msg(strings.Replace(goodMeta, "20260318083015", "18MAR260830", 1) + goodBody), fault.Malformed, false},
		{"SNDR beyond all names", msg(strings.Replace(goodMeta, "AODB", strings.Repeat("A", 300), 1) + goodBody), fault.Malformed, false},
		{"unknown element in META", msg(strings.Replace(goodMeta, "<SEQN>", "<X><SEQN>1</SEQN></X><SEQN>", 1) + goodBody), "", true},
		// 5: ignored whatever the body is, but well-formed
		{"ignored", msg(meta("LDM-NONE") + "<anything/>"), "", true},
		{"ignored and truncated", "<MSG>" + meta("LDM-NONE"), fault.Malformed, false},
		{"a reference type that is ignored", msg(meta("REGN-DNLD")), "", true},
		// 7: not in the catalogue
		{"unknown family", msg(meta("ERROR-NONE") + goodBody), fault.Unsupported, true},
		{"unknown sub type", msg(meta("FLOP-XXXX") + "<FLOP/>"), fault.Unsupported, true},
		{"deletion of a schedule", msg(meta("SCHD-DEL") + "<SCHD/>"), fault.Unsupported, true},
		{"season", msg(meta("SCHS-DNLD") + "<SCHS/>"), fault.Unsupported, true},
		{"unknown and without a body", msg(meta("FLOP-XXXX")), fault.Unsupported, true},
		{"unknown and truncated", "<MSG>" + meta("FLOP-XXXX"), fault.Malformed, false},
		// 8: no body
		{"no FLOP", msg(goodMeta), fault.Malformed, true},
		{"SCHD in a FLOP", msg(goodMeta + "<SCHD><RECS>0</RECS></SCHD>"), fault.Malformed, true},
		{"no SCHD", msg(meta("SCHD-DNLD") + goodBody), fault.Malformed, true},
		{"FLOP too deep", msg(goodMeta + "<X>" + goodBody + "</X>"), fault.Malformed, true},
		// 9: content
		{"content", msg(goodMeta + "<FLOP><STND>208</STND></FLOP>"), fault.Protocol, true},
		{"content, then not well-formed", "<MSG>" + goodMeta + "<FLOP><STND>208</STND></FLOP><x>", fault.Malformed, false},
	} {
		t.Run(c.name, func(t *testing.T) {
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
		"<MSG>" + goodMeta + "<FLOP>&" + huge + ";</FLOP></MSG>",
		msg(meta("SCHD-DNLD") + "<SCHD><RECS>" + huge + "</RECS></SCHD>"),
	} {
		_, err := decode(t, text)
		var fe *fault.Error
		require.ErrorAs(t, err, &fe)
		require.Less(t, len(fe.Err.Error()), 500)
	}
	_, err := decode(t, "<MSG>"+"<"+huge+"><b></MSG>")
	require.Less(t, len(fault.Text(err)), 2001)
	require.NotErrorIs(t, err, sis.ErrCharset)
}
