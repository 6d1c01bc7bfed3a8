package main

import (
	"fmt"
	"math"
	"time"
)

// style is what bundle.yaml promises of a client, by the formula of its source.
// Delays are in milliseconds.
type style struct {
	name string
	// allowed says what is wrong with the delay after failure n, from 1.
	allowed func(n int, delay float64) error
	// stable is how long a client must have lived for its failures to be counted
	// anew; 0 if it says itself when they are, namely when an order is accepted.
	stable time.Duration
}

var styles = []style{
	{name: "xebia", allowed: slotted(1, 10)},
	{name: "rxjava", allowed: band(0.85, 1.15, func(n float64) float64 { return 5 * n * n })},
	{name: "zaqar-linear", allowed: exactly(func(n float64) float64 { return 5 + (n-1)*(260-5)/10 })},
	{name: "zaqar-arithmetic", allowed: exactly(func(n float64) float64 { return 5 + n*(n-1)/2*2*(260-5)/(10*9) })},
	{name: "zaqar-geometric", allowed: exactly(func(n float64) float64 { return 5 * math.Pow(260./5, (n-1)/9) })},
	{name: "zaqar-exponential", allowed: exactly(func(n float64) float64 {
		k := math.Pow(260./5, 1./9)
		return 5 / k * math.Pow(k, n)
	})},
	{name: "actor-ts", allowed: band(0.8, 1.2, func(n float64) float64 { return min(2*math.Pow(2, n-1), 100) }), stable: 600 * time.Millisecond},
	{name: "akka", allowed: band(1, 1.2, func(n float64) float64 { return min(3*math.Pow(2, n-1), 30) })},
}

// rounding is what a delay may be off: it is whole nanoseconds.
const rounding = 1e-5

func band(least, most float64, base func(n float64) float64) func(int, float64) error {
	return func(n int, delay float64) error {
		lo, hi := base(float64(n))*least, base(float64(n))*most
		if delay < lo-rounding || delay > hi+rounding {
			return fmt.Errorf("%.3f ms after failure %d, the curve has %.3f to %.3f", delay, n, lo, hi)
		}
		return nil
	}
}

func exactly(base func(n float64) float64) func(int, float64) error { return band(1, 1, base) }

// slotted allows slot*(2^e-1) with e from 0 to n, and nothing at the ceiling.
func slotted(slot float64, ceiling int) func(int, float64) error {
	return func(n int, delay float64) error {
		most := n
		if n == ceiling {
			most = 0
		}
		for e := 0; e <= most; e++ {
			if math.Abs(delay-slot*(math.Pow(2, float64(e))-1)) < rounding {
				return nil
			}
		}
		return fmt.Errorf("%.3f ms after failure %d, which is none of the 2^e-1 slots with e up to %d", delay, n, most)
	}
}
