package debug_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/debug"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// shopCode is the guest of standard Go.
var shopCode = sync.OnceValues(func() ([]byte, error) { return guesttest.BuildWith(guesttest.Go, "testdata/shop") })

// engine is one with the cache that the tests share.
func engine(t testing.TB, interpreter bool) *runtime.Engine {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	e := must(runtime.New(context.Background(), runtime.NewConfig().WithCacheDir(filepath.Join(base, "wasmactors-tests", "images")).WithInterpreter(interpreter)))(t)
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// crash runs a guest until it fails, and returns its crash file.
func crash(t testing.TB, e *runtime.Engine, code []byte, typ string, batch int, messages ...any) *blackbox.File {
	t.Helper()
	return crashAt(t, e, code, typ, 100_000_000, batch, messages...)
}

// crashAt is crash of a guest that may spend so much fuel in a turn.
func crashAt(t testing.TB, e *runtime.Engine, code []byte, typ string, fuel uint64, batch int, messages ...any) *blackbox.File {
	t.Helper()
	dir := t.TempDir()
	r := must(blackbox.Open(blackbox.Config{Dir: dir, Module: func([32]byte) ([]byte, error) { return code, nil }}))(t)
	defer r.Close()
	image := must(e.Load(context.Background(), code, runtime.ImageConfig{Name: typ + ".wasm", MemoryLimit: 32 << 20}))(t)
	defer image.Close()
	clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	s := must(host.New(host.NewConfig("test").WithManual().WithClock(clock).WithSeed(1).WithBlackBox(r)))(t)
	ref := must(s.Spawn("a", host.Guest(image, typ).WithLimits(host.Limits{Fuel: fuel})))(t)
	s.RunUntilIdle(100)
	for k, m := range messages {
		if err := s.Tell(ref, m); err != nil {
			t.Fatal(err)
		}
		if k%batch == batch-1 {
			s.RunUntilIdle(1000)
		}
	}
	s.RunUntilIdle(1000)
	r.Flush()
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	names := must(filepath.Glob(filepath.Join(dir, "*"+blackbox.Suffix)))(t)
	if len(names) != 1 {
		t.Fatalf("%d crash files", len(names))
	}
	return must(blackbox.Decode(must(os.ReadFile(names[0]))(t)))(t)
}

// guests are those that the debugger is tried with.
func guests(t testing.TB) map[string]func(e *runtime.Engine, batch int) *blackbox.File {
	return map[string]func(e *runtime.Engine, batch int) *blackbox.File{
		"wat": func(e *runtime.Engine, batch int) *blackbox.File {
			var messages []any
			for k := range 12 {
				messages = append(messages, k)
			}
			return crash(t, e, must(os.ReadFile("testdata/walker.wasm"))(t), "walker", batch, messages...)
		},
		"go": func(e *runtime.Engine, batch int) *blackbox.File {
			var messages []any
			for k := range 13 {
				messages = append(messages, 10+k*3)
			}
			return crash(t, e, must(shopCode())(t), "cart", batch, append(messages, -1)...)
		},
	}
}

// crashOfFuel is that of a guest which loops until its fuel is spent.
func crashOfFuel(t testing.TB, e *runtime.Engine) *blackbox.File {
	t.Helper()
	code := must(os.ReadFile("../testdata/hostile/loop.wasm"))(t)
	return crash(t, e, code, "hostile", 1, 1)
}

func open(t testing.TB, e *runtime.Engine, f *blackbox.File) *debug.Debugger {
	t.Helper()
	d := must(debug.Open(context.Background(), e, f, replay.Options{}))(t)
	t.Cleanup(d.Close)
	return d
}

func do(t testing.TB, d *debug.Debugger, line string) *debug.Result {
	t.Helper()
	r, err := d.Do(context.Background(), line)
	if err != nil {
		t.Fatalf("%s at %s: %v", line, d.At(), err)
	}
	return r
}

func memorySum(t testing.TB, d *debug.Debugger) uint32 {
	t.Helper()
	return crc32.Checksum(must(d.Memory(context.Background()))(t), crc32.MakeTable(crc32.Castagnoli))
}

// TestRandomPlaces is a script of 100 places at random, forward and backward: at each the memory is that of a straight run.
func TestRandomPlaces(t *testing.T) {
	e := engine(t, false)
	for name, make := range guests(t) {
		for _, batch := range []int{1, 5} {
			t.Run(fmt.Sprint(name, " in entries of ", batch), func(t *testing.T) {
				f := make(e, batch)
				straight := open(t, e, f)
				rng := rand.New(rand.NewPCG(uint64(batch), 7))
				type place struct {
					debug.Place
					sum   uint32
					stack string
				}
				var places []place
				do(t, straight, "goto start")
				for {
					if rng.IntN(25) == 0 {
						places = append(places, place{straight.At(), memorySum(t, straight), fmt.Sprint(do(t, straight, "stack").Stack)})
					}
					if _, err := straight.Do(context.Background(), fmt.Sprint("forward ", 1+rng.IntN(20))); err != nil {
						break
					}
				}
				if last := straight.At(); !last.End || len(places) < 40 {
					t.Fatalf("%d places, the last at %v", len(places), last)
				}
				d := open(t, e, f)
				backward := 0
				for range 100 {
					p := places[rng.IntN(len(places))]
					if r := do(t, d, "goto "+p.String()); r.At != p.Place {
						t.Fatalf("it is at %v, not %v", r.At, p)
					}
					if memorySum(t, d) != p.sum {
						t.Fatalf("another memory at %v", p)
					}
					if s := fmt.Sprint(do(t, d, "stack").Stack); s != p.stack {
						t.Fatalf("another stack at %v: %v, was %v", p, s, p.stack)
					}
					if rng.IntN(4) > 0 {
						continue
					}
					n := 1 + rng.IntN(30)
					if _, err := d.Do(context.Background(), fmt.Sprint("back ", n)); err != nil || d.At().Turn == 0 {
						continue // the begin
					}
					do(t, d, fmt.Sprint("forward ", n))
					if d.At() != p.Place || memorySum(t, d) != p.sum {
						t.Fatalf("%d back and forward leads from %v to %v, or to another memory", n, p, d.At())
					}
					backward++
				}
				if backward < 10 {
					t.Errorf("it went back and forward %d times", backward)
				}
			})
		}
	}
}

// A planted stray write is found: the turn, the place, and the function.
func TestWatch(t *testing.T) {
	e := engine(t, false)
	for _, batch := range []int{1, 5} {
		t.Run(fmt.Sprint("wat in entries of ", batch), func(t *testing.T) {
			d := open(t, e, guests(t)["wat"](e, batch))
			w := do(t, d, "watch ledger+8").Write
			if w == nil || w.From.Turn != 6 || w.Stack[0].Function != "stray" || w.After != "ad0bad0b00000000" || w.Before != "0000000000000000" {
				t.Fatalf("%+v", w)
			}
			if r := do(t, d, "memory ledger+8:8"); r.Memory.Hex != w.Before {
				t.Error(r.Memory)
			}
			do(t, d, "goto "+w.To.String())
			if r := do(t, d, "memory 0x30008:8"); r.Memory.Hex != w.After {
				t.Error(r.Memory)
			}
			if w := do(t, d, "watch ledger:8").Write; w == nil || w.To.Turn != 6 {
				t.Errorf("%+v", w) // written in every turn
			}
			do(t, d, "goto 10:end") // it has become 1 in turn 2 and in turn 8
			if w := do(t, d, "watch ledger+16").Write; w == nil || w.From.Turn != 8 || w.After != "0100000000000000" {
				t.Errorf("%+v", w)
			}
			do(t, d, "goto 5:end")
			if r := do(t, d, "watch ledger+8"); r.Write != nil || r.Note == "" {
				t.Errorf("%+v", r)
			}
		})
		t.Run(fmt.Sprint("go in entries of ", batch), func(t *testing.T) {
			d := open(t, e, guests(t)["go"](e, batch))
			at := findWord(t, d, 0x0bad0bad)
			w := do(t, d, fmt.Sprintf("watch %#x:8", at)).Write
			if w == nil || w.From.Turn != 9 || w.Before != "e803000000000000" || !strings.Contains(w.Stack[0].Function, "stray") && !strings.Contains(w.Then[0].Function, "stray") {
				t.Fatalf("%+v", w)
			}
			if caller := w.Stack[1]; caller.Function != "main.(*cart).Receive" || filepath.Base(caller.File) != "main.go" || caller.Line != 27 {
				t.Errorf("called from %+v", caller)
			}
		})
	}
}

// findWord is where the memory has a word of 8 bytes.
func findWord(t *testing.T, d *debug.Debugger, word uint64) int {
	t.Helper()
	m := must(d.Memory(context.Background()))(t)
	for at := 0; at+8 <= len(m); at += 8 {
		if m[at] == byte(word) && m[at+1] == byte(word>>8) && m[at+2] == byte(word>>16) && m[at+3] == byte(word>>24) && string(m[at+4:at+8]) == "\x00\x00\x00\x00" {
			return at
		}
	}
	t.Fatal("the word is not there")
	return 0
}
