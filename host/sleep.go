package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A guest that is idle gives its instance back, and the next message brings it back.
// Nobody notices: a snapshot is all of its state, and mailbox, timers, asks and watches
// are the host's. Who sleeps when is decided by host/internal/residency.

// AskToSleep implements residency.Sleeper.
func (g *guest) AskToSleep(w *dispatch.Worker) {
	if w != nil {
		g.actor.post(scratchOf(w), sysMsg{kind: sysSleep})
		return
	}
	g.actor.post(nil, sysMsg{kind: sysSleep})
}

// residency handles the system messages about the instance.
func (g *guest) residency(k sysKind) {
	switch k {
	case sysSleep:
		g.sleep()
	case sysInstance:
		g.actor.holds.drop(holdInstance)
	}
}

// sleep gives the instance back, if nothing is to be done.
func (g *guest) sleep() {
	a, x := g.actor, g.inst.Load()
	if x == nil || !a.begun.Load() || a.life.State() != life.Running || g.node.Used() || !a.box.Empty() {
		return
	}
	s, err := x.Drain()
	if err != nil {
		return
	}
	g.asleep = s
	a.account.Note(account.Snapshot, int64(s.Bytes()))
	g.release()
	a.sys.asleep.Add(1)
	a.asleep.Store(true)
}

// instance is the actor's instance; one that sleeps is woken. It fails with
// sandbox.ErrTooManyInstances if there is none at the moment.
func (g *guest) instance(scr *scratch) (*sandbox.Instance, error) {
	if x := g.inst.Load(); x != nil || g.asleep == nil {
		return x, nil
	}
	err := g.actor.hold(account.Memory, sandbox.SavedWeight(g.image, g.asleep))
	var x *sandbox.Instance
	if err == nil {
		x, err = sandbox.GetSaved(g.image, g.asleep)
	}
	if err != nil {
		g.actor.account.Note(account.Memory, 0)
		return nil, err
	}
	g.asleep, g.waiting = nil, false
	g.actor.asleep.Store(false)
	g.noteStates()
	g.actor.sys.asleep.Add(-1)
	g.take(scr, x)
	return x, nil
}

// take makes x the actor's instance.
func (g *guest) take(scr *scratch, x *sandbox.Instance) {
	g.inst.Store(x)
	g.use(scr)
}

// use notes that the instance is being used.
func (g *guest) use(scr *scratch) {
	if g.sleeps {
		g.actor.sys.awake.Use(scr.w, &g.node)
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

// instanceRetry is when an actor that got no instance tries again.
const instanceRetry = 5 * time.Millisecond

// noInstance deals with an actor that cannot be woken: for lack of an instance it
// waits, anything else is a failure.
func (g *guest) noInstance(scr *scratch, err error) *abi.Failure {
	a := g.actor
	if !noRoom(err) {
		return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
	}
	if !g.waiting {
		g.waiting = true
		g.memoryRefused("instance", err)
	}
	a.holds.add(holdInstance)
	a.sys.awake.Evict(scr.w, &g.node)
	a.alarms.After(a.Clock(), instanceRetry, func() { a.post(nil, sysMsg{kind: sysInstance}) })
	return nil
}
