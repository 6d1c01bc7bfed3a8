package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/residency"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A guest that is idle gives its instance back, and the next message brings it back.
// Nobody notices: a snapshot is all of its state, and mailbox, timers, asks and watches
// are the host's. host/internal/residency decides which guest sleeps when.

// AskToSleep implements residency.Sleeper.
func (g *guest) AskToSleep() { g.actor.post(nil, sysmail.Msg{Kind: sysmail.Sleep}) }

// PutAway implements residency.Sleeper. It takes the place of a run of the actor: a message to
// it could wait behind a long turn, and until then there would be one instance too many.
func (g *guest) PutAway() (done bool) {
	g.actor.disp.Visit(&g.actor.task, func() { done = g.putAway() })
	return done
}

// SleepNext implements residency.Sleeper.
func (g *guest) SleepNext() { g.actor.surplus, g.actor.endings = true, true }

// putAwayIfOver is called at the end of a run of a guest whose instance exceeds the bound.
func (a *actor) putAwayIfOver(w *dispatch.Worker) {
	a.surplus = false
	if g, ok := a.behaviour.(*guest); ok && a.sys.awake.Over() {
		began := a.Now()
		g.putAway()
		a.copied(w, began)
	}
}

// putAway gives the instance back between two runs, even if there is work to do: what waits for
// the actor wakes it. A state that will not be used again is not kept.
func (g *guest) putAway() bool {
	a, x := g.actor, g.inst.Load()
	if x == nil {
		return false
	}
	if a.isHeld() { // the commands of its turn are in the instance
		g.use()
		return false
	}
	state := a.life.State()
	if state != life.Running && (x.Poisoned() || !a.begun.Load()) {
		g.release()
		return true
	}
	s, err := x.Drain()
	if err != nil {
		a.sys.awake.Hold(&g.node)
		return false
	}
	g.fallAsleep(s)
	g.failed = state == life.Failed
	return true
}

// fallAsleep keeps a snapshot instead of the instance.
func (g *guest) fallAsleep(s *sandbox.Snapshot) {
	a := g.actor
	g.asleep, g.failed = s, false
	g.noteStates()
	g.release()
	a.sys.asleep.Add(1)
	a.asleep.Store(true)
}

// sleep gives the instance back, unless the actor has something to do. The sweep has taken the guest out of the
// list: so it gives its instance back, or is in the list again.
func (g *guest) sleep(scr *scratch) {
	a := g.actor
	if x := g.inst.Load(); x != nil && x.MemoryBytes() >= largeCopy {
		scr.w.Yield()
	}
	switch {
	case g.inst.Load() == nil || g.node.Used():
	case a.open() && !a.box.Empty():
		g.use()
	default:
		began := a.Now()
		g.putAway()
		a.copied(scr.w, began)
	}
}

// copied notes that the present run has copied memory since began, if that took long.
func (a *actor) copied(w *dispatch.Worker, began time.Time) (long bool) {
	took := a.Now().Sub(began)
	if long = took >= longCopy; long {
		w.Spend(int64(took))
	}
	return long
}

// instance is the actor's instance, which may run; a sleeping actor is woken. The error is one of noRoom
// if that cannot be at the moment.
func (g *guest) instance(scr *scratch) (*sandbox.Instance, error) {
	x := g.inst.Load()
	if x != nil && !g.slim {
		return x, nil
	}
	if x != nil {
		return x, g.widen(scr, x)
	}
	if g.asleep == nil {
		return nil, nil
	}
	if g.asleep.Bytes() >= largeCopy {
		scr.w.Yield()
	}
	x, err := g.obtain(scr, sandbox.SavedWeight(g.image, g.asleep), g.asleep)
	if err != nil {
		return nil, err
	}
	g.asleep, g.waited = nil, 0
	g.actor.asleep.Store(false)
	g.noteStates()
	g.actor.sys.asleep.Add(-1)
	return x, nil
}

// mostPutAway is how many guests make room for one: those that sleep may have been smaller.
const mostPutAway = 8

// makeRoom puts an idle guest to sleep where that helps against err, and reports whether it has: any
// guest if the system has no room, only those of the actor's own tree if that has none. node is the
// guest that needs the room; nil: none does yet. What a search in the actor's own tree costs, and whether it succeeds,
// does not depend on other trees.
func (a *actor) makeRoom(node *residency.Node, err error) bool {
	if errors.Is(err, sandbox.ErrTooManyInstances) {
		return a.sys.awake.MakeRoom(node, anySleeper)
	}
	var bound *account.Error
	if errors.As(err, &bound) && bound.Pool != nil && bound.Pool.Root() {
		return a.sys.awake.SlimOne(node) || a.sys.awake.MakeRoom(node, anySleeper)
	}
	if bound == nil || bound.Pool == nil {
		return false
	}
	return a.tree.awake.MakeRoom(node, func(s residency.Sleeper) bool { return bound.Helps(s.(*guest).actor.pool) })
}

func anySleeper(residency.Sleeper) bool { return true }

// obtain gets the actor an instance of a weight, in the state s or, if that is nil, a fresh one.
// Where there are as many as may be, or they weigh as much, it has the room of those that other
// guests have given back for it. After each long step others run.
func (g *guest) obtain(scr *scratch, weight int64, s *sandbox.Snapshot) (*sandbox.Instance, error) {
	x, err := g.attempt(scr, weight, s)
	for i := 0; err != nil && i < mostPutAway && g.makeRoom(scr, err); i++ {
		x, err = g.attempt(scr, weight, s)
	}
	return x, err
}

func (g *guest) attempt(scr *scratch, weight int64, s *sandbox.Snapshot) (*sandbox.Instance, error) {
	defer g.pause(scr, g.actor.Now())
	return g.take(weight, s)
}

func (g *guest) makeRoom(scr *scratch, err error) bool {
	defer g.pause(scr, g.actor.Now())
	return g.actor.makeRoom(&g.node, err)
}

// pause lets others run if the run has copied for long since began.
func (g *guest) pause(scr *scratch, began time.Time) {
	if g.actor.copied(scr.w, began) {
		scr.w.Yield()
	}
}

func (g *guest) take(weight int64, s *sandbox.Snapshot) (x *sandbox.Instance, err error) {
	a := g.actor
	g.use() // first: room is made before there is one more
	if err = work.Hold(&a.account, account.Memory, weight); err == nil {
		g.avoidCopy()
		if s != nil {
			x, err = sandbox.GetSaved(g.image, s)
		} else {
			x, err = sandbox.Get(g.image)
		}
	}
	if err != nil {
		a.sys.awake.Remove(&g.node)
		a.account.Note(account.Memory, 0)
		return nil, err
	}
	g.inst.Store(x)
	g.widened()
	if !g.sleeps {
		a.sys.awake.Count(&g.node)
	}
	return x, nil
}

// avoidCopy prevents that a guest of a large image gets a copy of its memory, megabytes and milliseconds,
// when the most mappings are in use: the guest takes the place of an unused instance, or the instance of an
// idle guest of the same image.
func (g *guest) avoidCopy() {
	if sandbox.Copies(g.image) && !sandbox.DropMapped(g.image) {
		g.actor.sys.awake.MakeRoom(&g.node, func(s residency.Sleeper) bool { return s.(*guest).image == g.image })
	}
}

// use notes that the instance is being used, or is about to be.
func (g *guest) use() {
	if g.sleeps {
		g.actor.sys.awake.Use(&g.node)
	}
}

// forgetSleep drops the state of an actor that sleeps: its incarnation is over.
func (g *guest) forgetSleep() {
	if g.asleep != nil {
		g.asleep = nil
		g.actor.asleep.Store(false)
		g.actor.sys.asleep.Add(-1)
		g.noteStates()
	}
}

// An actor that got no instance tries again after instanceRetry, and after twice as long each time it fails
// again, up to mostRetry.
const (
	instanceRetry = 5 * time.Millisecond
	mostRetry     = time.Second
)

// tryAgain schedules a message to the actor for its next try, and publishes the first failure.
func (g *guest) tryAgain(what string, err error, m sysmail.Msg) {
	a := g.actor
	if g.waited == 0 {
		g.memoryRefused(what, fmt.Errorf("%w; it waits and is tried again", err))
	}
	after := min(instanceRetry<<g.waited, mostRetry)
	if after < mostRetry {
		g.waited++
	}
	g.retry.Stop()
	g.retry = a.alarms.After(a.Clock(), after, func() { a.post(nil, m) })
}

// stopWaiting is for an incarnation that is over.
func (g *guest) stopWaiting() {
	g.waited, g.start = 0, nil
	g.retry.Stop()
	g.actor.holds.drop(holdInstance)
}

// noInstance deals with an actor that cannot be woken: if no instance is available it
// waits, anything else is a failure.
func (g *guest) noInstance(err error) *abi.Failure {
	a := g.actor
	if !noRoom(err) {
		return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
	}
	a.holds.add(holdInstance)
	g.tryAgain("instance", err, sysmail.Msg{Kind: sysmail.Instance})
	return nil
}
