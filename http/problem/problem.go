// Package problem says how a request failed, in the two shapes callers know: RFC 9457 problem+json, and the ResponseDto of
// the system being replaced, byte for byte (contract §4). It decides no status: the handler or fault class does.
package problem

import (
	"context"
	"errors"
	"net/http"

	"msgexchange/jobs/fault"
)

// Code is the machine-readable word of a failure: err_code of a ResponseDto, "code" of a problem.
type Code string

// The closed set of codes. The first seven are the compat endpoint's (contract §4).
const (
	EmptyBody            Code = "EMPTY_BODY"
	TooLarge             Code = "TOO_LARGE"
	MalformedXML         Code = "MALFORMED_XML"
	UnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	MailboxUnavailable   Code = "MAILBOX_UNAVAILABLE"
	Unauthorized         Code = "UNAUTHORIZED"
	RateLimited          Code = "RATE_LIMITED"
	BadRequest           Code = "BAD_REQUEST"
	Forbidden            Code = "FORBIDDEN"
	ShadowMode           Code = "SHADOW_MODE"
	NotFound             Code = "NOT_FOUND"
	MethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	Gone                 Code = "GONE"
	Conflict             Code = "CONFLICT"
	Unavailable          Code = "UNAVAILABLE"
	Internal             Code = "INTERNAL"
)

// Status is the HTTP status that goes with c.
func (c Code) Status() int {
	switch c {
	case EmptyBody, MalformedXML, BadRequest:
		return http.StatusBadRequest
	case TooLarge:
		return http.StatusRequestEntityTooLarge
	case UnsupportedMediaType:
		return http.StatusUnsupportedMediaType
	case MailboxUnavailable, Unavailable:
		return http.StatusServiceUnavailable
	case Unauthorized:
		return http.StatusUnauthorized
	case RateLimited:
		return http.StatusTooManyRequests
	case Forbidden, ShadowMode:
		return http.StatusForbidden
	case NotFound:
		return http.StatusNotFound
	case MethodNotAllowed:
		return http.StatusMethodNotAllowed
	case Gone:
		return http.StatusGone
	case Conflict:
		return http.StatusConflict
	case Internal:
		return http.StatusInternalServerError
	}
	return http.StatusInternalServerError
}

// Error is a failed request as the caller may see it.
type Error struct {
	Code   Code
	Detail string         // one sentence for the caller; never internals
	More   map[string]any // further members of the problem; a ResponseDto has no room for them
	Err    error          // the cause, for our log only; may be nil
}

// New makes a failure without a cause.
func New(code Code, detail string) *Error { return &Error{Code: code, Detail: detail} }

// Error writes code, detail and cause.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Detail
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// Of makes of any error what the caller may see of it: an *Error as it is, a body over the cap TOO_LARGE, an outage or a
// deadline UNAVAILABLE, and everything else INTERNAL without a word about why.
func Of(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &Error{Code: TooLarge, Detail: "the body is larger than this service accepts", Err: err}
	case fault.Of(err) == fault.Outage, errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: Unavailable, Detail: "a system this answer needs is not available; try again", Err: err}
	}
	return &Error{Code: Internal, Detail: "the request failed; the log says why", Err: err}
}
