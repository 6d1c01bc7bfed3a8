package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"time"

	"github.com/wasmactors/wasmactors/internal/dwarfline"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

func init() { linesMain = linesProcess }

// frameTable is the answer.
const frameTable = 'l'

// linesLimits bound the process that reads lines.
func linesLimits(size int) compileLimits {
	return compileLimits{Time: 2*time.Second + time.Duration(size)*(time.Second>>22), Memory: 256<<20 + 24*uint64(size)}
}

// LinesOf reads the lines of a module from its DWARF. A program that has called [CompileMain] does that in a process of
// its own, with bounds for time and memory: the module may be a stranger's, and a few bytes of DWARF can ask the library
// that reads it for any amount of both. Any other program reads them itself, as it compiles modules itself.
func LinesOf(ctx context.Context, module []byte) (*dwarfline.Table, error) {
	if !ownCompiler.Load() {
		return linesHere(module)
	}
	path, err := ownPath()
	if err != nil {
		return nil, err
	}
	return (&program{path, []string{linesArg}}).lines(ctx, module, linesLimits(len(module)))
}

func linesHere(module []byte) (*dwarfline.Table, error) {
	m, err := wasm.Decode(module)
	if err != nil {
		return nil, err
	}
	return dwarfline.Read(func(name string) []byte {
		b, _ := m.FindCustom(name)
		return b
	})
}

// lines has a process read the lines of a module.
func (p *program) lines(ctx context.Context, module []byte, l compileLimits) (*dwarfline.Table, error) {
	goruntime.LockOSThread() // see runHere
	defer goruntime.UnlockOSThread()
	timed, cancel := context.WithTimeout(ctx, l.wall())
	defer cancel()
	var said firstBytes
	cmd, in, out, err := p.start(timed, &said)
	if err != nil {
		return nil, err
	}
	// The pipe stays open: if it is closed, the process knows that this one has ended.
	go func() { _ = writeFrame(in, frameModule, module) }()
	kind, body, rerr := readFrame(out, dwarfline.MostTable)
	if rerr != nil {
		cancel()
	}
	werr := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case rerr != nil || werr != nil || kind != frameTable && kind != frameFailure:
		return nil, l.explain(timed, cmd.ProcessState, errors.Join(rerr, werr), said.String())
	case kind == frameFailure:
		return nil, fmt.Errorf("the module's debugging information: %s", bytes.ToValidUTF8(body[:min(len(body), mostSaid)], []byte("?")))
	}
	return dwarfline.Decode(body)
}

// linesProcess reads a module from in and writes the table of its lines to out.
func linesProcess(in io.Reader, out io.Writer) int {
	closeInherited()
	kind, module, err := readFrame(in, 1<<30)
	if err != nil || kind != frameModule {
		fmt.Fprintln(os.Stderr, "wasmactors: this command reads modules for another process; it is not for interactive use")
		return 2
	}
	go func() { // anything more, or the end of the pipe, means that the parent has given up
		_, _ = in.Read(make([]byte, 1))
		os.Exit(exitOrphan)
	}()
	(&watch{limits: linesLimits(len(module))}).start()
	table, err := linesHere(module)
	if err != nil {
		err = writeFrame(out, frameFailure, []byte(err.Error()))
	} else {
		err = writeFrame(out, frameTable, table.Append(nil))
	}
	if err != nil {
		return exitOrphan
	}
	return 0
}
