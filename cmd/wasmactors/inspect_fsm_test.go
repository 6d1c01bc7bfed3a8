package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/race"
)

// inspect --fsm prints the diagrams of a module's description, and nothing that a terminal would interpret.
func TestInspectShowsMachines(t *testing.T) {
	if race.Enabled {
		t.Skip("processes, not goroutines: the detector has nothing to see, and takes minutes")
	}
	echo, err := os.ReadFile("../../internal/sandbox/testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	about := abi.AppendDescription(nil, &abi.Description{ABI: abi.Version, SDK: "x/1", Types: []string{"echo", "door"}, Diagrams: []abi.Diagram{
		{Type: "door", Text: "stateDiagram-v2\n    [*] --> Open\n"}, {Type: "echo", Text: "\x1b[2J"},
	}})
	section := append([]byte{byte(len(abi.Section))}, abi.Section...)
	section = append(section, about...)
	file := filepath.Join(t.TempDir(), "machines.wasm")
	code := append(append(echo, 0, byte(len(section)&0x7f|0x80), byte(len(section)>>7)), section...)
	if err := os.WriteFile(file, code, 0o644); err != nil {
		t.Fatal(err)
	}
	exit, stdout, stderr := try(t, t.Context(), "", "inspect", file, "--fsm")
	want := "%% door of " + file + "\nstateDiagram-v2\n    [*] --> Open\n\n%% echo of " + file + "\n"
	if rest, ok := strings.CutPrefix(stdout, want); exit != 0 || !ok || strings.Contains(rest, "\x1b") {
		t.Errorf("%d %s\n%q, want %q", exit, stderr, stdout, want)
	}
	if _, stdout, _ := try(t, t.Context(), "", "inspect", file, "--json", "--fsm"); !strings.Contains(stdout, `"text": "stateDiagram-v2\n`) {
		t.Error(stdout)
	}
	if exit, _, stderr := try(t, t.Context(), "", "inspect", "../../internal/sandbox/testdata/echo.wasm", "--fsm"); exit != 1 || !strings.Contains(stderr, "has no diagrams") {
		t.Errorf("%d %s", exit, stderr)
	}
}
