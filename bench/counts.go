package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmactors/wasmactors/bench/guard"
	"github.com/wasmactors/wasmactors/tools/instrcount"
)

// counted are benchmarks whose figures are counts; see the package guard.
var counted = []*benchmark{
	{name: "instructions", title: "ping-pong, instructions", unit: "x86 instructions a message", scale: 1},
	{name: "instructions-guest", title: "of them in the guest", unit: "x86 instructions a message", scale: 1},
	{name: "allocations", title: "ping-pong, allocations", unit: "a message", scale: 1},
}

// countAll counts instructions and allocations of our kinds of actors.
func countAll(l *lab) error {
	wat := filepath.Join(l.guests, "wat.wasm")
	if err := os.WriteFile(wat, benchWAT, 0o600); err != nil {
		return err
	}
	for _, k := range []struct {
		who  *contestant
		kind string
	}{{oursGo, filepath.Join(l.guests, "go.wasm")}, {oursTinyGo, filepath.Join(l.guests, "tinygo.wasm")}, {oursWAT, wat}, {native, guard.Native}} {
		if k.who.absent != nil && k.who.absent() != "" {
			continue
		}
		values, missing := l.counts(k.kind)
		for i, b := range counted {
			r := record{Bench: b.name, Who: k.who.name, Unit: b.unit, Procs: 1, Missing: missing[i]}
			if r.Missing == "" {
				r.fill([]float64{values[i]})
			}
			if err := l.report.write(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// counts returns figures in the order of counted, or why there are none.
func (l *lab) counts(kind string) (values [3]float64, missing [3]string) {
	ctx, cancel := context.WithTimeout(l.ctx, 3*time.Minute)
	defer cancel()
	var err error
	if values[2], err = guard.Allocations(ctx, guard.Case{Act: guard.Message, Kind: kind}); err != nil {
		missing[2] = err.Error()
	}
	windows, err := instrcount.Self(ctx, "count", kind)
	var c guard.Counts
	if err == nil {
		c, err = guard.Slope(guard.Case{Act: guard.Message, Kind: kind}, windows)
	}
	if err != nil {
		missing[0], missing[1] = err.Error(), err.Error()
	}
	values[0], values[1] = c.Instructions, c.Guest
	return values, missing
}
