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
	{name: "instructions-kept", title: "ping-pong with a black box, instructions", unit: "x86 instructions a message", scale: 1},
	{name: "instructions-taped", title: "ping-pong that is recorded, instructions", unit: "x86 instructions a message", scale: 1},
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
			if k.kind == guard.Native && (b.name == "instructions-kept" || b.name == "instructions-taped") {
				continue // what guests take in is kept, and recorded
			}
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
func (l *lab) counts(kind string) (values [5]float64, missing [5]string) {
	ctx, cancel := context.WithTimeout(l.ctx, 3*time.Minute)
	defer cancel()
	var err error
	if values[4], err = guard.Allocations(ctx, guard.Case{Act: guard.Message, Kind: kind}); err != nil {
		missing[4] = err.Error()
	}
	for i, act := range []guard.Act{guard.Message, "", guard.Kept, guard.Taped} {
		if act == "" || kind == guard.Native && i > 0 {
			continue
		}
		windows, err := instrcount.Self(ctx, "count", kind, string(act))
		var c guard.Counts
		if err == nil {
			c, err = guard.Slope(guard.Case{Act: act, Kind: kind}, windows)
		}
		if err != nil {
			missing[i] = err.Error()
		}
		if values[i] = c.Instructions; i == 0 {
			values[1], missing[1] = c.Guest, missing[0]
		}
	}
	return values, missing
}
