// Command stalls runs tests on a Go runtime whose goroutines stall now and then, for up to 40 ms:
// before one goes on, and right after one has woken another. So a test that looks too early, and
// code that relies on who is faster, fails within minutes instead of once in a thousand runs.
//
//	go run ./tools/stalls [flags] package...
//
// The toolchain is left as it is: its scheduler is copied, changed, and put in place with
// `go build -overlay`.
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
	every   int
	rounds  int
	workers int
	race    bool
	short   bool
	run     string
	timeout time.Duration
	out     string
}

func main() {
	var o options
	flag.IntVar(&o.every, "every", 400, "one in so many switches between goroutines stalls")
	flag.IntVar(&o.rounds, "rounds", 1, "run everything so often")
	flag.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "test binaries that run at a time")
	flag.BoolVar(&o.race, "race", false, "with the race detector")
	flag.BoolVar(&o.short, "short", false, "run the tests with -short")
	flag.StringVar(&o.run, "run", "", "only tests whose names match")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "a test binary may take")
	flag.StringVar(&o.out, "out", "", "folder for the output of what fails; one of the system's temporary folders if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed, err := run(ctx, o, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stalls:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}
