package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/race"
)

// goGuest builds testdata/goguest once a test run.
var goGuest = sync.OnceValues(func() ([]byte, error) { return buildGoGuest("") })

func buildGoGuest(tags string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "goguest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-tags="+tags, "-o", file, ".")
	cmd.Dir = filepath.Join("testdata", "goguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, &buildError{string(out), err}
	}
	return os.ReadFile(file)
}

type buildError struct {
	output string
	err    error
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + e.output }

func loadGo(t testing.TB, e *Engine, cfg ImageConfig) *Image {
	t.Helper()
	if race.Enabled {
		t.Skip("a Go guest takes half a minute to compile, on one goroutine; host runs them")
	}
	raw, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Name = "go"
	i, err := e.Load(context.Background(), raw, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// goCache is a disk cache that the tests of Go guests share: to compile one takes its time.
var goCache string

func goCacheDir(t testing.TB) string {
	t.Helper()
	if goCache == "" {
		dir, err := os.MkdirTemp("", "gocache")
		if err != nil {
			t.Fatal(err)
		}
		goCache = dir
	}
	return goCache
}

func goSetups(t *testing.T, f func(t *testing.T, e *Engine)) {
	dir := goCacheDir(t)
	for name, cfg := range setups {
		if testing.Short() && name != "compiler" {
			continue
		}
		t.Run(name, func(t *testing.T) { f(t, newEngine(t, cfg.WithCacheDir(dir))) })
	}
}

// say runs one message and returns the answer.
func say(t testing.TB, x *Instance, in *Entry, what byte) (uint64, *abi.Failure) {
	t.Helper()
	push(t, x, what)
	out, turns, err := run(t, x, in)
	if err != nil {
		t.Fatal(err)
	}
	if out.Failure != nil {
		return 0, out.Failure
	}
	return turns[0][0].Correlation &^ (1 << 63), nil
}

func TestGoGuest(t *testing.T) {
	goSetups(t, func(t *testing.T, e *Engine) {
		i := loadGo(t, e, ImageConfig{Env: []string{"GREETING=hello"}, MemoryLimit: 32 << 20})
		info := i.Info()
		if !info.Frozen || !info.Batching || info.NonZeroPages == 0 || i.Description().SDK != "bare" {
			t.Errorf("%+v", info)
		}
		x := get(t, i)
		defer func() { x.Put() }()
		in := &Entry{Now: 1_700_000_000_000_000_123, TurnFuel: 2_000_000_000, Seed: [16]byte{1}, Log: &logLines{}}
		if v, f := say(t, x, in, 7); f != nil || v != uint64(in.Now) {
			t.Errorf("the clock is %d: %v", v, f)
		}
		if v, f := say(t, x, in, 12); f != nil || v != 5 {
			t.Errorf("the environment: %d %v", v, f)
		}
		draw := func(seed byte, turn uint64) uint64 {
			in := *in
			in.Seed[0], in.FirstTurn = seed, turn
			v, f := say(t, x, &in, 8)
			if f != nil {
				t.Fatal(f)
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			return v
		}
		if a := draw(1, 0); a != draw(1, 0) || a == draw(1, 1) || a == draw(2, 0) {
			t.Error("random numbers must depend on the seed and the turn's number, and on nothing else")
		}
		if _, f := say(t, x, in, 5); f != nil {
			t.Error(f)
		}
		if got := strings.Join(*in.Log.(*logLines), "|"); got != "info: to stdout|warn: to stderr|warn: without an end" {
			t.Errorf("%q", got)
		}
		for life := range 3 {
			for n := range uint64(3) {
				if v, f := say(t, x, in, 10); f != nil || v != (n+1)+(n+2) {
					t.Errorf("life %d, %d: %d %v", life, n, v, f)
				}
			}
			if _, f := say(t, x, in, 11); f != nil { // grows the memory
				t.Error(f)
			}
			if x.MemoryBytes() == info.MemoryBytes {
				t.Error("the memory has not grown")
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			if x.MemoryBytes() != info.MemoryBytes {
				t.Errorf("%d bytes after the reset, %d at first", x.MemoryBytes(), info.MemoryBytes)
			}
		}
		for _, c := range []struct {
			what    byte
			kind    abi.FailureKind
			message string
		}{
			{1, abi.FailureGuestPanic, "out of coffee"},
			{2, abi.FailureGuestPanic, "runtime error: invalid memory address or nil pointer dereference"},
			{3, abi.FailureFuel, ""},
			{4, abi.FailureMemoryLimit, ""},
			{6, abi.FailureExit, ""},
			{9, abi.FailureStackOverflow, ""},
		} {
			in := *in
			in.TurnFuel = 300_000_000
			_, f := say(t, x, &in, c.what)
			if f == nil {
				t.Errorf("%d: no failure", c.what)
				continue
			}
			ok := f.Kind == c.kind
			if c.what == 9 { // Go's own limit on its stack may come first
				ok = ok || f.Kind == abi.FailureGuestPanic || f.Kind == abi.FailureMemoryLimit || f.Kind == abi.FailureFuel
			}
			if !ok || !strings.HasPrefix(f.Message, c.message) || len(f.Stack) == 0 {
				t.Errorf("%d: %+v", c.what, f)
			}
			if c.what == 1 && !strings.Contains(f.GuestStack, "main.act") {
				t.Errorf("the guest's own stack: %q", f.GuestStack)
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
			if v, f := say(t, x, &in, 10); f != nil || v != 3 {
				t.Errorf("%d: after the reset %d %v", c.what, v, f)
			}
			x.Put()
			x = get(t, i)
		}
	})
}

// TestGoGuestNotFrozen: each instance runs its own initialisation.
func TestGoGuestNotFrozen(t *testing.T) {
	e := newEngine(t, NewConfig().WithCacheDir(goCacheDir(t)))
	i := loadGo(t, e, ImageConfig{NoFreeze: true})
	if i.Frozen() || i.Info().NotFrozen == "" {
		t.Error("frozen")
	}
	x := get(t, i)
	defer x.Put()
	in := &Entry{Now: 1e18}
	if v, f := say(t, x, in, 10); f != nil || v != 3 {
		t.Error(v, f)
	}
	if err := x.Reset(); err != nil {
		t.Fatal(err)
	}
	prepare(t, x)
	if v, f := say(t, x, in, 10); f != nil || v != 3 {
		t.Error(v, f)
	}
}

// TestGoGuestTurnsDoNotAllocate: not even when the guest outlives many quanta.
func TestGoGuestTurnsDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("pools lose what they hold, on purpose")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	e := newEngine(t, NewConfig().WithCacheDir(goCacheDir(t)).WithQuantum(1000))
	x := get(t, loadGo(t, e, ImageConfig{}))
	defer x.Put()
	in := &Entry{Now: 1e18, TurnFuel: 1_000_000_000, Deadline: time.Hour}
	msg := message(0)
	var out Result
	turn := func() {
		x.Push(msg)
		x.Run(in, &out)
		if out.Failure != nil {
			t.Fatal(out.Failure)
		}
	}
	turn()
	if n := testing.AllocsPerRun(500, turn); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
}

func goBench(b *testing.B, cfg Config) *Image {
	return loadGo(b, newEngine(b, cfg.WithCacheDir(filepath.Join(os.TempDir(), "wasmactors-bench-cache"))), ImageConfig{})
}

func BenchmarkGoTurn(b *testing.B) {
	x := get(b, goBench(b, NewConfig()))
	defer x.Put()
	in := entry()
	b.ReportAllocs()
	for b.Loop() {
		first(b, x, in, 0)
	}
}

// BenchmarkGoFork is an instance that no pool has, up to the end of its first
// message; it is thrown away afterwards, which counts, too.
func BenchmarkGoFork(b *testing.B) {
	cfg := NewConfig()
	cfg.poolBytes = -1
	i := goBench(b, cfg)
	in := entry()
	b.ReportAllocs()
	for b.Loop() {
		x := get(b, i)
		first(b, x, in, 0)
		x.Put()
	}
}

func BenchmarkGoReset(b *testing.B) {
	x := get(b, goBench(b, NewConfig()))
	defer x.Put()
	in := entry()
	b.ReportAllocs()
	for b.Loop() {
		first(b, x, in, 0)
		if err := x.Reset(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGoRestart(b *testing.B) {
	x := get(b, goBench(b, NewConfig()))
	defer x.Put()
	in := entry()
	b.ReportAllocs()
	for b.Loop() {
		first(b, x, in, 2) // a nil dereference
		if err := x.Reset(); err != nil {
			b.Fatal(err)
		}
		first(b, x, in, 0)
	}
}

func BenchmarkGoLoad(b *testing.B) {
	raw, err := goGuest()
	if err != nil {
		b.Fatal(err)
	}
	for _, cached := range []bool{false, true} {
		b.Run(map[bool]string{false: "cold", true: "cached"}[cached], func(b *testing.B) {
			cfg := NewConfig()
			if cached {
				cfg = cfg.WithCacheDir(b.TempDir())
			}
			var info ImageInfo
			for b.Loop() {
				e := newEngine(b, cfg)
				i, err := e.Load(context.Background(), raw, ImageConfig{})
				if err != nil {
					b.Fatal(err)
				}
				x := get(b, i)
				first(b, x, entry(), 0)
				x.Put()
				info = i.Info()
				e.Close(context.Background())
			}
			b.Logf("%+v", info)
		})
	}
}
