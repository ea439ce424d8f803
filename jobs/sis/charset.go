package sis

import (
	"bytes"
	"errors"
	"regexp"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"msgexchange/jobs/fault"
)

// ErrCharset is in the chain when a label names a character set this package does not read.
var ErrCharset = errors.New("not a character set that is read: UTF-8, UTF-16, GBK, GB2312, GB18030")

// TextOf decodes bytes that came by HTTP or from a file: by their byte order mark, else by the charset of the Content-Type
// ("" when there is none), else by their XML declaration, else as UTF-8 (dictionary 3, K18). The mark is not part of the
// text; the declaration stays and counts for nothing from here on. Bytes that do not decode that way are mislabelled:
// fault.Malformed. The mailbox's text is characters already and does not come this way.
func TextOf(raw []byte, contentTypeCharset string) ([]byte, error) {
	enc, rest, err := encodingOf(raw, contentTypeCharset)
	if err != nil {
		return nil, err
	}
	if enc == nil {
		if !utf8.Valid(rest) {
			return nil, mislabelled()
		}
		return rest, nil
	}
	if len(rest) > 2*MaxBytes { // no encoding needs more than two bytes where UTF-8 needs one
		return nil, fault.New(fault.Malformed, op, "%d bytes are more than a message may have", len(rest))
	}
	if isGB(enc) && plainlyUTF8(rest) {
		return nil, mislabelled()
	}
	text, err := enc.NewDecoder().Bytes(rest)
	if err != nil || bytes.ContainsRune(text, utf8.RuneError) { // the decoders put U+FFFD for what they cannot read, without an error
		return nil, mislabelled()
	}
	return text, nil
}

func mislabelled() error {
	return fault.New(fault.Malformed, op, "the bytes are not in the character set they are labelled with")
}

// encodingOf finds the encoding, nil for UTF-8, and cuts the byte order mark off.
func encodingOf(raw []byte, label string) (encoding.Encoding, []byte, error) {
	switch {
	case bytes.HasPrefix(raw, []byte(byteOrderMark)):
		return nil, raw[len(byteOrderMark):], nil
	case bytes.HasPrefix(raw, []byte{0xFE, 0xFF}):
		return utf16(unicode.BigEndian), raw[2:], nil
	case bytes.HasPrefix(raw, []byte{0xFF, 0xFE}):
		return utf16(unicode.LittleEndian), raw[2:], nil
	}
	wide := wideOf(raw)
	if label == "" {
		if wide != nil { // an XML text in UTF-16 without a mark shows by its first character
			return wide, raw, nil
		}
		label = declared(raw)
	}
	if label == "" {
		return nil, raw, nil
	}
	enc, err := htmlindex.Get(label)
	if err != nil {
		return nil, nil, fault.New(fault.Malformed, op, "%s: %w", quoted(label), ErrCharset)
	}
	name, err := htmlindex.Name(enc)
	if err != nil {
		return nil, nil, fault.New(fault.Malformed, op, "%s: %w", quoted(label), ErrCharset)
	}
	switch name {
	case "utf-8":
		return nil, raw, nil
	case "gbk", "gb18030":
		return enc, raw, nil
	case "utf-16le", "utf-16be":
		if wide == nil { // not XML in UTF-16, whatever the label says
			return nil, nil, mislabelled()
		}
		return wide, raw, nil
	}
	return nil, nil, fault.New(fault.Malformed, op, "%s: %w", quoted(label), ErrCharset)
}

func utf16(order unicode.Endianness) encoding.Encoding {
	return unicode.UTF16(order, unicode.IgnoreBOM)
}

// wideOf tells the byte order of XML in UTF-16 by its first character, which is ASCII; nil when it is not UTF-16.
func wideOf(raw []byte) encoding.Encoding {
	switch {
	case len(raw) < 2 || raw[0] != 0 && raw[1] != 0:
		return nil
	case raw[0] == 0 && raw[1] != 0:
		return utf16(unicode.BigEndian)
	case raw[0] != 0:
		return utf16(unicode.LittleEndian)
	}
	return nil
}

func isGB(enc encoding.Encoding) bool {
	return enc == simplifiedchinese.GBK || enc == simplifiedchinese.GB18030
}

// plainlyUTF8 says that bytes labelled GBK are UTF-8: everything beyond ASCII is well-formed sequences of three or four bytes,
// as Chinese is there. GBK text that looks so by chance takes a lone run of three characters of a rare kind: 1 in 5,000.
func plainlyUTF8(raw []byte) bool {
	long := false
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size <= 1 || size == 2 {
			return false
		}
		long = long || size > 2
		raw = raw[size:]
	}
	return long
}

const maxDeclarationBytes = 256

// declared is the encoding named in an XML declaration in an ASCII superset; "" when none is.
func declared(raw []byte) string {
	if !bytes.HasPrefix(raw, []byte("<?xml")) {
		return ""
	}
	head, _, found := bytes.Cut(raw[:min(len(raw), maxDeclarationBytes)], []byte("?>"))
	if !found {
		return ""
	}
	m := regexp.MustCompile(`\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`).FindSubmatch(head)
	if m == nil {
		return ""
	}
	return string(m[1])
}
