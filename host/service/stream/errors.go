package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Why a stream is over before its end. They are what the world's side is told, and all
// wrap [ErrOver].
var (
	ErrOver = errors.New("stream: it is over")
	// ErrOwnerEnded: the actor that the stream was for has ended.
	ErrOwnerEnded = fmt.Errorf("%w: its owner has ended", ErrOver)
	// ErrIdle: the guest has asked for nothing for too long.
	ErrIdle = fmt.Errorf("%w: its guest was idle for too long", ErrOver)
	// ErrClosed: the guest wants no more of a source.
	ErrClosed = fmt.Errorf("%w: the guest has closed it", ErrOver)
	// ErrOverrun: the guest has written more than it had credit for.
	ErrOverrun = fmt.Errorf("%w: the guest has written beyond its window", ErrOver)
	// ErrStopped: the stream's actor was stopped.
	ErrStopped = fmt.Errorf("%w: it was stopped", ErrOver)
)

// AbortError is what a guest has given up a sink with. It wraps [ErrOver].
type AbortError struct{ Reason string }

func (e *AbortError) Error() string { return "stream: the guest has given up: " + e.Reason }

// Unwrap implements errors.
func (e *AbortError) Unwrap() error { return ErrOver }

// Error is an error for the guest with one of the codes of services, such as "not_found".
type Error struct{ Code, Text string }

func (e *Error) Error() string { return e.Code + ": " + e.Text }

// codes are those that an error of the world's may begin with.
var codes = map[string]bool{
	"denied": true, "bad_request": true, "not_found": true, "exists": true, "conflict": true, "too_large": true,
	"quota": true, "busy": true, "rate_limited": true, "unavailable": true, "timeout": true, "cancelled": true,
	"read_only": true, "failed": true, "internal": true,
}

const maxText = 1 << 10

// text is an error as a guest reads it: CODE: what is wrong. An error that does not begin with
// a code gets one.
func text(err error) string {
	t := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(t) > maxText {
		t = strings.ToValidUTF8(t[:maxText], "") + "..."
	}
	if code, _, ok := strings.Cut(t, ": "); ok && codes[code] {
		return t
	}
	return codeOf(err) + ": " + t
}

func codeOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, io.ErrClosedPipe), errors.Is(err, ErrOver):
		return "unavailable"
	}
	return "failed"
}
