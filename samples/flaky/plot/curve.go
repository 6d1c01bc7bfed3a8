package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// shown is how many failures in a row are drawn.
const shown = 12

// curve is what one supervisor does about the failures of its client, up to shown of
// them, in milliseconds.
type curve struct {
	name   string
	points []point
	gives  int // up after so many failures; 0: never
}

// point is the delay before the restart after one failure, over all that can be
// drawn.
type point struct {
	least, mean, most float64
	values            []float64 // if there are few; else nil
}

// curves asks the policies of the manifest in folder.
func curves(folder string) (map[string]curve, error) {
	m, err := bundle.Load(folder)
	if err != nil {
		return nil, err
	}
	all := map[string]curve{}
	for _, a := range m.Actors {
		b, ok := a.Supervision.Backoff()
		if !ok || len(a.Children) == 0 {
			continue
		}
		c := curve{name: a.Name, gives: b.MaxFailures}
		most := shown
		if c.gives > 0 {
			most = min(most, c.gives)
		}
		for n := range most {
			c.points = append(c.points, sample(b.Policy, n))
		}
		all[a.Name] = c
	}
	for _, name := range names {
		if _, ok := all[name]; !ok {
			return nil, fmt.Errorf("%s has no supervisor %q with a backoff", m.File, name)
		}
	}
	return all, nil
}

// quantiles is a multiple of 1 to 10, so that whole numbers below any of these are
// drawn equally often.
const quantiles = 2520

// sample draws the delay of attempt n, from 0, at all quantiles. Policies that draw
// once, as all of the sample's do, are so told exactly, up to rounding.
func sample(p backoff.Policy, n int) point {
	var all []float64
	sum := 0.
	for i := range quantiles {
		d := ms(p.Delay(n, quantile((float64(i)+0.5)/quantiles)))
		all = append(all, d)
		sum += d
	}
	least, most := ms(p.Delay(n, quantile(0))), ms(p.Delay(n, quantile(1-1e-12)))
	values := slices.Compact(slices.Sorted(slices.Values(all)))
	if len(values) > shown {
		values = nil
	}
	return point{least, sum / quantiles, most, values}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile is randomness that always draws the same part of what there is.
type quantile float64

var _ backoff.Rand = quantile(0)

// Float64 implements backoff.Rand.
func (q quantile) Float64() float64 { return float64(q) }

// IntN implements backoff.Rand.
func (q quantile) IntN(n int) int { return int(float64(q) * float64(n)) }

// total is the sum over the first n failures, or as many as there are.
func (c curve) total(n int) point {
	var t point
	for _, p := range c.points[:min(n, len(c.points))] {
		t.least, t.mean, t.most = t.least+p.least, t.mean+p.mean, t.most+p.most
	}
	return t
}
