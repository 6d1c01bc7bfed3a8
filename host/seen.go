package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/window"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// View is for whoever looks at the system.
func (s *System) View() View { return window.Of((*pane)(s)) }

// pane is a system as its View sees it: a window.Engine.
type pane System

// Here implements window.Engine.
func (s *pane) Here(uid abi.Ref) window.Actor {
	if a := (*System)(s).here(uid); a != nil {
		return (*shown)(a)
	}
	return nil
}

// User implements window.Engine.
func (s *pane) User() window.Actor { return (*shown)(s.user) }

// Each implements window.Engine.
func (s *pane) Each(f func(window.Actor)) { s.table.Each(func(a *actor) { f((*shown)(a)) }) }

// Away implements window.Engine.
func (s *pane) Away() *dormant.Actors { return away((*System)(s)) }

// Audience implements window.Engine.
func (s *pane) Audience() *look.Audience { return &s.audience }

// Counts implements window.Engine.
func (s *pane) Counts() *look.Totals { return &s.totals }

// AppendInfo implements window.Engine.
func (s *pane) AppendInfo(to []Info, c *look.Census) []Info {
	const together = 32
	var batch [together]*actor
	n := 0
	flush := func() {
		// The fields that are read are rarely in a cache. Reading several actors before
		// anything depends on the values makes the memory fetch all of them at once.
		warm := uint64(0)
		for _, a := range batch[:n] {
			warm += a.tally.Turns.Load() + uint64(a.account.Of(account.Base)) + uint64(a.box.Len()) + uint64(a.uid)
		}
		if warm == 0 {
			return // no actor has uid 0
		}
		for _, a := range batch[:n] {
			if len(to) < cap(to) {
				to = to[:len(to)+1]
			} else {
				to = append(to, Info{})
			}
			(*shown)(a).info(&to[len(to)-1])
		}
	}
	defer s.Away().Hold()() // each is on one side
	s.table.Each(func(a *actor) {
		if c != nil && !c.Meets(&a.counted) {
			return
		}
		batch[n] = a
		if n++; n == together {
			flush()
			n = 0
		}
	})
	flush()
	return s.Away().AppendInfo(to)
}

// Figures implements window.Engine.
func (s *pane) Figures() (t Totals) {
	gone := s.Away().Len()
	t.Actors, t.Asleep, t.Crashes, t.Restarts = s.table.Len()+gone, int(s.asleep.Load())+gone, s.totals.Crashes.Load(), s.totals.Restarts.Load()
	t.Held, t.Workers, t.TurnTimes = s.pool.Held(), s.disp.Stats().Workers, s.turnTimes.All()
	t.HeldLimit, t.ActorLimit = s.pool.Bounds()
	return t
}

// Logs implements window.Engine.
func (s *pane) Logs(to sandbox.LogSink) window.Actor {
	if g, ok := to.(*guest); ok && g.actor.sys == (*System)(s) {
		return (*shown)(g.actor)
	}
	return nil
}

// shown is an actor as a View sees it: a window.Actor.
type shown actor

// Ref implements window.Actor.
func (g *shown) Ref() Ref { return g.ref() }

// Guardian implements window.Actor.
func (g *shown) Guardian() bool { return g.parent == nil }

// Stopped implements window.Actor.
func (g *shown) Stopped() bool { return g.life.State() == life.Stopped }

// Below implements window.Actor.
func (g *shown) Below() int { return g.super.Family.Len() }

// Children implements window.Actor.
func (g *shown) Children(f func(window.Actor) bool) {
	for _, k := range g.super.Family.Children() {
		if !f((*shown)(k)) {
			break
		}
	}
}

// Tally implements window.Actor.
func (g *shown) Tally() *look.Tally { return &g.tally }

// Counted implements window.Actor.
func (g *shown) Counted() *look.Counted { return &g.counted }

// Taps implements window.Actor.
func (g *shown) Taps() *look.Taps { return &g.tapped }

// Held implements window.Actor.
func (g *shown) Held() Held { return g.account.Held() }

// Engine implements window.Actor.
func (g *shown) Engine() *sandbox.Engine {
	if m := g.props.module; m != nil {
		return m.Image().Engine()
	}
	return nil
}

// Node implements window.Actor.
func (g *shown) Node() Node {
	n := Node{Ref: g.ref(), Type: g.props.typ, State: g.life.State().String(), Incarnation: g.Incarnation(), Mailbox: g.box.Len(), Turns: g.tally.Turns.Load()}
	if x := g.inst; x != nil {
		n.Asleep = !x.Awake() && g.life.State() == life.Running
	}
	return n
}

// Bounds implements window.Actor.
func (g *shown) Bounds(x *Inspection) {
	r := g.rules.Load()
	x.Parts, x.Limits, x.Capabilities, x.Lifetime, x.Replies = g.account.Held(), r.limits, r.caps, r.life, int(g.replies.Load())
}

// Visit implements window.Actor.
func (g *shown) Visit(read func()) *look.Visit { return (*actor)(g).lookAt(read) }

// Details implements window.Actor.
func (g *shown) Details(x *Inspection) {
	x.Counts = &Counts{
		Timers: g.work.Timers.Len(), Asks: g.work.Asks.Len(), Watches: g.work.Watch.Len(), Watchers: len(g.work.Watch.Watchers()),
		Stash: g.work.Stash.Len(), Undecided: g.super.Undecided(),
	}
	if b, ok := g.behaviour.(*guest); ok && b.inst.Image != nil {
		x.Module, x.Code = b.inst.Image.Name(), sandbox.ModuleSum(b.inst.Image)
	}
}

// VisitAbove implements window.Actor.
func (g *shown) VisitAbove(x *Inspection, read func()) *look.Visit {
	if g.parent == nil {
		return nil
	}
	x.Strategy = g.parent.props.strategy
	return g.parent.lookAt(read)
}

// Record implements window.Actor.
func (g *shown) Record(x *Inspection) {
	if record, left, known := g.parent.super.Look(&g.member, g.parent.Now()); known {
		x.Record, x.Left = &record, left
	}
}

// Info implements window.Actor.
func (g *shown) Info() (i Info) {
	g.info(&i)
	return i
}

// info fills i in, field by field: there may be many.
func (g *shown) info(i *Info) {
	a := (*actor)(g)
	i.Ref = newRef(a.uid, a.path)
	if p := a.parent; p != nil {
		i.Parent = newRef(p.uid, p.path)
	} else {
		i.Parent = Ref{}
	}
	i.Type, i.Incarnation, i.Since, i.Failure = a.props.typ, a.Number.Load(), a.Since.Load(), a.failed.Load()
	i.Mailbox, i.MailboxBytes, i.Before, i.Came = a.box.Len(), a.box.Bytes(), 0, 0
	if a.box.Hosted != nil {
		i.Before, i.Came = a.box.Hosted.Order()
	}
	i.Turns, i.Fuel, i.Crashes, i.Restarts = a.tally.Turns.Load(), a.tally.Fuel.Load(), a.tally.Crashes.Load(), a.tally.Restarts.Load()
	i.Held, i.Children, i.Due = a.account.Total(), 0, 0
	// What it is doing is the highest state that applies.
	state := a.life.State()
	i.Paused, i.Grace = a.life.Held(life.Paused), a.life.Held(life.Grace)
	i.Failed = state == life.Failed
	switch {
	case state.Ending():
		i.State = StateStopping
	case state == life.Restarting:
		i.State = StateDelayed
		if due := a.due.Load(); due != 0 {
			i.Due = max(0, time.Unix(0, due).Sub(a.Now()))
		}
	case i.Failed || a.life.Suspended() > 0:
		i.State = StateSuspended
	case i.Paused:
		i.State = StatePaused
	case a.life.Held(life.Starved):
		i.State = StateStarved
	case !a.life.Begun.Load():
		i.State = StateStarting
	case a.asleep.Load():
		i.State = StateAsleep
	default:
		i.State = StateRunning
	}
}
