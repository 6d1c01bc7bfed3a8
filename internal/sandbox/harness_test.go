package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/abi"
)

// TestMain lets the test binary be a process that compiles, well or badly.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		os.Exit(testProcess(os.Args[1], os.Args[2:]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if goCache != "" {
			_ = os.RemoveAll(goCache)
		}
		os.Exit(code)
	}))
}

// setups are the ways in which an engine can work; every behaviour must be the
// same in all of them.
var setups = map[string]Config{
	"compiler":              NewConfig(),
	"interpreter":           NewConfig().WithInterpreter(true),
	"compiler, portable":    NewConfig().WithPortableMemory(true),
	"interpreter, portable": NewConfig().WithInterpreter(true).WithPortableMemory(true),
	"compiler, process":     NewConfig().withProgram(compileArg),
	"interpreter, process":  NewConfig().WithInterpreter(true).withProgram(compileArg),
}

func everywhere(t *testing.T, f func(t *testing.T, e *Engine)) {
	t.Helper()
	for name, cfg := range setups {
		t.Run(name, func(t *testing.T) { f(t, newEngine(t, cfg)) })
	}
}

// newEngine starts an engine that must be left without instances and memories.
func newEngine(t testing.TB, cfg Config) *Engine {
	t.Helper()
	e, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		if n := e.Instances(); n != 0 {
			t.Errorf("%d instances are left", n)
		}
		if n := e.space.Live(); n != 0 {
			t.Errorf("%d memories or images are left", n)
		}
		if n := e.pooled.Load(); n != 0 {
			t.Errorf("%d bytes are pooled", n)
		}
	})
	return e
}

func guest(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func load(t testing.TB, e *Engine, name string, cfg ImageConfig) *Image {
	t.Helper()
	cfg.Name = name
	i, err := e.Load(context.Background(), guest(t, name), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func get(t testing.TB, i *Image) *Instance {
	t.Helper()
	x, err := Get(i)
	if err != nil {
		t.Fatal(err)
	}
	prepare(t, x)
	return x
}

func prepare(t testing.TB, x *Instance) {
	t.Helper()
	if f := x.Prepare(&Entry{}); f != nil {
		t.Fatal(f)
	}
}

// message is an envelope whose payload's first byte tells the echo guest what to
// do.
func message(what byte) *abi.Envelope {
	return &abi.Envelope{Kind: abi.KindMessage, Time: 1, Sender: 42, Payload: []byte{what}}
}

func push(t testing.TB, x *Instance, whats ...byte) {
	t.Helper()
	for _, w := range whats {
		if !x.Push(message(w)) {
			t.Fatal("an envelope does not fit")
		}
	}
}

// turn is what a completed turn has asked for.
type turn []abi.Command

// run runs what is pending and reads all turns.
func run(t testing.TB, x *Instance, in *Entry) (Result, []turn, error) {
	t.Helper()
	var out Result
	x.Run(in, &out)
	var turns []turn
	for {
		n, cmds, ok, err := x.NextTurn(nil)
		if err != nil || !ok {
			return out, turns, err
		}
		if n != len(turns) {
			t.Fatalf("turn %d comes as %d", len(turns), n)
		}
		turns = append(turns, cmds)
	}
}

func entry() *Entry { return &Entry{Now: 1e18, TurnFuel: 50_000_000} }

// logLines is a LogSink that remembers.
type logLines []string

func (l *logLines) GuestLog(level int, text []byte) {
	*l = append(*l, []string{"debug", "info", "warn", "error"}[level]+": "+string(text))
}
