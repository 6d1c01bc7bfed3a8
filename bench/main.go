// Command bench measures what wasmactors costs, beside what others cost in the same
// run: native actors, guests in WAT, in standard Go and in TinyGo with the SDK; beside
// goroutines, hollywood, proto.actor, ergo, goakt, Erlang/OTP, Extism and a naive host
// on wazero. Each contestant runs in a process of its own; they take turns, five
// rounds of each benchmark.
//
//	bench run [-quick] [-only REGEXP] [-who REGEXP] [-rounds N] [-within 19m] [-o FILE]   JSON lines, a measurement a line
//	bench table [-docs FILE] FILE             writes the table and the charts from them
//	bench compare A.jsonl B.jsonl             ratios of medians
//	bench compare [-only] [-who] OLD NEW      the same of two binaries, interleaved
//	bench awake [-n 100000] [-rounds 2]       so many guests of standard Go awake, and none lost
//	bench gateway [-quick] [-time 60s] [-conns N] [-crash 0.01] [-who REGEXP]   HTTP at full load, and every answer checked
//	bench streams [-quick] [-turns 200] [-rounds 3]   a stage on an element, and an element beside a message
//	bench sockets [-quick] [-time 10s] [-conns 64] [-idle 10000] [-rounds 3] [-who REGEXP]   an echo over TCP, and idle connections
//	bench nodes [-quick] [-time 3s] [-rounds 3]   two nodes in two processes, beside NATS alone between them
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
		return errors.New("run, table, compare, gateway, streams, sockets or nodes; see the top of bench/main.go")
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
	case "nodes":
		return nodesBench(rest)
	case "ergoserve": // of nodes
		return ergoServe(rest[0])
	case "nodeserve": // of nodes
		return nodeServe(rest)
	case "echo": // of sockets
		return echoServe(rest)
	case "child": // of run
		if len(rest) < 2 {
			return errors.New("child BENCHMARK CONTESTANT [quick]")
		}
		return child(rest[0], rest[1], len(rest) > 2)
	case "piece": // of run
		return runPiece(rest)
	case "keyed": // of run
		return measureKeyed(rest)
	case "lasting": // of run
		return measureLasting(rest)
	case "crowd": // of run
		return (&lab{ctx: context.Background()}).measureCrowd(rest[0])
	case "among": // of run
		if len(rest) != 3 {
			return errors.New("among SIDE SPINNERS QUICK")
		}
		return (&lab{ctx: context.Background(), quick: rest[2] == "true"}).measureFair(rest[0], rest[1])
	case "count": // of run
		if len(rest) != 2 {
			return errors.New("count KIND ACT")
		}
		return guard.Work(context.Background(), guard.Case{Act: guard.Act(rest[1]), Kind: rest[0]})
	case "guests": // of compare
		return buildGuests(context.Background(), sourceDir(), rest[0])
	}
	return fmt.Errorf("no such command: %s", args[0])
}

func run(args []string) (err error) {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	only := flags.String("only", "", "benchmarks whose name matches")
	who := flags.String("who", "", "contestants whose name matches")
	quick := flags.Bool("quick", false, "little work and one round: to see that everything runs")
	rounds := flags.Int("rounds", 0, "of each benchmark; default 5, 1 if quick")
	within := flags.Duration("within", 19*time.Minute, "the time for all of it: where it is short there are fewer rounds, one at least")
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
	return l.run(match, matchWho, *within)
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
	l := &lab{ctx: context.Background(), report: newReporter(to, quick), quick: quick, rounds: rounds, began: time.Now(), dir: sourceDir(), guests: dir}
	fmt.Fprintln(os.Stderr, "building the guests")
	if err := buildGuests(l.ctx, l.dir, dir); err != nil {
		fmt.Fprintln(os.Stderr, err) // those that lack it say so
	}
	return l, func() { os.RemoveAll(dir) }, nil
}

// buildGuests builds what is written in Go into a directory. One that cannot be built does not keep the others away.
func buildGuests(ctx context.Context, from, to string) (err error) {
	for _, g := range []struct{ name, source, compiler string }{
		{"go", "go", "go"}, {"tinygo", "go", "tinygo"}, {"naive-go", "naive-go", "go"}, {"extism", "extism", "go"}, {"shop", "shop", "go"},
		{"ledger", "../../samples/ledger/guest", "go"}, {"ledger-tinygo", "../../samples/ledger/guest", "tinygo"},
	} {
		if lacksProgram(g.compiler) != "" {
			continue
		}
		if e := buildGuest(ctx, filepath.Join(from, "guests", g.source), g.compiler, filepath.Join(to, g.name+".wasm")); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", g.name, e))
		}
	}
	return err
}

func buildGuest(ctx context.Context, source, compiler, file string) error {
	r, err := build.Guest(ctx, source, build.Options{Compiler: compiler})
	if err != nil {
		return err
	}
	code, err := r.Code(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(file, code, 0o600)
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
