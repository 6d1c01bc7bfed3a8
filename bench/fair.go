package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/host"
	wart "github.com/wasmactors/wasmactors/runtime"
)

// spinners loop forever on two processors, while another actor is asked: so many.
var spinnerCounts = []int{10, 1000, 5000}

// Bounds of a round, so that all of it ends on any machine: among spinning goroutines an answer
// may take seconds where others use the machine, too.
const (
	askingTime    = 4 * time.Second  // no question after that; each gets so long for its answer
	pausingTime   = 3 * time.Second  // no garbage collection after that
	fairRoundTime = 25 * time.Second // a process that has not come back by then is killed
	fairTime      = 25 * time.Second // no round after that, for a number of spinners
)

// Answers are looked at on their own while spinners start, and nobody knows yet which of them are long: of these there
// are so many at least, and after so many it is asked whether all have started.
const firstAsks = 20

// manyAsks is how many there are where there is time for them.
const manyAsks = 3000

// throng is a system in which spinners spin.
type throng struct {
	asks int
	ask  func(context.Context) error

	starting func() bool // some spinners have not begun yet; nil: that is not known
}

// throngs are what is compared; ours is the first.
var throngs = []struct {
	name string
	open func(*lab, int) (*throng, error)
}{{"ours", productCrowd}, {"goroutines", nativeCrowd}, {"naive", naiveCrowd}, {"busy", busyCrowd}, {"busy tree", busyTree}}

// fair measures how long a well-behaved actor's answers take, and how long a
// garbage collection must wait for the processors, with more spinning actors than
// processors. Baselines, in the same rounds: goroutines that spin in Go, which the
// scheduler can preempt anywhere; and guests of wazero with WithCloseOnContextDone,
// each in a goroutine (without that they would never give a processor back). Each round is a
// process of its own: it ends with all that spins.
func fair(l *lab) error {
	for _, spinners := range spinnerCounts {
		if err := fairAmong(l, spinners); err != nil {
			return err
		}
	}
	for _, side := range []string{"busy", "busy tree"} {
		if err := fairBusy(l, side); err != nil {
			return err
		}
	}
	return nil
}

// busyActors is how many are busy, half of them at a time.
const busyActors = 2000

// fairBusy measures an ask beside many whose turns are just not long. The processor time that the process has used
// meanwhile shows what they have done, and not what others do on the machine.
func fairBusy(l *lab, side string) error {
	var wall, used []float64
	began := time.Now()
	for round := range l.rounds {
		if round > 0 && (time.Since(began) > fairTime || l.over()) {
			break
		}
		got, err := fairRound(side, busyActors, l.quick)
		if err != nil {
			fmt.Fprintf(os.Stderr, "  %s, %d: %v\n", side, busyActors, err)
			continue
		}
		wall, used = append(wall, got.Ask50), append(used, got.Used50)
	}
	name := fmt.Sprintf("%d busy actors on 2 processors, %s: ask, p50", busyActors, map[string]string{"busy": "each a tree", "busy tree": "one tree"}[side])
	note := fmt.Sprintf("turns of %v, half of them have a message at a time", busyTurn)
	if len(wall) == 0 {
		return l.report.write(noFairRound(name))
	}
	if err := l.report.alone(name, "ms", median(wall), note); err != nil {
		return err
	}
	return l.report.alone(name+", processor time meanwhile", "ms", median(used), note)
}

// noFairRound stands where no process has come back in time.
func noFairRound(name string) record {
	return record{Bench: name, Who: "ours", Unit: "ms", Missing: fmt.Sprint("no round within ", fairRoundTime)}
}

// fairFigures are of one round: times in milliseconds, and of how many they are.
type fairFigures struct {
	Ask50, Ask99, Wait50, Wait99 float64
	First, First50               float64 // while the spinners start: the worst, and the median
	Used50                       float64 // as Ask50, but the processor time that this process has used meanwhile
	Answers, Late, Collections   int
}

// fairAmong has baselines only with few spinners: among 1000 goroutines an answer takes
// five seconds.
func fairAmong(l *lab, spinners int) error {
	sides := len(throngs)
	if spinners > 10 {
		sides = 1
	}
	began, samples := time.Now(), make([][]fairFigures, sides)
	for round := range l.rounds {
		if round > 0 && (time.Since(began) > fairTime || l.over()) {
			break
		}
		for side := range sides {
			got, err := fairRound(throngs[side].name, spinners, l.quick)
			if err != nil {
				fmt.Fprintf(os.Stderr, "  %s among %d: %v\n", throngs[side].name, spinners, err)
				continue
			}
			samples[side] = append(samples[side], got)
		}
	}
	figure := func(side int, of func(*fairFigures) float64) float64 {
		var all []float64
		for i := range samples[side] {
			all = append(all, of(&samples[side][i]))
		}
		return median(all)
	}
	crowded := fmt.Sprintf("%d spinning actors on 2 processors: ", spinners)
	for _, f := range []struct {
		of         func(*fairFigures) float64
		baseline   int
		name, note string
	}{
		{func(f *fairFigures) float64 { return f.Ask50 }, 1, "ask, p50", "a request every half millisecond, timed from when it was due; baseline: spinning goroutines"},
		{func(f *fairFigures) float64 { return f.Ask99 }, 1, "ask, p99", "baseline: spinning goroutines"},
		{func(f *fairFigures) float64 { return f.Ask99 }, 2, "ask, p99, against wazero's CloseOnContextDone", "baseline: spinning guests of wazero with CloseOnContextDone"},
		{func(f *fairFigures) float64 { return f.First50 }, 1, "ask while they start, p50", "baseline: spinning goroutines"},
		{func(f *fairFigures) float64 { return f.First }, 1, "ask while they start, the worst", "baseline: spinning goroutines"},
		{func(f *fairFigures) float64 { return f.Wait50 }, 1, "a garbage collection's wait for the processors, p50", "a quantum is 0.1 to 0.2 ms; baseline: spinning goroutines, which can be preempted anywhere"},
		{func(f *fairFigures) float64 { return f.Wait99 }, 1, "a garbage collection's wait for the processors, p99", "the baseline shows what the machine adds when others use it"},
	} {
		alone := sides == 1
		if alone && f.baseline != 1 {
			continue
		}
		if alone || len(samples[f.baseline]) == 0 {
			f.note = ""
		}
		name, note := crowded+f.name, strings.TrimPrefix(f.note+"; "+fairNote(samples[0]), "; ")
		var err error
		switch {
		case len(samples[0]) == 0:
			err = l.report.write(noFairRound(name))
		case alone || len(samples[f.baseline]) == 0:
			err = l.report.alone(name, "ms", figure(0, f.of), note)
		default:
			err = l.report.compare(name, "ms", figure(0, f.of), figure(f.baseline, f.of), note+"; of the baseline "+fairNote(samples[f.baseline]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fairNote says of how much the figures are: a median of rounds, each of at least so much.
func fairNote(rounds []fairFigures) string {
	if len(rounds) == 0 {
		return ""
	}
	least, late := rounds[0], 0
	for _, r := range rounds {
		least.Answers, least.Collections = min(least.Answers, r.Answers), min(least.Collections, r.Collections)
		late += r.Late
	}
	note := fmt.Sprintf("%d rounds, %d answers and %d collections or more in each", len(rounds), least.Answers, least.Collections)
	if late > 0 {
		note += fmt.Sprintf(", %d answers took longer than %v and count as that", late, askingTime)
	}
	return note
}

// fairRound measures in a process of its own.
func fairRound(side string, spinners int, quick bool) (f fairFigures, err error) {
	exe, err := os.Executable()
	if err != nil {
		return f, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), fairRoundTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "among", side, strconv.Itoa(spinners), strconv.FormatBool(quick))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(out, &f)
}

// measureFair is what such a process does. It ends without an end of those that spin.
func (l *lab) measureFair(side, spinners string) error {
	n, err := strconv.Atoi(spinners)
	if err != nil {
		return err
	}
	for _, t := range throngs {
		if t.name != side {
			continue
		}
		c, err := t.open(l, n)
		if err != nil {
			return err
		}
		f, err := c.measure(l, askingTime)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(f)
	}
	return fmt.Errorf("there is no %q", side)
}

// measure asks while the spinners start and then, and collects garbage, as often as there is time for, and at least
// once; patience is for all questions of each of both times, and for one.
func (c *throng) measure(l *lab, patience time.Duration) (f fairFigures, err error) {
	most := max(firstAsks, l.scale(c.asks))
	some := func(asked int) bool { return asked < firstAsks }
	if c.starting != nil {
		some = func(asked int) bool { return asked < most && (asked%firstAsks != 0 || c.starting()) }
	}
	first, err := c.askWhile(l, patience, some)
	if err != nil {
		return f, err
	}
	steady, err := c.askWhile(l, patience, func(asked int) bool { return asked < most })
	if err != nil {
		return f, err
	}
	f.First, f.First50, f.Late = slices.Max(first.took), quantile(first.took, 0.5), first.late+steady.late
	f.Ask50, f.Ask99, f.Used50 = quantile(steady.took, 0.5), quantile(steady.took, 0.99), quantile(steady.used, 0.5)
	f.Answers = len(steady.took) - steady.late

	stops, end := newPauses("/sched/pauses/stopping/gc:seconds"), time.Now().Add(pausingTime)
	for f.Collections < max(5, l.scale(30)) && (f.Collections == 0 || time.Now().Before(end)) {
		runtime.GC()
		f.Collections++
	}
	f.Wait50, f.Wait99 = stops.quantile(0.5)*1e3, stops.quantile(0.99)*1e3
	return f, nil
}

// answers are how long each has taken, and how much processor time this process has used meanwhile, in milliseconds.
type answers struct {
	took, used []float64
	late       int // took longer than one had patience for
}

// askWhile asks once, and every half millisecond while more says so and there is time.
func (c *throng) askWhile(l *lab, patience time.Duration, more func(asked int) bool) (a answers, err error) {
	due := time.Now()
	for end := due.Add(patience); len(a.took) == 0 || more(len(a.took)) && time.Now().Before(end); {
		due = due.Add(500 * time.Microsecond)
		if late := time.Since(due); late > 0 {
			due = due.Add(late) // a slow answer delays the next question
		}
		time.Sleep(time.Until(due))
		before := processorTime()
		ctx, cancel := context.WithTimeout(l.ctx, patience)
		err := c.ask(ctx)
		late := ctx.Err() != nil
		cancel()
		a.took, a.used = append(a.took, time.Since(due).Seconds()*1e3), append(a.used, (processorTime()-before).Seconds()*1e3)
		if late { // whoever answers that late still answers the question before
			a.took[len(a.took)-1] = patience.Seconds() * 1e3
			a.late++
			break
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// quantile is that part of sorted figures; it sorts them.
func quantile(of []float64, part float64) float64 {
	slices.Sort(of)
	return of[int(float64(len(of))*part)]
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// pauses watches one of Go's histograms.
type pauses struct {
	name   string
	before []uint64
}

func newPauses(name string) *pauses { return &pauses{name, slices.Clone(readPauses(name).Counts)} }

func readPauses(name string) *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// quantile is the upper bound of the bucket, in seconds.
func (p *pauses) quantile(q float64) float64 {
	h := readPauses(p.name)
	var all, below uint64
	for i, n := range h.Counts {
		all += n - p.before[i]
	}
	for i, n := range h.Counts {
		if below += n - p.before[i]; float64(below) >= q*float64(all) && below > 0 {
			return min(h.Buckets[i+1], math.MaxFloat64)
		}
	}
	return 0
}

// openCrowd makes a system with a well-behaved guest that is asked, and the props of those beside it.
func openCrowd(l *lab, name string, code []byte) (*product, host.Props, *throng, error) {
	p, err := newProduct(l.ctx, pingWAT, 2)
	if err != nil {
		return nil, host.Props{}, nil, err
	}
	image, err := p.engine.Load(l.ctx, code, wart.ImageConfig{Name: name})
	if err != nil {
		return nil, host.Props{}, nil, err
	}
	good, err := p.sys.Spawn("", p.props)
	if err != nil {
		return nil, host.Props{}, nil, err
	}
	ask := func(ctx context.Context) error {
		_, err := p.sys.Ask(ctx, good, number(1))
		return err
	}
	if err := ask(l.ctx); err != nil { // else it would wait behind all that start before it
		return nil, host.Props{}, nil, err
	}
	return p, host.Guest(image, name).WithLimits(host.Limits{Fuel: math.MaxInt64}), &throng{asks: manyAsks, ask: ask}, nil
}

func productCrowd(l *lab, spinners int) (*throng, error) {
	p, spinner, c, err := openCrowd(l, "spin", spinWAT)
	if err != nil {
		return nil, err
	}
	for range spinners {
		ref, err := p.sys.Spawn("", spinner)
		if err == nil {
			err = p.sys.Tell(ref, number(0))
		}
		if err != nil {
			return nil, err
		}
	}
	c.starting = func() bool {
		return slices.ContainsFunc(p.sys.View().AppendInfo(nil), func(i host.Info) bool { return i.Mailbox > 0 })
	}
	return c, nil
}

// busyTurn is how long the turns of a busy crowd take: so long that none of them is brief, nor long.
const busyTurn = 40 * time.Microsecond

// busyCrowd is actors that always have a message and never a long turn, each in a tree of its own.
func busyCrowd(l *lab, n int) (*throng, error) {
	return busyAmong(l, n, func(p *product, busy host.Props) (all []host.Ref, err error) {
		for range n {
			ref, err := p.sys.Spawn("", busy)
			if err != nil {
				return nil, err
			}
			all = append(all, ref)
		}
		return all, nil
	})
}

// busyTree is busyCrowd in one tree.
func busyTree(l *lab, n int) (*throng, error) {
	return busyAmong(l, n, func(p *product, busy host.Props) (all []host.Ref, err error) {
		made := make(chan error, 1)
		root, err := p.sys.Spawn("crowd", host.Func(func(ctx *host.Context, _ host.Message) error {
			for range n {
				ref, err := ctx.Spawn("", busy)
				if err != nil {
					made <- err
					return err
				}
				all = append(all, ref)
			}
			made <- nil
			return nil
		}).WithLimits(host.Limits{Children: n}))
		if err == nil {
			err = p.sys.Tell(root, number(0))
		}
		if err == nil {
			err = <-made
		}
		return all, err
	})
}

// busyAmong has each two of them send each other one message: none finds another when it has handled it, which
// would make its run a long one. So half of them work at a time.
func busyAmong(l *lab, n int, spawn func(*product, host.Props) ([]host.Ref, error)) (*throng, error) {
	p, busy, c, err := openCrowd(l, "busy", busyWAT)
	if err != nil {
		return nil, err
	}
	rounds, err := p.roundsFor(l.ctx, busy, busyTurn)
	if err != nil {
		return nil, err
	}
	all, err := spawn(p, busy)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(all); i += 2 {
		if err := p.sys.TellFrom(all[i+1], all[i], number(rounds)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// roundsFor is how many rounds a busy actor's turn has that takes so long.
func (p *product) roundsFor(ctx context.Context, busy host.Props, turn time.Duration) (uint32, error) {
	ref, err := p.sys.Spawn("", busy)
	if err != nil {
		return 0, err
	}
	const many = 1 << 20
	least := time.Hour
	for range 20 {
		began := time.Now()
		if _, err := p.sys.Ask(ctx, ref, number(many)); err != nil {
			return 0, err
		}
		least = min(least, time.Since(began))
	}
	p.sys.Stop(ref)
	return uint32(many * turn / least), nil
}

func naiveCrowd(l *lab, spinners int) (*throng, error) {
	h, err := newNaiveHostWith(l.ctx, naiveWAT, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	if err != nil {
		return nil, err
	}
	for range spinners {
		a, err := h.spawn()
		if err != nil {
			return nil, err
		}
		go func() { _, _ = a.mod.ExportedFunction("spin").Call(l.ctx) }()
	}
	good, err := h.spawn()
	if err != nil {
		return nil, err
	}
	return &throng{asks: manyAsks, ask: asker(func(n uint32) error {
		err := h.deliver(h.context(good), good, naiveMessage{payload: number(n)})
		h.queue, h.head = h.queue[:0], 0
		return err
	})}, nil
}

func nativeCrowd(_ *lab, spinners int) (*throng, error) {
	for range spinners {
		go func() {
			for n := 0; n >= 0; n++ { // until the process ends
			}
		}()
	}
	return &throng{asks: manyAsks, ask: asker(func(uint32) error { return nil })}, nil
}

// asker asks a goroutine.
func asker(answer func(uint32) error) func(context.Context) error {
	in, out := make(chan uint32), make(chan error, 1)
	go func() {
		for n := range in {
			out <- answer(n)
		}
	}()
	return func(ctx context.Context) error {
		select {
		case in <- 1:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-out:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
