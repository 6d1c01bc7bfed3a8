package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// Bounds of the tally: hostile guests can make any number of actors that crash.
const (
	mostTallied = 1000 // actors that are counted apart
	mostListed  = 20   // actors in the summary
)

// tally counts crashes for the summary of a run.
type tally struct {
	actors  map[string]*crashed
	others  int // crashes of actors that are not counted apart
	stopped int // failures that stopped their actor
}

// crashed is an actor of a tally.
type crashed struct {
	path    string
	first   int // its place among those that have crashed
	crashes int
	delays  time.Duration // before restarts
}

// add counts a failure.
func (t *tally) add(e *host.Event) {
	if e.Directive == supervision.Stop {
		t.stopped++
	}
	path := e.Ref.Path()
	c := t.actors[path]
	switch {
	case c != nil:
	case len(t.actors) == mostTallied:
		t.others++
		return
	default:
		if t.actors == nil {
			t.actors = map[string]*crashed{}
		}
		c = &crashed{path: path, first: len(t.actors)}
		t.actors[path] = c
	}
	c.crashes++
	c.delays += e.Delay
}

// write prints the actors that have crashed most often, in the order of their first crashes.
func (t *tally) write(w io.Writer) {
	var list []*crashed
	for _, c := range t.actors {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *crashed) int {
		if a.crashes != b.crashes {
			return b.crashes - a.crashes
		}
		return a.first - b.first
	})
	rest := t.others
	for _, c := range list[min(len(list), mostListed):] {
		rest += c.crashes
	}
	list = list[:min(len(list), mostListed)]
	slices.SortFunc(list, func(a, b *crashed) int { return a.first - b.first })
	for _, c := range list {
		fmt.Fprintf(w, "    %-20s %s, %s of delays before restarts\n", c.path, crashesOf(c.crashes), c.delays.Round(time.Millisecond))
	}
	if rest > 0 {
		fmt.Fprintf(w, "    and %s of other actors\n", crashesOf(rest))
	}
}

func crashesOf(n int) string {
	if n == 1 {
		return "1 crash"
	}
	return fmt.Sprintf("%d crashes", n)
}
