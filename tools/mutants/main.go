// Command mutants breaks the code of packages in small ways, one at a time, and reports
// which of these mutants no test notices.
//
//	go run ./tools/mutants [flags] package...
//
// All mutants of a package are compiled into one test binary, where an environment
// variable chooses the one that is alive; so a mutant costs a run and no build. Which
// tests reach it is recorded first, and only those run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"regexp"
	"runtime"
	"strings"
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
	files    globs
	run      *regexp.Regexp // nil: all tests
	short    bool
	found    io.Writer // gets each mutant that has survived, at once
}

// globs are patterns of names of files, one for each time the flag is given. Without any, all match.
type globs []string

// String implements flag.Value.
func (g *globs) String() string { return strings.Join(*g, " ") }

// Set implements flag.Value.
func (g *globs) Set(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return err
	}
	*g = append(*g, pattern)
	return nil
}

func (g globs) match(name string) bool {
	for _, pattern := range g {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return len(g) == 0
}

func main() {
	var o options
	flag.IntVar(&o.sample, "sample", 0, "mutants of each package to try, drawn by -seed; 0: all")
	flag.Uint64Var(&o.seed, "seed", 1, "what the sample is drawn with")
	flag.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "runs at a time")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Second, "a run may take at least, and four times what its tests take without a mutant")
	flag.DurationVar(&o.longest, "longest", 5*time.Second, "tests that take longer are left out")
	flag.StringVar(&o.accepted, "accepted", "tools/mutants/accepted.txt", "file of mutants that change nothing that matters, with reasons")
	flag.StringVar(&o.json, "json", "", "write the report to this file, too")
	flag.Var(&o.files, "files", "mutate only files whose names match this pattern, or another one if it is given several times")
	flag.Func("run", "run only tests whose names match this regular expression", func(s string) (err error) {
		o.run, err = regexp.Compile(s)
		return err
	})
	flag.BoolVar(&o.short, "short", false, "run the tests with -short")
	v := flag.Bool("v", false, "write each mutant that survives to standard error when it is known, with how many are left")
	flag.Parse()
	if o.found = io.Discard; *v {
		o.found = os.Stderr
	}
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
