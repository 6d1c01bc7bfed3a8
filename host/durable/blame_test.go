package durable

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
)

// A durable guest that makes its own state impossible to keep has failed by itself: a failure of the host would escalate, and end all.
func TestAStateThatCannotBeKeptIsItsOwnFailure(t *testing.T) {
	code, err := os.ReadFile(filepath.Join("..", "testdata", "brute.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	props := Props{"a": puppet(puppetImage(t)), "brute": host.Guest(load(t, code, runtime.ImageConfig{Name: "brute"}), "brute").WithDurable()}
	x, err := store.Prepare(host.NewConfig("w").WithManual(), props)
	if err != nil {
		t.Fatal(err)
	}
	sys := x.System()
	defer func() { _ = sys.Close(t.Context()) }()
	if _, err := x.Recover(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "brute"} {
		if _, err := sys.Spawn(name, props[name]); err != nil {
			t.Fatal(err)
		}
	}
	x.Release()
	var seen []*abi.Failure
	sub := sys.Subscribe(10, func(e *host.Event) bool {
		if e.Kind == host.EventFailed {
			seen = append(seen, e.Failure)
		}
		return false
	})
	defer sub.Close()
	writes := host.Raw(binary.LittleEndian.AppendUint32([]byte{0x5a, 0, 0, 0, 5, 4}, 10)) // its table
	for range 2 {
		if err := sys.TellPath("/user/brute", writes); err != nil {
			t.Fatal(err)
		}
		sys.RunUntilIdle(1 << 30)
		if err := store.Checkpoint(t.Context()); err == nil || !strings.Contains(err.Error(), "table") {
			t.Errorf("the checkpoint: %v", err)
		}
		sys.RunUntilIdle(1 << 30)
	}
	for _, f := range seen {
		if f.Kind != abi.FailureABIViolation || !strings.Contains(f.Reason, "its state cannot be kept") {
			t.Errorf("%v", f)
		}
	}
	if _, err := sys.Lookup("/user/brute"); err == nil || len(seen) != 1 {
		t.Errorf("after the second time: %v, %v", err, seen)
	}
	if err := sys.TellPath("/user/a", add); err != nil {
		t.Errorf("another actor: %v", err)
	}
	if err := store.Checkpoint(t.Context()); err != nil {
		t.Error(err)
	}
}
