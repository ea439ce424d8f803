// Package fault is the one place that knows the kinds of failure and what each of them means: does it end the message,
// is it retried, may an operator replay it (design §3; contract §8). It decides nothing about when; that is jobs/retry.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Class is why something failed. The stored spelling is the value; it is never renamed.
type Class string

// The closed set of classes. Outage is never stored: it is nobody's fault and spends nobody's attempts.
const (
	Malformed   Class = "MALFORMED"   // not a well-formed message with complete META
	Protocol    Class = "PROTOCOL"    // well formed, but breaks a rule of the dictionary; refused whole
	CodecError  Class = "CODEC_ERROR" // a defect of ours in reading it
	Unsupported Class = "UNSUPPORTED" // a TYPE and STYP outside the catalogue
	Infra       Class = "INFRA"       // anything else that went wrong while trying
	Exhausted   Class = "EXHAUSTED"   // attempts or head deadline used up; the root class is kept beside it
	Refused     Class = "REFUSED"     // the broker will not have this very record: an event's, never a message's
	Outage      Class = "OUTAGE"      // our PostgreSQL, the mailbox or the broker was away
)

// AllClasses lists the classes that may be stored, in the order of the design.
func AllClasses() []Class {
	return []Class{Malformed, Protocol, CodecError, Unsupported, Infra, Exhausted}
}

// Terminal says that a message failing this way is DEAD at once.
func (c Class) Terminal() bool { return c == Malformed || c == Protocol || c == Exhausted }

// Retryable says that a message failing this way becomes FAILED and is tried again.
func (c Class) Retryable() bool { return c == CodecError || c == Unsupported || c == Infra }

// Replayable says that an operator may put a message that ended this way back (design §10).
func (c Class) Replayable() bool { return c.Retryable() || c == Exhausted }

// Error is a failure with its class, what was being done, and where in the message it happened.
type Error struct {
	Class Class
	Op    string // what was being done: "decode", "load flights"
	Path  string // where in the message: MSG/SCHD/FLTR[3]/SODT; empty when it is not about one place
	Line  int    // line of the text, from 1; 0 when unknown
	MsgID int64  // 0 when no message is concerned
	Err   error  // never nil
}

// Error writes class, operation, message id, path and line, then the cause.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Class, e.Op)
	if e.MsgID != 0 {
		fmt.Fprintf(&b, ": message %d", e.MsgID)
	}
	if e.Path != "" {
		fmt.Fprintf(&b, ": %s", e.Path)
	}
	if e.Line != 0 {
		fmt.Fprintf(&b, " (line %d)", e.Line)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	return b.String()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error of class c that says what was being done and what was wrong.
func New(c Class, op, format string, args ...any) *Error {
	return &Error{Class: c, Op: op, Err: fmt.Errorf(format, args...)}
}

// At is New with the place in the message.
func At(c Class, op, path string, line int, format string, args ...any) *Error {
	return &Error{Class: c, Op: op, Path: path, Line: line, Err: fmt.Errorf(format, args...)}
}

// Wrap puts err into class c unless it already carries a class, which then stays; nil stays nil.
func Wrap(c Class, op string, err error) error {
	if err == nil {
		return nil
	}
	var fe *Error
	if errors.As(err, &fe) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return &Error{Class: c, Op: op, Err: err}
}

// Of gives the class of err: the innermost decision made about it, INFRA when nobody made one, "" for nil.
func Of(err error) Class {
	if err == nil {
		return ""
	}
	var fe *Error
	if errors.As(err, &fe) {
		return fe.Class
	}
	return Infra
}

// maxTextBytes bounds what is stored of an error; longer texts are cut at a rune border.
const maxTextBytes = 2000

// Text is err as it is stored and shown: valid UTF-8 without NUL, at most 2000 bytes (K09).
func Text(err error) string {
	if err == nil {
		return ""
	}
	s := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > maxTextBytes {
		s = strings.ToValidUTF8(s[:maxTextBytes], "")
	}
	return s
}
