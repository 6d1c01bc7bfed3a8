package bundle

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/supervision"
)

// optionsOf reads options.
func optionsOf(t testing.TB, v any) (host.SpawnOptions, error) {
	t.Helper()
	raw, err := host.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return SpawnOptions(raw)
}

// The options of a guest's spawn are what a manifest says of an actor.
func TestSpawnOptions(t *testing.T) {
	o, err := optionsOf(t, map[string]any{
		"lifetime": "temporary", "significant": true, "crashed-message": "2",
		"supervision": map[string]any{"strategy": "all-for-one", "max-restarts": 4, "backoff": map[string]any{"min": "1s", "jitter": "none"}},
		"mailbox":     map[string]any{"kind": "priority", "messages": 7, "bytes": "2KiB", "types": map[string]any{"stop": 0}},
		"dispatcher":  map[string]any{"throughput": 3, "deadline": "5ms"},
	})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := o.Supervision.Backoff()
	if n, _ := o.Supervision.MaxRestarts(); o.Lifetime != supervision.Temporary || !o.Significant || o.Crashed != host.RedeliverCrashed(2) ||
		o.Supervision.Kind() != supervision.AllForOne || n != 4 || b.Policy.Delay(1, nil) != 2*time.Second {
		t.Errorf("%+v", o)
	}
	if o.Mailbox == nil || o.MailboxLimits != (host.MailboxLimits{Messages: 7, Bytes: 2048}) || o.MailboxWait != 0 ||
		o.Dispatcher != (host.Dispatcher{}).WithThroughput(3).WithDeadline(5*time.Millisecond) || o.Held < heldType {
		t.Errorf("%+v", o)
	}
	o, err = optionsOf(t, map[string]any{"significant": false})
	if err != nil || o.Supervision != nil || o.Mailbox != nil || o.MailboxLimits != (host.MailboxLimits{}) || o.Dispatcher != (host.Dispatcher{}) {
		t.Errorf("what is not said is decided: %+v %v", o, err)
	}
	o, err = optionsOf(t, map[string]any{"mailbox": map[string]any{"kind": "block"}})
	if err != nil || o.MailboxWait != mailbox.DefaultWait {
		t.Errorf("%+v %v", o, err)
	}
}

// What is wrong in them, or absurd, is refused with what it is.
func TestWrongSpawnOptions(t *testing.T) {
	box := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return map[string]any{"mailbox": m}
	}
	many := map[string]any{}
	for i := range mailbox.MaxTypes + 1 {
		many[fmt.Sprint(i)] = 0
	}
	for _, c := range []struct {
		want string
		v    any
	}{
		{`unknown key "life" in options`, map[string]any{"life": "long"}},
		{`cannot be "eternal"`, map[string]any{"lifetime": "eternal"}},
		{`must be at least`, map[string]any{"supervision": map[string]any{"max-restarts": -9}}},
		{`mailbox.kind cannot be "urgent"`, box("kind", "urgent")},
		{`unknown key "pool" in`, map[string]any{"dispatcher": map[string]any{"pool": "files"}}},
		{`unknown key "pinned" in`, map[string]any{"dispatcher": map[string]any{"pinned": true}}},
		{`must be at most`, map[string]any{"dispatcher": map[string]any{"throughput": 1 << 40}}},
		{`mailbox.messages`, box("messages", uint64(1)<<63)},
		{`mailbox.messages`, box("messages", -1)},
		{`mailbox.messages`, box("messages", 0)},
		{`mailbox.bytes`, box("bytes", "1e400")},
		{`mailbox.levels`, box("kind", "priority", "levels", 1<<30)},
		{`the level of "a" must be 0 to 3`, box("kind", "priority", "types", map[string]any{"a": 4})},
		{`mailbox.types`, box("kind", "priority", "types", many)},
		{`a name has at most 128 bytes`, box("kind", "priority", "types", map[string]any{strings.Repeat("a", 129): 0})},
		{`mailbox.header`, box("kind", "priority", "header", "a\nb")},
		{`has no meaning for the kind bounded`, box("types", map[string]any{"a": 0})},
		{`mailbox.keys`, box("kind", "deduplicating", "keys", mailbox.MaxKeys+1)},
		{`mailbox`, map[string]any{"mailbox": "priority"}},
		{`significant cannot be combined with lifetime: permanent`, map[string]any{"significant": true, "lifetime": "permanent"}},
		{`dispatcher`, map[string]any{"dispatcher": []any{1}}},
		{`dispatcher.deadline`, map[string]any{"dispatcher": map[string]any{"deadline": "-1s"}}},
	} {
		if o, err := optionsOf(t, c.v); err == nil || !strings.Contains(err.Error(), c.want) || o.Mailbox != nil {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	if _, err := SpawnOptions([]byte{0xff}); err == nil || !strings.Contains(err.Error(), "cbor") {
		t.Error(err)
	}
}

// Whatever bytes a guest writes, reading them neither panics nor yields what its bounds forbid.
func FuzzSpawnOptions(f *testing.F) {
	for _, v := range []any{
		map[string]any{"mailbox": map[string]any{"kind": "priority", "types": map[string]any{"a": 1}}, "dispatcher": map[string]any{"throughput": 3, "deadline": "1s"}},
		map[string]any{"supervision": map[string]any{"max-restarts": 1}, "lifetime": "permanent"}, nil, 7,
	} {
		raw, err := host.Encode(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, options []byte) {
		o, err := SpawnOptions(options)
		if err != nil {
			return
		}
		if o.MailboxLimits.Messages < 0 || o.MailboxLimits.Bytes < 0 || o.MailboxWait < 0 || o.Held < int64(len(options)) {
			t.Fatalf("%+v", o)
		}
		if o.Mailbox != nil {
			_ = o.Mailbox(host.MailboxLimits{Messages: 1, Bytes: 1})
		}
	})
}

// spawning is a system in which a guest spawns.
type spawning struct {
	*host.System
	t      *testing.T
	parent host.Ref
}

func newSpawning(t *testing.T, c host.Config, l host.Limits, d host.Dispatcher) *spawning {
	sys, err := host.New(c.WithManual().WithSeed(3).WithClock(host.NewVirtualClock(time.Unix(1, 0))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sys.Close(context.Background()) })
	p := host.GuestOf(servicetest.Module(t), "spawn-parent").WithCapabilities(host.Capabilities{Spawn: []string{"spawn-child"}}).WithLimits(l).WithDispatcher(d)
	parent, err := sys.Spawn("parent", p)
	if err != nil {
		t.Fatal(err)
	}
	s := &spawning{sys, t, parent}
	s.run()
	return s
}

func (s *spawning) run() { s.RunUntilIdle(100_000) }

// ask asks and returns the text of the answer.
func (s *spawning) ask(to host.Ref, v any) string {
	s.t.Helper()
	p, err := s.Request(to, v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.run()
	select {
	case m := <-p.Answer():
		var text string
		if err := m.Err(); err != nil {
			return err.Error()
		}
		if err := m.Decode(&text); err != nil {
			s.t.Fatal(err)
		}
		return text
	default:
		s.t.Fatalf("%v: no answer", v)
		return ""
	}
}

func (s *spawning) child(name string) host.Ref {
	s.t.Helper()
	ref, err := s.Lookup("/user/parent/" + name)
	if err != nil {
		s.t.Fatal(err)
	}
	return ref
}

// A child that a guest spawns has the mailbox and the dispatcher that its parent chose, also after a
// restart, and a child without has the usual ones.
func TestGuestsChooseMailboxes(t *testing.T) {
	s := newSpawning(t, host.NewConfig("t").WithSpawnOptions(SpawnOptions), host.Limits{}, host.Dispatcher{})
	for _, v := range []any{
		[]any{"plain", nil, nil},
		[]any{"urgent", map[string]any{"kind": "priority", "types": map[string]any{"stop": 0}}, map[string]any{"throughput": 1}},
		[]any{"drops", map[string]any{"kind": "drop-newest", "messages": 2}, nil},
		[]any{"own"},
	} {
		if why := s.ask(s.parent, v); why != "" {
			t.Fatalf("%v: %s", v, why)
		}
	}
	for name, want := range map[string]string{"plain": "a b stop c", "urgent": "stop a b c", "drops": "a b", "own": "stop a b c"} {
		for _, again := range []bool{false, true} {
			if again {
				if err := s.Operate().Restart(s.child(name)); err != nil {
					t.Fatal(err)
				}
				s.run()
			}
			ref := s.child(name)
			for _, text := range []string{"a", "b", "stop", "c"} {
				if err := s.Tell(ref, text); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			s.run()
			if got := s.ask(ref, "heard"); got != want {
				t.Errorf("%s: heard %q, want %q (restarted: %v)", name, got, want, again)
			}
		}
	}
	_, dead := s.DeadLetters()
	if want := uint64(4); dead != want { // what was dropped
		t.Errorf("%d dead letters, want %d", dead, want)
	}
}

// A guest gives its children no more than it has: no larger mailbox, no more messages at a time, no
// sender that waits for ever. What is refused is told to it, and nothing is started.
func TestGuestsChooseWithinTheirOwn(t *testing.T) {
	s := newSpawning(t, host.NewConfig("t").WithSpawnOptions(SpawnOptions), host.Limits{Mailbox: 50, MailboxBytes: 1000}, host.Dispatcher{}.WithThroughput(20))
	for _, c := range []struct {
		want    string
		options []any
	}{
		{"", []any{map[string]any{"messages": 50, "bytes": 1000}, map[string]any{"throughput": 20}}},
		{"mailbox.messages: 51, but the parent's own mailbox holds 50", []any{map[string]any{"messages": 51}, nil}},
		{"mailbox.bytes: 1001, but the parent's own mailbox holds 1000", []any{map[string]any{"kind": "drop-oldest", "bytes": 1001}, nil}},
		{"dispatcher.throughput: 21, at most 20 below this parent", []any{nil, map[string]any{"throughput": 21}}},
		{"mailbox.wait: 11s, at most 10s", []any{map[string]any{"kind": "block", "wait": "11s"}, nil}},
		{"mailbox.wait: 24h0m0s, at most 10s", []any{map[string]any{"kind": "priority", "full": "block", "wait": "24h"}, nil}},
		{"", []any{map[string]any{"kind": "block", "wait": "10s"}, nil}},
		{`unknown key "pool"`, []any{nil, map[string]any{"pool": "files"}}},
		{`cannot be "urgent"`, []any{map[string]any{"kind": "urgent"}, nil}},
	} {
		name := fmt.Sprintf("c%d", len(s.Select("/user/parent/*")))
		got := s.ask(s.parent, append([]any{name}, c.options...))
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.options, got, c.want)
		}
		if _, err := s.Lookup("/user/parent/" + name); (err == nil) != (c.want == "") {
			t.Errorf("%v: it is there: %v", c.options, err == nil)
		}
	}
	// Who may not spawn the type is not told what is wrong with its options.
	other, err := s.Spawn("other", host.GuestOf(servicetest.Module(t), "spawn-parent"))
	if err != nil {
		t.Fatal(err)
	}
	s.run()
	if got := s.ask(other, []any{"x", map[string]any{"kind": "urgent"}, nil}); strings.Contains(got, "urgent") || got == "" {
		t.Error(got)
	}
}

// What the options make the host hold is on the child's account: a guest whose children all have large tables of
// types runs into its bound, where the same children without would have room.
func TestOptionsAreHeldForTheChild(t *testing.T) {
	types := map[string]any{}
	for i := range 900 {
		types[fmt.Sprintf("type-%d", i)] = i % 4
	}
	s := newSpawning(t, host.NewConfig("t").WithSpawnOptions(SpawnOptions), host.Limits{}, host.Dispatcher{})
	size := func(v []any) int64 {
		if why := s.ask(s.parent, v); why != "" {
			t.Fatal(why)
		}
		i, err := s.View().Inspect(context.Background(), s.child(v[0].(string)))
		if err != nil {
			t.Fatal(err)
		}
		return i.Parts.Base
	}
	plain := size([]any{"plain", nil, nil})
	large := size([]any{"large", map[string]any{"kind": "priority", "types": types}, nil})
	if large-plain < 900*heldType {
		t.Errorf("%d bytes, of one without %d", large, plain)
	}
	bound := host.Limits{Held: plain + 50_000}
	s = newSpawning(t, host.NewConfig("t").WithSpawnOptions(SpawnOptions), bound, host.Dispatcher{})
	if got := s.ask(s.parent, []any{"large", map[string]any{"kind": "priority", "types": types}, nil}); !strings.Contains(got, "has reached its limit of") {
		t.Error(got)
	}
}
