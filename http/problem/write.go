package problem

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
)

// Form is one of the two shapes of a failure.
type Form func(w http.ResponseWriter, e *Error)

// retryAfterSeconds is what a caller is told who came too often or while something was away.
const retryAfterSeconds = "1"

// Write answers with problem+json (RFC 9457): type, title, status, detail, code, and what e.More adds.
func Write(w http.ResponseWriter, e *Error) {
	status := e.Code.Status()
	doc := map[string]any{"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": e.Detail, "code": e.Code}
	maps.Copy(doc, e.More)
	head(w, "application/problem+json", status)
	_, _ = w.Write(encode(doc)) // a caller who has gone needs no answer
}

// WriteDto answers with a failed ResponseDto: {"is_success":false,"err_code":"…","err_msg":"…"}.
func WriteDto(w http.ResponseWriter, e *Error) {
	head(w, "application/json", e.Code.Status())
	_, _ = w.Write(encode(struct {
		OK      bool   `json:"is_success"`
		Code    Code   `json:"err_code"`
		Message string `json:"err_msg"`
	}{Code: e.Code, Message: e.Detail}))
}

// WriteID answers with a successful ResponseDto whose body is a row id: {"is_success":true,"body":123}.
func WriteID(w http.ResponseWriter, id int64) {
	head(w, "application/json", http.StatusOK)
	_, _ = io.WriteString(w, DtoOpen+strconv.FormatInt(id, 10)+DtoClose)
}

// What stands before and after the body of a successful ResponseDto, for bodies that are streamed.
const (
	DtoOpen  = `{"is_success":true,"body":`
	DtoClose = `}`
)

// WriteJSON answers with v and status. A value that cannot be encoded is a defect of ours and answered with 500.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	head(w, "application/json", status)
	_, _ = w.Write(b)
	return nil
}

func head(w http.ResponseWriter, mediaType string, status int) {
	w.Header().Set("Content-Type", mediaType)
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfterSeconds)
	}
	w.WriteHeader(status)
}

// encode keeps <, > and & as they are: old callers compare texts, and nothing here is ever read as HTML. It adds no newline.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // only e.More could hold such a value
		return []byte(`{"type":"about:blank","title":"Internal Server Error","status":500}`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
