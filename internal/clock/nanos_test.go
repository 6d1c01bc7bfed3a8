package clock

import (
	"testing"
	"time"
)

// TestNanos: on the machine's clock it is close to it, also after a second, and a time of it is itself; on another one
// it is exact, and a time of the machine's is as far away as there.
func TestNanos(t *testing.T) {
	var n Nanos
	n.Init(Real())
	for range 2 {
		before, got := time.Now(), n.Now()
		if got < before.UnixNano()-int64(time.Second) || got > time.Now().UnixNano()+int64(time.Second) || !n.Real() {
			t.Errorf("%d at %d", got, before.UnixNano())
		}
		if d := time.Duration(n.Of(before.Add(time.Minute), got) - got); d < 59*time.Second || d > time.Minute {
			t.Errorf("a minute away is %v away", d)
		}
		// The anchor is renewed after a second, and what was added to it until then is forgotten.
		n.anchor.Store(&anchor{before.Add(-2 * time.Second), 0})
	}
	v := NewVirtual(epoch)
	n = Nanos{}
	n.Init(v)
	for range 3 {
		v.Advance(time.Nanosecond)
		if n.Now() != v.Now().UnixNano() || n.Real() {
			t.Errorf("%d, not %d", n.Now(), v.Now().UnixNano())
		}
	}
	now := n.Now()
	if d := time.Duration(n.Of(time.Now().Add(time.Minute), now) - now); d < 59*time.Second || d > time.Minute {
		t.Errorf("a minute away is %v away", d)
	}
}
