package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// A benchmark is a piece of work that contestants do in turn.
type benchmark struct {
	name  string
	title string
	unit  string  // of the figure that is reported
	scale float64 // figure = nanoseconds an operation / scale, or 1e3*scale/nanoseconds where more is better
	more  bool    // more is better: the figure is a rate
	procs int     // GOMAXPROCS; 0 is what the machine has
	fresh bool    // a process a round: what an earlier round has left would be measured
	size  int     // bytes of a payload, 0 for 32
	most  int     // rounds at most, 0 for no limit
}

// figure turns nanoseconds an operation into what is reported.
func (b *benchmark) figure(ns float64) float64 {
	if b.more {
		return 1e3 * b.scale / ns
	}
	return ns / b.scale
}

var benchmarks = []*benchmark{
	{name: "ping-pong", title: "ping-pong, 32 bytes", unit: "ns a message", scale: 1},
	{name: "struct", title: "ping-pong, a struct of six fields", unit: "ns a message", scale: 1},
	{name: "payload-1k", title: "ping-pong, 1 KiB", unit: "ns a message", scale: 1, size: 1 << 10},
	{name: "payload-64k", title: "ping-pong, 64 KiB", unit: "us a message", scale: 1e3, size: 64 << 10},
	{name: "payload-1m", title: "ping-pong, 1 MiB", unit: "us a message", scale: 1e3, size: 1 << 20},
	{name: "fan-in", title: "fan-in, 8 to 1", unit: "M messages/s", scale: 1, more: true},
	{name: "fan-out", title: "fan-out, 1 to 8", unit: "M messages/s", scale: 1, more: true},
	{name: "pairs-1", title: "64 pairs, one core", unit: "M messages/s", scale: 1, more: true, procs: 1},
	{name: "pairs-2", title: "64 pairs, two cores", unit: "M messages/s", scale: 1, more: true, procs: 2},
	{name: "ring", title: "ring of 10^4", unit: "ns a hop", scale: 1},
	{name: "skynet", title: "skynet, 10^6 leaves", unit: "us an actor", scale: 1e3, most: 3},
	{name: "ask", title: "ask from outside", unit: "us", scale: 1e3},
	{name: "spawn-again", title: "spawn to first message, the one before has stopped", unit: "us", scale: 1e3},
	{name: "spawn-living", title: "spawn to first message, 10^4 living", unit: "us", scale: 1e3, fresh: true},
	{name: "memory-awake", title: "resident, an actor that has handled a message", unit: "bytes", scale: 1, fresh: true},
	{name: "memory-asleep", title: "resident, an actor asleep", unit: "bytes", scale: 1, fresh: true},
	{name: "crash", title: "crash (Go: panic), restart, next message", unit: "us", scale: 1e3},
	{name: "failure", title: "returned error, restart, next message", unit: "us", scale: 1e3},
	{name: "crash-queue", title: "4000 crashing messages queued, each", unit: "us", scale: 1e3, most: 3},
}

func benchmarkOf(name string) *benchmark {
	i := slices.IndexFunc(benchmarks, func(b *benchmark) bool { return b.name == name })
	if i < 0 {
		return nil
	}
	return benchmarks[i]
}

// subject is a contestant that is ready for one benchmark.
type subject struct {
	op    func(n int) error            // n operations, verified
	timed func(n int) (float64, error) // instead of op: nanoseconds, measured elsewhere
	value func() (float64, error)      // instead of op: nanoseconds (or bytes) an operation
	fixed int                          // operations of a round, 0 to calibrate
	unit  int                          // operations are multiples of it
	note  string                       // for the record
	close func() error
}

// env is what a contestant is given.
type env struct {
	ctx   context.Context
	b     *benchmark
	quick bool
	who   string
}

func (e *env) size() int { return max(32, e.b.size) }

// some is a count that a quick run shortens.
func (e *env) some(n, quick int) int {
	if e.quick {
		return quick
	}
	return n
}

// contestant is one who takes part.
type contestant struct {
	name    string
	title   string
	version func() string
	opens   map[string]func(e *env) (*subject, error)
	lacks   map[string]string // why it takes no part in a benchmark; "" is for all others
	absent  func() string     // why it is not on this machine, "" if it is
}

func (c *contestant) why(bench string) string {
	if w, ok := c.lacks[bench]; ok {
		return w
	}
	return c.lacks[""]
}

func contestantOf(name string) *contestant {
	for _, c := range contestants() {
		if c.name == name {
			return c
		}
	}
	return nil
}

// round measures one round and returns nanoseconds (or bytes) an operation.
func (s *subject) round(n int) (float64, error) {
	if s.value != nil {
		return s.value()
	}
	ns, err := s.run(n)
	return ns / float64(n), err
}

func (s *subject) run(n int) (float64, error) {
	if s.timed != nil {
		return s.timed(n)
	}
	start := time.Now()
	err := s.op(n)
	return float64(time.Since(start).Nanoseconds()), err
}

// calibrate warms up and returns how many operations take about the time.
func (s *subject) calibrate(target time.Duration) (int, error) {
	if s.value != nil {
		return 1, nil
	}
	if s.fixed > 0 {
		return s.fixed, nil
	}
	unit := max(1, s.unit)
	for n := unit; ; {
		// The best of some: on a busy machine one run may have waited for long, and too few
		// operations would measure how threads are woken.
		best := math.Inf(1)
		for range 4 {
			ns, err := s.run(n)
			if err != nil {
				return 0, err
			}
			best = min(best, ns)
		}
		if best >= float64(target.Nanoseconds())/4 || n > 1<<28 {
			n = int(float64(n) * float64(target.Nanoseconds()) / best)
			return max(unit, n/unit*unit), nil
		}
		n = max(n*2, min(n*16, int(float64(n)*float64(target.Nanoseconds())/2/best)/unit*unit))
	}
}

var errStuck = fmt.Errorf("stuck: no result within %v", patience)

// patience is how long a round may take; child shortens it where some never end.
var patience = 20 * time.Second
