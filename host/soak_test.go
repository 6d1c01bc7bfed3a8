package host

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
	"pgregory.net/rapid"
)

// The soak: random trees under random strategies, told random things, crash and crash.
// soak_model_test.go has what must hold.

// parcel is a message of the soak. It is short: the echoes have little room.
type parcel struct {
	S     uint64  `cbor:"s"` // the sender
	N     uint64  `cbor:"n"` // its number, for one receiver
	What  string  `cbor:"w"`
	Via   abi.Ref `cbor:"v,omitempty"` // the router that it was told to
	Level uint8   `cbor:"l,omitempty"` // in a mailbox with levels
	All   bool    `cbor:"a,omitempty"` // that router sends it to all its routees
}

// SoakRouters are routers of host/router by name, see conformance_kinds_test.go; all/NAME send to all.
var SoakRouters = map[string]func(routees int, routee Props, l Limits) Props{}

// An actor of the soak shows in its limit of bytes, which nobody meets, what it is: soakBytes and the place
// of its mailbox's kind, or, for a router, a thousand and the number of its policy for crashed messages, and
// soakToAll more if it sends to all.
const (
	soakBytes = 1 << 20
	soakToAll = 10_000
)

var soakPolicies = []CrashedMessage{DropCrashed(), DeadLetterCrashed(), RedeliverCrashed(1), RedeliverCrashed(3)}

func (a *actor) soakRouter() (of CrashedMessage, ok bool) {
	n := a.rules.Load().limits.MailboxBytes - soakBytes - 1000
	if n >= soakToAll {
		n -= soakToAll
	}
	if n < 0 || n >= int64(len(soakPolicies)) {
		return of, false
	}
	return soakPolicies[n], true
}

func (a *actor) soakToAll() bool {
	return a.rules.Load().limits.MailboxBytes >= soakBytes+1000+soakToAll
}

func (a *actor) soakMailbox() string {
	if n := a.rules.Load().limits.MailboxBytes - soakBytes; n >= 0 && n < int64(len(soakKinds)) {
		return soakKinds[n]
	}
	return ""
}

// world is one run.
type world struct {
	*System
	clock  *VirtualClock
	events *Subscription
	rnd    *rand.Rand
	guests []Props // echoes, with and without next
	slept  int     // guests seen asleep, at any look
	shared int     // entries of guests that have had more than one turn
	desk   Ref     // that guests answer
	sent   map[abi.Ref]uint64
	book   *book
	cells  map[abi.Ref]*actor
	log    []string // what went wrong
}

// soak runs a world of a seed for some steps.
func soak(seed uint64, steps int, images []*sandbox.Image) *world {
	clock := NewVirtualClock(time.Unix(1_700_000_000, 0))
	w := &world{clock: clock, rnd: rand.New(rand.NewPCG(seed, 7)), sent: map[abi.Ref]uint64{}, cells: map[abi.Ref]*actor{}}
	for _, image := range images {
		w.guests = append(w.guests, Guest(image, "echo"))
	}
	w.book = newBook(w)
	guardian := supervision.Default().WithOtherwise(supervision.Restart).WithRules(supervision.Rule{Kinds: []abi.FailureKind{abi.FailureKilled}, Directive: supervision.Stop})
	cfg := NewConfig("soak").WithManual().WithClock(clock).WithSeed(seed).WithGuardian(guardian).WithThroughput(1 + w.rnd.IntN(8)).
		WithIdleAfter([]time.Duration{0, time.Nanosecond, 50 * time.Millisecond}[w.rnd.IntN(3)]).WithMostAwake(w.rnd.IntN(4))
	partsOf(&cfg).Commit = w.entry
	sys, err := New(cfg)
	if err != nil {
		panic(err)
	}
	w.System, w.events = sys, sys.Subscribe(eventRoom, nil)
	w.desk, _ = w.Spawn("desk", Func(func(_ *Context, m Message) error {
		var p parcel
		if m.Kind == abi.KindReply && m.Decode(&p) == nil {
			w.book.handled(m.Sender.UID(), p)
		}
		return nil
	}))
	for range steps {
		w.step()
	}
	w.rest()
	return w
}

// step does one thing, lets the actors work for a while, and looks.
func (w *world) step() {
	if len(w.View().Tree().Children) < 4 {
		_, _ = w.Spawn("", w.props(0))
	}
	refs := w.living()
	to := refs[w.rnd.IntN(len(refs))]
	switch n := w.rnd.IntN(100); {
	case n < 66:
		for range 1 + w.rnd.IntN(6) {
			w.tell(to)
		}
	case n < 70: // several at once, before anybody can decide
		for range 2 + w.rnd.IntN(4) {
			if c := w.table.Get(refs[w.rnd.IntN(len(refs))].UID()); c != nil && c.life.State() == life.Running {
				c.fail(nil, failure(abi.FailureTrap), life.ByItself)
			}
		}
	case n < 85:
		w.clock.Advance(time.Duration(w.rnd.Int64N(int64(3 * time.Second))))
	case n < 90:
		w.clock.AdvanceToNext()
	case n < 92:
		w.Stop(to)
	case n < 94:
		_ = w.PoisonPill(to)
	case n < 96:
		_ = w.Operate().Kill(to)
	case n < 98:
		_ = w.Operate().ResetBackoff(to)
	default:
		w.decide()
	}
	for range w.rnd.IntN(40) {
		w.Step()
	}
	w.look()
}

// living are the refs of all actors but the guardians and the desk, in an order that
// does not depend on memory.
func (w *world) living() (refs []Ref) {
	var walk func(n Node)
	walk = func(n Node) {
		for _, k := range n.Children {
			if k.Ref != w.desk {
				refs = append(refs, k.Ref)
			}
			walk(k)
		}
	}
	walk(w.View().Tree())
	if len(refs) == 0 {
		refs = append(refs, w.desk)
	}
	return refs
}

// tell sends one parcel.
func (w *world) tell(to Ref) {
	c := w.table.Get(to.UID())
	if c == nil || to == w.desk {
		return
	}
	w.cells[c.uid] = c
	p := parcel{S: w.rnd.Uint64N(3), What: "work"}
	w.sent[to.UID()]++
	p.N = w.sent[to.UID()]
	_, router := c.soakRouter()
	if router {
		p.Via, p.All = to.UID(), c.soakToAll()
	}
	if c.props.module != nil {
		if w.rnd.IntN(5) == 0 {
			_ = w.Tell(to, 0) // traps
			return
		}
		w.book.accepted(c, p)
		answered := c.gate.Policy() == supervision.MeanwhileReply
		switch err := w.TellFrom(w.desk, to, w.headed(c, &p)); {
		case err != nil:
			w.book.refused(c, p)
		case answered:
			w.book.enter(c.uid, p, "answered")
		}
		return
	}
	switch n := w.rnd.IntN(100); {
	case n < 25:
		p.What = "error"
	case n < 45:
		p.What = "panic"
	case n < 52:
		p.What = "once"
	case n < 53:
		p.What = "quit"
	case n < 60:
		p.What = "spawn"
	}
	w.book.accepted(c, p)
	if w.Tell(to, w.headed(c, &p)) != nil {
		w.book.refused(c, p)
	}
}

// headed gives a parcel the header that its receiver's mailbox goes by, sometimes.
func (w *world) headed(c *actor, p *parcel) any {
	if w.rnd.IntN(3) == 0 {
		return *p
	}
	var key, value string
	kind, _, _ := strings.Cut(c.soakMailbox(), "/")
	switch kind {
	case "priority":
		p.Level = 1 + uint8(w.rnd.IntN(3))
		key, value = "priority", fmt.Sprint(p.Level-1)
	case "control-aware":
		p.Level = 1
		key, value = "control", "true"
	case "deduplicating":
		key, value = "idempotency-key", fmt.Sprint(w.rnd.IntN(20))
	default:
		return *p
	}
	return Headed{Value: *p, Headers: map[string]string{key: value}}
}

// decide plays the operator.
func (w *world) decide() {
	for _, ref := range w.living() {
		if c := w.table.Get(ref.UID()); c != nil && c.life.State() == life.Failed {
			_ = w.Operate().Decide(ref, []supervision.Directive{supervision.Resume, supervision.Restart, supervision.Stop}[w.rnd.IntN(3)])
		}
	}
}

// rest lets everything come to rest.
func (w *world) rest() {
	for range 10_000 {
		if w.RunUntilIdle(1_000_000) == 1_000_000 {
			w.wrong("it never comes to rest")
			return
		}
		w.look()
		if w.clock.AdvanceToNext() > 0 {
			continue
		}
		before := w.View().Stats().Actors
		w.decide()
		if w.RunUntilIdle(1_000_000) == 0 && before == w.View().Stats().Actors && w.clock.Pending() == 0 {
			w.look()
			w.book.atRest()
			return
		}
	}
	w.wrong("it never comes to rest, though the clock goes on")
}

func (w *world) wrong(format string, args ...any) {
	if len(w.log) < 20 {
		w.log = append(w.log, fmt.Sprintf(format, args...))
	}
}

// entry notes what guests handle together.
func (w *world) entry(t *turn.Turn) {
	if len(t.Mail) > 1 {
		w.shared++
	}
	t.Answer(nil)
}

// soakImages are those of the echoes.
func soakImages(t testing.TB) []*sandbox.Image {
	e := newEngine(t)
	return []*sandbox.Image{load(t, e, "testdata/echo.wasm"), load(t, e, "testdata/echo_single.wasm")}
}

// look reads the events.
func (w *world) look() {
	if n := w.events.Dropped(); n > 0 {
		panic(fmt.Sprintf("%d events have found no room", n))
	}
	w.slept += int(w.asleep.Load())
	for {
		select {
		case e := <-w.events.C():
			w.book.event(&e)
		default:
			return
		}
	}
}

// end shuts down and checks that nothing is left.
func (w *world) end() {
	w.table.Each(func(c *actor) { w.cells[c.uid] = c })
	if err := w.Close(context.Background()); err != nil {
		w.wrong("%v", err)
	}
	if n := w.View().Stats().Actors; n != 0 || w.clock.Pending() != 0 {
		w.wrong("%d actors and %d timers are left", n, w.clock.Pending())
	}
	for _, c := range w.cells {
		if c.hasInstance() || c.alarms.Pending() != 0 || c.work.Timers.Len() != 0 || c.box.Len() != 0 {
			w.wrong("%s has ended and keeps an instance, a timer or a message", c.path)
		}
	}
}

// props are those of a random actor at a depth of the tree.
func (w *world) props(depth int) Props {
	r := w.rnd
	p := w.guests[r.IntN(len(w.guests))]
	routee := r.IntN(8) == 0 // it cannot be asked whether a guest behind a router has handled something
	if routee || r.IntN(3) > 0 {
		p = Native(func() Actor { return &soaker{w} })
	}
	policy := r.IntN(len(soakPolicies))
	strategy, lifetime, significant := w.strategy(), supervision.Lifetime(r.IntN(3)), r.IntN(4) == 0
	p = p.WithSupervision(strategy).WithLifetime(lifetime).WithSignificant(significant && lifetime != supervision.Permanent).
		WithCrashedMessage(soakPolicies[policy])
	if kind := r.IntN(len(soakKinds)); kind > 0 {
		p = p.WithMailbox(KindsOfMailboxes[soakKinds[kind]]).WithLimits(Limits{Mailbox: 2 + r.IntN(30), MailboxBytes: soakBytes + int64(kind)})
	}
	p = p.WithDispatcher(Dispatcher{}.WithThroughput(r.IntN(4)).WithDeadline(time.Duration(r.IntN(2)) * time.Millisecond))
	if routee {
		router := slices.Sorted(maps.Keys(SoakRouters))[r.IntN(len(SoakRouters))]
		bytes := soakBytes + 1000 + int64(policy)
		if strings.HasPrefix(router, "all/") {
			bytes += soakToAll
		}
		return SoakRouters[router](1+r.IntN(4), p, Limits{Mailbox: 20, MailboxBytes: bytes})
	}
	var kids []Child
	for i := range r.IntN(4) * (2 - depth) {
		kids = append(kids, Child{fmt.Sprint("k", i), w.props(depth + 1)})
	}
	return p.WithChildren(kids...)
}

// soakKinds are the mailboxes that are drawn, the usual one first.
var soakKinds = []string{"", "bounded", "block", "priority", "control-aware", "deduplicating", "drop-newest", "drop-oldest",
	"priority/drop-newest", "priority/drop-oldest", "priority/block", "control-aware/drop-newest", "control-aware/drop-oldest", "control-aware/block",
	"deduplicating/drop-newest", "deduplicating/drop-oldest", "deduplicating/block"}

func (w *world) strategy() supervision.Strategy {
	r := w.rnd
	s := supervision.Default().WithKind(supervision.Kind(r.IntN(3))).WithKeepChildren(r.IntN(2) == 0).WithOtherwise(supervision.Restart)
	if r.IntN(2) == 0 {
		s = s.WithMaxRestarts(1+r.IntN(5), time.Duration(r.IntN(3))*time.Second).WithSliding(r.IntN(2) == 0).WithShared(r.IntN(3) == 0)
	}
	if r.IntN(3) == 0 {
		s = s.WithRules(supervision.Rule{Reason: "error", Directive: supervision.Directives()[r.IntN(6)]})
	}
	if r.IntN(6) == 0 {
		s = s.WithShutdown(supervision.Shutdown(r.IntN(3)))
	}
	if r.IntN(2) == 0 {
		spec := backoff.Spec{Min: time.Duration(1+r.IntN(300)) * time.Millisecond, Max: 2 * time.Second, Num: 5, Ceiling: 5}
		if spec.Curve = backoff.Curves()[r.IntN(12)]; spec.Curve != "slotted" && spec.Curve != "decorrelated" {
			spec.Jitter, spec.Spread = backoff.Jitters()[r.IntN(6)], 0.5
		}
		policy, err := spec.Policy()
		if err != nil {
			panic(err)
		}
		s = s.WithBackoff(supervision.Backoff{
			Policy: policy, On: supervision.Ends(r.IntN(4)), Reset: supervision.ResetPolicy(r.IntN(3)), MaxFailures: 5 * r.IntN(3),
			GiveUp: supervision.GiveUp(r.IntN(3)), Meanwhile: supervision.Meanwhile(r.IntN(3)), Stash: 3 * r.IntN(3),
			Grace: time.Duration(r.IntN(2)*r.IntN(100)) * time.Millisecond, Overtake: r.IntN(2) == 0,
		})
	}
	return s
}

// soaker is an actor of the soak.
type soaker struct{ w *world }

var errTold = errors.New("error")

func (a *soaker) Started(*Context) error {
	if a.w.rnd.IntN(50) == 0 {
		return errTold
	}
	return nil
}

func (a *soaker) Receive(ctx *Context, m Message) error {
	var p parcel
	if err := m.Decode(&p); err != nil {
		return err
	}
	b, uid := a.w.book, ctx.actor.uid
	switch {
	case p.What == "error", p.What == "once" && b.crashesOf(uid, p) == 0:
		b.crashed(uid, p)
		return errTold
	case p.What == "panic":
		b.crashed(uid, p)
		panic("told to")
	case p.What == "quit":
		ctx.Stop(ctx.Self())
	case p.What == "spawn" && len(ctx.actor.elements) < 5 && len(ctx.actor.kids()) < 6:
		if _, err := ctx.Spawn("", a.w.props(2)); err != nil {
			a.w.wrong("%v", err)
		}
	}
	b.handled(uid, p)
	return nil
}

func (a *soaker) Decide(*Context, Ref, *abi.Failure) supervision.Directive {
	if a.w.rnd.IntN(10) == 0 {
		panic("cannot decide")
	}
	return supervision.Directive(a.w.rnd.IntN(7))
}

// print is a digest of all that has happened.
func (w *world) print() uint64 {
	h := fnv.New64a()
	for _, line := range w.book.story {
		h.Write([]byte(line))
	}
	return h.Sum64()
}

// run is a whole run with its checks.
func run(seed uint64, steps int, images []*sandbox.Image) *world {
	w := soak(seed, steps, images)
	w.end()
	return w
}

// A few hundred worlds, fewer with -short; WASMACTORS_LONG: until a million actors have crashed.
func TestSoak(t *testing.T) {
	images := soakImages(t)
	rapid.Check(t, func(t *rapid.T) {
		seed, steps := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 120).Draw(t, "steps")
		if w := run(seed, steps, images); len(w.log) > 0 {
			t.Fatalf("seed %d, %d steps: %q", seed, steps, w.log)
		}
	})
	want, least := thorough.SlowOf[uint64](5_000, 20_000), thorough.SlowOf(25, 100)
	switch {
	case os.Getenv("WASMACTORS_LONG") != "":
		want = 1_000_000
	case testing.Short():
		want, least = 2_000, 10
	}
	var crashes, messages, worlds uint64
	slept, shared := 0, 0
	ends := map[string]int{}
	for ; crashes < want; worlds++ {
		w := run(worlds, 400, images)
		if len(w.log) > 0 {
			t.Fatalf("seed %d: %q", worlds, w.log)
		}
		crashes += w.View().Stats().Crashes
		messages += uint64(len(w.book.fates))
		slept, shared = slept+w.slept, shared+w.shared
		for _, f := range w.book.fates {
			ends[f.end]++
		}
		ends["routed"] += w.book.routed
		ends["copies"] += w.book.copies
	}
	t.Logf("%d crashes, %d messages in %d worlds; %d times a guest slept, %d entries of several turns; %v", crashes, messages, worlds, slept, shared, ends)
	for _, end := range []string{"handled", "routed", "copies", DeadDropped.String(), DeadDuplicate.String(), DeadCrashed.String()} {
		if ends[end] < least {
			t.Errorf("%d messages are %s", ends[end], end)
		}
	}
	if slept < least || shared < least {
		t.Error("too few guests sleep or batch")
	}
}

// One seed is one run.
func TestSoakIsDeterministic(t *testing.T) {
	images := soakImages(t)
	var prints []uint64
	for seed := range uint64(10) {
		a, b := run(seed, 200, images), run(seed, 200, images)
		if a.print() != b.print() {
			for i := range a.book.story {
				if i >= len(b.book.story) || a.book.story[i] != b.book.story[i] {
					t.Fatalf("seed %d: event %d differs: %s", seed, i, a.book.story[i])
				}
			}
		}
		prints = append(prints, a.print())
	}
	slices.Sort(prints)
	if n := len(slices.Compact(prints)); n != 10 {
		t.Errorf("ten seeds are %d runs", n)
	}
}
