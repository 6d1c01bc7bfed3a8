package service

import (
	"errors"
	"fmt"
)

// Code tells a program why a request has failed. It stands at the beginning of the text of the
// answer, before ": ".
type Code string

// The codes of all services.
const (
	Denied      Code = "denied"       // no grant of the sender covers it
	BadRequest  Code = "bad_request"  // the request itself is wrong; it will never do
	NotFound    Code = "not_found"    // there is no such thing
	Exists      Code = "exists"       // there is one already
	Conflict    Code = "conflict"     // something has changed meanwhile
	TooLarge    Code = "too_large"    // a size is beyond a bound
	Quota       Code = "quota"        // a quota of the grant is used up
	Busy        Code = "busy"         // too much is under way; later it may do
	RateLimited Code = "rate_limited" // too often; later it will do
	Unavailable Code = "unavailable"  // what the service relies on is down, or the service closes
	Timeout     Code = "timeout"      // it took too long; whether it was done is not known
	Cancelled   Code = "cancelled"    // nobody waits for the answer any more
	ReadOnly    Code = "read_only"    // the grant is one for reading
	Failed      Code = "failed"       // the world outside has said no
	Internal    Code = "internal"     // a mistake of the service's
)

// Codes are all codes, in the order of the documentation.
func Codes() []Code {
	return []Code{Denied, BadRequest, NotFound, Exists, Conflict, TooLarge, Quota, Busy, RateLimited, Unavailable, Timeout, Cancelled, ReadOnly, Failed, Internal}
}

// Error is what a request is answered with that has failed.
type Error struct {
	Code Code
	Text string // for people; it may quote what the guest has sent
	// Key is what would allow it, below capabilities.NAME; of Denied alone, and "" for the
	// capability itself.
	Key string
	// Err is the cause, which nobody but the log gets to see.
	Err error
}

// Error is the text of the answer.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Text }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf is an error for the guest. An argument for %w is the cause, and its text is the guest's
// to read; see [Error.Err] for one that is not.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Text: err.Error(), Err: errors.Unwrap(err)}
}

// Deny is an error of the code [Denied]. key is the one of the grant that would allow it, such
// as "hosts"; whoever operates the bundle is told.
func Deny(key, format string, args ...any) *Error {
	e := Errorf(Denied, format, args...)
	e.Key = key
	return e
}

// CodeOf is the code of an error, [Internal] if it has none, "" for nil.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return Internal
}
