package testkit

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Filter says which events a test means. It is immutable: each method returns a changed copy.
type Filter struct {
	what  string
	tests []func(*host.Event) bool
}

func filter(what string, kind host.EventKind) Filter {
	return Filter{what, []func(*host.Event) bool{func(e *host.Event) bool { return e.Kind == kind }}}
}

// Crash is a failure of an actor, with any directive.
func Crash() Filter { return filter("crash", host.EventFailed) }

// Restart is an incarnation that has taken over.
func Restart() Filter { return filter("restart", host.EventRestarted) }

// End is the end of an actor.
func End() Filter { return filter("end of an actor", host.EventStopped) }

// LogLine is a line that a guest has logged.
func LogLine() Filter { return filter("log line", host.EventLog) }

// DeadLetter is a message that was not delivered.
func DeadLetter() Filter { return filter("dead letter", host.EventDeadLetter) }

// Unhandled is a message that its receiver had no use for.
func Unhandled() Filter { return filter("unhandled message", host.EventUnhandled) }

// EventOf is an event of any kind.
func EventOf(k host.EventKind) Filter { return filter(k.String()+" event", k) }

func (f Filter) with(what string, test func(*host.Event) bool) Filter {
	return Filter{f.what + " " + what, append(append([]func(*host.Event) bool(nil), f.tests...), test)}
}

// From selects events about the actor at a path, in which "*" and "?" stand for parts of an element, and "**" at the end for
// all below. A dead letter is about its receiver.
func (f Filter) From(path string) Filter {
	p := glob.CompilePath(path)
	return f.with("of "+path, func(e *host.Event) bool { return p.Match(elementsOf(about(e))) })
}

// Kind selects events with a failure of this kind.
func (f Filter) Kind(k abi.FailureKind) Filter {
	return f.with("by "+k.String(), func(e *host.Event) bool { return e.Failure != nil && e.Failure.Kind == k })
}

// Reason selects dead letters with this reason.
func (f Filter) Reason(r host.DeadReason) Filter {
	return f.with("because: "+r.String(), func(e *host.Event) bool { return e.Dead != nil && e.Dead.Reason == r })
}

// Level selects log lines of this level: abi.LogDebug to abi.LogError.
func (f Filter) Level(level int) Filter {
	return f.with(fmt.Sprint("of level ", level), func(e *host.Event) bool { return e.Kind == host.EventLog && e.Level == level })
}

// Text selects events with exactly this text: of a failure its message, of a log line the line.
func (f Filter) Text(text string) Filter {
	return f.with(fmt.Sprintf("%q", text), func(e *host.Event) bool { return textOf(e) == text })
}

// Prefix selects events whose text begins with this.
func (f Filter) Prefix(text string) Filter {
	return f.with(fmt.Sprintf("beginning %q", text), func(e *host.Event) bool { return strings.HasPrefix(textOf(e), text) })
}

// Pattern selects events of whose text a part matches a regular expression.
func (f Filter) Pattern(expr string) Filter {
	re := regexp.MustCompile(expr)
	return f.with("like "+expr, func(e *host.Event) bool { return re.MatchString(textOf(e)) })
}

// Mail selects events about a message that matches: a value, or a [Matcher].
func (f Filter) Mail(want any) Filter {
	w := matcherOf(want)
	return f.with("about "+w.String(), func(e *host.Event) bool {
		switch {
		case e.Dead != nil:
			return w.Match(host.Message{Kind: e.Dead.Kind, Payload: e.Dead.Payload})
		case e.Mail != nil:
			return w.Match(host.Message{Kind: e.Mail.Kind, Correlation: e.Mail.Correlation, Payload: e.Mail.Payload})
		}
		return false
	})
}

// Where selects events for which test returns true; what describes them in reports.
func (f Filter) Where(what string, test func(*host.Event) bool) Filter { return f.with(what, test) }

// String is the description of the filter in reports.
func (f Filter) String() string { return f.what }

// Match reports whether the filter selects an event.
func (f Filter) Match(e *host.Event) bool {
	for _, test := range f.tests {
		if !test(e) {
			return false
		}
	}
	return true
}

// about is the path of the actor that an event is about.
func about(e *host.Event) string {
	if e.Dead != nil && e.Dead.Path != "" {
		return pathOf(e.Dead.Path)
	}
	return e.Ref.Path()
}

func textOf(e *host.Event) string {
	switch {
	case e.Kind == host.EventLog:
		return e.Text
	case e.Failure != nil:
		return e.Failure.Error()
	case e.Dead != nil && e.Dead.Reason != 0:
		return e.Dead.Reason.String()
	}
	return e.Note
}

// describe is an event in a report.
func describe(e *host.Event) string {
	text := fmt.Sprintf("%s %s", e.Kind, about(e))
	if s := textOf(e); s != "" {
		text += ": " + clip(s)
	}
	if e.Dead != nil {
		text += ": " + value(e.Dead.Payload)
	}
	return text
}

// recorded are the events of a system that expectations wait for.
type recorded struct {
	k    *Kit
	sub  *host.Subscription
	done chan struct{} // of the goroutine that reads, in real time

	mu      sync.Mutex
	waiting []*waiting
	muted   []Filter
}

// waiting is an expectation of events.
type waiting struct {
	f    Filter
	got  []host.Event
	near []string // events of the right kind that did not match
}

// maxEvents is how many events may come between two reads.
const maxEvents = 100_000

func record(k *Kit) *recorded {
	r := &recorded{k: k, sub: k.sys.Subscribe(maxEvents, nil), done: make(chan struct{})}
	if k.virtual != nil {
		close(r.done)
		return r
	}
	go func() {
		defer close(r.done)
		for e := range r.sub.C() {
			r.take(&e)
		}
	}()
	return r
}

// wait returns when the reading of events has ended.
func (r *recorded) wait() { <-r.done }

// collect reads what has happened, in virtual time.
func (r *recorded) collect() {
	if r.k.virtual == nil {
		return
	}
	for {
		select {
		case e, ok := <-r.sub.C():
			if !ok {
				return
			}
			r.take(&e)
		default:
			return
		}
	}
}

// take passes an event to the expectations that wait for it. An unexpected event goes to the test's log, if it is important
// enough.
func (r *recorded) take(e *host.Event) {
	r.mu.Lock()
	expected := false
	for _, w := range r.waiting {
		switch {
		case w.f.Match(e):
			w.got = append(w.got, *e)
			expected = true
		case w.f.tests[0](e) && len(w.near) < shownMessages:
			w.near = append(w.near, describe(e))
		}
	}
	for _, f := range r.muted {
		expected = expected || f.Match(e)
	}
	r.mu.Unlock()
	r.k.tell()
	if expected {
		return
	}
	switch e.Kind {
	case host.EventFailed, host.EventEscalated, host.EventDeadLetter, host.EventUnhandled, host.EventRefused:
		r.k.t.Logf("testkit: %s", describe(e))
	case host.EventLog:
		if e.Level >= abi.LogWarn {
			r.k.t.Logf("testkit: %s", describe(e))
		}
	}
}

// Mute keeps events out of the test's log, which otherwise has failures, dead letters, unhandled messages and
// guests' warnings that no test expects.
func (k *Kit) Mute(filters ...Filter) {
	k.events.mu.Lock()
	defer k.events.mu.Unlock()
	k.events.muted = append(k.events.muted, filters...)
}

// ExpectEvents runs f, which must cause n events, and returns them in order. It waits for them until
// the leeway is over; one event more is an error as well. With n = 0 none may come during the leeway.
func (k *Kit) ExpectEvents(n int, of Filter, f func()) []host.Event {
	k.t.Helper()
	k.Run()
	w := &waiting{f: of}
	r := k.events
	r.mu.Lock()
	r.waiting = append(r.waiting, w)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, x := range r.waiting {
			if x == w {
				r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
				break
			}
		}
	}()
	f()
	leeway := k.Dilated(k.o.leeway)
	enough := k.until(leeway, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return n > 0 && len(w.got) >= n || len(w.got) > n
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(w.got) == n && (enough || n == 0) {
		return w.got
	}
	var came []string
	for i := range w.got {
		came = append(came, describe(&w.got[i]))
	}
	text := strings.Join(came, "; ")
	if len(came) == 0 {
		text = "nothing"
	}
	if len(w.near) > 0 {
		text += "\n  others: " + strings.Join(w.near, "; ")
	}
	k.t.Fatalf("testkit: expected within %v: %s\n  came: %d: %s%s", leeway, count(n, of.String()), len(w.got), text, k.waits())
	return nil
}
