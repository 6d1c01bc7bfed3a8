package throttle

import (
	"math/rand"
	"testing"
	"time"
)

var epoch = time.Unix(1_700_000_000, 0)

func ms(n int) time.Time { return epoch.Add(time.Duration(n) * time.Millisecond) }

// TestK20_Meter: three in a second; the interval begins with the first start, and what is not used is lost.
func TestK20_Meter(t *testing.T) {
	m := NewMeter(Rate{3, time.Second})
	for _, c := range []struct {
		at   int
		ok   bool
		wait int // before, in ms
	}{
		{300, true, 0}, {400, true, 0}, {1299, true, 0}, {1299, false, 1},
		{1300, true, 0}, // a new interval, from here to 2300
		{2299, true, 0}, {2299, true, 0}, {2299, false, 1}, {2300, true, 0},
		{9999, true, 0}, {10000, true, 0}, {10001, true, 0}, {10002, false, 997},
	} {
		if w := m.Wait(ms(c.at)); w != time.Duration(c.wait)*time.Millisecond {
			t.Errorf("at %d ms one waits %v, want %d ms", c.at, w, c.wait)
		}
		if ok := m.Take(ms(c.at)); ok != c.ok {
			t.Errorf("at %d ms: %v", c.at, ok)
		}
	}
	m.SetRate(Rate{5, time.Minute})
	for range 2 {
		if !m.Take(ms(10003)) {
			t.Error("the new rate does not hold at once")
		}
	}
	if m.Take(ms(69998)) || m.Wait(ms(10999)) != 59*time.Second || !m.Take(ms(69999)) || m.Wait(ms(69999)) != 0 || m.Rate().N != 5 {
		t.Error("the interval has not the new length")
	}
	m.SetRate(Rate{1, time.Millisecond}) // a shorter one, which is over
	if m.Take(ms(69999)) || m.Wait(ms(69999)) != time.Millisecond || !m.Take(ms(70000)) || m.Take(ms(70000)) {
		t.Error("the shorter interval does not hold at once")
	}
}

// Whatever comes when: no more than 2N starts in any time of an interval's length, and whoever waits as
// long as Wait says gets a voucher.
func TestMeterNeverExceeds(t *testing.T) {
	for seed := range int64(200) {
		rnd := rand.New(rand.NewSource(seed))
		r := Rate{1 + rnd.Intn(5), time.Duration(1+rnd.Intn(50)) * time.Millisecond}
		m := NewMeter(r)
		var starts []time.Time
		now := epoch
		for range 500 {
			if rnd.Intn(3) == 0 {
				now = now.Add(time.Duration(rnd.Intn(20)) * time.Millisecond)
			}
			if w := m.Wait(now); rnd.Intn(2) == 0 && w > 0 {
				if m.Take(now.Add(w - 1)) {
					t.Fatal("it said to wait")
				}
				now = now.Add(w)
				if !m.Take(now) {
					t.Fatalf("seed %d: no voucher after the wait", seed)
				}
				starts = append(starts, now)
			} else if m.Take(now) {
				starts = append(starts, now)
			}
		}
		for i := range starts {
			if j := i + 2*r.N; j < len(starts) && starts[j].Sub(starts[i]) < r.Per {
				t.Fatalf("seed %d: %d starts within %v", seed, 2*r.N+1, starts[j].Sub(starts[i]))
			}
		}
		if len(starts) < 10 {
			t.Fatalf("seed %d: only %d", seed, len(starts))
		}
	}
}

func TestRatesAreChecked(t *testing.T) {
	for _, r := range []Rate{{0, time.Second}, {1, 0}, {-1, -1}} {
		if r.Check() == nil {
			t.Errorf("%v", r)
		}
	}
	if err := (Rate{1, 1}).Check(); err != nil {
		t.Error(err)
	}
}
