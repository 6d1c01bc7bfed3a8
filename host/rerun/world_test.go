package rerun

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// The systems of these tests run on the machine's clock and on several workers: what they do depends on when.

var engines = sync.OnceValues(func() ([2]*runtime.Engine, error) {
	cfg := runtime.NewConfig().WithCacheDir(filepath.Join(servicetest.CacheDir(), "images"))
	compiled, err := runtime.New(context.Background(), cfg)
	if err != nil {
		return [2]*runtime.Engine{}, err
	}
	interpreted, err := runtime.New(context.Background(), cfg.WithInterpreter(true))
	return [2]*runtime.Engine{compiled, interpreted}, err
})

func compiled(t testing.TB) *runtime.Engine {
	t.Helper()
	e, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	return e[0]
}

func interpreted(t testing.TB) *runtime.Engine {
	t.Helper()
	e, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	return e[1]
}

var puppetCode = sync.OnceValues(func() ([]byte, error) {
	return os.ReadFile(filepath.Join("..", "testdata", "puppet_batching.wasm"))
})

var familyCode = sync.OnceValues(func() ([]byte, error) {
	return guesttest.BuildWith("go", filepath.Join("..", "testdata", "family"))
})

func modules(t testing.TB) [][]byte {
	t.Helper()
	puppet, err := puppetCode()
	if err != nil {
		t.Fatal(err)
	}
	family, err := familyCode()
	if err != nil {
		t.Fatal(err)
	}
	dice, err := os.ReadFile(filepath.Join("..", "testdata", "dice.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{puppet, family, dice}
}

func load(t testing.TB, name string, code []byte, cfg runtime.ImageConfig) *runtime.Image {
	t.Helper()
	cfg.Name = name
	image, err := compiled(t).Load(context.Background(), code, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// The records that a puppet does, see host/testdata/puppet.wat.
func rec(kind, flag byte, commands ...[]byte) []byte {
	all := slices.Concat(commands...)
	return append(binary.LittleEndian.AppendUint16([]byte{kind, flag}, uint16(len(all))), all...)
}

const (
	recAdd   = 255
	trap     = 1
	last     = 2
	spinning = 4
	ms       = uint64(time.Millisecond)
)

func script(records ...[]byte) host.Raw {
	b, err := cbor.Marshal(slices.Concat(records...))
	if err != nil {
		panic(err)
	}
	return b
}

// send is a command to an actor at a path, with a message for it.
func send(path string, m []byte) []byte { return abi.AppendSend(nil, 0, path, 0, 0, nil, m) }

func text(s string) []byte { b, _ := cbor.Marshal(s); return b }

// world is a system that is recorded.
type world struct {
	*host.System
	t    testing.TB
	r    *recorder.Recorder
	path string
}

type setting struct {
	workers int
	turns   int // that a worker takes of an actor at once; 0: the default
	bytes   int64
	config  func(host.Config) host.Config
	image   runtime.ImageConfig
}

// newBareWorld has no actors.
func newBareWorld(t testing.TB, s setting) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "run.wrec")}
	var err error
	w.r, err = recorder.Open(recorder.Config{Path: w.path, Bytes: s.bytes, Version: "test", Ended: func(err error) { t.Errorf("the recording ended: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	cfg := host.NewConfig("w").WithWorkers(max(s.workers, 1)).WithRecording(w.r).WithGuardian(supervision.Default().WithOtherwise(supervision.Restart).WithMaxRestarts(-1, 0))
	if s.turns > 0 {
		cfg = cfg.WithThroughput(s.turns)
	}
	if s.config != nil {
		cfg = s.config(cfg)
	}
	if w.System, err = host.New(cfg); err != nil {
		t.Fatal(err)
	}
	return w
}

func newWorld(t testing.TB, s setting) *world {
	t.Helper()
	w := newBareWorld(t, s)
	code := modules(t)
	puppets, family := load(t, "puppet", code[0], s.image), load(t, "family", code[1], s.image)
	w.spawn("sink", host.Func(func(*host.Context, host.Message) error { return nil }))
	caps := host.Capabilities{Send: []string{"/**"}, Spawn: []string{"*"}, Stop: []string{"/user/**"}}
	puppet := func(records ...[]byte) host.Props {
		return host.Guest(puppets, "puppet").WithArgs(script(records...)).WithCapabilities(caps)
	}
	w.spawn("a", puppet(rec(1, 0, abi.AppendTimer(nil, 1, 3*ms, 5*ms, text("tick"))), rec(byte(abi.KindTimer), 0, send("/user/b", script(rec(recAdd, 1))))))
	w.spawn("b", puppet(rec(byte(abi.KindStop), 0, send("/user/sink", text("stopping"))), rec(byte(abi.KindPreRestart), 0, send("/user/c", text("again")))))
	w.spawn("c", puppet())
	nothing := func(*host.Context, host.Message) error { return nil }
	w.spawn("soft", host.Func(nothing).WithSupervision(supervision.Default().WithOtherwise(supervision.Resume).WithMaxRestarts(-1, 0)).
		WithChildren(host.Child{Name: "q", Props: puppet()}, host.Child{Name: "w", Props: host.Guest(family, "worker").WithCapabilities(caps)}))
	w.spawn("boss", host.Guest(family, "boss").WithArgs(int(supervision.Restart)).WithCapabilities(caps).WithSupervision(supervision.Default().WithOtherwise(supervision.Ask)))
	w.spawn("dice", host.Guest(load(t, "dice", code[2], runtime.ImageConfig{}), "dice"))
	w.spawn("worker", host.Guest(family, "worker").WithCapabilities(caps))
	return w
}

func (w *world) spawn(name string, p host.Props) {
	w.t.Helper()
	if _, err := w.Spawn(name, p); err != nil {
		w.t.Fatal(err)
	}
}

// load sends what seed chooses, from several goroutines.
func (w *world) load(seed uint64, messages int) {
	add := rec(recAdd, 1)
	var some sync.WaitGroup
	for g := range uint64(3) {
		some.Go(func() {
			r := rand.New(rand.NewPCG(seed, g))
			to := func(path string, v any) {
				if ref, err := w.Lookup("/user/" + path); err == nil {
					_ = w.Tell(ref, v) // a full mailbox is one of the things that happen
				}
			}
			puppets := []string{"a", "b", "c", "soft/q"}
			other := func() string { return puppets[r.IntN(len(puppets))] }
			for range messages {
				p := other()
				switch r.IntN(15) {
				case 0:
					to(p, script(rec(recAdd, 5), rec(0, trap, send("/user/sink", text("never")))))
				case 1:
					to(p, script(rec(0, last, abi.AppendStash(nil))))
				case 2:
					to(p, script(rec(0, last, abi.AppendUnstash(nil))))
				case 3:
					to(p, script(rec(0, 0, abi.AppendTimer(nil, 3, ms, 0, text("late")))))
				case 4:
					to(p, script(rec(0, 0, abi.AppendAsk(nil, 0, "/user/"+other(), r.Uint64N(9)+1, 3*ms, nil, script(add)))))
				case 5:
					to("worker", []any{1, 2, "roll", "later", 3, "roll", "fail no", "kids"}[r.IntN(8)])
				case 6:
					to("soft/w", []any{1, 2, "roll", "panic now", "later", "roll", "fail no"}[r.IntN(7)])
				case 7:
					to("boss", []string{"a", "b", "c"}[r.IntN(3)])
				case 8:
					to("boss/"+[]string{"a", "b", "c"}[r.IntN(3)], []any{1, "roll", "panic now", 2, "quit"}[r.IntN(5)])
				case 9:
					to(p, script(rec(0, 0, abi.AppendForward(nil, 0, "/user/worker"))))
				case 10:
					to("dice", 0)
				default:
					m := script(add, rec(0, 0, send("/user/"+other(), script(add))))
					for range r.IntN(4) {
						m = script(rec(recAdd, 1), rec(0, 0, send("/user/"+other(), m), send("/user/"+other(), script(add))))
					}
					to(p, m)
				}
			}
		})
	}
	some.Wait()
	if ref, err := w.Lookup("/user/dice"); err == nil { // what it has seen
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := w.Ask(ctx, ref, 1); err != nil {
			w.t.Errorf("dice: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_ = w.Idle(ctx) // timers may keep it busy
}

// end closes system and recording, and reads the file.
func (w *world) end() *recorder.Recording {
	w.t.Helper()
	if err := w.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
	if err := w.r.Close(); err != nil {
		w.t.Error(err)
	}
	return read(w.t, w.path)
}

func read(t testing.TB, path string) *recorder.Recording {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := recorder.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// equal repeats a recording, which must come out as it was.
func equal(t testing.TB, e *runtime.Engine, r *recorder.Recording, o Options) *Report {
	t.Helper()
	if o.Modules == nil {
		o.Modules = modules(t)
	}
	report, err := Run(context.Background(), e, r, o)
	if err != nil {
		t.Fatal(err)
	}
	if report.Difference != nil {
		t.Fatalf("after %d turns: %v", report.Turns, report.Difference)
	}
	return report
}

func describe(r *Report) string {
	return fmt.Sprintf("%d records, %d incarnations, %d entries, %d turns, %d failures", r.Records, r.Lives, r.Entries, r.Turns, r.Failed)
}
