// Command bench prints what wasmactors costs, as one JSON object a line, next to
// a naive host on wazero (an instance an actor, a host call a message) in the same
// run. Figures are medians of interleaved rounds; ratios say how many times better
// the product is.
//
//	go run ./bench [-only REGEXP] [-quick]
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"

	"github.com/wasmactors/wasmactors/host/build"
)

//go:embed guests/ping.wasm
var pingWAT []byte

//go:embed guests/spin.wasm
var spinWAT []byte

//go:embed guests/naive.wasm
var naiveWAT []byte

// lab is what benchmarks measure with.
type lab struct {
	ctx    context.Context
	report *reporter
	quick  bool
	dir    string // of the sources, to build guests in Go
	goPing []byte
	naive  []byte
}

// scale shortens a count where the run is to be quick.
func (l *lab) scale(n int) int {
	if l.quick {
		return max(1, n/20)
	}
	return n
}

func main() {
	only := flag.String("only", "", "run the benchmarks whose name matches")
	quick := flag.Bool("quick", false, "a twentieth of the work: to see that everything runs")
	side := flag.String("resident", "", "measure the memory of \"ours wat\" and the like; used by the program itself")
	flag.Parse()
	if err := run(*only, *side, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(only, side string, quick bool) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	_, file, _, _ := goruntime.Caller(0)
	l := &lab{ctx: context.Background(), report: newReporter(os.Stdout), quick: quick, dir: filepath.Dir(file)}
	if _, err := os.Stat(l.dir); err != nil {
		l.dir = "bench" // built with -trimpath: run from the repository
	}
	if side == "" {
		fmt.Fprintln(os.Stderr, "building the guests in Go")
	}
	for name, to := range map[string]*[]byte{"go": &l.goPing, "naive-go": &l.naive} {
		r, err := build.Guest(l.ctx, filepath.Join(l.dir, "guests", name), build.Options{Compiler: "go"})
		if err != nil {
			return err
		}
		if *to, err = r.Code(l.ctx); err != nil {
			return err
		}
	}
	if side != "" {
		who, guest, _ := strings.Cut(side, " ")
		if who == "crowd" {
			return l.measureCrowd(guest)
		}
		bytes, err := l.measureResident(who, guest)
		fmt.Println(bytes)
		return err
	}
	for _, b := range []struct {
		name string
		f    func(*lab) error
	}{{"call", call}, {"ping", pingPong}, {"ask", ask}, {"spawn", spawn}, {"restart", restart}, {"resume", resume}, {"memory", memory}, {"crowd", crowd}, {"start", start}, {"fair", fair}, {"compute", computing}} {
		if match.MatchString(b.name) {
			fmt.Fprintln(os.Stderr, b.name)
			if err := b.f(l); err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
		}
	}
	return nil
}

// guests are the two kinds that everything is measured with.
func (l *lab) guests() []struct {
	name         string
	ours, theirs []byte
} {
	return []struct {
		name         string
		ours, theirs []byte
	}{{"wat", pingWAT, naiveWAT}, {"go", l.goPing, l.naive}}
}
