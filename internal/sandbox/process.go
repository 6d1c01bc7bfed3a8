package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/race"
)

// job is the work on a hostile module: everything between its bytes and an image. It is done
// in this process, or in one of its own, which is then the only one that decodes, rewrites,
// initialises or compiles the module.
type job struct {
	build   bool       // decode, rewrite, initialise, freeze: module is as it was given
	compile bool       // make machine code
	module  []byte     // as given or, without build, as rewritten
	meta    recordMeta // without build: what the module needs
	limits  compileLimits
}

// product is what a job has made. From another process it is hostile until checked.
type product struct {
	rec  *record // with build
	code []byte  // with compile
}

// Defaults of ImageConfig.CompileTime and CompileMemory, for a module of no bytes
// and for each byte. A Go guest of 2.2 MB takes 3 s and 190 MB.
const (
	compileTimeBase   = time.Second
	compileTimeByte   = 10 * time.Second >> 20
	compileMemoryBase = 128 << 20
	compileMemoryByte = 160
)

// raceFactor is how much more time a host with the race detector takes to compile, and then some:
// 12 times were measured.
const raceFactor = 20

func (c *ImageConfig) compileLimits(size int) compileLimits {
	l := compileLimits{c.CompileTime, c.InitDeadline, c.CompileMemory}
	if l.Time == 0 {
		l.Time = compileTimeBase + time.Duration(size)*compileTimeByte
		if race.Enabled {
			l.Time *= raceFactor
		}
	}
	if l.Memory == 0 {
		l.Memory = compileMemoryBase + uint64(size)*compileMemoryByte + 2*c.MemoryLimit
	}
	return l
}

// wall is the wall-clock time after which a process is killed, for one that uses no
// processor time.
func (l compileLimits) wall() time.Duration { return 5*l.Time + l.Init + time.Second }

// CompileError is a module whose compilation was not completed. It is the cause of a
// [LoadError].
type CompileError struct {
	What   string // such as "takes more than 2s of processor time to compile"
	Key    string // the limit's name in manifests: compile-time, compile-memory; "" if the process has crashed
	Output string // what the process has said, at most 4 KiB
}

func (e *CompileError) Error() string {
	s := "the module " + e.What
	switch e.Key {
	case "compile-time":
		s += " (the limit is ImageConfig.CompileTime)"
	case "compile-memory":
		s += " (the limit is ImageConfig.CompileMemory)"
	}
	if e.Output != "" {
		s += ": " + e.Output
	}
	return s
}

func tooSlow(l compileLimits) *CompileError {
	return &CompileError{What: fmt.Sprintf("takes more than %s of processor time to compile", brief(l.Time)), Key: "compile-time"}
}

func tooLarge(l compileLimits) *CompileError {
	return &CompileError{What: "takes more than " + amount(l.Memory, "bytes") + " of memory to compile", Key: "compile-memory"}
}

// brief rounds a limit for error texts: one that depends on the module's size is not round.
func brief(d time.Duration) time.Duration {
	if d > time.Second {
		d = d.Round(time.Millisecond)
	}
	return d
}

// Exit codes of the process. Go's own is 2.
const (
	exitMemory = 3
	exitTime   = 4
	exitOrphan = 5 // its parent has ended
)

// ownCompiler is set once this program has called CompileMain.
var ownCompiler atomic.Bool

// compiler is the program that compiles for the engine; nil: this process does.
func (c *Config) compiler() (*program, error) {
	switch {
	case c.compile == compileHere, c.compile == compileDefault && !ownCompiler.Load():
		return nil, nil
	case c.compile == compileDefault:
		path, err := ownPath()
		return &program{path, []string{compileArg}}, err
	}
	path, err := filepath.Abs(c.compileWith.path)
	return &program{path, c.compileWith.args}, err
}

// request is the first message to the process, before the module.
type request struct {
	Version     string
	Machine     codeKey // with Compile
	Config      ImageConfig
	Meta        recordMeta
	Build       bool
	Compile     bool
	Interpreter bool
	Limits      compileLimits
}

// run has a process do a job. It returns at once when ctx ends; the process is killed then,
// but may take a moment to end.
func (p *program) run(ctx context.Context, i *Image, j job) (*product, error) {
	head, err := j.request(i)
	if err != nil {
		return nil, err
	}
	type result struct {
		product *product
		err     error
	}
	done := make(chan result, 1)
	var process atomic.Pointer[os.Process]
	go func() {
		got, err := p.runHere(ctx, i, j, head, &process)
		done <- result{got, err}
	}()
	select {
	case r := <-done:
		return r.product, r.err
	case <-ctx.Done():
		if p := process.Load(); p != nil {
			_ = p.Kill() // it may have ended already
		}
		return nil, ctx.Err()
	}
}

// request is the request of a job for an image.
func (j *job) request(i *Image) ([]byte, error) {
	cfg := i.cfg
	cfg.Progress = nil
	for d := range cfg.Dirs { // the process works elsewhere
		path, err := filepath.Abs(cfg.Dirs[d].Host)
		if err != nil {
			return nil, err
		}
		if d == 0 {
			cfg.Dirs = append(cfg.Dirs[:0:0], cfg.Dirs...)
		}
		cfg.Dirs[d].Host = path
	}
	q := request{Version: imageVersion, Config: cfg, Meta: j.meta, Build: j.build, Compile: j.compile, Interpreter: i.engine.cfg.interpreter, Limits: j.limits}
	if j.compile {
		var err error
		if q.Machine, err = machine(); err != nil {
			return nil, fmt.Errorf("%w: %w", errProcess, err)
		}
	}
	return json.Marshal(&q)
}

// runHere runs the process to its end.
func (p *program) runHere(ctx context.Context, i *Image, j job, head []byte, process *atomic.Pointer[os.Process]) (*product, error) {
	// On Linux the process is killed when the thread that has started it ends, so that
	// thread must live as long.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	timed, cancel := context.WithTimeout(ctx, j.limits.wall())
	defer cancel()
	var said firstBytes
	cmd, in, out, err := p.start(timed, &said)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	process.Store(cmd.Process)
	// The pipe stays open: if it is closed, the process knows that this one has ended.
	go func() { _ = errors.Join(writeFrame(in, frameRequest, head), writeFrame(in, frameModule, j.module)) }()
	got, failed, rerr := readProduct(out, i, j)
	if rerr != nil || failed != nil {
		cancel()
	}
	werr := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case failed != nil:
		return nil, failed
	case rerr == nil && werr == nil:
		return got, nil
	}
	return nil, i.blame(j.limits.explain(timed, cmd.ProcessState, rerr, said.String()))
}

// start starts the process: with nothing of this one's environment, and for as long as the thread that calls it.
func (p *program) start(ctx context.Context, said *firstBytes) (cmd *exec.Cmd, in io.Writer, out io.Reader, err error) {
	cmd = exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env = []string{}
	cmd.Dir = filepath.VolumeName(p.path) + string(filepath.Separator)
	cmd.Stderr = said
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = processAttributes()
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, nil, err
	}
	if err = cmd.Start(); err != nil {
		return nil, nil, nil, fmt.Errorf("%w cannot be started (Config.WithCompileProgram names another program): %w", errProcess, err)
	}
	return cmd, in, out, nil
}

// blame makes an error the module's.
func (i *Image) blame(cause error) error {
	return &LoadError{Name: i.cfg.Name, Reason: cause.Error(), Err: cause}
}

// explain is the reason why a process has given no valid answer.
func (l compileLimits) explain(timed context.Context, state *os.ProcessState, read error, said string) *CompileError {
	code := state.ExitCode()
	switch {
	case code == exitMemory, strings.Contains(said, "out of memory"), strings.Contains(said, "cannot allocate memory"):
		return tooLarge(l)
	case code == exitTime, processorTimeSpent(state, l):
		return tooSlow(l)
	case errors.Is(timed.Err(), context.DeadlineExceeded):
		return &CompileError{What: fmt.Sprintf("takes more than %s to compile, while %s of processor time is allowed", brief(l.wall()), brief(l.Time)), Key: "compile-time", Output: said}
	case errors.Is(read, errProtocol):
		return &CompileError{What: "has made the compile process send a malformed answer: " + read.Error(), Output: said}
	}
	return &CompileError{What: "has ended the compile process: " + state.String(), Output: said}
}

// processFailure is an error as it comes from the process.
type processFailure struct {
	Reason  string
	Blame   bool // the module: a LoadError
	Limit   *LimitError
	Failure *abi.Failure
}

// firstBytes keeps the beginning of a process's output and drops the rest.
type firstBytes struct{ kept []byte }

const mostSaid = 4 << 10

func (f *firstBytes) Write(p []byte) (int, error) {
	f.kept = append(f.kept, p[:min(len(p), mostSaid-len(f.kept))]...)
	return len(p), nil
}

func (f *firstBytes) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(f.kept), "?"))
}

var _ io.Writer = (*firstBytes)(nil)
