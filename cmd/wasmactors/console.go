package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/log"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/supervision"
)

var logLevels = map[string]int{"debug": abi.LogDebug, "info": abi.LogInfo, "warn": abi.LogWarn, "error": abi.LogError}

// console shows a run: answers on standard output, everything else on standard
// error.
type console struct {
	env   *environment
	json  bool
	quiet bool
	level int
	log   *log.Logger

	mu  sync.Mutex
	out *bufio.Writer

	sub      *host.Subscription
	finished sync.WaitGroup
	crashes  map[string]int
	delays   map[string]time.Duration
	restarts int
	stopped  int
	dead     int // dead letters, shown or not
	order    []string
	reports  string // all, first or none
	reported map[string]bool
}

func newConsole(env *environment, asJSON, quiet bool, level int, reports string) *console {
	c := &console{env: env, json: asJSON, quiet: quiet, level: level, reports: reports, out: bufio.NewWriter(env.stdout),
		crashes: map[string]int{}, delays: map[string]time.Duration{}, reported: map[string]bool{}}
	c.log = log.NewWithOptions(env.stderr, log.Options{ReportTimestamp: true, TimeFormat: "15:04:05.000", Level: []log.Level{log.DebugLevel, log.InfoLevel, log.WarnLevel, log.ErrorLevel}[level]})
	return c
}

// eventBuffer is how many events may wait for a slow terminal; more are counted.
const eventBuffer = 1 << 14

// follow shows the events of a system as they come.
func (c *console) follow(sys *host.System) {
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
		path := e.Ref.Path()
		if c.crashes[path] == 0 {
			c.order = append(c.order, path)
		}
		c.crashes[path]++
		c.delays[path] += e.Delay
		switch e.Directive {
		case supervision.Restart, supervision.Resume:
			c.restarts++
		case supervision.Stop:
			c.stopped++
		}
	}
	switch {
	case c.quiet:
	case c.json:
		c.writeJSON(e)
	default:
		c.human(e)
	}
}

// shownDeadLetters is how many are shown to a person, as Akka's log-dead-letters: who
// sends to nobody usually does it again and again.
const shownDeadLetters = 10

func (c *console) human(e *host.Event) {
	path := e.Ref.Path()
	switch e.Kind {
	case host.EventStarted:
		c.log.Debug("started", "actor", path)
	case host.EventFailed:
		c.log.Error("crashed", "actor", path, "why", oneLine(e.Failure.Error()), "then", verdict(e))
		c.report(e)
	case host.EventRestarted:
		c.log.Info("restarted", "actor", path, "incarnation", e.Incarnation)
	case host.EventResumed:
		c.log.Info("resumed", "actor", path)
	case host.EventStopped:
		if strings.HasPrefix(e.Note, "failed") {
			c.log.Error("stopped", "actor", path, "why", oneLine(e.Note))
		} else {
			c.log.Debug("stopped", "actor", path, "why", e.Note)
		}
	case host.EventDeadLetter:
		switch c.dead++; {
		case c.dead == shownDeadLetters+1:
			c.log.Warn("more dead letters are counted and not shown; --json shows all")
			return
		case c.dead > shownDeadLetters:
			return
		}
		c.log.Warn("dead letter", "to", deadTo(e), "why", e.Dead.Reason.String(), "message", preview(e.Dead.Payload))
	case host.EventUnhandled:
		c.log.Warn("unhandled", "actor", path, "message", preview(e.Dead.Payload))
	case host.EventLog:
		if e.Level >= c.level {
			levels := []log.Level{log.DebugLevel, log.InfoLevel, log.WarnLevel, log.ErrorLevel}
			c.log.Log(levels[min(max(e.Level, 0), 3)], printable(e.Text), "actor", path)
		}
	}
}

// report prints the whole report of an actor's first failure of a sort, or of all.
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
		b.WriteString("    " + printable(line) + "\n")
	}
	_, _ = io.WriteString(c.env.stderr, b.String())
}

// maxReported bounds what the console remembers: hostile guests have many reasons.
const maxReported = 1000

// verdict is what was decided about a failure.
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

func deadTo(e *host.Event) string {
	if e.Dead.Path != "" {
		return e.Dead.Path
	}
	return fmt.Sprint(uint64(e.Dead.Recipient))
}

// preview is a payload in one short line.
func preview(payload []byte) string {
	text, err := bundle.ToJSON(payload)
	if err != nil {
		return fmt.Sprintf("%d bytes", len(payload))
	}
	s := string(text)
	if len(s) > 120 {
		s = s[:117] + "..."
	}
	return s
}

// oneLine is the first line of a text, of bounded length, safe for a terminal.
func oneLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 200 {
		s = s[:197] + "..."
	}
	return printable(s)
}

// printable replaces what could move a cursor or change a title: guests are not
// trusted with the terminal either.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

type jsonEvent struct {
	Time        time.Time    `json:"time"`
	Event       string       `json:"event"`
	Actor       string       `json:"actor,omitempty"`
	Ref         string       `json:"ref,omitempty"`
	Type        string       `json:"type,omitempty"`
	Incarnation uint64       `json:"incarnation"`
	Failure     *jsonFailure `json:"failure,omitempty"`
	Directive   string       `json:"directive,omitempty"`
	DelayMS     *float64     `json:"delay_ms,omitempty"`
	Failures    int          `json:"failures,omitempty"`
	Note        string       `json:"note,omitempty"`
	Level       string       `json:"level,omitempty"`
	Text        string       `json:"text,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	To          string       `json:"to,omitempty"`
	Bytes       int          `json:"bytes,omitempty"`
	Message     *jsonMail    `json:"message,omitempty"`
	Memory      uint64       `json:"memory,omitempty"`
	Waiting     *int         `json:"waiting,omitempty"`
}

type jsonMail struct {
	Kind        string          `json:"kind"`
	Sender      uint64          `json:"sender,omitempty"`
	Bytes       int             `json:"bytes"`
	Payload     json.RawMessage `json:"payload,omitempty"` // if it is whole, and fits JSON
	Redelivered int             `json:"redelivered,omitempty"`
}

type jsonFailure struct {
	Kind       string   `json:"kind"`
	Reason     string   `json:"reason,omitempty"`
	Message    string   `json:"message,omitempty"`
	Stack      []string `json:"stack,omitempty"`
	GuestStack string   `json:"guest_stack,omitempty"`
	Turn       uint64   `json:"turn"`
	Fuel       uint64   `json:"fuel"`
}

func (c *console) writeJSON(e *host.Event) {
	if e.Kind == host.EventLog && e.Level < c.level {
		return
	}
	j := jsonEvent{Time: e.Time, Event: e.Kind.String(), Type: e.Type, Incarnation: e.Incarnation, Failures: e.Failures, Note: e.Note, Text: e.Text}
	if !e.Ref.IsZero() {
		j.Actor, j.Ref = e.Ref.Path(), e.Ref.String()
	}
	if f := e.Failure; f != nil {
		j.Failure = &jsonFailure{f.Kind.String(), f.Reason, f.Message, f.Stack, f.GuestStack, f.Turn, f.Fuel}
	}
	if e.Kind == host.EventFailed {
		ms := float64(e.Delay) / float64(time.Millisecond)
		j.Directive, j.DelayMS = e.Directive.String(), &ms
	}
	if m := e.Mail; m != nil {
		j.Message = &jsonMail{Kind: m.Kind.String(), Sender: uint64(m.Sender), Bytes: m.Size, Redelivered: m.Redelivered}
		if payload, err := bundle.ToJSON(m.Payload); err == nil && m.Size == len(m.Payload) {
			j.Message.Payload = payload
		}
		j.Memory, j.Waiting = m.Memory, &m.Waiting
	}
	if e.Kind == host.EventLog {
		j.Level = []string{"debug", "info", "warn", "error"}[min(max(e.Level, 0), 3)]
	}
	if e.Dead != nil {
		j.Reason, j.To, j.Bytes = e.Dead.Reason.String(), deadTo(e), e.Dead.Size
	}
	c.line(c.env.stderr, j)
}

func (c *console) line(w io.Writer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Write(append(text, '\n'))
}

type jsonAnswer struct {
	Line  int             `json:"line"`
	To    string          `json:"to,omitempty"`
	From  string          `json:"from,omitempty"`
	Reply json.RawMessage `json:"reply,omitempty"`
	Error string          `json:"error,omitempty"`
}

// answer prints what became of a line of input.
func (c *console) answer(a bundle.Answer) {
	j := jsonAnswer{Line: a.Line, To: a.To}
	var bad *bundle.InputError
	switch {
	case errors.As(a.Err, &bad):
		j.Error = "input: " + bad.Reason
	case a.Err != nil:
		j.Error = strings.TrimPrefix(a.Err.Error(), "host: ")
	default:
		reply, err := bundle.ToJSON(a.Payload)
		if err != nil {
			j.Error = err.Error()
			break
		}
		j.From, j.Reply = a.From.Path(), reply
	}
	c.line(c.out, j)
}

func (c *console) started(m *bundle.Manifest, took time.Duration) {
	if !c.quiet && !c.json {
		c.log.Info("bundle "+m.Name+" is up", "took", took.Round(time.Millisecond))
	}
}

// end prints what has not been printed yet, and a summary.
func (c *console) end(m *bundle.Manifest, stats bundle.FeedStats, final host.Stats, took time.Duration) {
	c.finished.Wait()
	c.mu.Lock()
	c.out.Flush()
	c.mu.Unlock()
	lost := uint64(0)
	if c.sub != nil {
		lost = c.sub.Dropped()
	}
	crashes := 0
	for _, n := range c.crashes {
		crashes += n
	}
	if c.json {
		c.line(c.env.stderr, map[string]any{
			"event": "summary", "bundle": m.Name, "seconds": took.Seconds(), "sent": stats.Sent, "answered": stats.Answered,
			"errors": stats.Errors, "unanswered": stats.Unanswered, "invalid": stats.Invalid, "turns": final.Turns,
			"crashes": final.Crashes, "restarts": c.restarts, "dead_letters": final.DeadLetters, "fuel": final.Fuel, "events_lost": lost,
		})
		return
	}
	if c.quiet {
		return
	}
	w := c.env.stderr
	fmt.Fprintf(w, "\nbundle %s, %s\n", m.Name, took.Round(time.Millisecond))
	fmt.Fprintf(w, "  messages      %d sent, %d answered, %d answered with an error, %d without an answer, %d lines invalid\n",
		stats.Sent, stats.Answered, stats.Errors, stats.Unanswered, stats.Invalid)
	fmt.Fprintf(w, "  turns         %d, %.1f million units of fuel\n", final.Turns, float64(final.Fuel)/1e6)
	fmt.Fprintf(w, "  crashes       %d, %d restarts, %d stops\n", crashes, c.restarts, c.stopped)
	for _, path := range c.order {
		fmt.Fprintf(w, "    %-20s %d crashes, %s of delays before restarts\n", path, c.crashes[path], c.delays[path].Round(time.Millisecond))
	}
	fmt.Fprintf(w, "  dead letters  %d\n", final.DeadLetters)
	if lost > 0 {
		fmt.Fprintf(w, "  %d events came faster than they could be shown\n", lost)
	}
}
