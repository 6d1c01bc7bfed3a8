package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/regular"
)

func upgradeCommand(env *environment) *cli.Command {
	return &cli.Command{
		Category: running, Name: "upgrade", Usage: "exchange the code of living actors of a running bundle, and keep their state", ArgsUsage: "[BUNDLE]",
		Description: "Between two turns the old code of an actor writes its state, and the new code reads it. Ref, mailbox, timers and children stay.\n" +
			"The manifest's key upgrade says what happens where that is not possible; by default such an actor restarts, and loses its state.\n" +
			"Without --module the bundle is read again, as reload does, and the modules that have changed are upgraded.\n" +
			"Ctrl-C stops it: actors that are on probation go back.\n\n" +
			"Exit code 0: all actors run the new code. 1: some kept the old code, went back or are paused; the report says why.\n\nExamples:\n\n" +
			"   wasmactors upgrade shop --plan\n" +
			"   wasmactors upgrade shop --module cart=cart.wasm --canary 5% --probation 10m\n" +
			"   wasmactors upgrade --json | tail -n 1 | jq .report.modules[].types",
		Flags: reachFlags(
			&cli.StringFlag{Name: "module", Aliases: []string{"m"}, Usage: "upgrade one module: `NAME=FILE`, a .wasm file"},
			&cli.BoolFlag{Name: "plan", Usage: "try it with copies of the actors, and change nothing"},
			&cli.StringFlag{Name: "canary", Usage: "the `PART` of the actors that goes first, such as 5%; the others follow after the probation"},
			&cli.IntFlag{Name: "batch", Usage: "exchange `N` actors between two looks at the failures (default: 100)"},
			&cli.StringFlag{Name: "probation", Usage: "watch the new code for `DURATION`: an actor whose new code crashes goes back, and gets the message again (default: 0)"},
			&cli.IntFlag{Name: "max-failures", Usage: "put up with `N` crashes of the new code; after more all actors go back"},
		),
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usage("upgrade takes one argument, a bundle")
			}
			if c.NArg() == 1 {
				if err := c.Set("bundle", c.Args().First()); err != nil {
					return err
				}
			}
			order, err := readUpgrade(c)
			if err != nil {
				return err
			}
			return reaching(env, func(c *cli.Context, r *reached) error { return r.upgrade(c, order) })(c)
		},
	}
}

// mostCode bounds the code that is sent, in bytes: in base64 it fits what the server takes.
const mostCode = 23 << 20

// readUpgrade reads the flags, and the module.
func readUpgrade(c *cli.Context) (u admin.Upgrade, err error) {
	u = admin.Upgrade{Plan: c.Bool("plan"), Batch: c.Int("batch"), MaxFailures: c.Int("max-failures")}
	if u.Batch < 0 || u.MaxFailures < 0 {
		return u, usage("--batch and --max-failures must not be negative")
	}
	if u.Canary, err = partFlag(c.String("canary")); err != nil {
		return u, usage("--canary must be a part such as 5%% or 0.05, not %q", c.String("canary"))
	}
	d, err := durationFlag(c, "probation")
	if err != nil {
		return u, err
	}
	u.ProbationNS = int64(d)
	switch {
	case u.Canary > 0 && d == 0 && !u.Plan:
		return u, usage("--canary needs --probation: how long the first actors are watched before the others follow")
	case u.Plan && (u.Canary > 0 || d > 0):
		return u, usage("--plan exchanges nothing: --canary and --probation do not go with it")
	}
	if text := c.String("module"); text != "" {
		name, file, ok := strings.Cut(text, "=")
		if !ok || name == "" || file == "" {
			return u, usage("--module must be NAME=FILE, not %q", text)
		}
		u.Module = name
		if u.Wasm, err = regular.Read(c.Context, file, mostCode); err != nil {
			return u, usage("--module: %v%s", err, larger(err))
		}
		if len(u.Wasm) == 0 {
			return u, usage("--module: %s is empty", file)
		}
	}
	return u, nil
}

// partFlag is a part of 0 to 1, as a number or in percent.
func partFlag(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f > 0 && f <= 1) {
		return 0, errors.New("not a part")
	}
	return f, nil
}

// upgrade orders an upgrade, shows its steps and prints the report.
func (r *reached) upgrade(c *cli.Context, u admin.Upgrade) error {
	var last admin.UpgradeLine
	err := r.Lines(c.Context, http.MethodPost, "/v1/upgrade", u, func(line []byte) error {
		last = admin.UpgradeLine{}
		if err := json.Unmarshal(line, &last); err != nil {
			return err
		}
		if r.json {
			return write(r.env.stdout, string(line)+"\n")
		}
		if last.Step != nil {
			r.env.note(stepText(last.Step))
		}
		return nil
	})
	switch {
	case c.Context.Err() != nil:
		return c.Context.Err()
	case err != nil:
		return refusal(err)
	case last.Error != nil:
		return refusal(last.Error)
	case last.Report == nil:
		return refusal(errors.New("the bundle has gone before the upgrade ended"))
	}
	if !r.json {
		if err := write(r.env.stdout, upgradeText(last.Report)); err != nil {
			return err
		}
	}
	return upgradeVerdict(last.Report)
}

// stepText says how far an upgrade is.
func stepText(s *admin.UpgradeStep) string {
	text := ""
	switch upgrade.Stage(s.Stage) {
	case upgrade.Probing:
		text = "probation, " + short(time.Duration(s.LastsNS))
	case upgrade.GoesBack:
		text = "all actors go back"
	case upgrade.First:
		text = fmt.Sprintf("canary, %d of %d actors", s.Done, s.Of)
	default:
		text = fmt.Sprintf("%d of %d actors", s.Done, s.Of)
	}
	if s.Crashes > 0 {
		text += ", " + crashesText(uint64(s.Crashes))
	}
	return "upgrade of " + oneLine(s.Module) + ": " + text
}

// upgradeText is a report for people.
func upgradeText(report *admin.UpgradeReport) string {
	var b strings.Builder
	if len(report.Modules) == 0 {
		return "nothing has changed\n"
	}
	for i := range report.Modules {
		m := &report.Modules[i]
		fmt.Fprintf(&b, "module %s  %s -> %s\n", oneLine(m.Module), m.Before[:min(12, len(m.Before))], m.Now[:min(12, len(m.Now))])
		w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "TYPE\tWAY\tACTORS\tTIME\tOUTCOME")
		for _, t := range m.Types {
			var did []string
			for _, name := range slices.Sorted(maps.Keys(t.Did)) {
				did = append(did, fmt.Sprintf("%d %s", t.Did[name], oneLine(name)))
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", oneLine(t.Type), orDash(t.Way), t.Actors, short(time.Duration(t.TimeNS)), strings.Join(did, ", "))
		}
		_ = w.Flush() // to a builder
		for j, a := range m.Actors {
			if j == mostShown {
				fmt.Fprintf(&b, "and %d more; --json shows more\n", len(m.Actors)-j+m.More)
				break
			}
			text := a.Path + "  " + oneLine(a.Did)
			if a.Did == upgrade.Restarted || a.Did == upgrade.WouldLose {
				text += ", ITS STATE IS LOST"
			}
			if a.Why != "" {
				text += ": " + oneLine(a.Why)
			}
			b.WriteString(text + "\n")
		}
		if m.MaxNS > 0 {
			fmt.Fprintf(&b, "pauses: p50 %s, p99 %s, longest %s\n", short(time.Duration(m.P50NS)), short(time.Duration(m.P99NS)), short(time.Duration(m.MaxNS)))
		}
		if m.Stopped != "" {
			fmt.Fprintf(&b, "stopped: %s\n", oneLine(m.Stopped))
		}
	}
	return b.String()
}

// upgradeVerdict is the error of an upgrade after which not all actors run the new code.
func upgradeVerdict(report *admin.UpgradeReport) error {
	for i := range report.Modules {
		m := &report.Modules[i]
		actors, failed := 0, 0
		for _, t := range m.Types {
			actors += t.Actors
			failed += t.Failed
		}
		switch {
		case m.RolledBack:
			return fmt.Errorf("upgrade: module %s was rolled back: %s", m.Module, oneLine(m.Stopped))
		case m.Stopped != "":
			return fmt.Errorf("upgrade: module %s: %s", m.Module, oneLine(m.Stopped))
		case failed > 0 && report.Plan:
			return fmt.Errorf("upgrade: module %s: %d of %d actors would keep their code", m.Module, failed, actors)
		case failed > 0:
			return fmt.Errorf("upgrade: module %s: %d of %d actors do not run the new code", m.Module, failed, actors)
		}
	}
	return nil
}

// upgrade exchanges the code of the run's actors. An error says why everything is as it was.
func (l *live) upgrade(ctx context.Context, u admin.Upgrade, tell func(admin.UpgradeStep)) (admin.UpgradeReport, error) {
	l.changing.Lock()
	defer l.changing.Unlock()
	report := admin.UpgradeReport{PID: os.Getpid(), Plan: u.Plan, Modules: []admin.UpgradeModule{}}
	l.mu.Lock()
	b, sys := l.bundle, l.sys
	l.mu.Unlock()
	if sys == nil || l.running.Err() != nil {
		return report, host.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.running, cancel)()
	var change *bundle.Change
	var err error
	if u.Module == "" {
		change, err = l.prepare(ctx)
	} else if change, err = b.PrepareModule(ctx, u.Module, u.Wasm, l.options); errors.Is(err, bundle.ErrProbation) {
		err = onProbation(err)
	} else if err != nil {
		err = notLoaded(err, "the version before keeps running")
	}
	if err != nil {
		return report, err
	}
	done, err := change.Upgrade(ctx, sys, upgrade.Options{
		Plan: u.Plan, Canary: u.Canary, Batch: u.Batch, Probation: time.Duration(u.ProbationNS), MaxFailures: u.MaxFailures,
	}, func(module string, s upgrade.Step) { tell(admin.StepOf(module, s)) })
	for i := range done {
		report.Modules = append(report.Modules, admin.ReportOf(done[i].Module, done[i].Before, done[i].Now, done[i].Report))
	}
	switch {
	case errors.Is(err, bundle.ErrOtherChanges):
		return report, &admin.Problem{Status: http.StatusConflict, Code: "other_changes", Message: oneLine(strings.TrimPrefix(err.Error(), "bundle: ")), Hint: "wasmactors reload applies both; nothing has changed"}
	case err != nil && len(done) == 0:
		return report, err
	}
	if !u.Plan {
		l.console.upgraded(&report)
	}
	return report, nil
}

// onProbation says that nothing changes while the upgrade of an earlier process goes on.
func onProbation(err error) error {
	return &admin.Problem{Status: http.StatusConflict, Code: "on_probation", Message: oneLine(strings.TrimPrefix(err.Error(), "bundle: ")), Hint: "try again when the log says that it is over"}
}

// larger says what to do with a module that is too large to be sent.
func larger(err error) string {
	if errors.Is(err, regular.ErrSize) {
		return "; put it into the bundle, and upgrade without --module"
	}
	return ""
}
