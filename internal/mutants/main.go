// Command mutants breaks the code of packages in small ways, one at a time, and reports
// which of these mutants no test notices.
//
//	go run ./internal/mutants [flags] package...
//
// All mutants of a package are compiled into one test binary, where an environment
// variable chooses the one that is alive; so a mutant costs a run and no build. Which
// tests reach it is recorded first, and only those run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"
)

type options struct {
	sample   int
	seed     uint64
	workers  int
	timeout  time.Duration
	longest  time.Duration
	accepted string
	json     string
	files    string
	short    bool
}

func main() {
	var o options
	flag.IntVar(&o.sample, "sample", 0, "mutants of each package to try, drawn by -seed; 0: all")
	flag.Uint64Var(&o.seed, "seed", 1, "what the sample is drawn with")
	flag.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "runs at a time")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Second, "a run may take, beyond ten times what its tests usually take")
	flag.DurationVar(&o.longest, "longest", 5*time.Second, "tests that take longer are left out")
	flag.StringVar(&o.accepted, "accepted", "internal/mutants/accepted.txt", "file of mutants that change nothing that matters, with reasons")
	flag.StringVar(&o.json, "json", "", "write the report to this file, too")
	flag.StringVar(&o.files, "files", "", "mutate only files whose names match this pattern")
	flag.BoolVar(&o.short, "short", false, "run the tests with -short")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	left, err := run(ctx, o, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if left > 0 {
		os.Exit(1)
	}
}
