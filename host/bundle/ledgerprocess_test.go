package bundle

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/host/upgrade"
)

// A process that runs the ledger of TestKilledLedger. It reads lines of a feed, and lines that begin with ! and have an order; it
// prints answers, and what has become of the orders. It keeps in a file where it is: that outlives it.

// ledgerOrder is an upgrade.
type ledgerOrder struct {
	Code        string        // file of the new code
	Canary      float64       `json:",omitempty"`
	Probation   time.Duration `json:",omitempty"`
	Interrupt   time.Duration `json:",omitempty"` // after so long in the probation; 0: not
	MaxFailures int           `json:",omitempty"`

	Linger string `json:",omitempty"` // a step at which the process waits to be killed...
	Nth    int    `json:",omitempty"` // ...at the nth time that an actor comes to it
}

// ledgerLine is what the process prints: an answer, or one of the others.
type ledgerLine struct {
	Line  int             `json:"line,omitempty"`
	Kind  string          `json:"kind,omitempty"`
	Reply json.RawMessage `json:"reply,omitempty"`

	Ready bool           `json:"ready,omitempty"`
	Stage string         `json:"stage,omitempty"` // of the upgrade
	At    string         `json:"at,omitempty"`    // it lingers
	Over  string         `json:"over,omitempty"`  // the upgrade has ended
	Did   map[string]int `json:"did,omitempty"`   // actors
	Why   string         `json:"why,omitempty"`
}

// The stages of a process that are not upgrade.Stage.
const (
	stageStarting  = "starting"
	stageRunning   = "running"
	stageResumed   = "the upgrade of a life before goes on"
	stagePreparing = "preparing"
	stageKeeping   = "keeping the code"
	stageOver      = "over"
)

// whereabouts are what a process is at, in a file: one line with the stage, and one for each actor that has a step under way. It is
// written before each step is taken.
type whereabouts struct {
	mu     sync.Mutex
	file   *os.File
	stage  string
	of     map[abi.Ref]swap.Step
	linger string
	nth    int
	say    func(ledgerLine)
}

// whereaboutsBytes is the size of the file: it is written over as a whole.
const whereaboutsBytes = 1024

func (w *whereabouts) write() {
	var b strings.Builder
	b.WriteString(w.stage)
	for _, s := range w.of {
		b.WriteString("\n" + s.String())
	}
	text := b.String()[:min(b.Len(), whereaboutsBytes)]
	_, _ = w.file.WriteAt([]byte(text+strings.Repeat("\x00", whereaboutsBytes-len(text))), 0)
}

func (w *whereabouts) at(stage string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = stage
	w.write()
}

// passing implements swap.Passing.
func (w *whereabouts) passing(of abi.Ref, s swap.Step) {
	w.mu.Lock()
	if w.of[of] = s; s == swap.Over {
		delete(w.of, of)
	}
	w.write()
	stays := false
	if s.String() == w.linger {
		w.nth--
		stays = w.nth == 0
	}
	w.mu.Unlock()
	if stays {
		w.say(ledgerLine{At: s.String()})
		time.Sleep(ledgerPatience)
	}
}

// readWhereabouts says where a process was that has been killed: the stage, and the steps that actors had under way.
func readWhereabouts(path string) (stage string, steps []string, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	lines := strings.Split(strings.TrimRight(string(b), "\x00"), "\n")
	return lines[0], lines[1:], nil
}

// ledgerInProcess is the process.
func ledgerInProcess(dir string) int {
	var printing sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(l ledgerLine) {
		printing.Lock()
		defer printing.Unlock()
		_ = out.Encode(l)
	}
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		return 1
	}
	file, err := os.OpenFile(filepath.Join(dir, "whereabouts"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(err)
	}
	w := &whereabouts{file: file, of: map[abi.Ref]swap.Step{}, say: say}
	w.at(stageStarting)
	swap.Passing = w.passing
	ctx := context.Background()
	m, err := LoadWith(dir, func(string) (string, bool) { return "", false })
	if err != nil {
		return fail(err)
	}
	o := Options{Allow: anywhere, CacheDir: servicetest.CacheDir()}
	b, err := Open(ctx, m, o)
	if err != nil {
		return fail(err)
	}
	sys, err := b.Start(nil, nil)
	if err != nil {
		return fail(err)
	}
	w.at(stageRunning)
	say(ledgerLine{Ready: true})
	lines, feed := io.Pipe()
	go func() {
		s := bufio.NewScanner(os.Stdin)
		for s.Scan() {
			order, ok := strings.CutPrefix(s.Text(), "!")
			if !ok {
				_, _ = fmt.Fprintln(feed, s.Text())
				continue
			}
			var u ledgerOrder
			if err := json.Unmarshal([]byte(order), &u); err != nil {
				say(ledgerLine{Over: "refused", Why: err.Error()})
				continue
			}
			go say(w.upgrade(b, sys, &u, o))
		}
		_ = feed.Close()
	}()
	_, err = Feed{Answer: func(a Answer) {
		l := ledgerLine{Line: a.Line, Kind: a.Kind()}
		if a.Err == nil {
			l.Reply, _ = host.ToJSON(a.Payload)
		}
		say(l)
	}}.Run(ctx, sys, lines)
	if err := errors.Join(err, sys.Close(ctx), b.Close(ctx)); err != nil {
		return fail(err)
	}
	return 0
}

// upgrade carries out an order.
func (w *whereabouts) upgrade(b *Bundle, sys *host.System, u *ledgerOrder, o Options) ledgerLine {
	refused := func(err error) ledgerLine { return ledgerLine{Over: "refused", Why: err.Error()} }
	w.mu.Lock()
	w.linger, w.nth = u.Linger, u.Nth
	w.mu.Unlock()
	defer w.at(stageOver)
	if x := b.probation; x != nil && x.done != nil {
		w.at(stageResumed)
		<-x.done
	}
	w.at(stagePreparing)
	code, err := os.ReadFile(u.Code)
	if err != nil {
		return refused(err)
	}
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	c, err := b.PrepareModule(ctx, "ledger", code, o)
	if err != nil {
		return refused(err)
	}
	if c.Empty() { // the life before was killed in the same upgrade, and it has gone on
		return ledgerLine{Over: "done before"}
	}
	w.at(stageKeeping)
	done, err := c.Upgrade(ctx, sys, upgrade.Options{Canary: u.Canary, Batch: 4, Probation: u.Probation, MaxFailures: u.MaxFailures}, func(_ string, s upgrade.Step) {
		w.at(string(s.Stage))
		w.say(ledgerLine{Stage: string(s.Stage)})
		if s.Stage == upgrade.Probing && u.Interrupt > 0 {
			time.AfterFunc(u.Interrupt, interrupt)
		}
	})
	if len(done) == 0 {
		return refused(errors.Join(err, errors.New("nothing was to be done")))
	}
	l := ledgerLine{Over: "done", Did: map[string]int{}, Why: done[0].Stopped}
	if done[0].RolledBack {
		l.Over = "back"
	}
	for _, a := range done[0].Actors {
		l.Did[a.Did]++
	}
	return l
}
