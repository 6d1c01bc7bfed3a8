package host

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/setup"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// What the conformance suite (conformance_*_test.go, docs/conformance.md) is made of: a stage
// is a manual system with a probe that notes what it is told, and the sorts of actors
// that a row holds for.

type stage struct {
	*System
	t     *testing.T
	clock *VirtualClock
	probe Ref
	got   []string  // what the probe was told: "kind value"
	mail  []Message // the same, as messages
	log   *Subscription
}

// newStage is a system with a probe as /user/probe, and all events noted from then on.
func newStage(t *testing.T, change func(Config) Config) *stage {
	t.Helper()
	l := &stage{t: t}
	l.System, l.clock = manual(t, change)
	l.probe = l.spawn("probe", Func(func(_ *Context, m Message) error {
		l.mail = append(l.mail, m.Clone())
		l.got = append(l.got, describe(m))
		return nil
	}))
	l.log = l.Subscribe(eventRoom, nil)
	return l
}

// describe is a message as the tests compare it.
func describe(m Message) string {
	if m.Kind == abi.KindTerminated {
		return "terminated " + message.ReasonOf(m.Payload)
	}
	var v any
	if len(m.Payload) > 0 {
		if err := m.Decode(&v); err != nil {
			return m.Kind.String() + " ?"
		}
	}
	if b, ok := v.([]byte); ok && len(b) == 1 {
		v = b[0] // a puppet's counter
	}
	return fmt.Sprintf("%v %v", m.Kind, v)
}

func (l *stage) spawn(name string, p Props) Ref {
	l.t.Helper()
	ref := must(l.Spawn(name, p))(l.t)
	l.run()
	return ref
}

func (l *stage) run() {
	l.RunUntilIdle(100_000)
	nod(l.clock, func() { l.RunUntilIdle(100_000) })
}

// pass lets time pass and everything happen that is due.
func (l *stage) pass(d time.Duration) {
	l.clock.Advance(d)
	l.run()
}

// say has the probe send a message and lets everything happen.
func (l *stage) say(to Ref, v any) {
	l.t.Helper()
	l.post(to, v)
	l.run()
}

// post has the probe send a message.
func (l *stage) post(to Ref, v any) {
	l.t.Helper()
	if err := l.TellFrom(l.probe, to, v); err != nil {
		l.t.Fatal(err)
	}
}

// wants compares what the probe was told since the last time.
func (l *stage) wants(want ...string) {
	l.t.Helper()
	if !slices.Equal(l.got, want) {
		l.t.Errorf("the probe was told %q, want %q", l.got, want)
	}
	l.got, l.mail = nil, nil
}

// events are those that have happened, of these kinds (all, if none is given), as "kind name".
func (l *stage) events(kinds ...EventKind) (out []string) {
	for _, e := range l.raw(kinds...) {
		out = append(out, e.Kind.String()+" "+e.Ref.Name())
	}
	return out
}

// raw takes the events that have happened.
func (l *stage) raw(kinds ...EventKind) (out []Event) {
	l.t.Helper()
	complete(l.t, l.log)
	for {
		select {
		case e, ok := <-l.log.C():
			if !ok {
				return out
			}
			if len(kinds) == 0 || slices.Contains(kinds, e.Kind) {
				out = append(out, e)
			}
		default:
			return out
		}
	}
}

// letters are the dead letters so far, as "reason value".
func (l *stage) letters() (out []string) {
	all, _ := l.DeadLetters()
	for _, d := range all {
		var v any
		_ = message.Decoder.Unmarshal(d.Payload, &v)
		out = append(out, fmt.Sprintf("%v: %v", d.Reason, v))
	}
	return out
}

func (l *stage) equal(what string, got, want any) {
	l.t.Helper()
	if g, w := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); g != w {
		l.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// sort is a sort of actor: both count what they are told, and tell the probe of the
// calls of their hooks.
type sort struct {
	name   string
	props  func(*testing.T) Props
	add    func(n int) any
	crash  any
	report any
}

var sorts = []sort{
	{"native", func(*testing.T) Props { return Native(func() Actor { return &subject{} }) }, func(n int) any { return n }, "crash", "get"},
	{"guest", puppetHooks, func(n int) any { return script(rec(recAdd, byte(n), nil)) }, script(trap(nil)), script(rec(recReport, 0, nil))},
}

// both runs a test for both sorts.
func both(t *testing.T, change func(Config) Config, f func(l *stage, s sort)) {
	for _, s := range sorts {
		if s.name == "native" && manner != oneByOne {
			continue // it has no other manners
		}
		t.Run(s.name, func(t *testing.T) { f(newStage(t, change), s) })
	}
}

// subject is a counter that tells the probe of its hooks.
type subject struct{ counter }

func (a *subject) Started(ctx *Context) error { return tellProbe(ctx, "start") }
func (a *subject) Stopped(ctx *Context)       { _ = tellProbe(ctx, "stop") }

func tellProbe(ctx *Context, v any) error {
	probe, err := ctx.System().Lookup("/user/probe")
	if err != nil {
		return nil // it may stop before
	}
	return ctx.Tell(probe, v)
}

// puppet is a guest that does what scripts say, see testdata/puppet.wat.
func puppet(t testing.TB, records ...[]byte) Props {
	return Guest(puppetImage(t), "puppet").WithArgs(script(records...)).
		WithCapabilities(Capabilities{Send: []string{"/**"}, Spawn: []string{"*"}, Stop: []string{"/user/**"}})
}

// puppetHooks tells the probe of its hooks.
func puppetHooks(t *testing.T) Props {
	return puppet(t, on(abi.KindStart, toProbe("start")), on(abi.KindStop, toProbe("stop")), on(abi.KindPreRestart, toProbe("pre_restart")))
}

const (
	recNow    = 0
	recReport = 254
	recAdd    = 255
)

// script is a message to a puppet, or its arguments.
func script(records ...[]byte) Raw {
	b, err := message.Encoder.Marshal(slices.Concat(records...))
	if err != nil {
		panic(err)
	}
	return b
}

func rec(kind, flag byte, commands []byte) []byte {
	return append(binary.LittleEndian.AppendUint16([]byte{kind, flag}, uint16(len(commands))), commands...)
}

// Flags of what a puppet does.
const (
	flagTrap = 1 << iota // it traps then
	flagLast             // the turn is the last one of a batch
	flagSpin             // it computes for some slices before
)

// lastOf is flagLast if a batch must not go on after these commands.
func lastOf(commands []byte) (flag byte) {
	for len(commands) > 0 {
		var c abi.Command
		n, err := abi.DecodeCommand(&c, commands)
		if err != nil {
			return flag
		}
		switch c.Op {
		case abi.OpStash, abi.OpUnstash, abi.OpStop, abi.OpFail:
			flag = flagLast
		}
		commands = commands[n:]
	}
	return flag
}

// now makes a puppet emit commands in the same turn, trap then trap.
func now(commands ...[]byte) []byte {
	all := slices.Concat(commands...)
	return rec(recNow, lastOf(all), all)
}

func trap(commands ...[]byte) []byte { return rec(recNow, flagTrap, slices.Concat(commands...)) }

// on makes a puppet emit commands for every envelope of a kind, onTrap trap then.
func on(k abi.Kind, commands ...[]byte) []byte {
	all := slices.Concat(commands...)
	return rec(byte(k), lastOf(all), all)
}

func onTrap(k abi.Kind) []byte { return rec(byte(k), flagTrap, nil) }

// toProbe is the command that tells the probe something.
func toProbe(v any) []byte { return sendPath("/user/probe", v) }

func sendPath(path string, v any) []byte {
	return abi.AppendSend(nil, 0, path, 0, 0, nil, encoded(v))
}

func encoded(v any) []byte {
	b, err := Encode(v)
	if err != nil {
		panic(err)
	}
	return b
}

// The puppet's images are loaded once: they are the same for all tests.
var puppetImages = map[string]*sandbox.Image{}

func puppetImage(t testing.TB) *sandbox.Image {
	t.Helper()
	file := "testdata/puppet.wasm"
	if manner == inBatches {
		file = "testdata/puppet_batching.wasm"
	}
	if puppetImages[file] == nil {
		e, err := sandbox.New(context.Background(), sandbox.NewConfig())
		if err != nil {
			t.Fatal(err)
		}
		puppetImages[file] = load(t, e, file)
	}
	return puppetImages[file]
}

// countRestarts is how often an actor was restarted.
func (l *stage) incarnation(ref Ref) uint64 {
	if c := l.table.Get(ref.UID()); c != nil {
		return c.Incarnation()
	}
	return 0
}

// alive reports whether the actor has not stopped.
func (l *stage) alive(ref Ref) bool { return l.table.Get(ref.UID()) != nil }

// values are the second words: what was said, whatever the kind.
func values(got []string) (out []string) {
	for _, s := range got {
		_, v, _ := strings.Cut(s, " ")
		out = append(out, v)
	}
	return out
}

// hasInstance reports whether a guest holds one.
func (a *actor) hasInstance() bool {
	g := guestOf(a)
	return g != nil && g.inst.Load() != nil
}

// totalOf is how often a child has ended, as its supervisor has noted it.
func (l *lab) totalOf(ref Ref) int {
	a := l.table.Get(ref.UID())
	return a.parent.super.Family.Find(a.Name()).Record.Total()
}

// guestOf is an actor's behaviour if it is a guest, else nil.
func guestOf(a *actor) *guest {
	if a == nil {
		return nil
	}
	g, _ := a.behaviour.(*guest)
	return g
}

// partsOf is what a Config says, to be changed where no method does.
func partsOf(c *Config) *settings { return setup.PartsOf(c) }
