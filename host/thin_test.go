package host

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/supervision"
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

func (x *instructed) tell(m sysMsg) {
	if m.how.has(howOrder) {
		x.orders += uint64(1 + m.more)
	}
	switch m.kind {
	case sysStart:
		if x.do(life.Start) {
			x.begin()
		}
	case sysStop:
		x.do(life.Stop)
	case sysSuspend:
		x.suspended++
	case sysUnsuspend:
		x.suspended--
	case sysResume:
		x.do(life.Resume)
	case sysRestart:
		if x.life == life.Restarting {
			x.hold, x.due = m.how.has(howHold), x.due || m.how.has(howNow)
		} else if x.do(life.Restart) {
			x.restart++
			x.hold, x.due = m.how.has(howHold), m.delay == 0
		}
		x.maybeRestart()
	case sysBegin:
		x.hold = false
		x.maybeRestart()
	case sysRestartDue:
		if m.due == any(x.restart) {
			x.due = true
			x.maybeRestart()
		}
	case sysChildStopped:
		x.waits = max(0, x.waits-1)
		x.maybeRestart()
	case sysPause, sysUnpause:
		x.pause(m.kind == sysPause, m.how.has(howBelow))
	case sysAwaitRenewal:
		x.renewals += 1 + int(m.more)
	case sysRenewed:
		x.renewals -= 1 + int(m.more)
	case sysSignal:
		if m.signal.Kind == signal.Watch {
			x.watched[m.signal.From] = true
		} else {
			delete(x.watched, m.signal.From)
		}
	case sysCrash, sysStray:
		x.do(life.Fail)
	case sysLook:
		x.looks++
	default:
		x.kids[m.ref].tell(m)
	}
}

func (k *instructedChild) tell(m sysMsg) {
	switch m.kind {
	case sysChildFailed:
		if !k.ordered { // else the report is older than the order
			k.suspended = true
			k.failures++
		}
	case sysDecide:
		if k.suspended {
			k.suspended, k.ordered = false, true
			k.decided = append(k.decided, m.directive)
		}
	case sysResetBackoff:
		k.failures = 0
	case sysRenew:
		if m.detail != nil {
			k.failures = 0
			k.recipe = m.detail
		}
		k.suspended, k.ordered = false, true
		k.renewed += 1 + int(m.more)
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
func (x instructed) after(items []sysMsg) string {
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
var thinKinds = []sysKind{
	sysPause, sysUnpause, sysCrash, sysStray, sysRestart, sysRestartDue, sysStart, sysStop, sysSuspend, sysUnsuspend, sysResume, sysBegin, sysChildStopped,
	sysAwaitRenewal, sysRenewed, sysSignal, sysLook, sysChildFailed, sysDecide, sysResetBackoff, sysRenew,
}

func drawSysMsg(t *rapid.T, kinds []sysKind) sysMsg {
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	m := sysMsg{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
	switch m.kind {
	case sysPause, sysUnpause:
		m.how = howIf(yes("below"), howBelow)
	case sysRestart:
		m.how, m.failure = howOrder|howIf(yes("now"), howNow)|howIf(rapid.IntRange(0, 3).Draw(t, "hold") == 0, howHold), restartedByHand
		if !m.how.has(howNow) && yes("delayed") {
			m.delay = 1
		}
	case sysResume, sysBegin:
		m.how = howOrder
	case sysRestartDue:
		m.due = 0 // the one that is under way at the beginning
	case sysStray, sysCrash:
		m.failure = boomFailure
	case sysLook:
		m.look = &look{ready: make(chan struct{})}
	case sysSignal:
		m.signal = &signal.Signal{Kind: rapid.SampledFrom([]signal.Kind{signal.Watch, signal.Unwatch}).Draw(t, "signal")}
		m.signal.From = abi.Ref(rapid.IntRange(0, 1).Draw(t, "from"))
	case sysChildFailed, sysResetBackoff:
		m.ref = abi.Ref(rapid.IntRange(0, 1).Draw(t, "ref"))
	case sysDecide:
		m.ref = abi.Ref(rapid.IntRange(0, 1).Draw(t, "ref"))
		m.directive = rapid.SampledFrom([]supervision.Directive{supervision.Resume, supervision.Restart, supervision.Stop}).Draw(t, "directive")
	case sysRenew:
		m.ref = abi.Ref(rapid.IntRange(0, 1).Draw(t, "ref"))
		if yes("recipe") {
			m.detail = &renewal{&Props{typ: "other"}}
		}
	}
	return m
}

// Thinning a queue out changes nothing but how much waits: what is left of the messages leaves an actor, whatever
// its state, as all of them would have left it.
func TestThinningKeepsWhatOrdersMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawInstructed(t)
		kinds := rapid.SliceOfNDistinct(rapid.SampledFrom(thinKinds), 1, 5, rapid.ID[sysKind]).Draw(t, "kinds") // few: they meet
		var all []sysMsg
		var q systemQueue
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			m := drawSysMsg(t, kinds)
			all = append(all, m)
			q.push(&m)
			if rapid.IntRange(0, 3).Draw(t, "thin") == 0 {
				q.thin()
			}
		}
		q.thin()
		left := q.take()
		if want, got := x.after(all), x.after(left); got != want {
			t.Fatalf("%+v\n%s, it is left %s;\nof %s is left %s", x, want, got, kindsOf(all), kindsOf(left))
		}
	})
}

// What was lost once.
func TestThinningKeeps(t *testing.T) {
	for what, c := range map[string]struct {
		life    life.State
		items   []sysMsg
		thinned int
	}{
		"that children are born without a pause":           {life.Running, []sysMsg{{kind: sysPause, kin: kin{how: howBelow}}, {kind: sysUnpause}, {kind: sysPause}}, 3},
		"that the child of a restart is":                   {life.Running, []sysMsg{{kind: sysPause, kin: kin{how: howBelow}}, {kind: sysUnpause}, {kind: sysRestart, kin: kin{how: howOrder}}, {kind: sysPause}}, 4},
		"what is paused below, once":                       {life.Running, []sysMsg{{kind: sysPause, kin: kin{how: howBelow}}, {kind: sysUnpause, kin: kin{how: howBelow}}, {kind: sysPause, kin: kin{how: howBelow}}}, 1},
		"the crash after the restart":                      {life.Restarting, []sysMsg{{kind: sysCrash}, {kind: sysRestartDue, own: own{due: 0}}, {kind: sysCrash}}, 3},
		"the crash after the start":                        {life.New, []sysMsg{{kind: sysCrash}, {kind: sysStart}, {kind: sysCrash}}, 3},
		"the failure after the start":                      {life.New, []sysMsg{{kind: sysStray}, {kind: sysStart}, {kind: sysStray}}, 3},
		"the crash after the last child of a restart":      {life.Restarting, []sysMsg{{kind: sysCrash}, {kind: sysChildStopped}, {kind: sysCrash}}, 3},
		"one crash of those that have the same to crash":   {life.Running, []sysMsg{{kind: sysCrash}, {kind: sysPause}, {kind: sysCrash}}, 2},
		"the end of a pause of those that have no meaning": {life.Running, []sysMsg{{kind: sysUnpause}, {kind: sysPause}, {kind: sysUnpause}, {kind: sysPause}}, 2},
	} {
		q := systemQueue{items: slices.Clone(c.items)}
		q.thin()
		x := instructed{life: c.life}
		if c.life == life.Restarting {
			x.waits, x.due = 1, c.items[1].kind == sysChildStopped
			if !x.due {
				x.waits = 0
			}
		}
		if len(q.items) != c.thinned || x.after(q.items) != x.after(c.items) {
			t.Errorf("%s: %s is left of %s", what, kindsOf(q.items), kindsOf(c.items))
		}
	}
}

func kindsOf(items []sysMsg) string {
	var s []string
	for _, m := range items {
		s = append(s, fmt.Sprintf("%d how=%b ref=%d more=%d", m.kind, m.how, m.ref, m.more))
	}
	return fmt.Sprintf("%q", s)
}
