package debug_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/debug"
	"github.com/wasmactors/wasmactors/host/replay"
)

// Every call of a function is found, and no place twice; in loops, in recursion and over turns.
func TestCall(t *testing.T) {
	e := engine(t, false)
	d := open(t, e, guests(t)["go"](e, 4))
	do(t, d, "goto start")
	calls := map[uint64]int{}
	for {
		r, err := d.Do(context.Background(), "call (*cart).put")
		if err != nil {
			break
		}
		if r.Frame.Function != "main.(*cart).put" || r.Caller.Function != "main.(*cart).add" || r.Caller.Line != 40 || filepath.Base(r.Caller.File) != "main.go" {
			t.Fatalf("%+v %+v", r.Frame, r.Caller)
		}
		calls[r.At.Turn]++
	}
	for k := range 13 {
		if turn, want := uint64(k+1), 10+k*3; calls[turn] != want {
			t.Errorf("turn %d: %d calls of %d", turn, calls[turn], want)
		}
	}
	do(t, d, "goto 3:5000") // perhaps within one
	do(t, d, "call main.(*cart).sum")
	if f := do(t, d, "stack").Stack; f[0].Function != "main.(*cart).sum" || f[1].Line != 29 {
		t.Errorf("%+v", f[:2])
	}

	d = open(t, e, guests(t)["wat"](e, 1))
	do(t, d, "goto 3")
	n := 0
	for r := do(t, d, "call walk"); r.At.Turn == 3; r = do(t, d, "call walk") {
		n++
	}
	if want := 31 + 15; n != want { // 2^5-1 and 2^4-1 calls
		t.Errorf("%d calls of walk in a turn, not %d", n, want)
	}
}

// What each command shows.
func TestCommands(t *testing.T) {
	e := engine(t, false)
	d := open(t, e, guests(t)["go"](e, 1))
	if r := do(t, d, "stack"); !strings.Contains(r.String(), "main.go:37") || !strings.Contains(r.String(), "main.(*cart).add") {
		t.Errorf("the failure does not name its line: %s", r)
	}
	if r := do(t, d, "where"); !strings.Contains(r.Failure, "negative amount") || !r.At.End {
		t.Errorf("%+v", r)
	}
	if r := do(t, d, "message"); !strings.HasSuffix(r.Message, ": -1") {
		t.Error(r.Message)
	}
	do(t, d, "goto 2")
	if r := do(t, d, "log"); r.Log != "info: the cart has 23 items" || r.At.Turn != 2 {
		t.Errorf("%+v", r)
	}
	if r := do(t, d, "log"); r.Log != "info: the cart has 105 items" || r.At.Turn != 6 {
		t.Errorf("%+v", r)
	}
	if r := do(t, d, "globals"); len(r.Globals) != 8 || r.Globals[0].Name != "SP" {
		t.Errorf("%+v", r.Globals)
	}
	here := do(t, d, "where").At
	if r := do(t, d, "turn"); r.At.Turn != 7 {
		t.Errorf("%+v", r)
	}
	if r := do(t, d, "turn -3"); r.At.Turn != 4 {
		t.Errorf("%+v", r)
	}
	r := do(t, d, "diff 6:end 7:end")
	if len(r.Ranges) == 0 || r.At.Turn != 4 {
		t.Errorf("%+v", r)
	}
	do(t, d, "goto "+here.String())
	if r := do(t, d, "diff "+here.String()); len(r.Ranges) != 0 {
		t.Errorf("%+v", r.Ranges)
	}
	if r := do(t, d, "help"); !strings.Contains(r.String(), "watch ADDRESS[:LENGTH]") {
		t.Error(r)
	}
	if r := do(t, d, "  # nothing"); r != nil {
		t.Error(r)
	}
	if b, err := json.Marshal(do(t, d, "stack")); err != nil || !strings.Contains(string(b), `"file":`) {
		t.Errorf("%s %v", b, err)
	}

	w := open(t, e, guests(t)["wat"](e, 5))
	do(t, w, "goto 4")
	if r := do(t, w, "commands"); len(r.Sent) != 0 {
		t.Errorf("%+v", r.Sent)
	}
	do(t, w, "goto 4:end") // of its entry
	do(t, w, "goto 11:end")
	if r := do(t, w, "commands"); len(r.Sent) != 1 || r.Sent[0].Op != "send" || r.Sent[0].To != "0000000000000007" {
		t.Errorf("%+v", r.Sent)
	}
	if r := do(t, w, "memory ledger:2"); r.Memory.Hex != "0c00" || r.Memory.Address != 0x30000 {
		t.Errorf("%+v", r.Memory)
	}
}

// A repetition knows the line of a panic, and the calls that have led to it, with both engines.
func TestLineOfAPanic(t *testing.T) {
	f := guests(t)["go"](engine(t, false), 1)
	for _, interpreter := range []bool{false, true} {
		r := must(replay.Run(context.Background(), engine(t, interpreter), f, replay.Options{}))(t)
		if !r.Reproduced || r.Turns != 14 {
			t.Fatalf("%+v", r)
		}
		at := replay.Culprit(r.Stack)
		if at == nil || at.Function != "main.(*cart).add" || filepath.Base(at.File) != "main.go" || at.Line != 37 {
			t.Errorf("interpreter %v: %+v in %+v", interpreter, at, r.Stack)
		}
	}
	r := must(replay.Run(context.Background(), engine(t, false), guests(t)["wat"](engine(t, false), 1), replay.Options{}))(t)
	if !r.Reproduced || len(r.Stack) > 0 || replay.Culprit(r.Stack) != nil {
		t.Errorf("%+v", r)
	}
}

// What is wrong is said, and the debugger stays where it is.
func TestMistakes(t *testing.T) {
	e := engine(t, false)
	d := open(t, e, guests(t)["wat"](e, 1))
	do(t, d, "goto 5:1000")
	was, sum := d.At(), memorySum(t, d)
	for line, want := range map[string]string{
		"jump": "no command", "goto": "one argument", "goto x": "is not a place", "goto 99": "turns 0 to 11", "goto 5:x": "is not a place", "forward 0": "no number",
		"back -1": "no number", "forward 1 2": "no number", "turn 1000": "last turn", "call nothing": "no function", "memory": "one argument",
		"memory nowhere": "neither an address", "memory 0x100000000": "neither", "memory 0xfffffff0:64": "outside", "memory 0:100000000": "no length",
		"memory 0:0": "no length", "memory 0+x": "not a number", "diff": "one place or two", "where 1": "no arguments", "log 1": "no arguments", "watch": "one argument",
		"call stray\x1b[2J": "no function",
	} {
		if _, err := d.Do(context.Background(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", line, err)
		}
		if d.At() != was {
			t.Fatalf("after %q it is at %v", line, d.At())
		}
	}
	do(t, d, "goto 11:end")
	if _, err := d.Do(context.Background(), "forward"); err == nil || !strings.Contains(err.Error(), "end of the file") {
		t.Error(err)
	}
	do(t, d, "goto start")
	if _, err := d.Do(context.Background(), "back"); err == nil || !strings.Contains(err.Error(), "begin of the file") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, line := range []string{"goto failure", "forward 100000", "watch ledger", "call walk"} {
		do(t, d, "goto "+was.String())
		if _, err := d.Do(ctx, line); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", line, err)
		}
		if d.At() != was || memorySum(t, d) != sum {
			t.Errorf("after %s was ended it is at %v, or has another memory", line, d.At())
		}
	}
}

// A guest in an endless loop is stepped through; a command that would not end is ended, and leaves the debugger where it was.
func TestEndless(t *testing.T) {
	e := engine(t, false)
	f := crashOfFuel(t, e)
	d := open(t, e, f)
	end := d.At()
	if !end.End || end.Fuel < 50_000_000 {
		t.Fatal(end)
	}
	do(t, d, "back 3")
	do(t, d, "forward 3")
	if d.At() != end {
		t.Errorf("%v, not %v", d.At(), end)
	}
	middle := do(t, d, fmt.Sprintf("goto :%d", end.Fuel/2)).At
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	if _, err := d.Do(ctx, "call act"); err == nil {
		t.Error("there is such a call")
	}
	if d.At() != middle {
		t.Errorf("%v, not %v", d.At(), middle)
	}
	do(t, d, "where")
}

// Other engines step as well: the interpreter has no stacks and no checkpoints.
func TestInterpreter(t *testing.T) {
	e := engine(t, true)
	f := guests(t)["wat"](e, 1)
	d := open(t, e, f)
	other := open(t, engine(t, false), f)
	for _, line := range []string{"goto 3:5000", "back 2", "goto 9:end", "forward 30", "back 5"} {
		do(t, d, line)
		do(t, other, line)
		if d.At() != other.At() || memorySum(t, d) != memorySum(t, other) {
			t.Fatalf("%s: the interpreter is at %v, the compiler at %v, or their memories differ", line, d.At(), other.At())
		}
	}
}

// Only the module that has failed can be stepped through.
func TestOtherModule(t *testing.T) {
	e := engine(t, false)
	f := guests(t)["wat"](e, 1)
	if _, err := debug.Open(context.Background(), e, f, replay.Options{Module: must(shopCode())(t)}); err == nil || !strings.Contains(err.Error(), "only that can be stepped through") {
		t.Error(err)
	}
	f.Image.Module[0]++
	if _, err := debug.Open(context.Background(), e, f, replay.Options{}); err == nil {
		t.Error("a module with another hash")
	}
	f.Module = nil
	if _, err := debug.Open(context.Background(), e, f, replay.Options{}); !errors.Is(err, replay.ErrModule) {
		t.Error(err)
	}
}

// A file may be forged: its module runs within limits whatever the file says, and its texts are made safe for terminals.
func TestForgedFiles(t *testing.T) {
	e := engine(t, false)
	f := crashOfFuel(t, e)
	f.Fuel, f.Failure.Kind, f.Failure.Reason = 0, abi.FailureTrap, "\x1b[2J" // it never ends by itself
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := debug.Open(ctx, e, f, replay.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	f = guests(t)["wat"](e, 1)
	f.Type = "\x1bnone"
	if r, err := replay.Run(context.Background(), e, f, replay.Options{}); err == nil || r != nil || !strings.Contains(err.Error(), "no actor type") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v, %+v", err, r)
	}
	f = guests(t)["wat"](e, 1)
	f.Image.Config.MemoryLimit, f.Memory = 1<<40, 1<<40
	if d, err := debug.Open(context.Background(), e, f, replay.Options{Memory: 512 << 10}); err == nil {
		d.Close()
	} else {
		t.Error(err) // it needs no more
	}
	if _, err := debug.Open(context.Background(), e, f, replay.Options{Memory: 128 << 10}); err == nil || !strings.Contains(err.Error(), "memory") {
		t.Error(err)
	}
	bad := debug.Result{
		Frame: &debug.Frame{Function: "f\x1b[2J", File: "\x1b]0;x\a.go", Line: 1}, Stack: []debug.Frame{{Function: "\x9b2J"}}, Failure: "\x1b[2J", Log: "ok", Trace: "a\x1b[2J\nb",
		Message: "\x1b[2J", Note: "\x1b[2J", Sent: []debug.Sent{{Op: "send", To: "\x1b[2J", Payload: "\x1b[2J"}}, Globals: []debug.Global{{Name: "\x1b[2J"}},
	}
	if s := bad.String(); strings.ContainsAny(s, "\x1b\u009b\a") {
		t.Errorf("%q", s)
	}
}
