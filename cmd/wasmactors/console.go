package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/log"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/supervision"
)

// console prints what happens in a run: answers on standard output, everything else on
// standard error.
type console struct {
	env   *environment
	json  bool
	quiet bool
	brief bool // no summary as text
	level int
	log   *log.Logger

	status *statusLine
	fail   func(error) // ends the run
	mu     sync.Mutex
	failed error // of writing answers

	sub      *host.Subscription
	finished sync.WaitGroup
	crashes  tally
	dead     int    // dead letters, shown or not
	refused  int    // likewise
	reports  string // all, first or none
	reported map[string]bool

	ends    *host.Subscription // of top-level actors; never loses one
	endings sync.WaitGroup
	died    []string // top-level actors that have failed for good, and why
}

func newConsole(env *environment, asJSON, quiet bool, level int, reports string) *console {
	c := &console{env: env, json: asJSON, quiet: quiet, level: level, reports: reports, status: newStatusLine(env.terminal), fail: func(error) {},
		reported: map[string]bool{}}
	// The log does not see that the stream is a terminal, so it does not query it.
	c.log = log.NewWithOptions(c.status, log.Options{ReportTimestamp: true, TimeFormat: "15:04:05.000", Level: logLevels[level]})
	c.log.SetColorProfile(colours(env.terminal))
	return c
}

var logLevels = [...]log.Level{log.DebugLevel, log.InfoLevel, log.WarnLevel, log.ErrorLevel}

// eventBuffer is how many events may wait for a slow terminal; beyond it they are only
// counted.
const eventBuffer = 1 << 12

// endBuffer is how many top-level actors may fail for good at a time and be named at the end.
const endBuffer = 1 << 12

func whyStopped(e *host.Event) string {
	if e.Failure != nil {
		return e.Failure.Error()
	}
	return e.Note
}

// follow prints the events of a system as they come.
func (c *console) follow(sys *host.System) {
	c.ends = sys.Subscribe(endBuffer, func(e *host.Event) bool {
		return e.Kind == host.EventStopped && (e.Failure != nil || strings.HasPrefix(e.Note, "failed")) &&
			strings.HasPrefix(e.Ref.Path(), "/user/") && strings.Count(e.Ref.Path(), "/") == 2
	})
	c.endings.Go(func() {
		for e := range c.ends.C() {
			c.died = append(c.died, fmt.Sprintf("%s has failed and was stopped: %s", e.Ref.Path(), oneLine(whyStopped(&e))))
		}
	})
	c.sub = sys.Subscribe(eventBuffer, nil)
	c.finished.Add(1)
	go func() {
		defer c.finished.Done()
		for e := range c.sub.C() {
			c.event(&e)
		}
	}()
}

func (c *console) event(e *host.Event) {
	if e.Kind == host.EventFailed {
		c.crashes.add(e)
	}
	switch {
	case c.quiet:
	case c.json:
		if e.Kind != host.EventLog || e.Level >= c.level {
			c.env.writeJSON(advised{e})
		}
	default:
		c.human(e)
	}
}

// shownDeadLetters is how many dead letters are printed as text, like Akka's log-dead-letters: an
// actor that sends to a missing actor usually does so repeatedly.
const shownDeadLetters = 10

func (c *console) human(e *host.Event) {
	path := e.Ref.Path()
	switch e.Kind {
	case host.EventStarted:
		c.log.Debug("started", "actor", path)
	case host.EventFailed:
		c.log.Error("crashed", withAdvice(e, "actor", path, "why", oneLine(e.Failure.Error()), "then", oneLine(verdict(e)))...)
		c.report(e)
	case host.EventRestarted:
		c.log.Info("restarted", "actor", path, "incarnation", e.Incarnation)
	case host.EventResumed:
		c.log.Info("resumed", "actor", path)
	case host.EventStopped:
		if strings.HasPrefix(e.Note, "failed") {
			c.log.Error("stopped", "actor", path, "why", oneLine(e.Note))
		} else {
			c.log.Debug("stopped", "actor", path, "why", oneLine(e.Note))
		}
	case host.EventDeadLetter:
		if e.Dead.GivenUp() {
			c.log.Debug("nobody waits for it any more", "from", oneLine(e.Dead.From), "to", oneLine(e.Dead.To()), "why", e.Dead.Reason.String())
			return
		}
		switch c.dead++; {
		case c.dead == shownDeadLetters+1:
			c.log.Warn("more dead letters are counted and not shown; --json shows all")
			return
		case c.dead > shownDeadLetters:
			return
		}
		pairs := []any{}
		if from := e.Dead.From; from != "" && from != "/temp" { // from an actor
			pairs = append(pairs, "from", oneLine(from))
		}
		c.log.Warn("dead letter", withAdvice(e, append(pairs, "to", oneLine(e.Dead.To()), "why", e.Dead.Reason.String(), "message", preview(e.Dead.Payload))...)...)
	case host.EventRefused:
		switch c.refused++; {
		case c.refused == shownDeadLetters+1:
			c.log.Warn("more refusals are not shown; --json shows all")
			return
		case c.refused > shownDeadLetters:
			return
		}
		r, pairs := e.Refused, []any{"actor", path}
		if r.Type != "" {
			pairs = append(pairs, "type", oneLine(r.Type), "name", oneLine(r.Name))
		}
		c.log.Warn(oneLine(r.What)+" refused", withAdvice(e, append(pairs, "why", oneLine(r.Reason))...)...)
	case host.EventUnhandled:
		pairs := []any{"actor", path, "message", preview(e.Dead.Payload)}
		if e.Dead.Type != "" {
			pairs = append(pairs, "type", oneLine(e.Dead.Type))
		}
		c.log.Warn("unhandled", pairs...)
	case host.EventLog:
		if e.Level >= c.level {
			c.log.Log(logLevels[min(max(e.Level, 0), 3)], printable.Text(e.Text), "actor", path)
		}
	}
}

// advised is an event with the key of the manifest that it is about.
type advised struct{ *host.Event }

// MarshalJSON implements json.Marshaler.
func (a advised) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(a.Event)
	advice := bundle.Advice(a.Event)
	if err != nil || advice == "" {
		return text, err
	}
	more, err := json.Marshal(advice)
	return slices.Concat(text[:len(text)-1], []byte(`,"advice":`), more, []byte("}")), err
}

// withAdvice adds the key of the manifest that an event is about.
func withAdvice(e *host.Event, pairs ...any) []any {
	if advice := bundle.Advice(e); advice != "" {
		pairs = append(pairs, "key", oneLine(advice))
	}
	return pairs
}

// report prints the full report of a failure: of each, or of an actor's first of a kind.
func (c *console) report(e *host.Event) {
	key := e.Ref.Path() + "\x00" + e.Failure.Kind.String() + oneLine(e.Failure.Reason)
	if c.reports == "none" || c.reports == "first" && c.reported[key] {
		return
	}
	if len(c.reported) < maxReported {
		c.reported[key] = true
	}
	var b strings.Builder
	for _, line := range strings.Split(e.Report(), "\n")[1:] {
		b.WriteString("    " + printable.Line(line, 4096) + "\n")
	}
	_, _ = io.WriteString(c.status, b.String())
}

// maxReported bounds the kinds of failures that are remembered, since hostile guests can make
// any number of them.
const maxReported = 1000

// verdict describes the decision about a failure.
func verdict(e *host.Event) string {
	s := e.Directive.String()
	if e.Directive == supervision.Restart {
		if e.Delay > 0 {
			s += " in " + e.Delay.Round(100*time.Microsecond).String()
		} else {
			s += " now"
		}
	}
	if e.Note != "" {
		s += " (" + e.Note + ")"
	}
	return s
}

// preview is a payload in one short line.
func preview(payload []byte) string {
	text, err := host.ToJSON(payload)
	if err != nil {
		return fmt.Sprintf("%d bytes", len(payload))
	}
	return printable.Line(string(text), 120)
}

// oneLine is the first line of a text, of bounded length, safe for a terminal.
func oneLine(s string) string { return printable.Line(s, 200) }

type jsonAnswer struct {
	Line   int             `json:"line"`
	To     string          `json:"to,omitempty"`
	Kind   string          `json:"kind"`
	From   string          `json:"from,omitempty"`
	Reply  json.RawMessage `json:"reply,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// answer writes the outcome of a line of input at once. If it cannot be written, the run
// ends.
func (c *console) answer(a bundle.Answer) {
	j := jsonAnswer{Line: a.Line, To: a.To, Kind: a.Kind(), Reason: a.Reason()}
	if a.Err == nil {
		reply, err := host.ToJSON(a.Payload)
		if err != nil {
			j.Kind, j.Reason = bundle.KindFailed, err.Error()
		} else {
			j.From, j.Reply = a.From.Path(), reply
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(j); err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return
	}
	if _, err := c.env.stdout.Write(printable.JSON(b.Bytes())); err != nil {
		c.failed = &outputError{err}
		c.fail(c.failed)
	}
}

// cannotAnswer ends the run, since answers cannot be written.
func (c *console) cannotAnswer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = &outputError{err}
		c.fail(c.failed)
	}
}

// broken is the error of writing answers; nil if there was none.
func (c *console) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// feeding shows how far the feed is, on a terminal.
func (c *console) feeding(sys *host.System) func(bundle.FeedStats) {
	if c.quiet || c.json || !c.status.draws {
		return nil
	}
	began := time.Now()
	return func(s bundle.FeedStats) { c.status.set(feedingText(s, time.Since(began), sys)) }
}

func (c *console) started(b *bundle.Bundle, took time.Duration) {
	if c.quiet || c.json {
		return
	}
	attrs := []any{"took", took.Round(time.Millisecond)}
	if g := b.Gateway(); g != nil {
		for _, a := range g.Addrs() {
			attrs = append(attrs, "http", a.String())
		}
	}
	c.log.Info("bundle "+b.Manifest.Name+" is up", attrs...)
}

// reloaded prints that an operator has had the bundle read again.
func (c *console) reloaded(r admin.Reloaded) {
	switch {
	case c.quiet:
	case c.json:
		c.env.writeJSON(map[string]any{"event": "reloaded", "restarted": r.Restarted, "modules": r.Modules, "actors": r.Actors})
	default:
		c.log.Info("read again", "restarted", r.Restarted, "modules", len(r.Modules), "actors", len(r.Actors))
	}
}

// upgraded prints that an operator has exchanged the code of actors.
func (c *console) upgraded(r *admin.UpgradeReport) {
	for i := range r.Modules {
		m := &r.Modules[i]
		did := map[string]int{}
		for _, t := range m.Types {
			for name, n := range t.Did {
				did[name] += n
			}
		}
		switch {
		case c.quiet:
		case c.json:
			c.env.writeJSON(map[string]any{"event": "upgraded", "module": m.Module, "before": m.Before, "now": m.Now, "did": did, "stopped": m.Stopped, "rolled_back": m.RolledBack})
		case m.Stopped != "" || did[upgrade.Restarted] > 0:
			c.log.Warn("upgraded "+m.Module, "actors", fmt.Sprint(did), "stopped", m.Stopped)
		default:
			c.log.Info("upgraded "+m.Module, "actors", fmt.Sprint(did))
		}
	}
}

// end prints the events that are left, and a summary.
func (c *console) end(m *bundle.Manifest, stats bundle.FeedStats, final host.Stats, took time.Duration) {
	c.finished.Wait()
	c.endings.Wait()
	c.status.set("")
	lost := uint64(0)
	if c.sub != nil {
		lost = c.sub.Dropped()
	}
	if c.json {
		c.env.writeJSON(map[string]any{
			"event": "summary", "bundle": m.Name, "seconds": took.Seconds(), "sent": stats.Sent, "answered": stats.Answered,
			"errors": stats.Errors, "failed": stats.Failed, "timeouts": stats.Timeouts, "unanswered": stats.Unanswered, "invalid": stats.Invalid, "turns": final.Turns,
			"crashes": final.Crashes, "restarts": final.Restarts, "dead_letters": final.DeadLetters, "fuel": final.Fuel, "events_lost": lost,
		})
		return
	}
	if c.quiet || c.brief {
		return
	}
	w := c.env.stderr
	fmt.Fprintf(w, "\nbundle %s, %s\n", m.Name, took.Round(time.Millisecond))
	fmt.Fprintf(w, "  messages      %d sent, %d answered, %d answered with an error, %d failed, %d without an answer, %d too late, %d lines invalid\n",
		stats.Sent, stats.Answered, stats.Errors, stats.Failed, stats.Unanswered, stats.Timeouts, stats.Invalid)
	fmt.Fprintf(w, "  turns         %d, %.1f million units of fuel\n", final.Turns, float64(final.Fuel)/1e6)
	fmt.Fprintf(w, "  crashes       %d, %s, %s\n", final.Crashes, plural(int(final.Restarts), "restart"), plural(c.crashes.stopped, "stop"))
	c.crashes.write(w)
	fmt.Fprintf(w, "  dead letters  %d\n", final.DeadLetters)
	if lost > 0 {
		fmt.Fprintf(w, "  %d events came faster than they could be shown\n", lost)
	}
}
