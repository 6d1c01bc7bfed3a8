package service

import (
	"errors"
	"fmt"
)

// Code tells a program why a request has failed. It is the beginning of the text of the
// answer, before ": ".
type Code string

// The codes of all services.
const (
	Denied      Code = "denied"       // no grant of the sender covers it
	BadRequest  Code = "bad_request"  // the request itself is wrong; repeating it is useless
	NotFound    Code = "not_found"    // there is no such thing
	Exists      Code = "exists"       // there is one already
	Conflict    Code = "conflict"     // something has changed meanwhile
	TooLarge    Code = "too_large"    // a size is beyond a bound
	Quota       Code = "quota"        // a quota of the grant is used up
	Busy        Code = "busy"         // too much is under way; later it may succeed
	RateLimited Code = "rate_limited" // too often; later it will succeed
	Unavailable Code = "unavailable"  // what the service relies on is down, or the service closes
	Timeout     Code = "timeout"      // it took too long; whether it was done is not known
	Cancelled   Code = "cancelled"    // nobody waits for the answer any more
	ReadOnly    Code = "read_only"    // the grant is one for reading
	Failed      Code = "failed"       // something outside the system has refused
	Internal    Code = "internal"     // a bug of the service
)

// Codes are all codes, in the order of the documentation.
func Codes() []Code {
	return []Code{Denied, BadRequest, NotFound, Exists, Conflict, TooLarge, Quota, Busy, RateLimited, Unavailable, Timeout, Cancelled, ReadOnly, Failed, Internal}
}

// Error is the answer to a request that has failed.
type Error struct {
	Code Code
	Text string // for people; it may quote what the guest has sent
	// Key is the key below capabilities.NAME that would allow it; only of Denied, and "" for the
	// capability itself.
	Key string
	// Err is the cause, which is only shown in the log.
	Err error
}

// Error is the text of the answer.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Text }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf is an error for the guest. An argument for %w is the cause, and the guest can
// read its text; use [Error.Err] for a cause that it must not read.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Text: err.Error(), Err: errors.Unwrap(err)}
}

// Deny is an error of the code [Denied]. key is the key of the grant that would allow it, such
// as "hosts"; the operator of the bundle is told.
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
