package host

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// sink collects what it is sent.
func sink(got *[]string) Props {
	return Func(func(_ *Context, m Message) error {
		var v any
		if err := m.Decode(&v); err != nil {
			return err
		}
		*got = append(*got, m.Kind.String()+" "+strings.TrimSpace(string(mustJSON(v))))
		return nil
	})
}

func mustJSON(v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case uint64:
		return []byte{byte('0' + v%10)}
	}
	return nil
}

// A turn that sends three messages and then traps has sent none.
func TestATurnThatTrapsHasSentNothing(t *testing.T) {
	engine := newEngine(t)
	s, _ := manual(t, nil)
	var got []string
	must(s.Spawn("sink", sink(&got)))(t)
	guest := must(s.Spawn("guest", echo(t, engine).WithCapabilities(Capabilities{Send: []string{"/user/sink"}})))(t)
	events := s.Subscribe(10, func(e *Event) bool { return e.Kind == EventFailed })
	s.Tell(guest, 0)
	s.RunUntilIdle(1000)
	if e := <-events.C(); e.Failure.Kind != abi.FailureTrap || !slices.Contains(e.Failure.Stack, "handle") {
		t.Errorf("%+v", e.Failure)
	}
	if len(got) != 0 {
		t.Errorf("sent: %v", got)
	}
}

// The turns before it in the same batch stay done, those behind it are handled
// by the next incarnation.
func TestABatchKeepsItsEarlierTurns(t *testing.T) {
	engine := newEngine(t)
	s, _ := manual(t, nil)
	var got []string
	from := must(s.Spawn("sink", sink(&got)))(t)
	guest := must(s.Spawn("guest", echo(t, engine).WithCapabilities(Capabilities{Send: []string{"/user/sink"}})))(t)
	s.RunUntilIdle(1000)
	for _, v := range []int{1, 2, 0, 3} { // one entry: all of them wait when it begins
		if err := s.TellFrom(from, guest, v); err != nil {
			t.Fatal(err)
		}
	}
	s.RunUntilIdle(1000)
	if want := []string{"reply 1", "reply 2", "reply 3"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n := s.View().Stats().Crashes; n != 1 {
		t.Errorf("%d crashes", n)
	}
}

// Without the capability a path is refused, and a dead letter says so.
func TestSendingToAPathNeedsTheCapability(t *testing.T) {
	engine := newEngine(t)
	s, _ := manual(t, nil)
	var got []string
	must(s.Spawn("sink", sink(&got)))(t)
	// send-to-path is a guest that sends one message to /user/sink for each that it gets.
	image := load(t, engine, "testdata/path.wasm")
	denied := must(s.Spawn("denied", Guest(image, "path")))(t)
	allowed := must(s.Spawn("allowed", Guest(image, "path").WithCapabilities(Capabilities{Send: []string{"/user/si?k"}})))(t)
	s.Tell(denied, 1)
	s.RunUntilIdle(1000)
	letters, n := s.DeadLetters()
	if n != 1 || letters[0].Reason != DeadDenied || letters[0].Path != "/user/sink" || len(got) != 0 {
		t.Errorf("%+v, %v", letters, got)
	}
	s.Tell(allowed, 1)
	s.RunUntilIdle(1000)
	if len(got) != 1 {
		t.Errorf("%v", got)
	}
}

func ping(t testing.TB, s *System, e *sandbox.Engine) (a, b Ref, done *int) {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "bench", "guests", "ping.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	image, err := e.Load(context.Background(), code, sandbox.ImageConfig{Name: "ping"})
	if err != nil {
		t.Fatal(err)
	}
	done = new(int)
	must(s.Spawn("referee", Func(func(*Context, Message) error { *done++; return nil })))(t)
	p := Guest(image, "ping").WithCapabilities(Capabilities{Send: []string{"/user/referee"}})
	return must(s.Spawn("a", p))(t), must(s.Spawn("b", p))(t), done
}

func count(n uint32) Raw {
	return Raw{0x1a, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// A message between guests costs no allocation, supervision, metering and
// dispatching included.
func TestTurnPathDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	e := newEngine(t)
	s, _ := manual(t, nil)
	a, b, done := ping(t, s, e)
	s.RunUntilIdle(1000)
	if err := s.TellFrom(b, a, count(1_000_000)); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		s.Step()
	}
	before := s.View().Stats().Turns
	if n := testing.AllocsPerRun(10_000, func() { s.Step() }); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
	if turns := s.View().Stats().Turns - before; turns < 10_000 || *done != 0 {
		t.Errorf("%d turns, %d done", turns, *done)
	}
}

func BenchmarkPing(b *testing.B) {
	e := newEngine(b)
	cfg := NewConfig("bench").WithWorkers(1).WithGuardian(supervision.Default())
	s := newSystem(b, cfg)
	x, y, _ := ping(b, s, e)
	finished := make(chan struct{}, 1)
	ref := lookup(b, s, "/user/referee")
	s.Stop(ref)
	waitFor(b, "the referee's end", func() bool { _, err := s.Lookup("/user/referee"); return err != nil })
	must(s.Spawn("referee", Func(func(*Context, Message) error { finished <- struct{}{}; return nil })))(b)
	b.ReportAllocs()
	b.ResetTimer()
	if err := s.TellFrom(y, x, count(uint32(b.N))); err != nil {
		b.Fatal(err)
	}
	<-finished
}
