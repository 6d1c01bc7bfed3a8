package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/wasmactors/wasmactors/host/service"
)

// Why a stream is over before its end. The outside gets these errors; all
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

// AbortError is the reason that a guest has given for aborting a sink. It wraps [ErrOver].
type AbortError struct{ Reason string }

func (e *AbortError) Error() string { return "stream: the guest has given up: " + e.Reason }

// Unwrap implements errors.
func (e *AbortError) Unwrap() error { return ErrOver }

const maxText = 1 << 10

// text is an error in the form for guests: CODE: what is wrong. An error that wraps none of
// package service's gets a code.
func text(err error) string {
	var e *service.Error
	if !errors.As(err, &e) {
		e = service.Errorf(codeOf(err), "%v", err)
	}
	t := strings.ToValidUTF8(e.Error(), "\uFFFD")
	if len(t) > maxText {
		t = strings.ToValidUTF8(t[:maxText], "") + "..."
	}
	return t
}

func codeOf(err error) service.Code {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return service.Timeout
	case errors.Is(err, context.Canceled):
		return service.Cancelled
	case errors.Is(err, io.ErrClosedPipe), errors.Is(err, ErrOver):
		return service.Unavailable
	}
	return service.Failed
}
