package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signalError is the signal at which a command has ended in order.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "ended by " + e.signal.String() }

// signals ends the context at Ctrl-C, SIGTERM and SIGHUP, except those that are ignored already:
// SIGHUP under nohup, SIGINT in a shell's background job. restore gives them back to the system;
// any goroutine may call it, and only the first call counts. SIGPIPE does not end the process:
// the write fails instead.
func signals(parent context.Context) (ctx context.Context, restore func()) {
	ctx, cancel := context.WithCancelCause(parent)
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	c := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	done := make(chan struct{})
	go func() {
		select {
		case s := <-c:
			number, _ := s.(syscall.Signal)
			cancel(&signalError{number})
		case <-done:
		}
	}()
	var once sync.Once
	return ctx, func() {
		once.Do(func() {
			signal.Stop(c)
			close(done)
		})
	}
}
