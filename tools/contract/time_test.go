package contract

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// direct are the functions that read the machine's clock or dice, or wait for time, and values that are one of these.
var direct = map[string][]string{
	"time":    {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	"github.com/wasmactors/wasmactors/internal/clock":         {"Real", "Machine"},
	"github.com/wasmactors/wasmactors/host":                   {"RealClock"},
	"github.com/wasmactors/wasmactors/host/internal/executor": {"Machine"},
	"crypto/rand": {"Read", "Reader", "Text", "Int", "Prime"},
	// What needs no source of its own: without a receiver, everything but constructors.
	"math/rand":    {"Int", "Intn", "Int63", "Int63n", "Float64", "Perm", "Shuffle", "Uint32", "Uint64", "Read"},
	"math/rand/v2": {"Int", "IntN", "Int64", "Int64N", "Float64", "Perm", "Shuffle", "Uint32", "Uint32N", "Uint64", "Uint64N", "N", "NormFloat64", "ExpFloat64"},
}

// detached are the ways to a goroutine that services have not: it is started with Env.Go, and ends a context with
// the executor's AfterDone.
var detached = map[string][]string{"context": {"AfterFunc"}, "golang.org/x/sync/errgroup": {"Group", "WithContext"}}

// machine are the files and folders below host and beneath it that read the machine's clock or dice, and why they may: all
// else takes them from outside.
var machine = map[string]string{
	"host/upgrade/":                            "who upgrades waits in the machine's time, and is shown how long actors were held; guests see none of it",
	"host/admin/":                              "people and their connections, who wait in the machine's time",
	"host/build/":                              "compilers; how long they took is shown",
	"host/bundle/dev.go":                       "files that a person changes; how long a build took is shown",
	"host/bundle/store.go":                     "how long a program that prints the key of a store may take",
	"host/bundle/change.go":                    "how long the end of what is replaced may take",
	"host/bundle/kept.go":                      "how long a start waits for upgrades; in a simulation it waits for all",
	"host/bundle/feed.go":                      "lines of a person or a program outside: how fast they are sent, and how long their ends are waited for",
	"host/children.go":                         "whoever spawns from outside waits for the memory of the machine; a manual system does not",
	"host/cluster/boot_other.go":               "the default of Config.Since",
	"host/cluster/node.go":                     "the default of Config.Clock",
	"host/cluster/natscluster/":                "NATS, its servers and certificates live in the machine's time, and keys are the machine's; simulations have fakes",
	"host/recorder/recorder.go":                "when a recording began, and how often it goes to the disk; guests see none of it",
	"host/config.go":                           "RealClock, which Config takes others in place of",
	"host/setup/config.go":                     "the defaults, in place of which Config takes others",
	"host/debug/debugger.go":                   "how far apart checkpoints are, so that going back is quick for a person; no place depends on it",
	"host/durable.go":                          "how long the end of a process may wait for durable actors; a manual system runs within",
	"host/durable/checkpoint.go":               "by a caller's context, and how long turns may take to come to rest, which run in the machine's time",
	"host/durable/store.go":                    "the secret and the salts of a store, which outlive every run; the default of Options.Clock",
	"host/durable/modules.go":                  "nonces of what a store encrypts, which no run depends on",
	"host/persist/keys.go":                     "nonces of what is encrypted, which outlive every run",
	"host/internal/look/flow.go":               "which turns are shown as a sample: nothing that runs depends on it",
	"host/idle.go":                             "waits for the machine's goroutines; a manual system runs within, and moves its clock",
	"host/window/view.go":                      "how long a look waits for a turn, which runs in the machine's time",
	"host/internal/executor/":                  "Machine, and the patience of a simulation with tasks that wait without a word",
	"host/metrics/":                            "how long a scrape took",
	"host/observe/crashstore.go":               "how often crashes are written to a disk",
	"host/observe/do.go":                       "how long a command may plan",
	"host/observe/flow.go":                     "how long a person wants to look, and the time to divide by",
	"host/observe/history.go":                  "what a look costs the machine, so that history takes a thousandth of it",
	"host/observe/profile.go":                  "the time to divide by",
	"host/observe/snapshot.go":                 "how old a look may be that several share",
	"host/scenario/":                           "how long scenarios may take, and took",
	"host/service/tcp/":                        "deadlines of sockets, whose other ends live in the machine's time",
	"host/internal/secret/":                    "the secret of a system without a seed",
	"host/service/config/values.go":            "how long a file of a device may take",
	"host/service/env.go":                      "the default of Env.Rand",
	"host/service/gateway/middleware/basic.go": "a key that no run shows: of hashes in memory",
	"host/service/gateway/gateway.go":          "the default of Config.Rand",
	"host/service/gateway/serve.go":            "connections and descriptors are the machine's; scenarios have none",
	"host/service/http/egress/dialer.go":       "the default of Dialer.Clock",
	"host/service/kv/fullfs.go":                "how often a full disk is asked whether it has room",
	"host/service/kv/operator.go":              "a store without a system",
	"host/service/kv/pebble.go":                "writes to the disk, and how long the database may take to end; a scenario keeps its store in memory",
	"host/service/kv/store.go":                 "how long a disk may take at the end",
	"host/service/schedule/journal.go":         "writes to the disk; a scenario keeps no journal",
	"host/service/servicetest/":                "tests",
	"host/service/stream/params.go":            "the default of Params.Clock",
	"host/simulate/":                           "how long runs took, and may take to close",
	"host/testkit/":                            "waits for goroutines of a test, and kits in real time",
	"host/internal/outside/timeout.go":         "how long a turn has run, which the dispatcher measures in the machine's time, for a person",
	"host/tracing/":                            "collectors outside, and spans of code that gives no time",
	"internal/cache/":                          "files that processes share, and their keys",
	"internal/clock/":                          "the clock of the machine",
	"internal/dispatch/":                       "how long turns keep a processor, and where a worker begins to steal; a manual system has neither",
	"internal/filewatch/":                      "the default of Options.Clock",
	"internal/regular/":                        "how long a file of a device may take",
	"internal/slots/":                          "how long the machine takes to read a page that is mapped often; it decides where memories lie, and nothing that a guest sees",
	"internal/sandbox/":                        "compilers, and the pace at which fuel is granted, which changes no turn; the clock of guests is given",
	"internal/wasi/quota.go":                   "how often a folder is counted again that others use, too: what they do there is not repeated either",
}

// loose are files of services with ways to a goroutine of their own, and why.
var loose = map[string]string{
	"host/service/gateway/serve.go":     "listeners of net/http, which runs goroutines of its own; scenarios have none",
	"host/service/http/egress/proxy.go": "ends what waits for a proxy, in a library; scenarios have none",
}

// TestTimeAndDiceComeFromOutside: what a run depends on is given to it, so that it can be repeated. A place that reads the
// machine's clock or dice is listed in machine, with its reason; in host/service a goroutine is started by the
// executor of the service, or is listed in loose.
func TestTimeAndDiceComeFromOutside(t *testing.T) {
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skip(err)
	}
	used := map[string]bool{}
	check := func(places []string, allowed map[string]string, name, advice string) {
		for _, place := range places {
			by := listed(allowed, name)
			if used[by] = true; by == "" {
				t.Errorf("%s: %s", strings.TrimPrefix(place, root), advice)
			}
		}
	}
	for _, name := range strings.Fields(string(out)) {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") || !slices.Contains([]string{"host", "internal", "runtime", "supervision", "abi"}, strings.SplitN(name, "/", 2)[0]) {
			continue
		}
		clocks, goroutines, err := directly(root+name, nil)
		if err != nil {
			t.Error(err)
		}
		check(clocks, machine, name, "take the clock or the dice from outside, or say in machine why not")
		if strings.HasPrefix(name, "host/service/") {
			check(goroutines, loose, name, "use Env.Go, or say in loose why not")
		}
	}
	for _, m := range []map[string]string{machine, loose} {
		for by := range m {
			if !used[by] {
				t.Errorf("%s does not need to be listed", by)
			}
		}
	}
}

func listed(all map[string]string, name string) string {
	for by := range all {
		if name == by || strings.HasSuffix(by, "/") && strings.HasPrefix(name, by) {
			return by
		}
	}
	return ""
}

// directly are the places of a file that read the machine's clock or dice, and those that start goroutines.
func directly(name string, src any) (clocks, goroutines []string, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, 0)
	if err != nil {
		return nil, nil, err
	}
	imported := map[string]string{}
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		as := path.Base(strings.TrimSuffix(p, "/v2"))
		if i.Name != nil {
			as = i.Name.Name
		}
		imported[as] = p
		if as == "." && (direct[p] != nil || detached[p] != nil) {
			return nil, nil, fmt.Errorf("%s: %s is imported without a name, which hides its clocks and dice", fset.Position(i.Pos()), p)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			goroutines = append(goroutines, fmt.Sprintf("%s: go", fset.Position(n.Pos())))
		case *ast.SelectorExpr:
			at := fmt.Sprintf("%s: %s", fset.Position(n.Pos()), n.Sel.Name)
			x, ok := n.X.(*ast.Ident)
			if !ok || x.Obj != nil { // a variable of that name
				if n.Sel.Name == "Go" && !isEnv(n.X) {
					goroutines = append(goroutines, at)
				}
				return true
			}
			of := imported[x.Name]
			if slices.Contains(direct[of], n.Sel.Name) {
				clocks = append(clocks, at)
			}
			if slices.Contains(detached[of], n.Sel.Name) {
				goroutines = append(goroutines, at)
			}
		}
		return true
	})
	return clocks, goroutines, nil
}

// isEnv reports whether an expression ends in env or full, as that of a service is called, and not in a group of goroutines.
func isEnv(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "env" || x.Name == "full"
	case *ast.SelectorExpr:
		return x.Sel.Name == "env"
	}
	return false
}

// The lint sees each way that it knows, under any name, and no variable that is called like a package.
func TestDirectlySeesWhatItKnows(t *testing.T) {
	for src, want := range map[string][2]int{
		`import "time"; var _ = time.Now`:                                       {1, 0},
		`import x "time"; func f() { x.Sleep(1); x.NewTimer(2) }`:               {2, 0},
		`import "context"; var _, _ = context.WithTimeout, context.AfterFunc`:   {1, 1},
		`import "math/rand/v2"; var _, _ = rand.N(5), rand.NewPCG(1, 2)`:        {1, 0},
		`import "crypto/rand"; var _ = rand.Reader`:                             {1, 0},
		`import "time"; func f(time struct{ Now int }) int { return time.Now }`: {0, 0},
		`func f() { go f() }`: {0, 1},
		`import "sync"; func f() { var g sync.WaitGroup; g.Go(f) }`:                                  {0, 1},
		`func f(p struct{ env interface{ Go(func()) } }) { p.env.Go(func() {}) }`:                    {0, 0},
		`import "github.com/wasmactors/wasmactors/host/internal/executor"; var _ = executor.Machine`: {1, 0},
	} {
		clocks, goroutines, err := directly("x.go", "package x; "+src)
		if err != nil || len(clocks) != want[0] || len(goroutines) != want[1] {
			t.Errorf("%s: %v, %v, %v", src, clocks, goroutines, err)
		}
	}
	if _, _, err := directly("x.go", `package x; import . "time"`); err == nil {
		t.Error("an import without a name is taken")
	}
}
