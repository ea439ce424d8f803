package sis_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/sis"
)

// The corpus is the golden messages, the seeds below, and under testdata/fuzz whatever fuzzing has found.

// goldenTexts are the messages of the golden tests.
func goldenTexts(tb testing.TB) [][]byte {
	tb.Helper()
	names, err := filepath.Glob("testdata/*/*/in.xml")
	require.NoError(tb, err)
	require.NotEmpty(tb, names)
	var texts [][]byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(tb, err)
		texts = append(texts, text)
	}
	return texts
}

// requireSound holds whatever decoding a text gives to what Decode promises.
func requireSound(t *testing.T, text []byte) {
	t.Helper()
	zone := shanghai(t)
	m, err := sis.Decode(text, sis.Options{Zone: zone, Ignore: siteRules()})
	if err != nil {
		require.Contains(t, []fault.Class{fault.Malformed, fault.Protocol, fault.Unsupported}, fault.Of(err))
		require.Less(t, len(err.Error()), 2000)
		require.Nil(t, m.Records)
		require.Nil(t, m.Reference)
	}
	require.True(t, json.Valid(sis.RenderDecoded(m, err, zone)))
	if err != nil || m.Ignored != "" {
		return
	}
	require.NoError(t, sis.WellFormed(text))
	again, err := sis.Decode(sis.Encode(m, zone), sis.Options{Zone: zone})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(said(m), said(again)))
}

// FuzzDecode: no text panics, every error has a class of the dictionary and is short, and what was read is written and
// read the same.
func FuzzDecode(f *testing.F) {
	for _, text := range goldenTexts(f) {
		f.Add(text)
	}
	for _, seed := range []string{
		msg(goodMeta + goodBody), fltr(`<PSDT PSNO="1"><PSST>208</PSST></PSDT><NEW A="1" C="">x<B/></NEW><MORE A=""/><MUCH A="1"><TEXT/></MUCH>`), msg(meta("LDM-NONE")),
		msg(meta("FLOP-DELY") + `<FLOP><FLID>1</FLID><DELY CODE="A" DURA="9999">x</DELY><DELY/></FLOP>`), schd("<RECS>0</RECS>"),
		msg(meta("FLOP-PORT") + `<FLOP><FLID>1</FLID><PORT><POID>O</POID></PORT></FLOP>`), "<MSG>&#xD800;</MSG>", "<![CDATA[]]>", "<!DOCTYPE x>",
		"<?xml version='1.0' encoding='GBK'?>" + msg(goodMeta+goodBody) + "</MSG>", list("ABDG-DEL", "<ABDG><ABCD>1</ABCD></ABDG><ABDG/>"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(requireSound)
}

// FuzzPlain: what the scanner reads by itself is to the byte what encoding/xml makes of it, and it is wrong with the same words.
func FuzzPlain(f *testing.F) {
	for _, text := range goldenTexts(f) {
		f.Add(text)
	}
	for _, seed := range []string{
		"<MSG a='1' b = \"2\"c=\"3\" d:e=\"\" f=\"&#9;\"/>", "<MSG><a:b:c/><:a/><a:/><1/><a-1.2_ /></MSG ></MSG>x", "<MSG>]]></MSG>", "<MSG>a\r\nb&lt;<![CDATA[]]>",
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?><MSG><A\n/><B x=\"<\"/>", "<MSG><A></B></MSG>", "<MSG/><MSG/>", "</MSG>", "<", "<MSG a", "<MSG a=\"1\" a=\"2\">",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { require.Equal(t, sis.Tokens(text, true), sis.Tokens(text, false)) })
}

// FuzzBytes: whatever bytes and label, the text is UTF-8 and decodes as soundly as any, or the bytes are refused.
func FuzzBytes(f *testing.F) {
	f.Add([]byte(chinese("GBK")), "")
	f.Add([]byte{0xFF, 0xFE, 0x3C, 0x00}, "utf-16")
	f.Add([]byte("\xd0\xd0"), "gbk")
	gbk, err := simplifiedchinese.GBK.NewEncoder().Bytes([]byte(chinese("GBK")))
	require.NoError(f, err)
	f.Add(gbk, "")
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes([]byte(chinese("UTF-16")))
	require.NoError(f, err)
	f.Add(wide, "")
	f.Fuzz(func(t *testing.T, raw []byte, label string) {
		text, err := sis.TextOf(raw, label)
		if err != nil {
			require.Equal(t, fault.Malformed, fault.Of(err))
			require.Less(t, len(err.Error()), 2000)
			return
		}
		require.True(t, utf8.Valid(text))
		requireSound(t, text)
	})
}

// FuzzEncode is TestDecodeOfEncodeIsTheSame with messages that coverage leads to.
func FuzzEncode(f *testing.F) { f.Fuzz(rapid.MakeFuzz(encodesAndDecodes(shanghai(f)))) }

// FuzzDecodeRequest: what is read as a request is written and read the same.
func FuzzDecodeRequest(f *testing.F) {
	zone := shanghai(f)
	for _, name := range []string{"RQFD-NONE", "RQRD-SLST"} {
		text, err := os.ReadFile("testdata/request/" + name + ".xml")
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := sis.DecodeRequest(text, zone)
		if err != nil {
			require.Contains(t, []fault.Class{fault.Malformed, fault.Protocol}, fault.Of(err))
			return
		}
		encoded, err := sis.EncodeRequest(r, zone)
		require.NoError(t, err)
		again, err := sis.DecodeRequest(encoded, zone)
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
