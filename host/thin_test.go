package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/supervision"
	"pgregory.net/rapid"
)

// instructed is a model of an actor as far as what it is told may be thinned out: what is left of messages must leave
// the same as all of them. How often it was restarted between two orders to restart is not part of it.
type instructed struct {
	life              life.State
	suspended         int
	hold, due         bool // of its restart
	restart           int  // which one
	waits             int  // for that many children
	paused, below     bool
	oldPaused         bool // the child from before
	newPaused, births bool // the child of the last begin; there was one
	renewals          int
	orders            uint64
	watched           map[abi.Ref]bool
	looks             int
	kids              [2]instructedChild
}

// instructedChild is what a supervisor notes about a child.
type instructedChild struct {
	suspended, ordered bool
	failures           int
	decided            []supervision.Directive
	renewed            int
	recipe             any
}

func (x *instructed) do(e life.Event) bool {
	next, ok := x.life.Next(e)
	x.life = next
	return ok
}

func (x *instructed) begin() {
	x.births, x.newPaused = true, x.below
}

func (x *instructed) maybeRestart() {
	if x.life == life.Restarting && x.waits == 0 && !x.hold && x.due {
		x.do(life.Begin)
		x.restart++
		x.begin()
	}
}

func (x *instructed) pause(on, below bool) {
	x.paused = on
	x.below = on && (x.below || below)
	if below {
		x.oldPaused = on
		x.newPaused = x.births && on
	}
}

func (x *instructed) tell(m sysmail.Msg) {
	if m.How.Has(sysmail.Order) {
		x.orders += uint64(1 + m.More)
	}
	switch m.Kind {
	case sysmail.Start:
		if x.do(life.Start) {
			x.begin()
		}
	case sysmail.Stop:
		x.do(life.Stop)
	case sysmail.Suspend:
		x.suspended++
	case sysmail.Unsuspend:
		x.suspended--
	case sysmail.Resume:
		x.do(life.Resume)
	case sysmail.Restart:
		if x.life == life.Restarting {
			x.hold, x.due = m.How.Has(sysmail.Hold), x.due || m.How.Has(sysmail.Now)
		} else if x.do(life.Restart) {
			x.restart++
			x.hold, x.due = m.How.Has(sysmail.Hold), m.Delay == 0
		}
		x.maybeRestart()
	case sysmail.Begin:
		x.hold = false
		x.maybeRestart()
	case sysmail.RestartDue:
		if m.Due == any(x.restart) {
			x.due = true
			x.maybeRestart()
		}
	case sysmail.ChildStopped:
		x.waits = max(0, x.waits-1)
		x.maybeRestart()
	case sysmail.Pause, sysmail.Unpause:
		x.pause(m.Kind == sysmail.Pause, m.How.Has(sysmail.Below))
	case sysmail.AwaitRenewal:
		x.renewals += 1 + int(m.More)
	case sysmail.Renewed:
		x.renewals -= 1 + int(m.More)
	case sysmail.Signal:
		if m.Signal.Kind == signal.Watch {
			x.watched[m.Signal.From] = true
		} else {
			delete(x.watched, m.Signal.From)
		}
	case sysmail.Crash, sysmail.Stray:
		x.do(life.Fail)
	case sysmail.Look:
		x.looks++
	default:
		x.kids[m.Ref].tell(m)
	}
}

func (k *instructedChild) tell(m sysmail.Msg) {
	switch m.Kind {
	case sysmail.ChildFailed:
		if !k.ordered { // else the report is older than the order
			k.suspended = true
			k.failures++
		}
	case sysmail.Decide:
		if k.suspended {
			k.suspended, k.ordered = false, true
			k.decided = append(k.decided, m.Directive)
		}
	case sysmail.ResetBackoff:
		k.failures = 0
	case sysmail.Renew:
		if m.Detail != nil {
			k.failures = 0
			k.recipe = m.Detail
		}
		k.suspended, k.ordered = false, true
		k.renewed += 1 + int(m.More)
	}
}

// drawInstructed is an actor in any state.
func drawInstructed(t *rapid.T) instructed {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	x := instructed{life: rapid.SampledFrom([]life.State{life.New, life.Running, life.Failed, life.Restarting}).Draw(t, "life"), oldPaused: yes("old child paused")}
	if x.life == life.Restarting {
		x.hold, x.due, x.waits = yes("hold"), yes("due"), rapid.IntRange(0, 1).Draw(t, "waits")
		x.due = x.due && (x.hold || x.waits > 0)
	}
	if x.paused = yes("paused"); x.paused {
		x.below = yes("below")
	}
	return x
}

// after is what messages leave.
func (x instructed) after(items []sysmail.Msg) string {
	x.watched = map[abi.Ref]bool{}
	for _, m := range items {
		x.tell(m)
	}
	if x.life == life.Stopping { // of what was between nothing is left
		x.hold, x.due, x.restart, x.waits = false, false, 0, 0
		x.oldPaused, x.newPaused, x.births = false, false, false
	}
	if x.life == life.Running {
		x.hold, x.due = false, false
	}
	x.restart = 0
	return fmt.Sprintf("%+v", x)
}

// thinKinds is what the model knows.
var thinKinds = []sysmail.Kind{
	sysmail.Pause, sysmail.Unpause, sysmail.Crash, sysmail.Stray, sysmail.Restart, sysmail.RestartDue, sysmail.Start, sysmail.Stop, sysmail.Suspend, sysmail.Unsuspend, sysmail.Resume, sysmail.Begin, sysmail.ChildStopped,
	sysmail.AwaitRenewal, sysmail.Renewed, sysmail.Signal, sysmail.Look, sysmail.ChildFailed, sysmail.Decide, sysmail.ResetBackoff, sysmail.Renew,
}

func drawSysMsg(t *rapid.T, kinds []sysmail.Kind) sysmail.Msg {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	m := sysmail.Msg{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch m.Kind {
	case sysmail.Pause, sysmail.Unpause:
		m.How = sysmail.If(yes("below"), sysmail.Below)
	case sysmail.Restart:
		m.How, m.Failure = sysmail.Order|sysmail.If(yes("now"), sysmail.Now)|sysmail.If(rapid.IntRange(0, 3).Draw(t, "hold") == 0, sysmail.Hold), restartedByHand
		if !m.How.Has(sysmail.Now) && yes("delayed") {
			m.Delay = 1
		}
	case sysmail.Resume, sysmail.Begin:
		m.How = sysmail.Order
	case sysmail.RestartDue:
		m.Due = 0 // the one that is under way at the beginning
	case sysmail.Stray, sysmail.Crash:
		m.Failure = boomFailure
	case sysmail.Look:
		m.Look = look.NewLook(nil)
	case sysmail.Signal:
		m.Signal = &signal.Signal{Kind: rapid.SampledFrom([]signal.Kind{signal.Watch, signal.Unwatch}).Draw(t, "signal")}
		m.Signal.From = abi.Ref(rapid.IntRange(0, 1).Draw(t, "from"))
	case sysmail.ChildFailed, sysmail.ResetBackoff:
		m.Ref = abi.Ref(rapid.IntRange(0, 1).Draw(t, "ref"))
	case sysmail.Decide:
		m.Ref = abi.Ref(rapid.IntRange(0, 1).Draw(t, "ref"))
		m.Directive = rapid.SampledFrom([]supervision.Directive{supervision.Resume, supervision.Restart, supervision.Stop}).Draw(t, "directive")
	case sysmail.Renew:
		m.Ref = abi.Ref(rapid.IntRange(0, 1).Draw(t, "ref"))
		if yes("recipe") {
			m.Detail = &renewal{&Props{typ: "other"}}
		}
	}
	return m
}

// Thinning a queue out changes nothing but how much waits: what is left of the messages leaves an actor, whatever
// its state, as all of them would have left it.
func TestThinningKeepsWhatOrdersMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawInstructed(t)
		kinds := rapid.SliceOfNDistinct(rapid.SampledFrom(thinKinds), 1, 5, rapid.ID[sysmail.Kind]).Draw(t, "kinds") // few: they meet
		var all []sysmail.Msg
		var q sysmail.Queue
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			m := drawSysMsg(t, kinds)
			all = append(all, m)
			q.Push(&m)
			if rapid.IntRange(0, 3).Draw(t, "thin") == 0 {
				q.Thin()
			}
		}
		q.Thin()
		left := q.Take()
		if want, got := x.after(all), x.after(left); got != want {
			t.Fatalf("%+v\n%s, it is left %s;\nof %s is left %s", x, want, got, kindsOf(all), kindsOf(left))
		}
	})
}

// What was lost once.
func TestThinningKeeps(t *testing.T) {
	for what, c := range map[string]struct {
		life    life.State
		items   []sysmail.Msg
		thinned int
	}{
		"that children are born without a pause":           {life.Running, []sysmail.Msg{{Kind: sysmail.Pause, Kin: sysmail.Kin{How: sysmail.Below}}, {Kind: sysmail.Unpause}, {Kind: sysmail.Pause}}, 3},
		"that the child of a restart is":                   {life.Running, []sysmail.Msg{{Kind: sysmail.Pause, Kin: sysmail.Kin{How: sysmail.Below}}, {Kind: sysmail.Unpause}, {Kind: sysmail.Restart, Kin: sysmail.Kin{How: sysmail.Order}}, {Kind: sysmail.Pause}}, 4},
		"what is paused below, once":                       {life.Running, []sysmail.Msg{{Kind: sysmail.Pause, Kin: sysmail.Kin{How: sysmail.Below}}, {Kind: sysmail.Unpause, Kin: sysmail.Kin{How: sysmail.Below}}, {Kind: sysmail.Pause, Kin: sysmail.Kin{How: sysmail.Below}}}, 1},
		"the crash after the restart":                      {life.Restarting, []sysmail.Msg{{Kind: sysmail.Crash}, {Kind: sysmail.RestartDue, Own: sysmail.Own{Due: 0}}, {Kind: sysmail.Crash}}, 3},
		"the crash after the start":                        {life.New, []sysmail.Msg{{Kind: sysmail.Crash}, {Kind: sysmail.Start}, {Kind: sysmail.Crash}}, 3},
		"the failure after the start":                      {life.New, []sysmail.Msg{{Kind: sysmail.Stray}, {Kind: sysmail.Start}, {Kind: sysmail.Stray}}, 3},
		"the crash after the last child of a restart":      {life.Restarting, []sysmail.Msg{{Kind: sysmail.Crash}, {Kind: sysmail.ChildStopped}, {Kind: sysmail.Crash}}, 3},
		"one crash of those that have the same to crash":   {life.Running, []sysmail.Msg{{Kind: sysmail.Crash}, {Kind: sysmail.Pause}, {Kind: sysmail.Crash}}, 2},
		"the end of a pause of those that have no meaning": {life.Running, []sysmail.Msg{{Kind: sysmail.Unpause}, {Kind: sysmail.Pause}, {Kind: sysmail.Unpause}, {Kind: sysmail.Pause}}, 2},
	} {
		q := sysmail.Queue{Items: slices.Clone(c.items)}
		q.Thin()
		x := instructed{life: c.life}
		if c.life == life.Restarting {
			x.waits, x.due = 1, c.items[1].Kind == sysmail.ChildStopped
			if !x.due {
				x.waits = 0
			}
		}
		if len(q.Items) != c.thinned || x.after(q.Items) != x.after(c.items) {
			t.Errorf("%s: %s is left of %s", what, kindsOf(q.Items), kindsOf(c.items))
		}
	}
}

func kindsOf(items []sysmail.Msg) string {
	var s []string
	for _, m := range items {
		s = append(s, fmt.Sprintf("%d how=%b ref=%d more=%d", m.Kind, m.How, m.Ref, m.More))
	}
	return fmt.Sprintf("%q", s)
}
