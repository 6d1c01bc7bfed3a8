package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/observe"
)

func topCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "top", Usage: "show the busiest actors of a running bundle, continuously", ArgsUsage: "[ACTOR...]",
		Description: "On a terminal it is drawn again each second: / searches, s and S sort by another column, r turns the order round,\n" +
			"arrows and pages move, space stops and goes on, q ends. Elsewhere, and with --once, it is printed once; rates are\n" +
			"then those of a second.\n\nExamples:\n\n" +
			"   wasmactors top\n" +
			"   wasmactors top --sort crashes --state suspended\n" +
			"   wasmactors top --once --limit 10 --json",
		Flags: reachFlags(append(selectFlags(),
			&cli.StringFlag{Name: "sort", Value: "turns", Usage: "sort by `WHAT`: " + joined(observe.Sorts())},
			&cli.BoolFlag{Name: "asc", Usage: "the smallest first"},
			&cli.StringFlag{Name: "search", Usage: "actors with `TEXT` in their path or type"},
			&cli.IntFlag{Name: "limit", Value: 40, Usage: "print `N` actors (with --once)"},
			&cli.StringFlag{Name: "interval", Usage: "look every `DURATION` (default: 1s)"},
			&cli.BoolFlag{Name: "once", Usage: "print it once"},
		)...),
		Action: reaching(env, func(c *cli.Context, r *reached) error {
			sel, err := selected(c)
			if err != nil {
				return err
			}
			every, err := durationFlag(c, "interval")
			if err != nil {
				return err
			}
			if every == 0 {
				every = time.Second
			}
			if !slices.Contains(observe.Sorts(), c.String("sort")) {
				return usage("--sort: %q is not one of %s%s", c.String("sort"), joined(observe.Sorts()), didYouMean(c.String("sort"), observe.Sorts()))
			}
			t := &top{client: r.Client, sel: sel, sort: c.String("sort"), desc: !c.Bool("asc"), search: c.String("search"), limit: c.Int("limit")}
			if t.limit < 1 || t.limit > observe.MaxLimit {
				return usage("--limit must be from 1 to %d", observe.MaxLimit)
			}
			if c.String("sort") == "path" && !c.IsSet("asc") {
				t.desc = false
			}
			if r.json || c.Bool("once") || !drawable(env.raw) || !isTerminal(env.stdin) {
				return t.once(c.Context, r)
			}
			return t.live(c.Context, env, every)
		}),
	}
}

// top is a table of actors that is updated periodically.
type top struct {
	client *client.Client
	sel    observe.Select
	sort   string
	desc   bool
	search string
	offset int
	limit  int
}

// look requests the present rows.
func (t *top) look(ctx context.Context) (x admin.Table, err error) {
	q := query(t.sel)
	for name, value := range map[string]string{"sort": t.sort, "search": t.search, "limit": strconv.Itoa(t.limit), "offset": strconv.Itoa(t.offset)} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if t.desc {
		q.Set("desc", "true")
	}
	ctx, cancel := context.WithTimeout(ctx, client.Patience)
	defer cancel()
	if x.System, err = client.Get[observe.System](ctx, t.client, "/v1/system", nil); err != nil {
		return x, refusal(err)
	}
	if x.Actors, err = client.Get[observe.Page](ctx, t.client, "/v1/actors", q); err != nil {
		return x, refusal(err)
	}
	return x, nil
}

// once prints the table once. It makes two requests, since rates need two.
func (t *top) once(ctx context.Context, r *reached) error {
	first, err := t.look(ctx)
	if err != nil {
		return err
	}
	if r.json {
		text, err := json.Marshal(first)
		if err != nil {
			return err
		}
		return write(r.env.stdout, string(text)+"\n")
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
	}
	then, err := t.look(ctx)
	if err != nil {
		return err
	}
	rates := newRates(first)
	head := rates.head(then)
	var b strings.Builder
	b.WriteString(head + "\n\n" + columns(t.sort) + "\n")
	for _, a := range then.Actors.Actors {
		b.WriteString(rates.row(a, then.Actors.Now) + "\n")
	}
	if n := then.Actors.Total - len(then.Actors.Actors); n > 0 {
		fmt.Fprintf(&b, "%d more\n", n)
	}
	return write(r.env.stdout, b.String())
}

// rates are computed from two tables.
type rates struct {
	at    time.Time
	turns uint64
	of    map[string]uint64 // turns, by ref
}

func newRates(x admin.Table) rates {
	r := rates{at: x.System.Now, turns: x.System.Turns, of: map[string]uint64{}}
	for _, a := range x.Actors.Actors {
		r.of[a.Ref] = a.Turns
	}
	return r
}

// head are two lines about the system.
func (r rates) head(x admin.Table) string {
	s := x.System
	var states []string
	for _, name := range observe.States() {
		if n := s.States[name]; n > 0 && name != observe.Running {
			states = append(states, fmt.Sprintf("%d %s", n, name))
		}
	}
	more := ""
	if len(states) > 0 {
		more = " (" + strings.Join(states, ", ") + ")"
	}
	held := humanBytes(uint64(max(s.Held, 0)))
	if s.HeldLimit > 0 {
		held += " of " + humanBytes(uint64(s.HeldLimit))
	}
	return fmt.Sprintf("%s, process %d, up %s: %s%s\n%s turns a second, %d messages wait, %s, %d restarts, %d dead letters, %s held",
		s.Name, s.PID, short(s.Now.Sub(s.Started)), plural(s.Actors, "actor"), more,
		rate(s.Turns-min(r.turns, s.Turns), s.Now.Sub(r.at)), s.Mailbox, crashesText(s.Crashes), s.Restarts, s.DeadLetters, held)
}

// rate is a number a second.
func rate(n uint64, d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return siCount(float64(n) / d.Seconds())
}

// siCount is a number in four places.
func siCount(f float64) string {
	for _, unit := range []string{"", "k", "M", "G", "T"} {
		switch {
		case f < 10 && unit == "" && f != float64(int(f)):
			return fmt.Sprintf("%.1f", f)
		case f < 1000 && (unit == "" || f >= 100):
			return fmt.Sprintf("%.0f%s", f, unit)
		case f < 1000:
			return fmt.Sprintf("%.1f%s", f, unit)
		}
		f /= 1000
	}
	return "many"
}

const rowFormat = "%-10s %8s %8s %8s %8s %8s %8s %7s %7s  %s"

// columns is the head of the table, with the column that it is sorted by in capitals.
func columns(sorted string) string {
	cells := []any{}
	for _, name := range []string{"state", "turns/s", "turns", "mailbox", "oldest", "fuel", "held", "crashes", "restarts", "path (type)"} {
		if strings.HasPrefix(name, sorted) && name != "turns/s" {
			name = strings.ToUpper(sorted) + strings.TrimPrefix(name, sorted)
		}
		cells = append(cells, strings.ReplaceAll(strings.ReplaceAll(name, "restarts", "restart"), "RESTARTS", "RESTART"))
	}
	return fmt.Sprintf(rowFormat, cells...)
}

func (r rates) row(a observe.Actor, now time.Time) string {
	perSecond := "-"
	if before, ok := r.of[a.Ref]; ok && a.Turns >= before {
		perSecond = rate(a.Turns-before, now.Sub(r.at))
	}
	state := string(a.State)
	if a.DueNS > 0 {
		state = "in " + short(time.Duration(a.DueNS))
	}
	oldest := ""
	if a.OldestNS > 0 {
		oldest = short(time.Duration(a.OldestNS))
	}
	text := fmt.Sprintf(rowFormat, state, perSecond, siCount(float64(a.Turns)), siCount(float64(a.Mailbox)), oldest, siCount(float64(a.Fuel)), bytesText(a.Held), siCount(float64(a.Crashes)), siCount(float64(a.Restarts)),
		a.Path+" ("+a.Type+")")
	if a.Failure != "" {
		text += "  " + oneLine(a.Failure)
	}
	return text
}

func bytesText(n int64) string {
	f := float64(max(n, 0))
	for _, unit := range []string{"B", "K", "M", "G"} {
		if f < 1000 {
			return fmt.Sprintf("%.0f%s", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.0fT", f)
}
