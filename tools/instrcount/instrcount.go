// Package instrcount counts the x86 instructions of a piece of a program, those of
// compiled wasm included.
//
// Nanoseconds lie on a machine that others use, and many virtual machines have no
// hardware counters, so the program runs again as a child that is single-stepped
// by ptrace between two marks. All its other threads stand still meanwhile: no
// collector, no preemption, nothing that depends on time gets in. The same program
// counts the same to within the seeds of Go's maps. A step takes some microseconds;
// a window of a million instructions takes seconds.
//
// A test that counts looks like this:
//
//	func TestInstructions(t *testing.T) {
//		if instrcount.Counting() { // in the child
//			warmUp()
//			instrcount.Begin()
//			work()
//			instrcount.End()
//			return
//		}
//		windows, err := instrcount.Self(t.Context(), "-test.run=^TestInstructions$")
//		if errors.Is(err, instrcount.ErrUnsupported) {
//			t.Skip(err)
//		}
//		...
//	}
//
// Begin and End may also stand in an actor of a system with one worker: what counts
// is the thread. It must not wait for another thread in between.
package instrcount

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// ErrUnsupported says why instructions cannot be counted here: not Linux on amd64,
// or ptrace is forbidden.
var ErrUnsupported = errors.New("instructions cannot be counted on this machine")

// variable tells a child that it is one.
const variable = "WASMACTORS_INSTRCOUNT"

var counting = os.Getenv(variable) != ""

// Counting reports whether this process is a child whose instructions are counted.
func Counting() bool { return counting }

// Window is what one Begin and the End after it enclose.
type Window struct {
	Total int // user-mode instructions, without the kernel's of reading a clock; a repeated string instruction counts once
	Guest int // those of them in code made at run time: what wazero compiled

	places map[uint64]int // address of an instruction to the times it was executed
	path   []uint64       // every executed instruction, in order
	guest  func(address uint64) bool
}

// executed adds an instruction.
func (w *Window) executed(at uint64) {
	w.path = append(w.path, at)
	w.places[at]++
	w.Total++
	if w.guest(at) {
		w.Guest++
	}
}

// Function is a function of the program and the instructions executed in it, without
// those of what it calls. Inlined functions belong to their callers.
type Function struct {
	Name         string
	Instructions int
}

// Functions lists the functions of the program with the most instructions first. Guest
// code has no names and comes as one entry. Only for children of the same program, see [Self].
func (w *Window) Functions() []Function {
	sums := map[string]int{}
	for at, n := range w.places {
		switch f := runtime.FuncForPC(uintptr(at)); {
		case w.guest(at):
			sums["(guest)"] += n
		case f != nil:
			sums[f.Name()] += n
		default:
			sums["(unknown)"] += n
		}
	}
	var list []Function
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, Function{name, sums[name]})
	}
	slices.SortStableFunc(list, func(a, b Function) int { return b.Instructions - a.Instructions })
	return list
}

// Addresses are the executed instructions by address, for disassembling.
func (w *Window) Addresses() map[uint64]int { return w.places }

// Self runs this program again with the arguments and returns what its marks enclose.
func Self(ctx context.Context, args ...string) ([]Window, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return Run(ctx, exec.Command(exe, args...))
}

// Run starts the command, which must not have been started, and returns what its
// marks enclose when it has ended. Its collector is off and it has one processor.
// The end of ctx kills it. An error carries what the command has written.
func Run(ctx context.Context, cmd *exec.Cmd) ([]Window, error) {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = slices.DeleteFunc(slices.Clone(cmd.Env), func(s string) bool {
		return strings.HasPrefix(s, "GOCOVERDIR=") || strings.HasPrefix(s, "STALLS_EVERY=") // a stall would be counted
	})
	cmd.Env = append(cmd.Env, variable+"=1", "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	output, err := os.CreateTemp("", "instrcount-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(output.Name())
	defer output.Close()
	if cmd.Stdout == nil {
		cmd.Stdout = output
	}
	if cmd.Stderr == nil {
		cmd.Stderr = output
	}
	windows, err := trace(ctx, cmd)
	if err != nil {
		text, _ := os.ReadFile(output.Name())
		return nil, fmt.Errorf("%s: %w\n%s", cmd.Path, err, text)
	}
	return windows, nil
}
