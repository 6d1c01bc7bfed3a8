// Package jitter adds a jitter to those of supervision/backoff.
package jitter

import (
	"time"

	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Triangular is base*[1-f, 1+f), most often near base: the mean of two uniform draws. f is
// from 0 to 1.
func Triangular(f float64) backoff.Jitter {
	f = min(max(f, 0), 1)
	return backoff.JitterFunc(func(base time.Duration, rnd backoff.Rand) time.Duration {
		mean := (rnd.Float64() + rnd.Float64()) / 2
		d := float64(base) * (1 - f + 2*f*mean)
		if d >= float64(backoff.Max) {
			return backoff.Max // a conversion would overflow
		}
		return time.Duration(d)
	})
}

// Supervision restarts children that fail after 100 ms, 200 ms and so on to 10 s, with
// this jitter.
func Supervision() supervision.Strategy {
	curve := backoff.Exponential(100*time.Millisecond, 10*time.Second, 2)
	return supervision.Default().WithBackoff(supervision.Backoff{Policy: backoff.WithJitter(curve, Triangular(0.3))})
}
