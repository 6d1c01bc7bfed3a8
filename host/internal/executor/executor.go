// Package executor is how services start goroutines, wait and use time.
//
// Its functions take the clock of whoever calls. With an ordinary clock they are what the language and the standard
// library offer. With a [Sim] the goroutines are tasks of a simulation: one runs at a time, in an order that
// depends on nothing but what they do, and [Sim.Rest] knows when none can go on.
//
// What a task waits for by other means (a mutex, a call of a library) counts as work.
package executor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// Machine is for work that a device does in its own time, whatever the time of the system is: writing to
// disks, accepting connections. Scenarios have neither.
var Machine = clock.Real()

// of is the simulation that a clock belongs to, nil if there is none.
func of(c clock.Clock) *Sim {
	s, _ := c.(*Sim)
	return s
}

// Go runs f in a goroutine of its own.
func Go(c clock.Clock, f func()) {
	if s := of(c); s != nil {
		s.run(f)
		return
	}
	go f()
}

// Await waits: in a simulation until try is true, otherwise in block. Try must not block. What it takes when it is
// true (a message of a channel) is taken; it is called from any goroutine, and not again after that.
func Await(c clock.Clock, try func() bool, block func()) {
	if s := of(c); s != nil && s.await(try) {
		return
	}
	block()
}

// Take receives from a channel, unless one of over, of which there are at most four, is closed first. Which is 0
// for the channel, -1 if it is closed, and the number of the one of over otherwise, from 1. In a simulation the first that is ready counts.
func Take[T any](c clock.Clock, ch <-chan T, over ...<-chan struct{}) (v T, which int) {
	if s := of(c); s != nil {
		if v, which, ok := simTake(s, ch, slices.Clone(over)); ok {
			return v, which
		}
	}
	var o [4]<-chan struct{}
	copy(o[:], over)
	select {
	case v, ok := <-ch:
		return v, open(ok)
	case <-o[0]:
		return v, 1
	case <-o[1]:
		return v, 2
	case <-o[2]:
		return v, 3
	case <-o[3]:
		return v, 4
	}
}

func open(ok bool) int {
	if ok {
		return 0
	}
	return -1
}

func simTake[T any](s *Sim, ch <-chan T, over []<-chan struct{}) (v T, which int, ok bool) {
	ok = s.await(func() bool {
		select {
		case x, ok := <-ch:
			v, which = x, open(ok)
			return true
		default:
		}
		which = 1 + firstClosed(over)
		return which > 0
	})
	return v, which, ok
}

// Put sends to a channel with a buffer, unless one of over, of which there are at most two, is closed first. It
// returns what [Take] does.
func Put[T any](c clock.Clock, ch chan<- T, v T, over ...<-chan struct{}) (which int) {
	if s := of(c); s != nil {
		if which, ok := simPut(s, ch, v, slices.Clone(over)); ok {
			return which
		}
	}
	var o [2]<-chan struct{}
	copy(o[:], over)
	select {
	case ch <- v:
		return 0
	case <-o[0]:
		return 1
	case <-o[1]:
		return 2
	}
}

func simPut[T any](s *Sim, ch chan<- T, v T, over []<-chan struct{}) (which int, ok bool) {
	ok = s.await(func() bool {
		select {
		case ch <- v:
			return true
		default:
		}
		which = 1 + firstClosed(over)
		return which > 0
	})
	return which, ok
}

// firstClosed is the first channel that is closed; -1: none is.
func firstClosed(of []<-chan struct{}) int {
	return slices.IndexFunc(of, func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	})
}

// AfterDone calls f in a goroutine of its own once ctx is done. Stop is that of [context.AfterFunc].
func AfterDone(c clock.Clock, ctx context.Context, f func()) (stop func() bool) {
	if s := of(c); s != nil {
		return s.afterDone(ctx, f)
	}
	return context.AfterFunc(ctx, f)
}

// WithTimeout ends a context after a time of the clock, with the cause [context.DeadlineExceeded]. Cancel has to be
// called.
func WithTimeout(c clock.Clock, ctx context.Context, d time.Duration) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)
	t := c.AfterFunc(d, func() { end(context.DeadlineExceeded) })
	return ctx, func() {
		t.Stop()
		end(nil)
	}
}

// Pause waits for a time of the clock, or until over is closed, and reports whether the time has passed.
func Pause(c clock.Clock, d time.Duration, over <-chan struct{}) bool {
	due := make(chan struct{})
	t := c.AfterFunc(d, func() { close(due) })
	defer t.Stop()
	_, which := Take(c, due, over)
	return which != 1
}

// Outside calls f, which waits by means of its own for what other tasks do: they may go on meanwhile.
func Outside(c clock.Clock, f func()) {
	if s := of(c); s != nil {
		s.outside(f)
		return
	}
	f()
}

// Join waits for a group of goroutines.
func Join(c clock.Clock, g *sync.WaitGroup) { Outside(c, g.Wait) }
