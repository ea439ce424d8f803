package compat_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"msgexchange/http/compat"
	"msgexchange/http/problem"
)

// neighbours are mailbox and inbox in one.
type neighbours struct {
	stored, registered string
	failRegister       error
}

func (n *neighbours) Insert(_ context.Context, text string, _ time.Time) (int64, error) {
	n.stored = text
	return 7, nil
}

func (n *neighbours) Register(_ context.Context, id int64, text string, _ time.Time) error {
	if id == 7 {
		n.registered = text
	}
	return n.failRegister
}

func send(t *testing.T, s *compat.Sender, mediaType string, body []byte, accept string) (*httptest.ResponseRecorder, error) {
	t.Helper()
	rec := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(rec)
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/cminmsgs/send", bytes.NewReader(body))
	c.Request.Header.Set("Content-Type", mediaType)
	if accept != "" {
		c.Request.Header.Set("Accept", accept)
	}
	return rec, s.Send(c)
}

func code(err error) problem.Code {
	if err == nil {
		return ""
	}
	return problem.Of(err).Code
}

// K18: five encodings of one message end as the same characters, and mislabelled bytes are refused.
func TestSend_characterSets(t *testing.T) {
	t.Parallel()
	const text = `<MSG><SNDR>广州 飞</SNDR></MSG>`
	encode := func(e encoding.Encoding, s string) []byte {
		b, err := e.NewEncoder().Bytes([]byte(s))
		require.NoError(t, err)
		return b
	}
	utf16 := unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	cases := []struct {
		name, mediaType string
		body            []byte
		want            problem.Code
	}{
		{"UTF-8", "text/xml", []byte(text), ""},
		{"UTF-8 with mark", "text/plain; charset=gbk", []byte("\ufeff" + text), ""},
		{"GBK by header", `text/xml; charset="GBK"`, encode(simplifiedchinese.GBK, text), ""},
		{"GB18030 by header", "application/xml;charset=gb18030", encode(simplifiedchinese.GB18030, text), ""},
		{"UTF-16 by mark", "text/xml", encode(utf16, text), ""},
		{"GBK without a label", "text/xml", encode(simplifiedchinese.GBK, text), problem.MalformedXML},
		{"a character set nobody reads", "text/xml; charset=latin1", []byte(text), problem.UnsupportedMediaType},
		{"larger than the pipeline once it is UTF-8", "text/xml; charset=gbk", encode(simplifiedchinese.GBK,
			"<MSG>"+string(bytes.Repeat([]byte("飞"), 4_000_000))+"</MSG>"), problem.TooLarge},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := &neighbours{}
			_, err := send(t, &compat.Sender{Now: time.Now, Mailbox: n, Inbox: n, Log: slog.New(slog.DiscardHandler)}, c.mediaType, c.body, "")
			require.Equal(t, c.want, code(err))
			if c.want == "" {
				require.Equal(t, text, n.stored)
				require.Equal(t, text, n.registered)
			}
		})
	}
}

func TestSend_refusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"DOCTYPE": `<!DOCTYPE MSG [<!ENTITY x "y">]><MSG>&x;</MSG>`, "text after the root": `<MSG></MSG>more`, "other root": `<META/>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &neighbours{}
			_, err := send(t, &compat.Sender{Now: time.Now, Mailbox: n}, "text/xml", []byte(text), "")
			require.Equal(t, problem.MalformedXML, code(err))
			require.Empty(t, n.stored)
		})
	}
}

// The mailbox has the row: the poller will find it.
func TestSend_registeringIsAFavour(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	n := &neighbours{failRegister: errors.New("postgres is away")}
	rec, err := send(t, &compat.Sender{Now: time.Now, Mailbox: n, Inbox: n, Log: slog.New(slog.NewTextHandler(&lines, nil))}, "text/xml", []byte("<MSG/>"), "")
	require.NoError(t, err)
	require.JSONEq(t, `{"is_success":true,"body":7}`, rec.Body.String())
	require.Contains(t, lines.String(), "message not registered at once")
	require.Contains(t, lines.String(), "msg_id=7")
}

func TestSend_accept(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{
		"text/plain": "7", "text/plain, application/json": "7", "application/json, text/plain, */*": `{"is_success":true,"body":7}`,
		"*/*": `{"is_success":true,"body":7}`, "text/html": `{"is_success":true,"body":7}`,
	} {
		n := &neighbours{}
		rec, err := send(t, &compat.Sender{Now: time.Now, Mailbox: n}, "text/xml", []byte("<MSG/>"), accept)
		require.NoError(t, err)
		require.Equal(t, want, rec.Body.String(), accept)
	}
}
