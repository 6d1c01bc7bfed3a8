// Command bench measures what wasmactors costs, beside what others cost in the same
// run: native actors, guests in WAT, in standard Go and in TinyGo with the SDK; beside
// goroutines, hollywood, proto.actor, ergo, goakt, Erlang/OTP, Extism and a naive host
// on wazero. Each contestant runs in a process of its own; they take turns, five
// rounds of each benchmark.
//
//	bench run [-quick] [-only REGEXP] [-who REGEXP] [-rounds N] [-o FILE]   JSON lines, a measurement a line
//	bench table [-docs FILE] FILE             writes the table and the charts from them
//	bench compare A.jsonl B.jsonl             ratios of medians
//	bench compare [-only] [-who] OLD NEW      the same of two binaries, interleaved
//	bench awake [-n 100000] [-rounds 2]       so many guests of standard Go awake, and none lost
//	bench gateway [-quick] [-time 60s] [-conns N] [-crash 0.01] [-who REGEXP]   HTTP at full load, and every answer checked
//	bench streams [-quick] [-turns 200] [-rounds 3]   a stage on an element, and an element beside a message
//	bench sockets [-quick] [-time 10s] [-conns 64] [-idle 10000] [-rounds 3] [-who REGEXP]   an echo over TCP, and idle connections
//
// docs/benchmarks.md explains what is measured.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/wasmactors/wasmactors/bench/guard"
	_ "github.com/wasmactors/wasmactors/bench/internal/early"
	"github.com/wasmactors/wasmactors/host/build"
)

//go:embed guests/ping.wasm
var pingWAT []byte

//go:embed guests/spin.wasm
var spinWAT []byte

//go:embed guests/busy.wasm
var busyWAT []byte

//go:embed guests/naive.wasm
var naiveWAT []byte

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 0 {
		return errors.New("run, table, compare, gateway, streams or sockets; see the top of bench/main.go")
	}
	switch rest := args[1:]; args[0] {
	case "run":
		return run(rest)
	case "table":
		return table(rest)
	case "compare":
		return compare(rest)
	case "gateway":
		return gatewayLoad(rest)
	case "awake":
		return awake(rest)
	case "serve": // of gateway
		return gatewayServe(rest)
	case "streams":
		return streams(rest)
	case "sockets":
		return sockets(rest)
	case "echo": // of sockets
		return echoServe(rest)
	case "child": // of run
		if len(rest) < 2 {
			return errors.New("child BENCHMARK CONTESTANT [quick]")
		}
		return child(rest[0], rest[1], len(rest) > 2)
	case "crowd": // of run
		return (&lab{ctx: context.Background()}).measureCrowd(rest[0])
	case "among": // of run
		if len(rest) != 3 {
			return errors.New("among SIDE SPINNERS QUICK")
		}
		return (&lab{ctx: context.Background(), quick: rest[2] == "true"}).measureFair(rest[0], rest[1])
	case "count": // of run
		return guard.Work(context.Background(), guard.Case{Act: guard.Message, Kind: rest[0]})
	case "guests": // of compare
		return buildGuests(context.Background(), sourceDir(), rest[0])
	}
	return fmt.Errorf("no such command: %s", args[0])
}

// more are the benchmarks that compare us with other things than actor systems.
var more = []struct {
	name string
	f    func(*lab) error
}{{"instructions", countAll}, {"call", call}, {"resume", resume}, {"crowd", crowd}, {"start", start}, {"fair", fair}, {"look", looking}, {"compute", computing}}

func run(args []string) (err error) {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	only := flags.String("only", "", "benchmarks whose name matches")
	who := flags.String("who", "", "contestants whose name matches")
	quick := flags.Bool("quick", false, "little work and one round: to see that everything runs")
	rounds := flags.Int("rounds", 0, "of each benchmark; default 5, 1 if quick")
	output := flags.String("o", "", "file to write, instead of standard output")
	if err := flags.Parse(args); err != nil {
		return err
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	matchWho, err := regexp.Compile(*who)
	if err != nil {
		return err
	}
	var to io.Writer = os.Stdout
	if *output != "" {
		f, err := os.Create(*output)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		to = f
	}
	l, clean, err := newLab(to, *quick, *rounds)
	if err != nil {
		return err
	}
	defer clean()
	if err := l.contests(match, matchWho); err != nil {
		return err
	}
	for _, b := range more {
		if match.MatchString(b.name) && matchWho.MatchString("go") {
			fmt.Fprintf(os.Stderr, "%s  [%s]\n", b.name, time.Since(l.began).Round(time.Second))
			if err := b.f(l); err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
		}
	}
	fmt.Fprintln(os.Stderr, "took", time.Since(l.began).Round(time.Second))
	return nil
}

// newLab builds the guests.
func newLab(to io.Writer, quick bool, rounds int) (*lab, func(), error) {
	if rounds == 0 {
		rounds = 5
		if quick {
			rounds = 1
		}
	}
	dir, err := os.MkdirTemp("", "wasmactors-bench-")
	if err != nil {
		return nil, nil, err
	}
	l := &lab{ctx: context.Background(), report: newReporter(to, quick), quick: quick, rounds: rounds, began: time.Now(), dir: sourceDir(), guests: dir, budget: 40 * time.Second}
	fmt.Fprintln(os.Stderr, "building the guests")
	if err := buildGuests(l.ctx, l.dir, dir); err != nil {
		return nil, nil, err
	}
	for name, to := range map[string]*[]byte{"go": &l.goPing, "naive-go": &l.naive} {
		if *to, err = os.ReadFile(filepath.Join(dir, name+".wasm")); err != nil {
			return nil, nil, err
		}
	}
	return l, func() { os.RemoveAll(dir) }, nil
}

// buildGuests builds what is written in Go into a directory.
func buildGuests(ctx context.Context, from, to string) error {
	for _, g := range []struct{ name, source, compiler string }{
		{"go", "go", "go"}, {"tinygo", "go", "tinygo"}, {"naive-go", "naive-go", "go"}, {"extism", "extism", "go"},
	} {
		if lacksProgram(g.compiler) != "" {
			continue
		}
		r, err := build.Guest(ctx, filepath.Join(from, "guests", g.source), build.Options{Compiler: g.compiler})
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		code, err := r.Code(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		if err := os.WriteFile(filepath.Join(to, g.name+".wasm"), code, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// guests are the two kinds that the other benchmarks are measured with.
func (l *lab) guestKinds() []struct {
	name         string
	ours, theirs []byte
} {
	return []struct {
		name         string
		ours, theirs []byte
	}{{"wat", pingWAT, naiveWAT}, {"go", l.goPing, l.naive}}
}
