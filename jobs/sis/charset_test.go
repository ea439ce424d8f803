package sis_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/sis"
)

func encoded(t *testing.T, enc encoding.Encoding, text string) []byte {
	t.Helper()
	out, err := enc.NewEncoder().Bytes([]byte(text))
	require.NoError(t, err)
	return out
}

// chinese is a message with an XML declaration of that encoding, or none.
func chinese(declared string) string {
	head := ""
	if declared != "" {
		head = `<?xml version="1.0" encoding="` + declared + `"?>` + "\n"
	}
	return head + msg(meta("FLOP-REMC")+"<FLOP><FLID>15</FLID><REMC>行李转盘改用备用通道，旅客请按广播提示</REMC></FLOP>")
}

// K18: one message in five encodings, labelled in every way there is, is the same message.
func TestK18_fiveEncodings(t *testing.T) {
	t.Parallel()
	little := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	big := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	for name, c := range map[string]struct {
		raw   []byte
		label string
	}{
		"UTF-8":                       {[]byte(chinese("UTF-8")), ""},
		"UTF-8, no declaration":       {[]byte(chinese("")), ""},
		"UTF-8, mark":                 {[]byte("\uFEFF" + chinese("UTF-8")), ""},
		"UTF-8, mark against labels":  {[]byte("\uFEFF" + chinese("GBK")), "gb18030"},
		"UTF-8, HTTP against decl.":   {[]byte(chinese("GBK")), "utf-8"},
		"GBK, declared":               {encoded(t, simplifiedchinese.GBK, chinese("GBK")), ""},
		"GBK, declared in lower case": {encoded(t, simplifiedchinese.GBK, chinese("gbk")), ""},
		"GBK, HTTP":                   {encoded(t, simplifiedchinese.GBK, chinese("UTF-8")), "GBK"},
		"GB2312, declared":            {encoded(t, simplifiedchinese.GBK, chinese("GB2312")), ""},
		"GB18030, declared":           {encoded(t, simplifiedchinese.GB18030, chinese("GB18030")), ""},
		"UTF-16, mark, little":        {append([]byte{0xFF, 0xFE}, encoded(t, little, chinese("UTF-16"))...), ""},
		"UTF-16, mark, big":           {append([]byte{0xFE, 0xFF}, encoded(t, big, chinese("UTF-16"))...), "utf-16"},
		"UTF-16, HTTP, big":           {encoded(t, big, chinese("")), "utf-16"},
		"UTF-16, declared, little":    {encoded(t, little, chinese("UTF-16")), ""},
		"UTF-16, HTTP says which":     {encoded(t, big, chinese("UTF-16")), "utf-16be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := sis.TextOf(c.raw, c.label)
			require.NoError(t, err)
			require.NoError(t, sis.WellFormed(text))
			m, err := decode(t, string(text))
			require.NoError(t, err)
			require.Equal(t, `{"records":[{"flid":15,"remc":"行李转盘改用备用通道，旅客请按广播提示"}]}`, body(t, m))
		})
	}
}

// K18: bytes that are not what they are labelled are refused, not guessed.
func TestK18_mislabelledBytes(t *testing.T) {
	t.Parallel()
	gbk := encoded(t, simplifiedchinese.GBK, chinese("UTF-8"))
	little := encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), chinese(""))
	for name, c := range map[string]struct {
		raw   []byte
		label string
	}{
		"GBK as UTF-8":            {gbk, ""},
		"GBK as UTF-8 by HTTP":    {encoded(t, simplifiedchinese.GBK, chinese("GBK")), "utf-8"},
		"GBK as UTF-16":           {gbk, "utf-16"},
		"UTF-8 as GBK":            {[]byte(chinese("GBK")), ""},
		"UTF-8 as GB18030":        {[]byte(chinese("")), "gb18030"},
		"UTF-8 declared UTF-16":   {[]byte(chinese("UTF-16")), ""},
		"half a character of GBK": {append(encoded(t, simplifiedchinese.GBK, chinese("GBK")), 0xD0), ""},
		"half a unit of UTF-16":   {append([]byte{0xFF, 0xFE}, little[:len(little)-1]...), ""},
		"half a pair of UTF-16":   {append([]byte{0xFF, 0xFE}, append(little, 0x00, 0xD8)...), ""},
		"UTF-8 cut short":         {[]byte("\uFEFF\xe8\xa1"), ""},
		"overlong UTF-8":          {[]byte("<MSG>\xc0\xaf</MSG>"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sis.TextOf(c.raw, c.label)
			requireFault(t, err, fault.Malformed, "")
			require.NotErrorIs(t, err, sis.ErrCharset)
		})
	}
}

func TestUnreadableCharsetsAreNamed(t *testing.T) {
	t.Parallel()
	for _, label := range []string{"iso-8859-1", "big5", "shift_jis", "utf-7", "no-such", "utf-32"} {
		_, err := sis.TextOf([]byte(chinese("")), label)
		requireFault(t, err, fault.Malformed, "")
		require.ErrorIs(t, err, sis.ErrCharset)
		_, err = sis.TextOf([]byte(chinese(label)), "")
		require.ErrorIs(t, err, sis.ErrCharset)
	}
}

// TestShortGBKIsRead: two or three characters of GBK can look like UTF-8 by chance, and must not be taken for it.
func TestShortGBKIsRead(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"联通", "临时", "流量控制", "汉", ""} {
		raw := encoded(t, simplifiedchinese.GBK, strings.Replace(chinese("GBK"), "行李转盘改用备用通道，旅客请按广播提示", words, 1))
		text, err := sis.TextOf(raw, "")
		require.NoError(t, err, words)
		require.Contains(t, string(text), words)
	}
}

// K18: the mailbox's text is characters, and what the old declaration says counts for nothing (dictionary 3).
func TestK18_mailboxTextIsCharacters(t *testing.T) {
	t.Parallel()
	for _, declared := range []string{"GBK", "GB18030", "UTF-16", "no-such"} {
		m, err := decode(t, "\uFEFF"+chinese(declared))
		require.NoError(t, err)
		require.Contains(t, body(t, m), "行李转盘")
	}
}
