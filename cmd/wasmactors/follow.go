package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/log"
	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/printable"
)

const followHelp = "ACTOR is the name of a top-level actor, or a path, also with patterns. Whoever follows one actor is told why when it\n" +
	"ends. Events that come faster than they can be shown are counted and left out.\n\nExamples:\n\n"

func eventsCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "events", Usage: "show past events of a running bundle, and with -f new ones", ArgsUsage: "[ACTOR...]",
		Description: followHelp +
			"   wasmactors events --kind failed --kind restarted\n" +
			"   wasmactors events -f '/user/pool-*' --since 10m\n" +
			"   wasmactors events --not-kind log --not-path '/user/noisy/**'\n" +
			"   wasmactors events -f --json | jq 'select(.event == \"failed\").failure.reason'",
		Flags: reachFlags(append(followFlags(), kindFlags()...)...),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			q, err := eventQuery(c)
			if err != nil {
				return err
			}
			if err := addKinds(c, q); err != nil {
				return err
			}
			return r.follow(c, "/v1/events", q, r.event())
		}),
	}
}

func logsCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "logs", Usage: "show what the actors of a running bundle have logged, and with -f new lines", ArgsUsage: "[ACTOR...]",
		Description: "Each line names its actor.\n" + followHelp +
			"   wasmactors logs -f greeter\n" +
			"   wasmactors logs -f --level warn --type 'hello/*'\n" +
			"   wasmactors logs --since 1h --json",
		Flags: reachFlags(followFlags()...),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			q, err := eventQuery(c)
			if err != nil {
				return err
			}
			q.Set("kind", host.EventLog.String())
			return r.follow(c, "/v1/events", q, r.event())
		}),
	}
}

func traceCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "trace", Usage: "show the messages that an actor of a running bundle gets and sends, from now on", ArgsUsage: "ACTOR",
		Description: "Payloads are shown as JSON, as far as they are kept. The actor pays nothing for it but the host's time.\n\nExamples:\n\n" +
			"   wasmactors trace greeter\n" +
			"   wasmactors trace /user/bank/alice --for 10s --json\n" +
			"   wasmactors trace greeter --messages 20 --payload 1024",
		Flags: reachFlags(
			&cli.StringFlag{Name: "for", Usage: "end after `DURATION`"},
			&cli.IntFlag{Name: "messages", Usage: "end after `N` messages"},
			&cli.IntFlag{Name: "payload", Usage: "keep `N` bytes of each payload (default: 4096)"},
		),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			name, err := oneArg(c, "an actor", "")
			if err != nil {
				return err
			}
			q := url.Values{"path": {pathOf(name)}}
			d, err := durationFlag(c, "for")
			if err != nil {
				return err
			}
			if d > 0 {
				q.Set("seconds", strconv.FormatFloat(d.Seconds(), 'f', -1, 64))
			}
			for _, n := range []string{"messages", "payload"} {
				if c.IsSet(n) {
					q.Set(n, strconv.Itoa(c.Int(n)))
				}
			}
			return r.follow(c, "/v1/trace", q, r.record)
		}),
	}
}

func kindFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "kind", Usage: "events of `KIND`: " + joined(observe.EventKinds())},
		&cli.StringSliceFlag{Name: "not-kind", Usage: "all but events of `KIND`"},
	}
}

func followFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep printing new ones"},
		&cli.StringSliceFlag{Name: "path", Usage: "of actors whose path matches `GLOB`; as an argument"},
		&cli.StringSliceFlag{Name: "type", Usage: "of actors whose type matches `GLOB`"},
		&cli.StringSliceFlag{Name: "not-path", Usage: "all but those of actors whose path matches `GLOB`"},
		&cli.StringSliceFlag{Name: "not-type", Usage: "all but those of actors whose type matches `GLOB`"},
		&cli.StringFlag{Name: "level", Usage: "log lines of `LEVEL` and worse: " + strings.Join(host.LevelNames(), ", ")},
		&cli.StringFlag{Name: "since", Usage: "what is not older than `AGE`, such as 10m, or a time (default: all that is kept)"},
	}
}

func eventQuery(c *cli.Context) (url.Values, error) {
	sel, err := selected(c)
	if err != nil {
		return nil, err
	}
	q := query(sel)
	if c.Bool("follow") {
		q.Set("follow", "true")
	}
	return q, addFilters(c, q)
}

// addKinds reads the flags for kinds of events.
func addKinds(c *cli.Context, q url.Values) error {
	for _, name := range []string{"kind", "not-kind"} {
		for _, k := range c.StringSlice(name) {
			if !slices.Contains(observe.EventKinds(), k) {
				return usage("--%s: %q is not one of %s%s", name, k, joined(observe.EventKinds()), didYouMean(k, observe.EventKinds()))
			}
			q.Add(name, k)
		}
	}
	return nil
}

// addFilters reads what leaves events out, apart from their kinds.
func addFilters(c *cli.Context, q url.Values) error {
	for _, p := range c.StringSlice("not-path") {
		q.Add("not-path", pathOf(p))
	}
	for _, t := range c.StringSlice("not-type") {
		q.Add("not-type", t)
	}
	if text := c.String("level"); text != "" {
		if _, ok := host.ParseLevel(text); !ok {
			return usage("--level must be one of %s, not %q", strings.Join(host.LevelNames(), ", "), text)
		}
		q.Set("level", text)
	}
	if text := c.String("since"); text != "" {
		t, err := ago("since", text)
		if err != nil {
			return err
		}
		q.Set("since", t.Format(time.RFC3339Nano))
	}
	return nil
}

// follow prints the lines of a stream as they come.
func (r *reached) follow(c *cli.Context, path string, q url.Values, show func(line []byte) error) error {
	each := show
	if r.json {
		each = func(line []byte) error { return write(r.env.stdout, string(line)+"\n") }
	}
	lines := 0
	reason, err := r.Stream(c.Context, path, q, func(line []byte) error { lines++; return each(line) }, func(n uint64) {
		if r.json {
			r.env.writeJSON(map[string]any{"event": "dropped", "dropped": n})
		} else {
			r.env.note(fmt.Sprintf("%d events came faster than they could be shown", n))
		}
	})
	if c.Context.Err() != nil {
		return c.Context.Err()
	}
	if err != nil {
		return streamError(err)
	}
	if lines == 0 && !c.Bool("follow") {
		if err := r.absent(c, q); err != nil {
			return err
		}
	}
	if reason != "" {
		if r.json {
			r.env.writeJSON(map[string]any{"event": "end", "reason": reason})
		} else {
			r.env.note(oneLine(reason))
		}
	}
	return nil
}

// streamError distinguishes an error of the output from one of the stream.
func streamError(err error) error {
	switch err.(type) {
	case *outputError:
		return err
	}
	return refusal(err)
}

// shownEvent are the fields of an event's JSON that are printed.
type shownEvent struct {
	Time      time.Time `json:"time"`
	Event     string    `json:"event"`
	Actor     string    `json:"actor"`
	Level     string    `json:"level"`
	Text      string    `json:"text"`
	Note      string    `json:"note"`
	Directive string    `json:"directive"`
	DelayMS   float64   `json:"delay_ms"`
	Reason    string    `json:"reason"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Key       string    `json:"key"`
	Failure   *struct {
		Kind    string `json:"kind"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"failure"`
	Refused *struct {
		What   string `json:"what"`
		Type   string `json:"type"`
		Name   string `json:"name"`
		Reason string `json:"reason"`
	} `json:"refused"`
}

// event prints events like the log of run.
func (r *reached) event() func([]byte) error {
	out := &checked{w: r.env.stdout}
	l := log.NewWithOptions(out, log.Options{ReportTimestamp: true, TimeFormat: "15:04:05.000", Level: log.DebugLevel})
	l.SetColorProfile(colours(r.env.stdoutFile()))
	return func(line []byte) error {
		var e shownEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		l.SetTimeFunction(func(time.Time) time.Time { return e.Time.Local() })
		e.write(l)
		return out.err
	}
}

func (e *shownEvent) write(l *log.Logger) {
	pairs := []any{}
	add := func(key, value string) {
		if value != "" {
			pairs = append(pairs, key, oneLine(value))
		}
	}
	add("actor", e.Actor)
	if e.Event == host.EventLog.String() {
		level, _ := host.ParseLevel(e.Level)
		l.Log(logLevels[min(max(level, 0), 3)], printable.Text(e.Text), pairs...)
		return
	}
	level := log.InfoLevel
	if f := e.Failure; f != nil {
		text := f.Kind
		for _, more := range []string{f.Reason, f.Message} {
			if more != "" {
				text += ": " + more
			}
		}
		add("why", text)
	}
	add("then", e.Directive)
	if e.DelayMS > 0 {
		add("delay", short(time.Duration(e.DelayMS*float64(time.Millisecond))))
	}
	if x := e.Refused; x != nil {
		add("what", x.What)
		add("type", x.Type)
		add("name", x.Name)
		add("why", x.Reason)
	}
	add("why", e.Reason)
	add("from", e.From)
	add("to", e.To)
	add("note", e.Note)
	add("key", e.Key)
	switch e.Event {
	case host.EventFailed.String(), host.EventEscalated.String():
		level = log.ErrorLevel
	case host.EventDeadLetter.String():
		level = log.WarnLevel
		if e.Actor == "/temp" && e.Reason == host.DeadLate.String() || e.From == "/temp" && e.Reason == host.DeadExpired.String() {
			level = log.DebugLevel // as DeadLetter.GivenUp
		}
	case host.EventRefused.String(), host.EventUnhandled.String():
		level = log.WarnLevel
	}
	l.Log(level, strings.ReplaceAll(e.Event, "_", " "), pairs...)
}

// checked remembers an error of its writer, for callers that do not return it.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil && c.err == nil {
		c.err = &outputError{err}
	}
	return n, err
}

// record prints a message of a trace.
func (r *reached) record(line []byte) error {
	var t observe.TraceRecord
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	arrow, peer := "->", t.Peer
	if t.Direction == "in" {
		arrow = "<-"
	}
	if peer == "" {
		peer = "nobody"
	}
	text := fmt.Sprintf("%s  turn %d  %s %s %s", t.Time.Local().Format("15:04:05.000000"), t.Turn, arrow, oneLine(peer), t.Kind)
	if t.Correlation != 0 {
		text += fmt.Sprintf(" #%d", t.Correlation)
	}
	switch {
	case len(t.Payload) > 0:
		text += "  " + printable.Line(string(t.Payload), 1000)
	case t.Size > 0:
		text += fmt.Sprintf("  %d bytes", t.Size)
	}
	if t.Failed != "" {
		text += "  failed: " + oneLine(t.Failed)
	}
	return write(r.env.stdout, text+"\n")
}
