package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/wasi"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// withProgram compiles in processes of the test binary that behave as mode says.
func (c Config) withProgram(mode string, args ...string) Config {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c.compile, c.compileWith = compileThere, program{exe, append([]string{mode}, args...)}
	return c
}

// testProcess is the test binary as a process that compiles.
func testProcess(mode string, args []string) int {
	at := func(f func()) func(string) {
		return func(stage string) {
			if stage == "decode" {
				f()
			}
		}
	}
	compile := func(f func()) int { return compileProcess(os.Stdin, os.Stdout, at(f)) }
	switch mode {
	case compileArg:
		return compileProcess(os.Stdin, os.Stdout, nil)
	case linesArg:
		return linesProcess(os.Stdin, os.Stdout)
	case "__parent": // loads a module in a process that behaves as the arguments say, until it is killed
		withoutDeathSignal(args[0] == "pipe")
		e, err := New(context.Background(), NewConfig().withProgram(args[1], args[2:]...))
		if err == nil {
			var raw []byte
			if raw, err = os.ReadFile("testdata/echo.wasm"); err == nil {
				_, err = e.Load(context.Background(), raw, ImageConfig{})
			}
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	case "__announce": // its number in a file, at this stage, and stays
		return compileProcess(os.Stdin, os.Stdout, func(stage string) {
			if stage == args[1] {
				_ = os.WriteFile(args[0]+".new", []byte(strconv.Itoa(os.Getpid())), 0o600)
				_ = os.Rename(args[0]+".new", args[0])
				select {}
			}
		})
	case "__spin":
		return compile(func() {
			spin()
		})
	case "__eat":
		return compile(func() { eat(1 << 20) })
	case "__gulp":
		return compile(func() { eat(1 << 30) })
	case "__eat-unseen":
		return compile(eatUnseen)
	case "__spin-unwatched":
		return unwatched()
	case "__hang":
		time.Sleep(time.Hour)
	case "__panic":
		return compile(func() { panic("boom") })
	case "__exit":
		return 0
	case "__exit-7":
		return 7
	case "__suicide":
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	case "__garbage":
		r := rand.New(rand.NewPCG(1, 2))
		for {
			if _, err := os.Stdout.Write(binary.LittleEndian.AppendUint64(nil, r.Uint64())); err != nil {
				return 0
			}
		}
	case "__zeros":
		for zeros := make([]byte, 1<<20); ; {
			if _, err := os.Stdout.Write(zeros); err != nil {
				return 0
			}
		}
	case "__promise": // a frame of 2^60 bytes
		_, _ = os.Stdout.Write(binary.LittleEndian.AppendUint64([]byte{frameCode}, 1<<60))
		select {}
	case "__much": // frames without end
		for body := make([]byte, 1<<20); ; {
			if err := writeFrame(os.Stdout, frameCode, body); err != nil {
				return 0
			}
		}
	case "__stages":
		for {
			if err := writeFrame(os.Stdout, frameStage, []byte("decode")); err != nil {
				return 0
			}
		}
	case "__nothing":
		_ = writeFrame(os.Stdout, frameEnd, nil)
	case "__flood":
		for n := 0; n < 200<<20; n += 1 << 16 {
			if _, err := os.Stderr.Write(bytes.Repeat([]byte("lorem ipsum \xff\x1b"), 1<<12)); err != nil {
				return 0
			}
		}
		return 9
	case "__wrong-code": // all is as it should be but for the machine code
		var out bytes.Buffer
		code := compileProcess(os.Stdin, &out, nil)
		for {
			kind, body, err := readFrame(&out, 1<<30)
			if err != nil {
				return code
			}
			if kind == frameCode {
				body[7+int(body[6])+4+6] = 1 // the first function is far outside; wazero would not notice
			}
			_ = writeFrame(os.Stdout, kind, body)
		}
	case "__other-version":
		return otherVersion()
	case "__who": // what the process has been handed down
		return who()
	}
	return 1
}

var eaten [][]byte

// eat takes memory, piece by piece, and touches it.
func eat(piece int) {
	for {
		b := make([]byte, piece)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		eaten = append(eaten, b)
	}
}

func otherVersion() int {
	_, head, _ := readFrame(os.Stdin, 1<<30)
	_, module, _ := readFrame(os.Stdin, 1<<30)
	var in bytes.Buffer
	_ = writeFrame(&in, frameRequest, bytes.Replace(head, []byte(imageVersion), []byte("0 wazero-0.1"), 1))
	_ = writeFrame(&in, frameModule, module)
	return compileProcess(&thenWait{in}, os.Stdout, nil)
}

// thenWait reads what there is, and never comes to the end.
type thenWait struct{ bytes.Buffer }

func (r *thenWait) Read(p []byte) (int, error) {
	if r.Len() == 0 {
		select {}
	}
	return r.Buffer.Read(p)
}

// TestProcessMakesTheSame: an image is the same, whoever makes it, and so is what
// the cache keeps.
func TestProcessMakesTheSame(t *testing.T) {
	kept := map[string][][]byte{}
	for name, cfg := range map[string]Config{"here": NewConfig().WithCompileInProcess(), "there": NewConfig().withProgram(compileArg)} {
		e := newEngine(t, cfg.WithCacheDir(t.TempDir()))
		i := load(t, e, "echo", ImageConfig{})
		works(t, i)
		for _, part := range []string{imagePart, modulePart, codePart} {
			body, err := i.entry.Load(part)
			if err != nil {
				t.Fatal(name, part, err)
			}
			kept[name] = append(kept[name], body)
		}
	}
	for n := range kept["here"] {
		if !bytes.Equal(kept["here"][n], kept["there"][n]) {
			t.Errorf("part %d differs: %d and %d bytes", n, len(kept["here"][n]), len(kept["there"][n]))
		}
	}
}

// TestWarmStartNeedsNoProcess: what is cached is loaded though there is no program
// that could compile; only the machine code of a cached image is made again by one.
func TestWarmStartNeedsNoProcess(t *testing.T) {
	dir := t.TempDir()
	first := load(t, newEngine(t, NewConfig().withProgram(compileArg).WithCacheDir(dir)), "echo", ImageConfig{})
	works(t, first)
	none := NewConfig().WithCompileProgram("/nonexistent/compiler").WithCacheDir(dir)
	i := load(t, newEngine(t, none), "echo", ImageConfig{})
	if !i.Info().Cached {
		t.Error("not cached")
	}
	works(t, i)
	if err := first.entry.Drop(codePart); err != nil {
		t.Fatal(err)
	}
	_, err := newEngine(t, none).Load(t.Context(), guest(t, "echo"), ImageConfig{})
	if !errors.Is(err, errProcess) || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "WithCompileProgram") {
		t.Error(err)
	}
	var blame *LoadError
	if errors.As(err, &blame) {
		t.Error("the module is blamed for it:", err)
	}
	i = load(t, newEngine(t, NewConfig().withProgram(compileArg).WithCacheDir(dir)), "echo", ImageConfig{})
	if !i.Info().Cached {
		t.Error("built anew")
	}
	works(t, i)
	if !first.entry.Has(codePart) {
		t.Error("the machine code is not kept")
	}
}

// TestErrorsOfAProcess are those that the same module has here.
func TestErrorsOfAProcess(t *testing.T) {
	large := newSketch()
	large.m.Memories[0].Min = 20_000
	trap := newSketch()
	trap.m.Code[0].Code = []byte{wasm.OpUnreachable, wasm.OpEnd}
	unknown := newSketch()
	unknown.imports(t, wasm.Import{Module: "env", Name: "exit", Kind: wasm.KindFunc, Func: 2})
	here, there := newEngine(t, NewConfig()), newEngine(t, NewConfig().withProgram(compileArg))
	for name, raw := range map[string][]byte{"no module": []byte("no"), "memory": large.bytes(), "trap": trap.bytes(), "import": unknown.bytes()} {
		_, want := here.Load(t.Context(), raw, ImageConfig{Name: "m"})
		_, err := there.Load(t.Context(), raw, ImageConfig{Name: "m"})
		var a, b *LoadError
		if !errors.As(want, &a) || !errors.As(err, &b) || a.Error() != b.Error() {
			t.Errorf("%s: %v, here %v", name, err, want)
		}
		var la, lb *LimitError
		if errors.As(want, &la) != errors.As(err, &lb) || la != nil && *la != *lb {
			t.Errorf("%s: %v, here %v", name, lb, la)
		}
		var fa, fb *abi.Failure
		if errors.As(want, &fa) != errors.As(err, &fb) || fa != nil && (fa.Kind != fb.Kind || fa.Reason != fb.Reason || len(fa.Stack) != len(fb.Stack)) {
			t.Errorf("%s: %v, here %v", name, fb, fa)
		}
	}
}

// TestLimitsOfAProcess: a process that takes its time, or memory, ends at its
// limits; the error says which, and the host has lost nothing.
func TestLimitsOfAProcess(t *testing.T) {
	for _, c := range []struct {
		mode, key, says string
		cfg             ImageConfig
		slow            bool
	}{
		{"__spin", "compile-time", "takes more than 300ms of processor time to compile (the limit is ImageConfig.CompileTime)", ImageConfig{CompileTime: 300 * time.Millisecond}, false},
		{"__eat", "compile-memory", "takes more than 100 MiB of memory to compile (the limit is ImageConfig.CompileMemory)", ImageConfig{CompileMemory: 100 << 20, CompileTime: time.Minute}, false},
		{"__gulp", "compile-memory", "takes more than 100 MiB", ImageConfig{CompileMemory: 100 << 20, CompileTime: time.Minute}, false},
		{"__eat-unseen", "compile-memory", "takes more than 100 MiB", ImageConfig{CompileMemory: 100 << 20, CompileTime: time.Minute}, false},
		{"__spin-unwatched", "compile-time", "2s of processor time", ImageConfig{CompileTime: 2 * time.Second, InitDeadline: time.Millisecond}, true},
		{"__hang", "compile-time", "takes more than 1.501s to compile, while 100ms of processor time is allowed", ImageConfig{CompileTime: 100 * time.Millisecond, InitDeadline: time.Millisecond}, false},
	} {
		t.Run(c.mode, func(t *testing.T) {
			if c.slow && testing.Short() {
				t.Skip("takes seconds")
			}
			if strings.HasSuffix(c.mode, "unseen") || strings.HasSuffix(c.mode, "unwatched") || c.mode == "__gulp" {
				needsKernelLimits(t)
			}
			start := time.Now()
			_, err := newEngine(t, NewConfig().withProgram(c.mode)).Load(t.Context(), guest(t, "echo"), c.cfg)
			var load *LoadError
			var limit *CompileError
			if !errors.As(err, &load) || !errors.As(err, &limit) || limit.Key != c.key || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v, want %s", err, c.says)
			}
			t.Log(time.Since(start), err)
		})
	}
}

// TestBadProcesses: whatever the process does, Load ends with an error that blames
// the module and repeats some of what the process has said.
func TestBadProcesses(t *testing.T) {
	const nonsense, ended = "has made the compile process send a malformed answer", "has ended the compile process"
	for mode, says := range map[string]string{
		"__panic": ended + ": exit status 2: panic: boom", "__exit": ended + ": exit status 0", "__exit-7": ended + ": exit status 7",
		"__suicide": ended + ": signal: killed", "__garbage": nonsense, "__zeros": nonsense, "__promise": nonsense + ": malformed answer: a frame of 1152921504606846976 bytes",
		"__much": nonsense, "__stages": nonsense, "__nothing": nonsense, "__flood": ended + ": exit status 9: lorem ipsum ?\x1b", "__wrong-code": nonsense,
	} {
		t.Run(mode, func(t *testing.T) {
			e := newEngine(t, NewConfig().withProgram(mode).WithCacheDir(t.TempDir()))
			_, err := e.Load(t.Context(), guest(t, "echo"), ImageConfig{Name: "m", CompileTime: 5 * time.Second})
			var load *LoadError
			var c *CompileError
			if !errors.As(err, &load) || !errors.As(err, &c) || c.Key != "" || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want %s", err, says)
			}
			if len(err.Error()) > mostSaid+500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if items, _ := e.cache.Items(); len(items) > 0 {
				t.Error("something was kept")
			}
		})
	}
	_, err := newEngine(t, NewConfig().withProgram("__other-version")).Load(t.Context(), guest(t, "echo"), ImageConfig{})
	if !errors.Is(err, errProcess) || !strings.Contains(err.Error(), "another version") {
		t.Error(err)
	}
}

// soon runs what must take less than two seconds, a few times if the machine is busy. What is not
// interrupted takes for ever.
func soon(t *testing.T, what string, run func(t *testing.T) time.Duration) {
	t.Helper()
	best := time.Hour
	for try := 0; best > 2*time.Second && try < 5; try++ {
		best = min(best, run(t))
	}
	if best > 2*time.Second {
		t.Errorf("%s: it took %s", what, best)
	}
}

// TestInterruptedLoad: Load ends at once with its context, whatever it is at, and
// the process with it.
func TestInterruptedLoad(t *testing.T) {
	for _, stage := range []string{"decode", "initialise", "compile"} {
		soon(t, stage, func(t *testing.T) time.Duration {
			file := filepath.Join(t.TempDir(), "number")
			e := newEngine(t, NewConfig().withProgram("__announce", file, stage))
			ctx, cancel := context.WithCancel(context.Background())
			failed := make(chan error, 1)
			go func() {
				_, err := e.Load(ctx, guest(t, "echo"), ImageConfig{})
				failed <- err
			}()
			pid := announced(t, file)
			start := time.Now()
			cancel()
			err := <-failed
			took := time.Since(start)
			if !errors.Is(err, context.Canceled) {
				t.Error(stage, err)
			}
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
			gone(t, pid)
			return took
		})
	}
}

// TestInterruptedHere: the same without a process. Load returns at once, and Close
// waits for what is left.
func TestInterruptedHere(t *testing.T) {
	for _, stage := range []string{"read", "decode", "initialise", "compile"} {
		soon(t, stage, func(t *testing.T) time.Duration { return interruptedHere(t, stage) })
	}
}

func interruptedHere(t *testing.T, stage string) time.Duration {
	e := newEngine(t, NewConfig())
	ctx, cancel := context.WithCancel(context.Background())
	var at time.Time
	raw := guest(t, "echo")
	if stage == "initialise" {
		spin := newSketch()
		spin.m.Code[0].Code = []byte{wasm.OpLoop, 0x40, wasm.OpBr, 0, wasm.OpEnd, wasm.OpI32Const, 16, wasm.OpEnd}
		raw = spin.bytes()
	}
	reading := make(chan struct{})
	read := func(context.Context) ([]byte, error) {
		if stage == "read" {
			at = time.Now()
			cancel()
			<-reading // of a file system that does not answer
		}
		return raw, nil
	}
	cfg := ImageConfig{InitFuel: 1 << 60, Progress: func(s string) {
		if s != stage {
			return
		}
		at = time.Now()
		if s != "initialise" {
			cancel()
			return
		}
		go func() {
			time.Sleep(5 * time.Millisecond)
			cancel()
		}()
	}}
	_, err := e.LoadFrom(ctx, Source{Read: read}, cfg)
	took := time.Since(at)
	if !errors.Is(err, context.Canceled) {
		t.Error(stage, err)
	}
	close(reading)
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := e.Load(context.Background(), raw, ImageConfig{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	return took
}

// TestKilledParent: kill -9 of whoever has started a process leaves none, by the
// kernel's doing and, where there is no such thing, by the pipe alone.
func TestKilledParent(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"signal", "pipe"} {
		for _, stage := range []string{"decode", "compile"} {
			file := filepath.Join(t.TempDir(), "number")
			parent := exec.Command(exe, "__parent", how, "__announce", file, stage)
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			pid := announced(t, file)
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait() // killed
			gone(t, pid)
		}
	}
}

// announced waits for a process's number.
func announced(t *testing.T, file string) int {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil {
			pid, err := strconv.Atoi(string(text))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the process has not begun")
	return 0
}

// gone waits until a process is no more.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !lives(pid) {
			return
		}
	}
	t.Errorf("process %d still lives", pid)
}

// TestSameModuleTwice: processes and engines that compile the same module at the
// same time do each their work, and keep the same.
func TestSameModuleTwice(t *testing.T) {
	dir := t.TempDir()
	done := make(chan error, 6)
	for n := range cap(done) {
		cfg := NewConfig().withProgram(compileArg)
		if n%3 == 0 {
			cfg = NewConfig()
		}
		e := newEngine(t, cfg.WithCacheDir(dir))
		go func() {
			_, err := e.Load(context.Background(), guest(t, "echo"), ImageConfig{})
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	e := newEngine(t, NewConfig().WithCompileProgram("/nonexistent").WithCacheDir(dir))
	i := load(t, e, "echo", ImageConfig{})
	if items, err := e.cache.Items(); err != nil || len(items) != 1 || !i.Info().Cached {
		t.Error(items, err)
	}
	works(t, i)
}

// TestDirectoriesInAProcess: the initialisation sees its directories, relative ones
// too, though the process works elsewhere.
func TestDirectoriesInAProcess(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("data", 0o700); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, NewConfig().withProgram(compileArg).WithCacheDir(t.TempDir()))
	for range 2 {
		i, err := e.Load(t.Context(), newSketch().bytes(), ImageConfig{Dirs: []wasi.Dir{{Host: "data", Guest: "/data", ReadOnly: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if !i.Frozen() || i.Info().Cached {
			t.Errorf("%+v", i.Info())
		}
		works(t, i)
	}
	if _, err := e.Load(t.Context(), newSketch().bytes(), ImageConfig{Dirs: []wasi.Dir{{Host: "missing", Guest: "/data", ReadOnly: true}}}); err == nil {
		t.Error("a directory that is not there")
	}
}

// TestRecordsAreChecked: what a process answers is checked as if the module had
// answered itself.
func TestRecordsAreChecked(t *testing.T) {
	e := newEngine(t, NewConfig())
	fresh := func() (*record, *ImageConfig) {
		i := &Image{engine: e, cfg: ImageConfig{}}
		if err := i.cfg.complete(); err != nil {
			t.Fatal(err)
		}
		rec, err := i.build(t.Context(), guest(t, "echo"))
		if err != nil {
			t.Fatal(err)
		}
		return rec, &i.cfg
	}
	for name, change := range map[string]func(r *record, c *ImageConfig, o *wasm.Module){
		"":                       func(*record, *ImageConfig, *wasm.Module) {},
		"memory above its limit": func(r *record, c *ImageConfig, _ *wasm.Module) { c.MemoryLimit = r.meta.MemoryBytes - 1<<16 },
		"inbox outside":          func(r *record, _ *ImageConfig, _ *wasm.Module) { r.meta.Control.Inbox = 1 << 31 },
		"inbox too small":        func(r *record, _ *ImageConfig, _ *wasm.Module) { r.meta.Control.InboxCap = 8 },
		"rings overlap":          func(r *record, _ *ImageConfig, _ *wasm.Module) { r.meta.Control.Outbox = r.meta.Control.Inbox },
		"no types":               func(r *record, _ *ImageConfig, _ *wasm.Module) { r.meta.Description.Types = nil },
		"another ABI":            func(r *record, _ *ImageConfig, _ *wasm.Module) { r.meta.Description.ABI = 9 },
		"a type that is not a name": func(r *record, _ *ImageConfig, _ *wasm.Module) {
			r.meta.Description.Types = []string{strings.Repeat("x", 10_000)}
		},
		"an import that nobody offers": func(_ *record, _ *ImageConfig, o *wasm.Module) {
			o.Imports = append(o.Imports, wasm.Import{Module: "env", Name: "exit", Kind: wasm.KindFunc})
		},
		"an import that is not mentioned": func(r *record, _ *ImageConfig, _ *wasm.Module) { r.meta.UsesGuest = false },
		"a table above its limit": func(_ *record, _ *ImageConfig, o *wasm.Module) {
			o.Tables = append(o.Tables, wasm.Table{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: 1 << 20}})
		},
		"a memory that is larger": func(_ *record, _ *ImageConfig, o *wasm.Module) { o.Memories[0].Min = 5000 },
		"no outline":              func(r *record, _ *ImageConfig, _ *wasm.Module) { r.outline = []byte("no") },
		"not frozen, rings too large": func(r *record, _ *ImageConfig, _ *wasm.Module) {
			r.meta.NotFrozen, r.memory, r.meta.Control.OutboxCap = "so", nil, 1<<31
		},
	} {
		rec, cfg := fresh()
		o, err := wasm.Decode(rec.outline)
		if err != nil {
			t.Fatal(err)
		}
		change(rec, cfg, o)
		if string(rec.outline) != "no" {
			rec.outline = o.Encode()
		}
		got, err := cfg.checkRecord(rec.encode(), rec.module)
		if (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil && !bytes.Equal(got.memory, rec.memory) {
			t.Error("another memory")
		}
	}
}

// FuzzAnswer: no answer of a process brings the host down, or takes more memory
// than the process might have had.
func FuzzAnswer(f *testing.F) {
	raw, err := os.ReadFile("testdata/echo.wasm")
	if err != nil {
		f.Fatal(err)
	}
	e, err := New(context.Background(), NewConfig().WithPortableMemory(true))
	if err != nil {
		f.Fatal(err)
	}
	i := &Image{engine: e}
	if err := i.cfg.complete(); err != nil {
		f.Fatal(err)
	}
	i.cfg.MemoryLimit = 1 << 20
	rec, err := i.build(context.Background(), raw)
	if err != nil {
		f.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&product{rec: rec, code: []byte("WAZEVO")}).write(&out); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	var failure bytes.Buffer
	if err := writeFailure(&failure, &LoadError{Reason: "no", Err: &abi.Failure{Kind: abi.FailureTrap, Stack: []string{"f"}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(failure.Bytes())
	f.Fuzz(func(t *testing.T, answer []byte) {
		p, failed, err := readProduct(bytes.NewReader(answer), i, job{build: true, compile: true, limits: compileLimits{Memory: 1 << 20}})
		if err == nil && failed == nil {
			_ = checkCode(p.code, 3, false)
			if uint64(len(p.rec.memory)) > i.cfg.MemoryLimit {
				t.Error("a memory above its limit")
			}
		}
	})
}

// spin works on for ever.
func spin() {
	for n := uint64(0); ; n++ {
		if spun.Store(n); n == math.MaxUint64 {
			return
		}
	}
}

var spun atomic.Uint64
