package rewrite

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// specCommand is a command of a file that wast2json has made.
type specCommand struct {
	Type       string
	Line       int
	Name, As   string
	Filename   string
	ModuleType string `json:"module_type"`
	Text       string
	Action     struct {
		Type, Module, Field string
		Args                []specValue
	}
	Expected []specValue
}

// specTally counts assertions.
type specTally struct{ passed, failed, beyond, bothFail int }

// TestSpecification runs the specification's own tests with the modules as they
// are and rewritten: the rewritten pass wherever the originals do. wazero's module
// carries the tests of WebAssembly 1.0 and 2.0, converted; WASMACTORS_SPECTEST
// names another folder (testdata/spectest.sh). Those of 1.0, which 2.0 has nearly all
// of, run in the thorough tests; -short runs 2.0 on the compiler.
func TestSpecification(t *testing.T) {
	dirs := []string{os.Getenv("WASMACTORS_SPECTEST")}
	if dirs[0] == "" {
		root := filepath.Join(moduleDir(t, "github.com/tetratelabs/wazero"), "internal", "integration_test", "spectest")
		dirs = []string{filepath.Join(root, "v2", "testdata"), filepath.Join(root, "v1", "testdata")}
		if !thorough.Enabled {
			dirs = dirs[:1]
		}
	}
	for engine, cfg := range engines() {
		if !thorough.Slow && engine != "compiler" {
			continue
		}
		for _, dir := range dirs {
			t.Run(engine+"/"+filepath.Base(filepath.Dir(dir)), func(t *testing.T) { specification(t, dir, cfg) })
		}
	}
}

// moduleDir is where the source of a module that we depend on lies.
func moduleDir(t testing.TB, module string) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Fatalf("go list -m %s: %q, %v", module, out, err)
	}
	return dir
}

func specification(t *testing.T, dir string, cfg wazero.RuntimeConfig) {
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	flat, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	files = append(files, flat...)
	if len(files) == 0 {
		t.Fatalf("no files in %s", dir)
	}
	var total specTally
	for _, file := range files {
		var test struct{ Commands []specCommand }
		b, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(b, &test)
		}
		if err != nil {
			t.Fatal(file, err)
		}
		plain, rewritten := newSpecWorld(t, cfg, false), newSpecWorld(t, cfg, true)
		for i := range test.Commands {
			c := &test.Commands[i]
			before, after := plain.run(filepath.Dir(file), c), rewritten.run(filepath.Dir(file), c)
			if !strings.HasPrefix(c.Type, "assert") && before == nil && after == nil {
				continue
			}
			switch {
			case before == nil && after == nil:
				total.passed++
			case errors.Is(after, errBeyond) && (before == nil || errors.Is(before, errBeyond)):
				total.beyond++
			case before != nil:
				total.bothFail++
				t.Logf("%s:%d: %s: wazero itself: %v", filepath.Base(file), c.Line, c.Type, before)
			default:
				total.failed++
				t.Errorf("%s:%d: %s %s: %v", filepath.Base(file), c.Line, c.Type, c.Action.Field, after)
			}
		}
		plain.close()
		rewritten.close()
	}
	t.Logf("%d files: %d assertions pass before and after, %d fail after only, %d fail before already, %d are not for guests", len(files), total.passed, total.failed, total.bothFail, total.beyond)
	// A harness that cannot run them must not pass: 3 % of the assertions are about
	// modules that share memories, tables or globals.
	if total.passed < 10_000 || (total.beyond+total.bothFail)*20 > total.passed {
		t.Errorf("too few assertions were made")
	}
}

// run executes a command; the error says why its assertion does not hold.
func (w *specWorld) run(dir string, c *specCommand) error {
	read := func() ([]byte, error) {
		if c.ModuleType == "text" {
			return nil, errBeyond
		}
		return os.ReadFile(filepath.Join(dir, c.Filename))
	}
	switch c.Type {
	case "module":
		b, err := read()
		if err != nil {
			return err
		}
		mod, err := w.instantiate(b)
		w.named[c.Name] = mod
		return err
	case "register":
		w.linked[c.As] = w.named[c.Name]
		if w.linked[c.As] == nil {
			return errBeyond
		}
		return nil
	case "assert_invalid", "assert_malformed":
		b, err := read()
		if err != nil {
			return err
		}
		switch err := w.refused(b); {
		case err == nil:
			return fmt.Errorf("it is accepted, but: %s", c.Text)
		case errors.Is(err, errBeyond):
			return err
		}
		return nil
	case "assert_unlinkable", "assert_uninstantiable":
		b, err := read()
		if err != nil {
			return err
		}
		last := w.named[""]
		_, err = w.instantiate(b)
		w.named[""] = last
		switch {
		case errors.Is(err, errBeyond):
			return err
		case err == nil:
			return fmt.Errorf("it is instantiated, but: %s", c.Text)
		}
		return nil
	}
	results, err := w.act(c)
	switch c.Type {
	case "assert_trap", "assert_exhaustion":
		switch {
		case errors.Is(err, errBeyond):
			return err
		case err == nil:
			return fmt.Errorf("no trap, but: %s", c.Text)
		case errors.Is(err, errFuel), c.Type == "assert_trap" && errors.Is(err, errStack), !trapIs(err, c.Text):
			return fmt.Errorf("trap %w, but: %s", err, c.Text)
		}
		return nil
	case "assert_return":
		if err != nil {
			return err
		}
		return specResults(results, c.Expected)
	case "action":
		return err
	}
	return fmt.Errorf("%w: unknown command", errBeyond)
}

// trapIs compares a trap with the specification's words.
func trapIs(err error, text string) bool {
	says := firstLine(err)
	for spec, own := range map[string]string{
		"out of bounds memory access": "out of bounds memory access", "integer divide by zero": "integer divide by zero", "integer overflow": "integer overflow",
		"invalid conversion to integer": "invalid conversion to integer", "unreachable": "unreachable", "indirect call type mismatch": "indirect call type mismatch",
		"undefined element": "invalid table access", "uninitialized": "invalid table access", "out of bounds table access": "invalid table access",
	} {
		if strings.HasPrefix(text, spec) {
			return strings.Contains(says, own) || own == "indirect call type mismatch" && strings.Contains(says, "invalid table access")
		}
	}
	return strings.HasPrefix(text, "call stack exhausted")
}

func (w *specWorld) act(c *specCommand) ([]uint64, error) {
	mod := w.named[c.Action.Module]
	if mod == nil {
		return nil, fmt.Errorf("%w: no module %s", errBeyond, c.Action.Module)
	}
	if w.open(mod) {
		return nil, fmt.Errorf("%w: it shares what another module has changed", errBeyond)
	}
	if c.Action.Type == "get" {
		g := mod.ExportedGlobal(c.Action.Field)
		return []uint64{g.Get()}, nil
	}
	var args []uint64
	for _, v := range c.Action.Args {
		words, err := v.words()
		if err != nil {
			return nil, err
		}
		for _, word := range words {
			bits, err := strconv.ParseUint(word, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%w: argument %s", errBeyond, word)
			}
			args = append(args, bits)
		}
	}
	w.refuel()
	f := mod.ExportedFunction(c.Action.Field)
	if f == nil {
		return nil, fmt.Errorf("no function %q", c.Action.Field)
	}
	return f.Call(w.context(), args...)
}
