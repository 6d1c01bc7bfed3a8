// Shape counts the shape of the engine: files that need each other, methods of its central types, lines.
//
//	go run ./tools/shape          # the table, and whether it keeps to limits.json
//	go run ./tools/shape -update  # set the limits to what is counted, where that is less
//
// It runs in the root of the repository. Limits only go down; who has to raise one edits the file and
// says why in the commit.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const limitsFile = "tools/shape/limits.json"

const module = "github.com/wasmactors/wasmactors/"

// engine is what carries actors; product is what users link, the guests' side included.
var (
	engine  = []string{"./host", "./host/internal/...", "./internal/...", "./runtime/...", "./supervision/..."}
	product = []string{"./cmd/...", "./host/...", "./internal/...", "./runtime/...", "./supervision/...", "./abi/...", "./guest-sdk/..."}
)

// ofTests are packages of these folders that only tests use.
var ofTests = []string{"internal/wasmgen", "internal/race", "internal/thorough", "host/service/servicetest"}

func main() {
	update := flag.Bool("update", false, "lower the limits to what is counted")
	flag.Parse()
	loaded, err := load("", append(slices.Clone(engine), product...)...)
	if err != nil {
		fail(err)
	}
	counts := report(os.Stdout, loaded)
	limits := map[string]int{}
	text, err := os.ReadFile(limitsFile)
	if err == nil {
		err = json.Unmarshal(text, &limits)
	}
	if err != nil && !*update {
		fail(err)
	}
	if *update {
		for name, n := range counts {
			if limit, ok := limits[name]; !ok || n < limit {
				limits[name] = n
			}
		}
		text, err := json.MarshalIndent(limits, "", "  ")
		if err == nil {
			err = os.WriteFile(limitsFile, append(text, '\n'), 0o644)
		}
		if err != nil {
			fail(err)
		}
	}
	if beyond := compare(counts, limits); len(beyond) > 0 {
		fail(fmt.Errorf("beyond %s:\n%s", limitsFile, strings.Join(beyond, "\n")))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// compare is a line for each count that is beyond its limit, or has none, and for each limit of nothing.
func compare(counts, limits map[string]int) (lines []string) {
	for name, n := range counts {
		if limit, ok := limits[name]; !ok {
			lines = append(lines, fmt.Sprintf("%s: %d, without a limit: go run ./tools/shape -update", name, n))
		} else if n > limit {
			lines = append(lines, fmt.Sprintf("%s: %d, the limit is %d", name, n, limit))
		}
	}
	for name := range limits {
		if _, ok := counts[name]; !ok {
			lines = append(lines, name+": a limit of what is not counted")
		}
	}
	slices.Sort(lines)
	return lines
}

// load type-checks packages without their tests, in dir, "" for the working directory.
func load(dir string, patterns ...string) ([]*packages.Package, error) {
	conf := &packages.Config{Dir: dir, Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps}
	loaded, err := packages.Load(conf, patterns...)
	if err != nil {
		return nil, err
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			return nil, e
		}
	}
	slices.SortFunc(loaded, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	return slices.CompactFunc(loaded, func(a, b *packages.Package) bool { return a.PkgPath == b.PkgPath }), nil
}

// report writes the table and returns the counts that have limits.
func report(w io.Writer, loaded []*packages.Package) map[string]int {
	counts := map[string]int{}
	together := 0
	fmt.Fprintf(w, "%-28s %6s %6s %7s %7s\n", "package of the engine", "files", "uses", "circle", "lines")
	for _, p := range loaded {
		name := strings.TrimPrefix(p.PkgPath, module)
		if slices.Contains(ofTests, name) {
			continue
		}
		lines := linesOf(p)
		counts["lines of the product"] += lines
		if slices.Contains(sockets, name) {
			together += lines
		}
		if !ofEngine(name) {
			continue
		}
		g := usesOf(p)
		largest := g.largestCircle()
		fmt.Fprintf(w, "%-28s %6d %6d %7d %7d\n", name, len(g.files), g.uses(), len(largest), lines)
		if name == "host" {
			counts["files in the largest circle of host"] = len(largest)
			counts["uses between files of host"] = g.uses()
			counts["lines of host"] = lines
			for what, n := range methodsOf(p.Types) {
				counts[what] = n
			}
		} else {
			const others = "files in the largest circle of any other package of the engine"
			counts[others] = max(counts[others], len(largest))
		}
	}
	fmt.Fprintf(w, "\n%7d  lines of %s together\n", together, strings.Join(sockets, ", "))
	for _, name := range sorted(counts) {
		fmt.Fprintf(w, "%7d  %s\n", counts[name], name)
	}
	return counts
}

// sockets are the packages of sockets and streams of messages, which together have at most 5000 lines.
var sockets = []string{"host/service/tcp", "host/service/udp", "host/flow"}

func ofEngine(name string) bool {
	return name == "host" || slices.ContainsFunc([]string{"host/internal/", "internal/", "runtime", "supervision"}, func(of string) bool { return strings.HasPrefix(name, of) })
}

func sorted(m map[string]int) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
