package bundle

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// declared lists every key of the grammar, by the object that has it.
func declared(s *shape, seen map[*shape]bool, visit func(s *shape, key string)) {
	s = s.Resolved()
	if seen[s] {
		return
	}
	seen[s] = true
	for _, f := range s.Fields {
		visit(s, f.Name)
		declared(f.Shape, seen, visit)
	}
	if s.Of != nil {
		declared(s.Of, seen, visit)
	}
}

// TestEveryKeyIsRead: what the grammar declares takes effect, and what is read is
// declared (reading anything else panics).
func TestEveryKeyIsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	id := func(s *shape, key string) string { return fmt.Sprintf("%p %s", s, key) }
	c := checkerOf("full.yaml", Words{})
	c.read = func(s *shape, key string) { read[id(s, key)] = true }
	if _, err := c.parse(text); err != nil {
		t.Fatal(err)
	}
	var unread []string
	for _, root := range []*shape{plain, spawnShape} {
		declared(root, map[*shape]bool{spawnShape: root == plain}, func(s *shape, key string) {
			if root == plain && !read[id(s, key)] {
				unread = append(unread, s.Doc+": "+key)
			}
		})
	}
	sort.Strings(unread)
	if len(unread) > 0 {
		t.Errorf("declared and never read:\n%s", strings.Join(unread, "\n"))
	}
	for name, f := range map[string]func(){
		"a key that nobody declares": func() { view{nil, plain, c}.text("nmae") },
		"a key of another kind":      func() { view{nil, plain, c}.whole("name", 0) },
		"a list's entries":           func() { view{nil, plain, c}.pairs(func(*yaml.Node, view) {}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s can be read", name)
				}
			}()
			f()
		}()
	}
}

// The mistakes that are easily made, each explained at its place.
func TestMoreDiagnostics(t *testing.T) {
	repl := func(old, new string) string { return strings.Replace(minimal, old, new, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"second document", minimal + "---\nname: other\n", "bundle.yaml:7:1: a second document begins here"},
		{"second, broken", minimal + "---\n\ta: b\n", "bundle.yaml:8:1: not YAML: a tab in the indentation"},
		{"version as a text", repl("wasmactors: 1", `wasmactors: "1"`), "bundle.yaml:1:13: wasmactors must be a whole number (version of the manifest's format: 1), not a text"},
		{"number as a text", minimal + "supervision: {max-restarts: \"3\"}\n", "supervision.max-restarts must be a whole number"},
		{"..", repl("  a: {type", "  ..: {type"), `bundle.yaml:6:3: ".." is not a valid name: 1 to 255 of A-Z a-z 0-9 _ . ~ -, but not . or ..`},
		{".", repl("  a: {type", "  .: {type"), `"." is not a valid name`},
		{"null", repl("  a: {type", "  null: {type"), "bundle.yaml:6:3: the key null is nothing and no text: quote it"},
		{"5", repl("  a: {type", "  5: {type"), "bundle.yaml:6:3: the key 5 is a number and no text: quote it"},
		{"true", repl("  a: {type", "  true: {type"), "the key true is a truth value and no text"},
		{"name ..", repl("name: b", `name: ".."`), `name: ".." is not a valid name`},
		{"module .", repl("  m: {", `  ".": {`), `"." is not a valid module name`},
		{"a tab", repl("  a: {type", "\ta: {type"), "bundle.yaml:6:1: not YAML: a tab in the indentation; YAML needs spaces"},
		{"a brace", repl("{type: m/t}", "{type: m/t"), "bundle.yaml:6:6: not YAML: this { is not closed"},
		{"a bracket", repl("{type: m/t}", `{type: m/t, args: ["a]", b}`), "bundle.yaml:6:24: not YAML: this [ is not closed"},
		{"a colon", repl("name: b", "name: b: c"), "bundle.yaml:2:1: not YAML: mapping values are not allowed"},
		{"large integer", repl("{type: m/t}", "{type: m/t, args: [18446744073709551616]}"), "bundle.yaml:6:25: the whole number 18446744073709551616 does not fit 64 bits; write it as a text"},
		{"unknown tag", repl("{type: m/t}", "{type: m/t, args: {a: !dur 5s}}"), "the tag !dur has no meaning here; there are !duration, !size and !count"},
		{"wrong duration", repl("{type: m/t}", "{type: m/t, args: !duration soon}"), `"soon" is not a duration`},
		{"tag elsewhere", minimal + "limits: {memory: !x 64KiB}\n", ""},
		{"variable", repl("name: b", "name: ${NAME}"), "bundle.yaml:2:7: the variable NAME is not given: pass --env NAME or --env NAME=value, or write ${NAME:-default}"},
		{"no variable", repl("name: b", "name: ${A B}"), `"A B" is not a variable's name`},
		{"significant", repl("{type: m/t}", "{type: m/t, significant: true, lifetime: permanent}"), "bundle.yaml:6:31: significant cannot be combined with lifetime: permanent"},
		{"factor", minimal + "supervision: {backoff: {curve: linear, factor: 2}}\n", "bundle.yaml:7:48: supervision.backoff.factor needs curve: exponential"},
		{"min of a table", minimal + "supervision: {backoff: {curve: table, delays: [1s], min: 1s}}\n", "supervision.backoff.min has no meaning for curve: table"},
		{"spread", minimal + "supervision: {backoff: {jitter: full, spread: 0.1}}\n", "supervision.backoff.spread needs jitter: two-sided or additive"},
		{"quota of a read-only folder", repl("{wasm: ./m.wasm}", "{wasm: ./m.wasm, dirs: [{host: d, guest: /d, bytes: 1MiB}]}"), "modules.m.dirs: bytes needs mode: rw"},
		{"flag", repl("wasm: ./m.wasm", "go: ./g, flags: {go: [-toolexec=x]}"), `bundle.yaml:4:29: modules.m.flags.go: not an accepted build flag: "-toolexec=x"; for go there are`},
		{"tag", repl("wasm: ./m.wasm", "go: ./g, tags: [-x]"), `modules.m.tags[0]: "-x" is not a build tag`},
		{"flags of a file", repl("./m.wasm}", "./m.wasm, tags: [x]}"), "modules.m.tags has no meaning for a .wasm file"},
	} {
		if c.want == "" {
			continue
		}
		if _, err := Parse("bundle.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}

// Variables are values, also numbers, and nothing of the environment's is seen unless it
// is given.
func TestVariables(t *testing.T) {
	t.Setenv("SECRET", "s")
	text := strings.Replace(minimal, "{type: m/t}", `
    type: m/t
    limits: {memory: "${MEM:-1MiB}"}
    args:
      n: "${N}"
      i: ${N}
      d: ${D:-x}
      e: "${E:-y}"
      lit: "$${N}"
      two: ${N}-${N}
      tree: ${TREE}
`, 1)
	m, err := ParseWith("f", []byte(text), func(name string) (string, bool) {
		v, ok := map[string]string{"N": "7", "E": "", "TREE": "{a: b}\nactors: {}"}[name]
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(m.Actors[0].Args), "map[d:x e:y i:7 lit:${N} n:7 tree:{a: b}\nactors: {} two:7-7]"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	args := m.Actors[0].Args.(map[string]any)
	if _, ok := args["i"].(int64); !ok || m.Actors[0].Limits.Memory != 1<<20 {
		t.Errorf("%T, %d", args["i"], m.Actors[0].Limits.Memory)
	}
	if _, ok := args["n"].(string); !ok {
		t.Errorf("%T", args["n"])
	}
	if _, err := Parse("f", []byte(strings.Replace(minimal, "name: b", "name: ${SECRET}", 1))); err == nil {
		t.Error("the environment was read")
	}
	many := strings.Replace(minimal, "{type: m/t}", "{type: m/t, args: ["+strings.Repeat(`"${BIG}",`, 1000)+"]}", 1)
	if _, err := ParseWith("f", []byte(many), func(string) (string, bool) { return strings.Repeat("x", 10_000), true }); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("10 MB of variables: %.200v", err)
	}
}

func TestUnitsInArgs(t *testing.T) {
	m := parse(t, strings.Replace(minimal, "{type: m/t}", "{type: m/t, args: {d: !duration 1m30s, s: !size 64KiB, c: !count 10k}}", 1))
	if got, want := fmt.Sprint(m.Actors[0].Args), fmt.Sprint(map[string]any{"d": int64(90e9), "s": uint64(65536), "c": uint64(10000)}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// backoff says what bundle.md says it does.
func TestBackoffDefaults(t *testing.T) {
	delay := func(text string, n int, r draws) (s string) {
		b, _ := parse(t, minimal+"supervision: {backoff: {"+text+"}}\n").Supervision.Backoff()
		return b.Policy.Delay(n, r).String()
	}
	for _, c := range []struct {
		text   string
		n      int
		lo, hi string
	}{
		{"", 0, "80ms", "120ms"}, {"", 1, "160ms", "240ms"}, {"", 20, "8s", "12s"}, {"jitter: none", 0, "100ms", "100ms"}, {"spread: 0", 3, "800ms", "800ms"},
		{"hard-cap: true", 20, "8s", "10s"}, {"jitter: additive", 0, "100ms", "120ms"}, {"min: 1m", 0, "48s", "1m12s"},
		{"curve: table, delays: [1s, 2m]", 0, "800ms", "1.2s"}, {"curve: table, delays: [1s, 2m]", 7, "1m36s", "2m24s"},
		{"curve: table, delays: [1s, 2m], max: 1m", 7, "48s", "1m12s"}, {"curve: table, delays: [1s, 2m], max: 1m, hard-cap: true", 7, "48s", "1m0s"},
		{"curve: decorrelated", 0, "100ms", "300ms"},
	} {
		if lo, hi := delay(c.text, c.n, 0), delay(c.text, c.n, 1); lo != c.lo || hi != c.hi {
			t.Errorf("{%s}, delay %d: %s to %s, want %s to %s", c.text, c.n, lo, hi, c.lo, c.hi)
		}
	}
}

// draws is the randomness that draws always the same.
type draws float64

func (d draws) Float64() float64 { return float64(d) }
func (d draws) IntN(n int) int   { return int(float64(n-1) * float64(d)) }
