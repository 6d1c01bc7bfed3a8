//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// slowGuest is a guest whose initialisation never ends, or which takes seconds to
// compile.
func slowGuest(t *testing.T, where string) string {
	t.Helper()
	about := abi.AppendDescription(nil, &abi.Description{ABI: 1, SDK: "test/1", Types: []string{"slow"}})
	at := wasm.Expr{wasm.OpI32Const, 16, wasm.OpEnd}
	block := []byte{1, 0, 0, 0, 0, 0x10, 0, 0, 0, 4, 0, 0, 0, 0x20, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	m := wasm.Module{
		Types:    []wasm.FuncType{{Results: []wasm.ValType{wasm.I32}}, {Params: []wasm.ValType{wasm.I32}, Results: []wasm.ValType{wasm.I32}}},
		Funcs:    []uint32{0, 1},
		Memories: []wasm.Limits{{Min: 1}},
		Exports: []wasm.Export{
			{Name: "memory", Kind: wasm.KindMemory},
			{Name: "wasmactors_init", Kind: wasm.KindFunc, Index: 0},
			{Name: "wasmactors_turn", Kind: wasm.KindFunc, Index: 1},
		},
		Code:    []wasm.Body{{Code: at[:3:3]}, {Code: []byte{wasm.OpI32Const, 0, wasm.OpEnd}}},
		Data:    []wasm.Data{{Offset: at, Bytes: block}},
		Customs: []wasm.Custom{{Name: abi.Section, Data: about}},
	}
	switch where {
	case "initialise":
		m.Code[0].Code = append([]byte{wasm.OpLoop, 0x40, wasm.OpBr, 0, wasm.OpEnd}, at...)
	case "compile":
		body := []byte{0x20, 0} // x, then x*x + x, and so on
		for range 200 {
			body = append(body, 0x20, 0, 0x6c, 0x20, 0, 0x6a)
		}
		body = append(body, wasm.OpEnd)
		for range 6_000 {
			m.Funcs = append(m.Funcs, 1)
			m.Code = append(m.Code, wasm.Body{Code: body})
		}
	}
	path := filepath.Join(t.TempDir(), "slow.wasm")
	if err := os.WriteFile(path, m.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInterruptWhileLoading: Ctrl-C ends a load at once, whatever it is at, with
// exit code 130, and leaves no process behind.
func TestInterruptWhileLoading(t *testing.T) {
	if race.Enabled {
		t.Skip("it is about processes, which take ten times as long")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"initialise", "compile"} {
		module := slowGuest(t, stage)
		bundle := filepath.Dir(module)
		if err := os.WriteFile(filepath.Join(bundle, "bundle.yaml"), []byte("wasmactors: 1\nname: slow\nmodules: {m: {wasm: "+filepath.Base(module)+", limits: {init-fuel: 1000G, compile-time: 100s, compile-memory: 4GiB}}}\nactors: {a: {type: m/slow}}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"run", bundle}, {"check", bundle}, {"inspect", bundle}, {"inspect", module}} {
			if !thorough.Slow && args[0] != "check" {
				continue
			}
			if took := interrupt(t, exe, stage, args); took > stageTakes/2 { // what it was at has been interrupted
				t.Errorf("%v at %s: it took %s", args, stage, took)
			}
		}
	}
}

// stageTakes is how long a stage of a slow guest takes at least that is not interrupted.
const stageTakes = time.Minute

// interrupt runs a command, presses Ctrl-C once it is at the stage, and returns how
// long it took to end.
func interrupt(t *testing.T, exe, stage string, args []string) time.Duration {
	t.Helper()
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), "WASMACTORS_TEST_MAIN=1", "WASMACTORS_CACHE_DIR="+t.TempDir())
	var out, said bytes.Buffer // said: on stderr
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	silent := strings.HasSuffix(args[1], ".wasm") // it does not say what it is at
	for line := make([]byte, 4096); !silent && !strings.Contains(said.String(), "m: "+stage); {
		n, err := stderr.Read(line)
		if said.Write(line[:n]); err != nil {
			break
		}
	}
	children := childrenOf(cmd.Process.Pid)
	for end := time.Now().Add(patience); len(children) == 0 && lives(cmd.Process.Pid) && time.Now().Before(end); children = childrenOf(cmd.Process.Pid) {
		time.Sleep(time.Millisecond) // it says what it is at before it begins with it
	}
	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	took := time.Since(start)
	t.Log(args[0], stage, took)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("%v at %s: %v: %s%s", args, stage, err, said.String(), out.String())
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil && len(children) != 1 {
		t.Errorf("%v at %s: processes %v", args, stage, children)
	}
	for _, pid := range children {
		end := time.Now().Add(10 * time.Second)
		for lives(pid) && time.Now().Before(end) {
			time.Sleep(time.Millisecond) // the kernel takes its memory back
		}
		if lives(pid) {
			t.Errorf("%v at %s: process %d lives on", args, stage, pid)
		}
	}
	return took
}

// lives reports whether a process is there and is not just waiting to be counted.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

// childrenOf finds processes by their parent, where /proc tells.
func childrenOf(pid int) (found []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		var state string
		var parent, self int
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && parent == pid {
			_, _ = fmt.Sscan(filepath.Base(filepath.Dir(n)), &self)
			found = append(found, self)
		}
	}
	return found
}
