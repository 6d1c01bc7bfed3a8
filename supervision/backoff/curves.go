package backoff

import (
	"math"
	"slices"
	"time"
)

// Constant waits the same every time.
func Constant(d time.Duration) Curve { return CurveFunc(func(int) time.Duration { return d }) }

// Exponential is min * factor^n, at most limit (semantics of Akka's and
// actor-ts's supervisors with factor 2). min and limit are positive, factor is at
// least 1.
func Exponential(least, limit time.Duration, factor float64) Curve {
	return CurveFunc(func(n int) time.Duration {
		d := saturate(math.Round(float64(least) * math.Pow(factor, float64(n))))
		return min(d, limit)
	})
}

// Linear is min + step*n, at most limit.
func Linear(least, limit, step time.Duration) Curve {
	return CurveFunc(func(n int) time.Duration {
		if step > 0 && int64(n) > (int64(Max)-int64(least))/int64(step) {
			return limit
		}
		return min(least+time.Duration(n)*step, limit)
	})
}

// Quadratic is delay * (n+1)^2, at most limit: the curve of the RxJava operator
// ExpBackoff, which is quadratic in spite of its name.
func Quadratic(delay, limit time.Duration) Curve {
	return CurveFunc(func(n int) time.Duration {
		r := float64(n) + 1
		return min(saturate(float64(delay)*r*r), limit)
	})
}

// lastFibonacci is the last step below the maximum: F(93) is greater than Max.
const lastFibonacci = 92

// Fibonacci is unit * F(n+1) with F = 1, 1, 2, 3, 5, ..., at most limit.
func Fibonacci(unit, limit time.Duration) Curve {
	return CurveFunc(func(n int) time.Duration {
		a, b := unit, unit
		for range min(n, lastFibonacci) {
			a, b = b, a+min(b, Max-a)
		}
		return min(a, limit)
	})
}

// The four functions of OpenStack Zaqar. They go from min to limit in num steps;
// later attempts wait limit. With num = 1 the only step is min.

// ZaqarLinear is min + I*n. Zaqar's text divides by num (I = (limit-min)/num)
// and so never reaches limit, though it says so; with reach set it divides by
// num-1 and the last step is limit.
func ZaqarLinear(least, limit time.Duration, num int, reach bool) Curve {
	div := float64(num)
	if reach {
		div = float64(num - 1)
	}
	return zaqar(least, limit, num, !reach, func(n float64) float64 {
		return float64(least) + float64(limit-least)/div*n
	})
}

// ZaqarArithmetic is min + n(n+1)/2*d with d = 2(limit-min)/(num(num-1)).
func ZaqarArithmetic(least, limit time.Duration, num int) Curve {
	d := 2 * float64(limit-least) / (float64(num) * float64(num-1))
	return zaqar(least, limit, num, false, func(n float64) float64 { return float64(least) + n*(n+1)/2*d })
}

// ZaqarGeometric is min*K^n with K = (limit/min)^(1/(num-1)).
func ZaqarGeometric(least, limit time.Duration, num int) Curve {
	k := math.Pow(10, math.Log10(float64(limit)/float64(least))/float64(num-1))
	return zaqar(least, limit, num, false, func(n float64) float64 { return float64(least) * math.Pow(k, n) })
}

// ZaqarExponential is p*k^(n+1) with p = min/k: algebraically ZaqarGeometric.
func ZaqarExponential(least, limit time.Duration, num int) Curve {
	k := math.Pow(10, math.Log10(float64(limit)/float64(least))/float64(num-1))
	p := float64(least) / k
	return zaqar(least, limit, num, false, func(n float64) float64 { return p * math.Pow(k, n+1) })
}

// zaqar rounds to nanoseconds and hits the ends exactly. With short set the last
// step is as computed and not limit.
func zaqar(least, limit time.Duration, num int, short bool, f func(n float64) float64) Curve {
	return CurveFunc(func(n int) time.Duration {
		switch {
		case n <= 0:
			return least
		case n >= num || n == num-1 && !short:
			return limit
		}
		return min(max(saturate(math.Round(f(float64(n)))), least), limit) // floats of long durations are rounded
	})
}

// Table waits as listed, at least one delay, and as the last of them from there on.
func Table(delays ...time.Duration) Curve {
	delays = slices.Clone(delays)
	return CurveFunc(func(n int) time.Duration { return delays[min(n, len(delays)-1)] })
}
