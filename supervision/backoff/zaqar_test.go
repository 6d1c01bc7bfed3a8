package backoff

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// OpenStack Zaqar's four functions. MIN 5, MAX 260, NUM 10 in
// backoff_test.go; here what follows from the table.

func zaqarSteps(t testing.TB, curve string) (d []time.Duration) {
	p := build(t, Spec{Curve: curve, Min: 5 * time.Second, Max: 260 * time.Second, Num: 10, Jitter: "none"})
	for n := range 10 {
		d = append(d, p.Delay(n, none{}))
	}
	return d
}

func TestC_1_3_SumsAndEnds(t *testing.T) {
	for curve, want := range map[string]struct{ sum, last float64 }{
		"zaqar-linear": {1197.5, 234.5}, "zaqar-linear-reach": {1325, 260}, "zaqar-arithmetic": {985, 260},
		"zaqar-geometric": {722.629268, 260}, "zaqar-exponential": {722.629268, 260},
	} {
		d := zaqarSteps(t, curve)
		var sum time.Duration
		for _, x := range d {
			sum += x
		}
		if math.Abs(sum.Seconds()-want.sum) > 1e-6 || d[9].Seconds() != want.last { // exactly: no floor to 259
			t.Errorf("%s: sum %v, last %v; want %v, %v", curve, sum.Seconds(), d[9].Seconds(), want.sum, want.last)
		}
	}
}

func TestC_1_3_Order(t *testing.T) {
	linear, arithmetic, geometric, exponential := zaqarSteps(t, "zaqar-linear"), zaqarSteps(t, "zaqar-arithmetic"), zaqarSteps(t, "zaqar-geometric"), zaqarSteps(t, "zaqar-exponential")
	for i := 1; i < 9; i++ {
		if geometric[i] > arithmetic[i] || arithmetic[i] > linear[i] {
			t.Errorf("n = %d: geometric %v, arithmetic %v, linear %v", i+1, geometric[i], arithmetic[i], linear[i])
		}
	}
	if arithmetic[8] != linear[8] {
		t.Errorf("n = 9: arithmetic %v, linear %v", arithmetic[8], linear[8])
	}
	for i := range geometric {
		if d := geometric[i] - exponential[i]; d < -1 || d > 1 {
			t.Errorf("n = %d: geometric and exponential differ by %v", i+1, d)
		}
	}
}

var zaqarCurves = []string{"zaqar-linear", "zaqar-linear-reach", "zaqar-arithmetic", "zaqar-geometric", "zaqar-exponential"}

func TestC_1_3_Undefined(t *testing.T) {
	for _, curve := range zaqarCurves {
		one := build(t, Spec{Curve: curve, Min: 5, Max: 260, Num: 1, Jitter: "none"})
		if a, b := one.Delay(0, none{t}), one.Delay(1, none{t}); a != 5 || b != 260 {
			t.Errorf("%s, NUM = 1: %v, %v", curve, a, b)
		}
		flat := build(t, Spec{Curve: curve, Min: 5, Max: 5, Num: 10, Jitter: "none"})
		for n := range 12 {
			if d := flat.Delay(n, none{t}); d != 5 {
				t.Errorf("%s, MIN = MAX: %v at %d", curve, d, n)
			}
		}
		for name, s := range map[string]Spec{"num": {Min: 5, Max: 260}, "min": {Max: 260, Num: 10}, "max": {Min: 5, Max: 4, Num: 10}} {
			s.Curve = curve
			if _, err := s.Policy(); err == nil || err.(*ParameterError).Name != name {
				t.Errorf("%s without %s: %v", curve, name, err)
			}
		}
	}
}

// The last of NUM steps is MAX to the nanosecond, however the floats round. The
// linear curve of Zaqar's text stops one step short of it.
func TestC_1_3_LastStepIsMax(t *testing.T) {
	const limit = 1<<62 + 1 // no float64 is this number
	for num := 2; num < 50; num++ {
		for _, curve := range zaqarCurves[1:] {
			p := build(t, Spec{Curve: curve, Min: 3, Max: limit, Num: num})
			if d := p.Delay(num-1, none{t}); d != limit {
				t.Errorf("%s of %d steps: %d, want %d", curve, num, d, limit)
			}
		}
	}
}

// From MIN to MAX, never back.
func TestZaqarRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.Int64Range(1, int64(Max)).Draw(t, "min"))
		limit := time.Duration(rapid.Int64Range(int64(least), int64(Max)).Draw(t, "max"))
		num := rapid.IntRange(1, 200).Draw(t, "num")
		p, err := Spec{Curve: rapid.SampledFrom(zaqarCurves).Draw(t, "curve"), Min: least, Max: limit, Num: num, Jitter: "none"}.Policy()
		if err != nil {
			t.Fatal(err)
		}
		last := least
		for n := range num + 2 {
			d := p.Delay(n, none{})
			if d < last || d > limit {
				t.Fatalf("n = %d: %v after %v, in [%v, %v]", n, d, last, least, limit)
			}
			last = d
		}
	})
}
