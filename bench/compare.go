package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
)

// compare prints how many times the figures of one run are those of another, or
// measures two binaries in turn.
func compare(args []string) error {
	flags := flag.NewFlagSet("compare", flag.ExitOnError)
	only := flags.String("only", "", "benchmarks whose name matches")
	who := flags.String("who", "^(go|tinygo|wat|native)$", "contestants whose name matches; for two binaries")
	quick := flags.Bool("quick", false, "little work")
	rounds := flags.Int("rounds", 9, "of each benchmark; for two binaries")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return errors.New("compare takes two files of JSON lines, or two binaries of bench")
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	matchWho, err := regexp.Compile(*who)
	if err != nil {
		return err
	}
	a, b := flags.Arg(0), flags.Arg(1)
	if strings.HasSuffix(a, ".jsonl") && strings.HasSuffix(b, ".jsonl") {
		old, err := readRecords(a)
		if err != nil {
			return err
		}
		now, err := readRecords(b)
		if err != nil {
			return err
		}
		return printRatios(os.Stdout, old, now, match)
	}
	return compareBinaries(a, b, match, matchWho, *quick, *rounds)
}

// printRatios of the records that both have.
func printRatios(w io.Writer, old, now []record, match *regexp.Regexp) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "benchmark\twho\told\tnew\tnew/old\tbetween\t")
	before := map[string]record{}
	for _, r := range old {
		before[r.key()] = r
	}
	var logs, count float64
	for _, n := range now {
		o, ok := before[n.key()]
		if !ok || o.Missing != "" || n.Missing != "" || o.Median == 0 || n.Median == 0 || !match.MatchString(n.Bench) {
			continue
		}
		x := ratio(o, n)
		fmt.Fprintf(t, "%s\t%s\t%.4g\t%.4g %s\t%.3f\t%.3f..%.3f\t%s\n", n.Bench, n.Who, o.Median, n.Median, n.Unit, x.median, x.low, x.high, x.verdict(n.Better == "more"))
		if n.Who != "baseline" && n.Better == "less" {
			logs += math.Log(x.median)
			count++
		}
	}
	if count > 0 {
		fmt.Fprintf(t, "geometric mean of what is to be small\t\t\t\t%.3f\t\t\n", math.Exp(logs/count))
	}
	return t.Flush()
}

// change is a ratio of medians and what the samples leave open.
type change struct{ median, low, high float64 }

// ratio compares two records. Samples of an interleaved run are compared pair by
// pair, as both have met the same moments of the machine: the range is that of the
// middle half of the pairs. Else it is the range of the extremes.
func ratio(o, n record) change {
	c := change{n.Median / o.Median, n.Min / o.Max, n.Max / o.Min}
	if o.Date.Equal(n.Date) && len(o.Samples) == len(n.Samples) && len(o.Samples) >= 3 {
		var pairs []float64
		for i := range o.Samples {
			pairs = append(pairs, n.Samples[i]/o.Samples[i])
		}
		m := median(pairs)
		c = change{m, pairs[len(pairs)/4], pairs[len(pairs)-1-len(pairs)/4]}
	}
	return c
}

// verdict says what the range allows to say; 3 % are no change.
func (c change) verdict(more bool) string {
	const margin = 0.03
	low, high := c.low, c.high
	if more {
		low, high = 1/c.high, 1/c.low
	}
	switch {
	case low > 1+margin:
		return "worse"
	case high < 1-margin:
		return "better"
	case low >= 1-margin && high <= 1+margin:
		return "same"
	}
	return "?" // more rounds, or a quieter machine
}

// compareBinaries lets two binaries measure in turn, each with guests of its own sources.
func compareBinaries(a, b string, match, who *regexp.Regexp, quick bool, rounds int) error {
	dir, err := os.MkdirTemp("", "wasmactors-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{quick: quick, rounds: rounds, report: newReporter(io.Discard, quick)}
	var exes, guests [2]string
	for i, exe := range []string{a, b} {
		if exes[i], err = filepath.Abs(exe); err != nil {
			return err
		}
		guests[i] = filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(guests[i], 0o700); err != nil {
			return err
		}
		if err := runQuiet(exes[i], "guests", guests[i]); err != nil {
			return err
		}
	}
	var old, now []record
	for _, bench := range benchmarks {
		if !match.MatchString(bench.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, bench.title)
		var sides []*side
		for _, c := range contestants() {
			if who.MatchString(c.name) {
				sides = append(sides, l.side(bench, c, exes[0], guests[0]), l.side(bench, c, exes[1], guests[1]))
			}
		}
		l.contest(bench, sides, rounds)
		for i, s := range sides {
			r := s.record(bench)
			r.Date = l.report.base.Date
			if r.Missing != "" {
				fmt.Fprintf(os.Stderr, "  %s: %s\n", r.Who, r.Missing)
			}
			if i%2 == 0 {
				old = append(old, r)
			} else {
				now = append(now, r)
			}
		}
	}
	return printRatios(os.Stdout, old, now, regexp.MustCompile(""))
}
