package sandbox

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// CompileMain makes the program able to compile modules in processes of its own.
// It is called first thing in main: in such a process it does the work and does
// not return, otherwise it returns at once, and engines compile in processes from
// then on unless their Config says otherwise.
func CompileMain() {
	if len(os.Args) == 2 && os.Args[1] == compileArg {
		os.Exit(compileProcess(os.Stdin, os.Stdout, nil))
	}
	if len(os.Args) == 2 && os.Args[1] == linesArg {
		os.Exit(linesMain(os.Stdin, os.Stdout))
	}
	ownCompiler.Store(true)
}

// linesMain is the other work that such a process may be started for: see LinesOf.
var linesMain func(in io.Reader, out io.Writer) int

// compileProcess reads a job from in, does it and writes the answer to out. stage is for
// tests.
func compileProcess(in io.Reader, out io.Writer, stage func(string)) int {
	closeInherited()
	kind, head, err := readFrame(in, 1<<30)
	var q request
	if err == nil && kind == frameRequest {
		err = json.Unmarshal(head, &q)
	}
	if err != nil || kind != frameRequest {
		fmt.Fprintln(os.Stderr, "wasmactors: this command compiles modules for another process; it is not for interactive use")
		return 2
	}
	kind, module, err := readFrame(in, 1<<30)
	if err != nil || kind != frameModule {
		return exitOrphan
	}
	go func() { // anything more, or the end of the pipe, means that the parent has given up
		_, _ = in.Read(make([]byte, 1))
		os.Exit(exitOrphan)
	}()
	if q.Version != imageVersion || q.Compile && !sameMachine(q.Machine) {
		_ = writeFailure(out, fmt.Errorf("the program is of another version: %q, not %q, or has another wazero", imageVersion, q.Version))
		return 0
	}
	w := &watch{limits: q.Limits}
	w.start()
	var lock sync.Mutex
	q.Config.Progress = func(s string) {
		lock.Lock()
		defer lock.Unlock()
		_ = writeFrame(out, frameStage, []byte(s))
		if stage != nil {
			stage(s)
		}
	}
	p, err := doJob(&q, module, w)
	lock.Lock()
	defer lock.Unlock()
	if err != nil {
		err = writeFailure(out, err)
	} else {
		err = p.write(out)
	}
	if err != nil {
		return exitOrphan
	}
	return 0
}

func sameMachine(want codeKey) bool {
	here, err := machine()
	return err == nil && here == want
}

// doJob does what is asked, in this process.
func doJob(q *request, module []byte, w *watch) (*product, error) {
	ctx := context.Background()
	// Guest memory in Go's heap: so it counts against the limit on memory.
	e, err := New(ctx, NewConfig().WithPortableMemory(true).WithInterpreter(q.Interpreter).WithCompileInProcess())
	if err != nil {
		return nil, err
	}
	i := &Image{engine: e, cfg: q.Config, watch: w}
	if err := i.openDirs(); err != nil {
		return nil, err
	}
	p := &product{rec: &record{meta: q.Meta, module: module}}
	if q.Build {
		if p.rec, err = i.build(ctx, module); err != nil {
			return nil, err
		}
	}
	if q.Compile {
		i.cfg.progress("compile")
		var s codeStore
		if err := i.compileWith(ctx, p.rec.meta, p.rec.module, &s); err != nil {
			return nil, i.refused(err)
		}
		p.code = s.made
	}
	if !q.Build {
		p.rec = nil
	}
	return p, nil
}

func (p *product) write(out io.Writer) error {
	var err error
	if p.rec != nil {
		err = errors.Join(
			writeFrame(out, frameInitTime, binary.LittleEndian.AppendUint64(nil, uint64(p.rec.initTime))),
			writeFrame(out, frameModule, p.rec.module),
			writeFrame(out, frameRecord, p.rec.encode()))
	}
	if p.code != nil {
		err = errors.Join(err, writeFrame(out, frameCode, p.code))
	}
	return errors.Join(err, writeFrame(out, frameEnd, nil))
}

// look is the time between two checks of the watch.
const look = 2 * time.Millisecond

func (w *watch) start() {
	limitProcess(w.limits)
	// The process is short-lived: collect garbage late, as long as there is room.
	debug.SetGCPercent(200)
	debug.SetMemoryLimit(int64(w.limits.Memory / 4 * 3))
	go func() {
		use := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			metrics.Read(use)
			if use[0].Value.Uint64()-use[1].Value.Uint64() > w.limits.Memory {
				os.Exit(exitMemory)
			}
			if w.spent() > w.limits.Time {
				os.Exit(exitTime)
			}
			time.Sleep(look)
		}
	}()
}

// spent is the processor time so far, without pauses.
func (w *watch) spent() time.Duration {
	now := processorTime()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused {
		now = w.since
	}
	return now - w.spared
}

// pause starts and ends a pause: what happens in it does not count, since it has a limit of
// its own. The receiver may be nil.
func (w *watch) pause(on bool) {
	if w == nil {
		return
	}
	now := processorTime()
	w.mu.Lock()
	defer w.mu.Unlock()
	if on {
		w.since = now
	} else {
		w.spared += now - w.since
	}
	w.paused = on
}
