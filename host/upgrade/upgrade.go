// Package upgrade exchanges the code of living guests without costing their state. Between two turns of an actor its old code writes
// the state (guest-sdk/actor, Saver), and the new code reads it. Ref, path, mailbox, stash, timers, watches, asks,
// children and grants stay as they are; what is sent to the actor meanwhile waits, and keeps its order.
//
// Both run in copies. If one of them fails, loops, grows beyond the actor's limits, writes what is no CBOR or asks for anything, the actor
// stays with the code that it has, and the report, an event and the log say why.
//
// A module is exchanged in batches, with some actors first if that is wanted. As long as the probation lasts, each actor keeps its
// state from before and what has come in since: a crash of the new code is undone, and the actor goes on with the old code, which gets the
// message that has led to the crash. After more crashes than are allowed all actors go back. An actor whose old code
// would have sent something else than what has left is paused, and both are shown.
package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/runtime"
)

// Options say how a module is upgraded. The zero value upgrades all actors at once, with the default ways.
type Options struct {
	// Plan saves and loads copies of all actors, and changes nothing.
	Plan bool
	// Canary is the part of the actors that goes first, 0 to 1; the others follow when Probation is over.
	Canary float64
	// Batch is how many actors are exchanged between two looks at the failures; 0 means 100.
	Batch int
	// Probation is how long an actor can go back, after the canary and once more after all others.
	Probation time.Duration
	// MaxFailures is how many crashes of the new code are put up with.
	MaxFailures int
	// Try is how many of the last inputs, where they are kept (for supervisors that resume), are tried on a copy; 0 means 16, less than 0 none.
	Try int
	// Patience is how long is waited for an actor that cannot be saved because it waits for answers, or that is between two incarnations; 0 means 2 s.
	Patience time.Duration
	// Keep bounds the memory of all that is kept for going back, in bytes; 0 means 256 MiB. Actors beyond it cannot go back.
	Keep int64
	// Ways are those of an actor, in order; nil: see Default.
	Ways func(path, typ string) []Way
	// Insist restarts the actors whose state cannot go over, if their ways have Restart, and those that are between two incarnations.
	Insist bool
	// Tell is called with what is under way, by one goroutine at a time; it must not block for long. nil: nobody is told.
	Tell func(Step)
	// Wait passes the probation; nil waits in real time. ctx ends before d if there are too many crashes.
	Wait func(ctx context.Context, d time.Duration)
	// Remember is told how far the upgrade is, if its actors can go back: what durable actors come to afterwards is recorded after it. With
	// what it was told last, Resume goes on in another process. An error before the first actor has gone over ends the upgrade. nil: the
	// probation ends with the process.
	Remember func(*record.Probation) error
}

// Step is how far an upgrade is.
type Step struct {
	Stage   Stage         `json:"stage"`
	Done    int           `json:"done"` // actors
	Of      int           `json:"of"`
	Crashes int           `json:"crashes"`
	Lasts   time.Duration `json:"lasts_ns,omitempty"` // probation
}

// Stage is a part of an upgrade.
type Stage string

// The stages, in their order.
const (
	First    Stage = "canary"    // the part of the actors that goes first
	Rest     Stage = "all"       // all others
	Probing  Stage = "probation" // the new code is watched
	GoesBack Stage = "back"      // all actors go back
)

// Report says what an upgrade has come to.
type Report struct {
	Plan   bool    `json:"plan,omitempty"`
	Types  []Type  `json:"types"`
	Actors []Actor `json:"actors"` // sorted by path
	// Stopped says why the upgrade went no further; empty: it is complete.
	Stopped    string `json:"stopped,omitempty"`
	RolledBack bool   `json:"rolled_back,omitempty"`
	Crashes    int    `json:"crashes"` // of the new code
	// Pauses of actors whose code was exchanged, or tried: how long each has handled no message.
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// Type sums up the actors of a type.
type Type struct {
	Type   string `json:"type"`
	Way    Way    `json:"way"`
	Actors int    `json:"actors"`
	Failed int    `json:"failed"`
	Time   int64  `json:"time_ns"` // together

	Did map[string]int `json:"did"` // how many of them: see the constants
}

// Actor is what has become of one.
type Actor struct {
	Path   string        `json:"path"`
	Type   string        `json:"type"`
	Way    Way           `json:"way,omitempty"`
	Did    string        `json:"did"` // see the constants
	Why    string        `json:"why,omitempty"`
	Tried  int           `json:"tried,omitempty"` // inputs
	Pause  time.Duration `json:"pause_ns,omitempty"`
	Differ *Difference   `json:"differ,omitempty"`

	ref      host.Ref
	restarts bool // its ways have Restart
}

// What has become of actors.
const (
	Upgraded  = "upgraded"
	WouldBe   = "would be upgraded"
	Restarted = "restarted"
	WouldLose = "would be restarted" // and lose its state
	Kept      = "kept"               // with the code that it has, for a reason
	WentBack  = "went back"
	Paused    = "paused" // it could not go back
)

// Above is why an actor is restarted that has one above it that is.
const Above = "an actor above it is restarted"

// ErrBusy says that the system has an upgrade under way.
var ErrBusy = errors.New("upgrade: another one is under way in this system")

var underWay sync.Map // of *host.System

// Run exchanges the image of a module, and that of its actors. It returns when all of it is done, the probation included; if ctx ends
// before, it goes no further: actors that can go back do, and the others stay with the code that they have. The module has the new image afterwards, unless the report says that the
// upgrade was stopped. The caller keeps both images open meanwhile; Image.Retire then closes the one that the module does not have
// after its last actor.
func Run(ctx context.Context, sys *host.System, m *host.Module, image *runtime.Image, o Options) (*Report, error) {
	if _, busy := underWay.LoadOrStore(sys, true); busy {
		return nil, ErrBusy
	}
	defer underWay.Delete(sys)
	if err := host.NewModule(m.Image()).Replace(image); err != nil {
		return nil, err
	}
	if o.Canary < 0 || o.Canary > 1 || o.Batch < 0 || o.MaxFailures < 0 || o.Probation < 0 {
		return nil, errors.New("upgrade: canary is a part of 0 to 1, and batch, max-failures and probation are not negative")
	}
	u := newRun(ctx, sys, m, o)
	defer u.alarmed()
	u.old, u.image = m.Image(), image
	return u.run()
}

func newRun(ctx context.Context, sys *host.System, m *host.Module, o Options) *run {
	u := &run{Options: o, ctx: ctx, sys: sys, m: m, news: make(chan struct{}, 1), by: map[abi.Ref]*Actor{}}
	u.defaults()
	u.calm, u.alarmed = context.WithCancel(ctx)
	return u
}

// run is an upgrade under way.
type run struct {
	Options
	ctx        context.Context
	sys        *host.System
	m          *host.Module
	old, image *sandbox.Image
	news       chan struct{} // something is in crashed

	mu      sync.Mutex // of what follows, and of what is written into each Actor
	by      map[abi.Ref]*Actor
	crashed []*Actor
	kept    int64
	trials  []*swap.Trial
	crashes int

	past        *pasts // of the actors of the batch; nil: no actor of it handles its messages again
	resumed     bool   // it was begun in another process
	remembering sync.Mutex
	state       record.Probation // that was remembered last
	blind       bool             // not all actors could be asked what they run
	calm        context.Context  // ends with too many crashes
	alarmed     context.CancelFunc
}

// note writes down what has become of an actor.
func (u *run) note(a *Actor, did, why string) {
	u.mu.Lock()
	a.Did, a.Why = did, why
	u.mu.Unlock()
}

// actors are all that the upgrade knows, sorted by path.
func (u *run) actors() []*Actor {
	u.mu.Lock()
	all := slices.Collect(maps.Values(u.by))
	u.mu.Unlock()
	slices.SortFunc(all, func(a, b *Actor) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

func (u *run) defaults() {
	if u.Batch == 0 {
		u.Batch = 100
	}
	if u.Try == 0 {
		u.Try = 16
	}
	u.Try = max(u.Try, 0)
	if u.Patience == 0 {
		u.Patience = 2 * time.Second
	}
	if u.Keep == 0 {
		u.Keep = swap.MostTrials
	}
	if u.Tell == nil {
		u.Tell = func(Step) {}
	}
	if u.Wait == nil {
		u.Wait = func(ctx context.Context, d time.Duration) {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
	}
	if u.Ways == nil {
		u.Ways = func(string, string) []Way { return nil }
	}
}

func (u *run) run() (*Report, error) {
	todo, restarts := u.sort(u.members())
	if u.Plan {
		for batch := range slices.Chunk(todo, u.Batch) {
			u.inBatch(batch, func(a *Actor) { u.one(a, nil) })
		}
		for _, a := range restarts {
			u.note(a, map[bool]string{true: WouldBe, false: WouldLose}[a.Way == Events], a.Why)
		}
		return u.report(""), u.ctx.Err()
	}
	if u.goesBack() {
		if err := u.begin(); err != nil {
			return nil, err
		}
	}
	return u.through(func() string {
		why := u.rollOut(todo)
		if why == "" {
			why = u.finish(restarts)
		}
		return why
	})
}

// goesBack reports whether actors can go back.
func (u *run) goesBack() bool { return u.Probation > 0 || u.Canary > 0 || u.resumed }

// finish is what comes after all actors that keep their state have gone over.
func (u *run) finish(restarts []*Actor) string {
	if why := u.last(); why != "" {
		return why
	}
	u.restart(append(restarts, u.insisted()...))
	return u.probation(false)
}

// through goes through stages, which say why they have stopped, and ends the upgrade. Crashes are undone meanwhile.
func (u *run) through(stages func() string) (*Report, error) {
	ended := make(chan struct{})
	var undoing sync.WaitGroup
	if swap.Manual(u.sys) { // the wait steps the system: what goes back does so after it, in one order
		wait := u.Wait
		u.Wait = func(ctx context.Context, d time.Duration) {
			wait(ctx, d)
			u.undoCrashed()
		}
	} else {
		undoing.Go(func() { u.undo(ended) })
	}
	why := stages()
	close(ended)
	undoing.Wait()
	if u.resumed && u.gone() { // it goes on in the next process
		return u.report(why), u.ctx.Err()
	}
	back := why != "" && u.goesBack() // else nothing is kept for going back
	if back {
		u.remember(func(p *record.Probation) { p.Back = true })
		u.goBack()
	}
	u.settle()
	u.remember(func(p *record.Probation) { p.Over = true })
	r := u.report(why)
	r.RolledBack = back
	return r, u.ctx.Err()
}

// settle ends what is kept for going back.
func (u *run) settle() {
	u.mu.Lock()
	trials := u.trials
	u.mu.Unlock()
	if len(trials) == 0 {
		return
	}
	ctx, cancel := u.visiting(context.WithoutCancel(u.ctx))
	defer cancel()
	for _, a := range u.actors() {
		swap.Settle(ctx, u.sys, a.ref.UID())
	}
	u.undoCrashed() // those that have crashed before their trial was over
	for _, t := range trials {
		t.EndIfWell("the probation is over") // of actors that are in a long turn
	}
	u.undoCrashed() // and those that have crashed since
	for _, t := range trials {
		t.End("the probation is over")
	}
}

// visit bounds the waits for turns that are under way. An actor whose turn takes longer keeps the code that it has; for who insists it is
// restarted, and killed if need be.
var visit = 5 * time.Second

// visiting is the context of a visit.
func (u *run) visiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, visit)
}

// members are the actors of the module.
func (u *run) members() []swap.Member {
	ctx, cancel := u.visiting(u.ctx)
	defer cancel()
	all := swap.Members(ctx, u.sys, u.m)
	u.blind = slices.ContainsFunc(all, func(x swap.Member) bool { return x.Unseen })
	return all
}

// sort finds out which way each actor goes.
func (u *run) sort(all []swap.Member) (todo, restarts []*Actor) {
	u.mu.Lock()
	defer u.mu.Unlock()
	begins := map[string]bool{} // paths of those that are restarted
	for _, x := range all {
		if _, known := u.by[x.Ref.UID()]; known || x.Image == u.image || x.Image == nil && !u.Insist && !x.Unseen {
			continue // it begins, or has begun, with the image of its module
		}
		a := &Actor{Path: x.Ref.Path(), Type: x.Type, ref: x.Ref}
		ways := u.Ways(a.Path, x.Type)
		if ways == nil && x.Durable {
			ways = DefaultDurable
		}
		a.restarts = ways == nil || slices.Contains(ways, Restart)
		if x.Image == nil {
			u.by[x.Ref.UID()] = a
			a.Did, a.Why, a.restarts = Kept, "it is between two incarnations, or in a long turn", a.restarts || !x.Unseen
			continue
		}
		var err error
		a.Way, err = choose(ways, &x, u.image)
		if err == nil && x.Image != u.old {
			err = sandbox.Replaces(u.image, x.Image)
		}
		switch u.by[x.Ref.UID()] = a; {
		case err != nil:
			a.Did, a.Why = Kept, err.Error()
		case below(a.Path, begins) && a.Way != Events:
			a.Way, a.Why = Restart, Above
			begins[a.Path] = true
			restarts = append(restarts, a)
		case a.Way == Events:
			begins[a.Path] = true
			restarts = append(restarts, a)
		case a.Way == Restart:
			if a.Why = lacks(x.Type, x.Image, u.image); a.Why == "" {
				a.Why = "the manifest says so"
			}
			begins[a.Path] = true
			restarts = append(restarts, a)
		default:
			todo = append(todo, a)
		}
	}
	return todo, restarts
}

// below reports whether an actor above a path is among those.
func below(path string, those map[string]bool) bool {
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path, '/') {
		if path = path[:i]; those[path] {
			return true
		}
	}
	return false
}

// rollOut exchanges the code of actors, a part of them first. It says why it was stopped.
func (u *run) rollOut(todo []*Actor) string {
	if n := int(math.Ceil(float64(len(todo)) * u.Canary)); n > 0 && n < len(todo) {
		var first, rest []*Actor
		for i, a := range todo { // spread over the tree
			if (i*n)%len(todo) < n {
				first = append(first, a)
			} else {
				rest = append(rest, a)
			}
		}
		if why := u.batches(First, first); why != "" {
			return why
		}
		if why := u.probation(true); why != "" {
			return why
		}
		todo = rest
	}
	if why := u.batches(Rest, todo); why != "" {
		return why
	}
	return u.none(todo)
}

// none says that no actor could go over: then the code is not for them, and the module does not get it.
func (u *run) none(todo []*Actor) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	why := ""
	if u.Insist {
		return ""
	}
	for _, a := range u.by {
		if (a.Way == State || a.Way == Replay) && a.Did != Kept || a.Way == Restart || a.Way == Events {
			return ""
		}
	}
	for _, a := range todo {
		if a.Why != swap.ErrGone.Error() {
			why = "no actor could go over, so the module keeps its code; " + a.Path + ": " + a.Why
			break
		}
	}
	return why
}

func (u *run) batches(stage Stage, todo []*Actor) string {
	done := 0
	for batch := range slices.Chunk(todo, u.Batch) {
		u.inBatch(batch, u.exchange)
		done += len(batch)
		u.tell(stage, done, len(todo))
		if why := u.tooMany(); why != "" {
			return why
		}
	}
	return ""
}

// last gives the module the new image, and exchanges what was started meanwhile.
func (u *run) last() string {
	if err := u.m.Replace(u.image); err != nil {
		return err.Error()
	}
	for range 3 {
		todo, restarts := u.sort(u.members())
		if len(todo)+len(restarts) == 0 {
			break
		}
		if why := u.batches(Rest, todo); why != "" {
			return why
		}
		u.restart(restarts)
	}
	return ""
}

// probation watches the actors that have gone over: the first of them, or all.
func (u *run) probation(first bool) string {
	if u.Probation > 0 {
		u.remember(func(p *record.Probation) { p.First, p.Until = first, u.sys.Clock().Now().Add(u.Probation).UnixNano() })
		u.tell(Probing, 0, 0)
		u.Wait(u.calm, u.Probation)
	}
	if why := u.tooMany(); why != "" || !first {
		return why
	}
	u.remember(func(p *record.Probation) { p.First, p.Until = false, 0 })
	return ""
}

func (u *run) tell(stage Stage, done, of int) {
	s := Step{Stage: stage, Done: done, Of: of}
	if stage == Probing {
		s.Lasts = u.Probation
	}
	u.mu.Lock()
	s.Crashes = u.crashes
	u.mu.Unlock()
	u.Tell(s)
}

// tooMany says why the upgrade is to stop.
func (u *run) tooMany() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.crashes > u.MaxFailures:
		return fmt.Sprintf("the new code has crashed %d times, which is more than max-failures allows (%d)", u.crashes, u.MaxFailures)
	case errors.Is(context.Cause(u.ctx), context.Canceled):
		return "it was interrupted"
	case u.ctx.Err() != nil:
		return context.Cause(u.ctx).Error()
	}
	return ""
}

// parallel is how many actors are saved and loaded at a time: their copies take memory that is on nobody's account.
const parallel = 2

func (u *run) each(all []*Actor, f func(*Actor)) {
	if swap.Manual(u.sys) {
		for _, a := range all {
			f(a)
		}
		return
	}
	next := make(chan *Actor)
	var wait sync.WaitGroup
	for range parallel {
		wait.Go(func() {
			for a := range next {
				f(a)
			}
		})
	}
	for _, a := range all {
		next <- a
	}
	close(next)
	wait.Wait()
}

// exchange upgrades one actor, and tries again where that may help.
func (u *run) exchange(a *Actor) {
	until := time.Now().Add(u.Patience)
	for !u.one(a, u.trial) && time.Now().Before(until) && u.ctx.Err() == nil && !swap.Manual(u.sys) {
		time.Sleep(5 * time.Millisecond)
	}
}

// inBatch is each. It reads at once what the actors have taken in that handle it again.
func (u *run) inBatch(batch []*Actor, f func(*Actor)) {
	u.past = u.read(batch)
	u.each(batch, f)
	u.past = nil
}

// one saves and loads an actor, and exchanges its code unless trial is nil. It is false if that may succeed later.
func (u *run) one(a *Actor, trial func(*Actor, *swap.Taken, *swap.Code) *swap.Trial) bool {
	u.note(a, Kept, "")
	if err := context.Cause(u.ctx); err != nil { // a visit may still succeed
		u.note(a, Kept, "the upgrade has ended: "+err.Error())
		return true
	}
	come := convert
	if a.Way == Replay {
		r, err := u.again(a)
		if err != nil {
			u.note(a, Kept, err.Error())
			return !errors.Is(err, swap.ErrNotNow)
		}
		defer r.close()
		come = r.convert
	}
	begun := time.Now()
	ctx, cancel := u.visiting(u.ctx)
	defer cancel()
	t, err := swap.Take(ctx, u.sys, a.ref.UID())
	if err != nil {
		u.note(a, Kept, err.Error())
		return u.Insist || !errors.Is(err, swap.ErrNotNow)
	}
	swap.Passes(t.Ref, swap.Held)
	defer swap.Passes(t.Ref, swap.Over)
	to, tried, err := come(ctx, t, u.image, u.Try)
	defer u.passed(a, begun, tried)
	switch {
	case err != nil:
		t.Let()
		u.note(a, Kept, err.Error())
		t.Log(abi.LogWarn, "upgrade: it keeps its code: "+err.Error())
		return t.Waits == 0 || a.Way == Replay // who handles its messages again may wait for answers
	case trial == nil:
		t.Let()
		u.note(a, WouldBe, "")
		return true
	}
	u.note(a, Upgraded, "") // before it can crash and go back
	probing := trial(a, t, to)
	if err = t.Switch(u.ctx, to, probing); err != nil {
		t.Let()
		if probing != nil {
			probing.End(err.Error())
		}
		u.note(a, Kept, err.Error())
		return !errors.Is(err, swap.ErrMoved)
	}
	t.Log(abi.LogInfo, "upgrade: it goes on with other code")
	return true
}

// passed notes how long an actor was held, and how many inputs were tried.
func (u *run) passed(a *Actor, since time.Time, tried int) {
	u.mu.Lock()
	a.Pause, a.Tried = time.Since(since), tried
	u.mu.Unlock()
}

// trial is nil if nothing can go back.
func (u *run) trial(a *Actor, t *swap.Taken, to *swap.Code) *swap.Trial {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.goesBack() {
		return nil
	}
	trial := swap.NewTrial(t.Image, t.State, to.State.Clone(), swap.MostKept, u.crash(a))
	n := trial.Bytes()
	if u.kept+n > u.Keep {
		trial.End("there is no room for what is kept for going back")
		return nil
	}
	u.kept += n
	trial.Since = to.Time
	u.trials = append(u.trials, trial)
	return trial
}

// crash is what the trial of an actor is told of crashes with.
func (u *run) crash(a *Actor) func(*abi.Failure) {
	return func(*abi.Failure) {
		u.mu.Lock()
		u.crashes++
		u.crashed = append(u.crashed, a)
		if u.crashes > u.MaxFailures {
			u.alarmed()
		}
		u.mu.Unlock()
		select {
		case u.news <- struct{}{}:
		default:
		}
	}
}

// undo has actors whose new code has crashed go back, until ended is closed.
func (u *run) undo(ended <-chan struct{}) {
	for over := false; !over; {
		select {
		case <-u.news:
		case <-ended:
			over = true
		}
		u.undoCrashed()
	}
}

func (u *run) undoCrashed() {
	u.mu.Lock()
	crashed, n := u.crashed, u.crashes
	u.crashed = nil
	u.mu.Unlock()
	if len(crashed) > 0 { // before they go back: a crash that counts twice is better than one that does not
		u.remember(func(p *record.Probation) { p.Crashes = n })
	}
	for _, a := range crashed {
		u.back(a)
	}
}

// back has an actor go on with its old code, as if that had handled all that has come in since.
func (u *run) back(a *Actor) {
	ctx, cancel := u.visiting(context.WithoutCancel(u.ctx))
	defer cancel()
	stays := func(why string) { u.note(a, Upgraded, "it has not gone back: "+why) }
	t, err := swap.Take(ctx, u.sys, a.ref.UID())
	for errors.Is(err, swap.ErrNotNow) && ctx.Err() == nil && !swap.Manual(u.sys) { // its last turn may wait for its record
		time.Sleep(time.Millisecond)
		t, err = swap.Take(ctx, u.sys, a.ref.UID())
	}
	if err != nil {
		swap.Release(u.sys, a.ref.UID())
		stays(err.Error())
		return
	}
	if t.Trial == nil {
		t.Let()
		u.mu.Lock()
		unsaid := a.Why == ""
		u.mu.Unlock()
		if unsaid && u.isNew(t.Image) {
			stays("nothing is kept for that")
		}
		return
	}
	swap.Passes(t.Ref, swap.Repeating)
	defer swap.Passes(t.Ref, swap.Over)
	entries, state, now, over := t.Trial.Kept()
	if over != "" {
		t.Let()
		stays(over)
		return
	}
	s, err := repeat(t, t.Trial.Old, state, entries, true)
	if err == nil {
		if err = u.switches(ctx, t, &swap.Code{Image: t.Trial.Old, State: s, Time: t.Entry.Now}); err != nil {
			stays(err.Error())
			return
		}
		u.note(a, WentBack, "")
		t.Log(abi.LogWarn, "upgrade: it goes on with its old code")
		return
	}
	why := err.Error()
	u.mu.Lock()
	errors.As(err, &a.Differ)
	u.mu.Unlock()
	_ = u.sys.Operate().Pause(a.ref, false)
	image := t.Image
	if s, err = repeat(t, image, now, entries, false); err == nil {
		err = u.switches(ctx, t, &swap.Code{Image: image, State: s, Time: t.Entry.Now})
	} else {
		t.Let()
	}
	if err != nil {
		why += "; nor is the new code where it was: " + err.Error()
	}
	u.note(a, Paused, why)
	t.Log(abi.LogError, "upgrade: it is paused, because it cannot go back: "+why)
}

// switches has an actor that was taken go on with other code. A disk that has much to do is waited for until ctx ends. After an error
// the actor goes on as it is.
func (u *run) switches(ctx context.Context, t *swap.Taken, to *swap.Code) error {
	err := t.Switch(ctx, to, nil)
	for errors.Is(err, wal.ErrBusy) && ctx.Err() == nil && !swap.Manual(u.sys) {
		time.Sleep(time.Millisecond)
		err = t.Switch(ctx, to, nil)
	}
	if err != nil {
		t.Let()
	}
	return err
}

// goBack has all actors go back.
func (u *run) goBack() {
	if u.m.Image() == u.image {
		if err := u.m.Replace(u.old); err != nil {
			for _, a := range u.actors() {
				u.note(a, a.Did, "it has not gone back: "+err.Error())
			}
			return
		}
	}
	u.tell(GoesBack, 0, 0)
	begins := map[string]bool{}
	for _, a := range u.actors() {
		switch begun := a.Way == Events || a.Way == Restart; {
		case a.Did != Upgraded && a.Did != Restarted:
		case !begun:
			u.back(a)
		default:
			covered := below(a.Path, begins)
			err := u.begins(a, covered)
			if begins[a.Path] = covered || err == nil; err != nil {
				u.note(a, a.Did, "it has not gone back: "+err.Error())
				continue
			}
			u.note(a, WentBack, "it was restarted, and once more with the old code")
		}
	}
}

// insisted are the actors that have kept their code although they may restart, parents first.
func (u *run) insisted() (all []*Actor) {
	if !u.Insist {
		return nil
	}
	for _, a := range u.actors() {
		if a.Did == Kept && a.restarts {
			a.Way = Restart
			all = append(all, a)
		}
	}
	return all
}

// restart has actors begin anew, with the module's code. What is below one of them restarts, or ends, with it.
func (u *run) restart(all []*Actor) {
	begins := map[string]bool{}
	for _, a := range all {
		covered := below(a.Path, begins)
		if err := u.begins(a, covered); err != nil {
			why := err.Error()
			if begins[a.Path] = covered; covered {
				why = Above + ", so its state is lost, and it keeps its code: " + why
			}
			u.note(a, Kept, why)
			continue
		}
		begins[a.Path] = true
		u.note(a, map[bool]string{true: Upgraded, false: Restarted}[a.Way == Events], a.Why)
	}
}

// begins has an actor begin anew with the module's code. One above it does, if it is covered.
func (u *run) begins(a *Actor, covered bool) error {
	ctx, cancel := u.visiting(context.WithoutCancel(u.ctx))
	defer cancel()
	if covered {
		return swap.Assign(ctx, u.sys, a.ref.UID()) // a volatile one needs none
	}
	if !swap.Renew(ctx, u.sys, a.ref.UID()) {
		return errors.New("it is gone, or that it begins anew cannot be recorded")
	}
	return nil
}

func (u *run) report(why string) *Report {
	all := u.actors()
	u.mu.Lock()
	defer u.mu.Unlock()
	r := &Report{Plan: u.Plan, Stopped: why, Crashes: u.crashes, Actors: make([]Actor, 0, len(all))}
	sums := map[string]*Type{}
	var pauses []time.Duration
	for _, a := range all {
		if a.Did == "" {
			a.Did, a.Why = Kept, "the upgrade has not come to it"
		}
		r.Actors = append(r.Actors, *a)
		x := sums[a.Type]
		if x == nil {
			x = &Type{Type: a.Type, Way: a.Way, Did: map[string]int{}}
			sums[a.Type] = x
		}
		x.Actors++
		x.Did[a.Did]++
		x.Time += int64(a.Pause)
		if a.Did == Kept || a.Did == Paused || a.Did == WentBack {
			x.Failed++
		}
		if a.Pause > 0 {
			pauses = append(pauses, a.Pause)
		}
	}
	for _, x := range sums {
		r.Types = append(r.Types, *x)
	}
	slices.SortFunc(r.Types, func(a, b Type) int { return cmp.Compare(a.Type, b.Type) })
	if slices.Sort(pauses); len(pauses) > 0 {
		r.P50, r.P99, r.Max = pauses[len(pauses)/2], pauses[len(pauses)*99/100], pauses[len(pauses)-1]
	}
	return r
}
