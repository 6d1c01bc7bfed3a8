package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/supervision"
)

// blackBoxLab is a system whose guests have black boxes.
type blackBoxLab struct {
	*lab
	recorder *blackbox.Recorder
	dir      string
}

func newBlackBox(t *testing.T, guardian supervision.Strategy, box blackbox.Config, change func(Config) Config) *blackBoxLab {
	t.Helper()
	b := &blackBoxLab{dir: t.TempDir()}
	box.Dir = b.dir
	box.Failed = func(path string, err error) { t.Errorf("%s: %v", path, err) }
	b.recorder = must(blackbox.Open(box))(t)
	t.Cleanup(b.recorder.Close)
	s, clock := manual(t, func(c Config) Config {
		c = c.WithGuardian(guardian).WithBlackBox(b.recorder)
		if change != nil {
			c = change(c)
		}
		return c
	})
	b.lab = &lab{s, t, clock, s.Subscribe(eventRoom, nil)}
	return b
}

// files are the crash files that have been written, oldest first.
func crashFiles(t testing.TB, r *blackbox.Recorder, dir string) (files []*blackbox.File) {
	t.Helper()
	r.Flush()
	names := must(filepath.Glob(filepath.Join(dir, "*"+blackbox.Suffix)))(t)
	slices.Sort(names)
	for _, name := range names {
		if mode := must(os.Stat(name))(t).Mode(); mode != 0o600 {
			t.Errorf("%s has mode %v", name, mode)
		}
		files = append(files, must(blackbox.Decode(must(os.ReadFile(name))(t)))(t))
	}
	return files
}

// last is the newest crash file.
func (b *blackBoxLab) last() *blackbox.File {
	b.t.Helper()
	files := crashFiles(b.t, b.recorder, b.dir)
	if len(files) == 0 {
		b.t.Fatal("no crash file was written")
	}
	return files[len(files)-1]
}

// replayEngines are engines that share nothing with those of the systems.
func replayEngines(t *testing.T) map[string]*sandbox.Engine {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	base = filepath.Join(base, "wasmactors-tests", "images") // as familyImage
	engines := map[string]*sandbox.Engine{}
	for name, cfg := range map[string]sandbox.Config{
		"compiler": sandbox.NewConfig(), "interpreter": sandbox.NewConfig().WithInterpreter(true),
	} {
		e := must(sandbox.New(context.Background(), cfg.WithCacheDir(base)))(t)
		t.Cleanup(func() { _ = e.Close(context.Background()) })
		engines[name] = e
	}
	return engines
}

// reproduces repeats a file with every engine.
func reproduces(t *testing.T, engines map[string]*sandbox.Engine, f *blackbox.File, wasm []byte) (r *replay.Report) {
	t.Helper()
	if wasm != nil {
		leave(t, f, wasm)
	}
	for name, e := range engines {
		if name == "interpreter" && f.Failure.Kind == abi.FailureStackOverflow {
			continue // its own stack ends before the guest's
		}
		var err error
		if r, err = replay.Run(context.Background(), e, f, replay.Options{Module: wasm}); err != nil {
			t.Errorf("%s: %v: %v", name, f.Failure.Error(), err)
		} else if !r.Reproduced || len(r.Differences) > 0 {
			t.Errorf("%s: not reproduced: %v, differences %v; was %v", name, r.Failure, r.Differences, f.Failure.Error())
		}
	}
	return r
}

func wasmFile(t *testing.T, file string) []byte {
	t.Helper()
	return must(os.ReadFile(filepath.Join("testdata", file)))(t)
}

// Whatever the failure of a hostile guest is, it can be repeated: by the compiler and the interpreter.
func TestCrashFilesOfEveryFailure(t *testing.T) {
	engine := must(sandbox.New(context.Background(), sandbox.NewConfig()))(t)
	defer engine.Close(context.Background())
	engines := replayEngines(t)
	kinds := map[abi.FailureKind]bool{}
	for _, file := range must(filepath.Glob("testdata/hostile/*.wasm"))(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".wasm")
		t.Run(name, func(t *testing.T) {
			code := must(os.ReadFile(file))(t)
			image, err := engine.Load(context.Background(), code, sandbox.ImageConfig{
				Name: name, MemoryLimit: 4 << 20, TableLimit: 10_000, InitFuel: 10_000_000, InitDeadline: 10 * time.Second,
			})
			if err != nil {
				t.Skip("it is refused")
			}
			defer image.Close()
			l := newBlackBox(t, supervision.Default(), blackbox.Config{}, nil)
			p := Guest(image, "hostile").WithLimits(Limits{Fuel: 3_000_000, Outbox: 1 << 20, Children: 10})
			ref := l.spawn("g", p)
			_ = l.Tell(ref, 1)
			l.run()
			failed := l.seen(EventFailed)
			if len(failed) == 0 {
				t.Skip("it does not fail")
			}
			if failed[0].Mail == nil && failed[0].Failure.Kind == abi.FailureInit {
				t.Skip("it has failed before its first turn")
			}
			for _, f := range crashFiles(t, l.recorder, l.dir) {
				kinds[f.Failure.Kind] = true
				reproduces(t, engines, f, code)
			}
			if l.seen(EventFailed); failed[0].Mail != nil && failed[0].Mail.File == "" {
				t.Errorf("the event of %v names no file", failed[0].Failure)
			}
		})
	}
	for _, k := range []abi.FailureKind{abi.FailureTrap, abi.FailureGuestPanic, abi.FailureGuestError, abi.FailureFuel, abi.FailureMemoryLimit,
		abi.FailureStackOverflow, abi.FailureABIViolation, abi.FailureExit} {
		if !kinds[k] {
			t.Errorf("no guest has failed with %v", k)
		}
	}
}

// boxCase is a guest that works for a while and then fails.
type boxCase struct {
	props func(t *testing.T) Props
	work  any
	crash any
	code  func(t *testing.T) []byte
}

func boxCases() map[string]boxCase {
	family := func(*testing.T) []byte { return familyCode }
	worker := func(t *testing.T) Props { return familyGuest(t, "worker") }
	wat := func(t *testing.T) []byte {
		if manner == inBatches {
			return wasmFile(t, "puppet_batching.wasm")
		}
		return wasmFile(t, "puppet.wasm")
	}
	doll := func(t *testing.T) Props { return puppet(t) }
	return map[string]boxCase{
		"go panic": {worker, "roll", "panic x", family},
		"go error": {worker, "roll", "fail x", family},
		"trap":     {doll, script(rec(recAdd, 1, nil)), script(trap()), wat},
		"contract": {doll, script(rec(recAdd, 1, nil)), script(now(abi.AppendStash(nil), abi.AppendStash(nil))), wat},
		"spawner":  {doll, script(rec(recAdd, 1, nil)), script(now(abi.AppendSpawn(nil, 7, "puppet", "", nil, nil))), wat},
	}
}

// What guests in Go and WAT have done is repeated to the byte: one by one and in batches, when they slept in
// between, were resumed before, or after a snapshot.
func TestCrashFilesOfGuestsThatHaveWorked(t *testing.T) {
	engines := replayEngines(t)
	for name, c := range boxCases() {
		t.Run(name, func(t *testing.T) {
			thorough.SlowOf(awakeOrNot, everyManner)(t, func(t *testing.T) {
				for guardian, snapshot := range map[supervision.Directive]bool{supervision.Restart: false, supervision.Resume: true} {
					l := newBlackBox(t, otherwise(guardian), blackbox.Config{}, nil)
					ref := l.spawn("a", c.props(t))
					work := func(rounds int) {
						for range rounds {
							l.tell(ref, c.work) // one alone
							for range 5 {
								must(0, l.Tell(ref, c.work))(t)
							}
							l.run()
						}
					}
					work(4)
					if snapshot {
						box := guestOf(l.table.Get(ref.UID())).box
						g := guestOf(l.table.Get(ref.UID()))
						if x := g.inst.Load(); x != nil {
							box.Snapshot(x, g.spawned)
						}
						work(2)
					}
					for range 2 { // the second time in the middle of other work, after the first was dealt with
						must(0, l.Tell(ref, c.work))(t)
						must(0, l.Tell(ref, c.crash))(t)
						must(0, l.Tell(ref, c.work))(t)
						l.run()
						f := l.last()
						r := reproduces(t, engines, f, c.code(t))
						if t.Failed() {
							t.Fatalf("%v, %d turns equal", guardian, r.Turns)
						}
						if f.Inexact != "" {
							t.Fatal(f.Inexact)
						}
						l.pass(2 * blackbox.Every)
						work(1)
					}
					if n := len(crashFiles(t, l.recorder, l.dir)); n != 2 {
						t.Errorf("%d files", n)
					}
				}
			})
		})
	}
}

// Turns that were killed, or had a deadline, are repeated up to the instruction at which they ended.
func TestCrashFilesOfTurnsThatWereEnded(t *testing.T) {
	engines := replayEngines(t)
	t.Run("kill", func(t *testing.T) {
		killable(t, func(t *testing.T) {
			l := newBlackBox(t, supervision.Default(), blackbox.Config{}, nil)
			box := &interrupted{}
			g := l.spawn("g", puppet(t).WithMailbox(func(MailboxLimits) Mailbox { return box }))
			for range 2 {
				must(0, l.Tell(g, script(rec(recNow, flagSpin, toProbe("said")))))(t)
			}
			box.after, box.during = 1, func() { l.StopNow(g) }
			l.run()
			f := l.last()
			if f.Failure.Kind != abi.FailureKilled {
				t.Fatal(f.Failure.Error())
			}
			reproduces(t, engines, f, boxCases()["trap"].code(t))
		})
	})
	t.Run("deadline", func(t *testing.T) {
		dir := t.TempDir()
		r := must(blackbox.Open(blackbox.Config{Dir: dir}))(t)
		defer r.Close()
		s := newSystem(t, NewConfig("test").WithBlackBox(r))
		engine := must(sandbox.New(context.Background(), sandbox.NewConfig()))(t)
		image := load(t, engine, "testdata/hostile/loop.wasm")
		events := s.Subscribe(100, func(e *Event) bool { return e.Kind == EventFailed })
		g := must(s.Spawn("g", Guest(image, "hostile").WithLimits(Limits{Deadline: 5 * time.Millisecond})))(t)
		must(0, s.Tell(g, 1))(t)
		if e := next(t, events); e.Failure.Kind != abi.FailureDeadline {
			t.Fatal(e.Failure)
		}
		reproduces(t, engines, crashFiles(t, r, dir)[0], wasmFile(t, "hostile/loop.wasm"))
	})
}

// At most one file is written in a minute for a type and a kind of failure, and the oldest go.
func TestCrashFilesAreBounded(t *testing.T) {
	l := newBlackBox(t, otherwise(supervision.Restart), blackbox.Config{Keep: 3}, nil)
	ref := l.spawn("a", puppet(t))
	for i := range 6 {
		for k := range 3 {
			l.tell(ref, script(trap()))
			e := l.seen(EventFailed)
			if named := e[len(e)-1].Mail.File != ""; named != (k == 0) {
				t.Errorf("failure %d.%d names a file: %v", i, k, named)
			}
			l.pass(time.Second)
		}
		if n := len(crashFiles(t, l.recorder, l.dir)); n != min(i+1, 3) {
			t.Errorf("%d files after %d minutes", n, i)
		}
		l.pass(blackbox.Every)
	}
}

// All boxes together, and each, stay within their bounds; what was dropped is said.
func TestBlackBoxesAreBounded(t *testing.T) {
	const most = 64 << 10
	l := newBlackBox(t, otherwise(supervision.Restart), blackbox.Config{Bytes: most, ActorBytes: 24 << 10}, nil)
	var refs []Ref
	for i := range 8 {
		refs = append(refs, l.spawn(fmt.Sprint("a", i), puppet(t)))
	}
	for range 600 {
		for _, ref := range refs {
			must(0, l.Tell(ref, script(rec(recAdd, 1, nil))))(t)
		}
		l.run()
		if held := l.recorder.Held(); held < 0 || held > most {
			t.Fatalf("%d bytes are held", held)
		}
	}
	l.tell(refs[0], script(trap()))
	f := l.last()
	if f.Inexact == "" {
		reproduces(t, replayEngines(t), f, wasmFile(t, "puppet.wasm"))
	}
	for _, ref := range refs {
		l.Stop(ref)
	}
	l.run()
	if held := l.recorder.Held(); held != 0 {
		t.Errorf("%d bytes are held of actors that have stopped", held)
	}
}
