package service

// Code says what is wrong, in a form for programs. A later host may have more codes than
// these.
type Code string

// The codes.
const (
	Denied      Code = "denied"       // no grant covers it
	BadRequest  Code = "bad_request"  // the request is wrong
	NotFound    Code = "not_found"    // what it names does not exist
	Exists      Code = "exists"       // what it would make exists already
	Conflict    Code = "conflict"     // a version did not match
	TooLarge    Code = "too_large"    // more bytes, rows or the like than allowed
	Quota       Code = "quota"        // that of the grant is used up
	Busy        Code = "busy"         // too much is under way: try later
	RateLimited Code = "rate_limited" // too often: try later
	Unavailable Code = "unavailable"  // down, closing, or given up for a while: try later
	Timeout     Code = "timeout"      // no answer in time: it may have been done, or may still be
	Cancelled   Code = "cancelled"    // ended before it was done
	ReadOnly    Code = "read_only"    // the grant allows reading only
	Failed      Code = "failed"       // something outside the host refused
	Internal    Code = "internal"     // a defect of the service
)

// Retry reports whether the same request may succeed later. With Timeout it may also have been done
// already.
func (c Code) Retry() bool {
	switch c {
	case Busy, RateLimited, Unavailable, Timeout:
		return true
	}
	return false
}

// Error is why there is no answer.
type Error struct {
	Code Code
	Text string // for a person
}

// Error is code and text.
func (e *Error) Error() string {
	if e.Text == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Text
}

// CodeOf is the code of an error that Then was given, "" for nil and for others.
func CodeOf(err error) Code {
	for err != nil {
		if e, ok := err.(*Error); ok {
			return e.Code
		}
		wrapped, ok := err.(interface{ Unwrap() error })
		if !ok {
			break
		}
		err = wrapped.Unwrap()
	}
	return ""
}

// Is makes errors.Is(err, ErrNotFound) true for any error of that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Text == "" || t.Text == e.Text)
}

// An error of each code, for errors.Is.
var (
	ErrDenied      = &Error{Code: Denied}
	ErrBadRequest  = &Error{Code: BadRequest}
	ErrNotFound    = &Error{Code: NotFound}
	ErrExists      = &Error{Code: Exists}
	ErrConflict    = &Error{Code: Conflict}
	ErrTooLarge    = &Error{Code: TooLarge}
	ErrQuota       = &Error{Code: Quota}
	ErrBusy        = &Error{Code: Busy}
	ErrRateLimited = &Error{Code: RateLimited}
	ErrUnavailable = &Error{Code: Unavailable}
	ErrTimeout     = &Error{Code: Timeout}
	ErrCancelled   = &Error{Code: Cancelled}
	ErrReadOnly    = &Error{Code: ReadOnly}
	ErrFailed      = &Error{Code: Failed}
	ErrInternal    = &Error{Code: Internal}
)

// What the host's own texts begin with, and the one about a mailbox that has no room.
const (
	ofTheHost = "host"
	noRoom    = "the mailbox is full"
)

// parse takes the text of a reply_error apart. One without a code is the host's: the service's actor
// has ended, has failed, or has no room in its mailbox.
func parse(text string) *Error {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z' || c == '_':
		case c == ':' && i > 0 && i+1 < len(text) && text[i+1] == ' ':
			rest := text[i+2:]
			switch {
			case text[:i] != ofTheHost:
				return &Error{Code(text[:i]), rest}
			case rest == noRoom:
				return &Error{Busy, rest}
			}
			return &Error{Unavailable, rest}
		default:
			return &Error{Unavailable, text}
		}
	}
	return &Error{Unavailable, text}
}

// ParseError is the error that a service has written into a message, CODE: TEXT.
func ParseError(text string) error { return parse(text) }
