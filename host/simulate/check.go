package simulate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/record"
)

// The general invariants.

// event adds an event to the history, and checks what can be seen of it.
func (r *Run) event(s *seat, e *host.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := e.Ref.Path()
	note := e.Note
	if e.Failure != nil {
		note = fmt.Sprintf("%s: %s: %s", e.Failure.Kind, e.Failure.Reason, e.Failure.Message)
	}
	text := e.Text
	if e.Dead != nil {
		text = e.Dead.To()
		note = e.Dead.Reason.String()
	}
	r.record('e', [3]string{path, note, text}, [5]uint64{uint64(e.Kind), e.Incarnation, uint64(e.Delay)}, nil)
	if strings.HasPrefix(path, "/system") {
		return
	}
	at := livingKey(path, e.Ref.UID())
	switch e.Kind {
	case host.EventStarted:
		l, ok := r.living[at]
		switch {
		case ok && l.ref == e.Ref.UID():
			r.violate("incarnations are counted", "%s has begun twice as incarnation %d", path, e.Incarnation)
		case ok:
			r.violate("one actor a path", "%s has begun, and the actor of that path before it has not ended", path)
		}
		r.living[at] = living{e.Ref.UID(), e.Incarnation}
	case host.EventRestarted:
		l, ok := r.living[at]
		if ok && l.ref == e.Ref.UID() && l.incarnation >= e.Incarnation {
			r.violate("incarnations are counted", "%s has restarted as incarnation %d after %d", path, e.Incarnation, l.incarnation)
		}
		r.living[at] = living{e.Ref.UID(), e.Incarnation}
	case host.EventStopped:
		if l, ok := r.living[at]; ok && l.ref == e.Ref.UID() {
			delete(r.living, at)
		}
		delete(r.cut, e.Ref.UID())
		delete(r.begun, e.Ref.UID())
	}
	switch e.Kind {
	case host.EventFailed, host.EventRestarted, host.EventStopped, host.EventEscalated, host.EventDeadLetter, host.EventRefused, host.EventLog:
		r.note("%s", r.pathOf(s, tell(e, path, note, text)))
	}
}

func tell(e *host.Event, path, note, text string) string {
	switch e.Kind {
	case host.EventLog:
		return fmt.Sprintf("log %s: %s", path, text)
	case host.EventDeadLetter:
		return fmt.Sprintf("dead letter to %s: %s", text, note)
	}
	if note == "" {
		return fmt.Sprintf("%s %s", e.Kind, path)
	}
	return fmt.Sprintf("%s %s: %s", e.Kind, path, note)
}

// Injected reports whether a failure, which Watch has just shown, was a fault of the run.
func (r *Run) Injected(e *host.Event) bool {
	if e.Failure == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.disk.failed() && strings.Contains(e.Failure.Reason, record.Unrecorded) {
		return true
	}
	cut := r.cut[e.Ref.UID()]
	return e.Failure.Reason == errInjected || cut == Memory || cut == Fuel && (e.Failure.Kind == abi.FailureFuel || strings.Contains(e.Failure.Reason, "fuel"))
}

// Quiet reports whether nobody has a message that waits, and no message is held back.
func (r *Run) Quiet() bool {
	r.mu.Lock()
	held := r.held
	r.mu.Unlock()
	if held > 0 {
		return false
	}
	for _, s := range r.seats {
		for _, i := range s.sys.View().AppendInfo(nil) {
			if i.Mailbox > 0 && !i.Paused {
				return false
			}
		}
	}
	return true
}

// Settled is Quiet, and no actor waits for an answer.
func (r *Run) Settled() bool {
	return r.Quiet() && !slices.ContainsFunc(r.seats, func(s *seat) bool { return asks(s.sys) })
}

// asks reports whether an actor of a system waits for an answer.
func asks(sys *host.System) bool {
	for _, i := range sys.View().AppendInfo(nil) {
		if !strings.HasPrefix(i.Ref.Path(), "/user/") {
			continue
		}
		if x, err := sys.View().Inspect(done, i.Ref); err == nil && x.Counts != nil && x.Counts.Asks > 0 {
			return true
		}
	}
	return false
}

// CheckBounds checks that no actor holds more than it may. It is called between two steps.
func (r *Run) CheckBounds() {
	for _, s := range r.seats {
		r.checkBounds(s.sys)
	}
}

func (r *Run) checkBounds(sys *host.System) {
	for _, i := range sys.View().AppendInfo(nil) {
		path := i.Ref.Path()
		if !strings.HasPrefix(path, "/user/") {
			continue
		}
		x, err := sys.View().Inspect(done, i.Ref)
		if err != nil {
			continue
		}
		l := x.Limits
		over := func(what string, is, most int64) {
			if most > 0 && is > most {
				r.Violate("accounts", "%s has %d %s, and its limit is %d", path, is, what, most)
			}
			if is < 0 {
				r.Violate("accounts", "%s has %d %s", path, is, what)
			}
		}
		over("bytes held", x.Parts.Total()-x.Parts.Memory, l.Held)
		over("children", int64(x.Children), int64(l.Children))
		over("bytes of messages", x.MailboxBytes, l.MailboxBytes+l.Held)
		over("unused replies", int64(x.Replies), int64(l.Replies))
		if c := x.Counts; c != nil {
			over("timers", int64(c.Timers), int64(l.Timers))
			over("asks", int64(c.Asks), int64(l.Asks))
			over("watches", int64(c.Watches), int64(l.Watches))
			over("stashed messages", int64(c.Stash), int64(l.Stash))
		}
	}
}

// done is a context that has ended: nothing is waited for.
var done = func() context.Context {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	cancel()
	return ctx
}()

// CheckEnd checks, after Calm and when all is over, that every mailbox is empty and every ask has ended. bound is how much virtual
// time has passed since Calm.
func (r *Run) CheckEnd(bound time.Duration) {
	r.CheckBounds()
	r.mu.Lock()
	held := r.held
	r.once.check(r)
	r.mu.Unlock()
	if held != 0 {
		r.Violate("every mailbox empties", "%d bytes of messages are still held back", held)
	}
	for _, s := range r.seats {
		r.checkEnd(s.sys, bound)
	}
}

func (r *Run) checkEnd(sys *host.System, bound time.Duration) {
	for _, i := range sys.View().AppendInfo(nil) {
		path := i.Ref.Path()
		if i.Mailbox > 0 && !i.Paused {
			r.Violate("every mailbox empties", "%s has %d messages %v after the end of the faults; it is %s", path, i.Mailbox, bound, i.State)
		}
		if !strings.HasPrefix(path, "/user/") {
			continue
		}
		x, err := sys.View().Inspect(done, i.Ref)
		if err == nil && i.Mailbox == 0 && x.Mailbox == 0 && x.MailboxBytes != 0 {
			r.Violate("accounts", "%s has no message, and its mailbox holds %d bytes", path, x.MailboxBytes)
		}
		if err == nil && x.Counts != nil && x.Counts.Asks > 0 {
			if _, timers := r.virtual.Next(); !timers {
				r.Violate("every ask ends", "%s has %d open asks %v after the end of the faults, and nothing is due that would end them", path, x.Counts.Asks, bound)
			}
		}
	}
}
