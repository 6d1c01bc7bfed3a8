package tracing

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func id(n int) (t [16]byte) {
	t[0], t[1], t[2] = 1, byte(n>>8), byte(n)
	return t
}

// A tree that has had its share cannot take the last half of the rate from the others.
func TestOneTreeLeavesRoomForOthers(t *testing.T) {
	var l limits
	l.init(Bounds{Rate: 160, Spans: 1 << 20})
	now := time.Unix(1, 0)
	greedy := 0
	for l.take(id(1), "/user/greedy", now) {
		greedy++
	}
	if greedy != 81 {
		t.Errorf("%d spans for one", greedy)
	}
	others := 0
	for i := range 8 {
		for l.take(id(2+i), "/user/"+string(rune('a'+i)), now) {
			others++
		}
	}
	if others != 79 {
		t.Errorf("%d spans for eight others", others)
	}
	now = now.Add(time.Second)
	if !l.take(id(1), "/user/greedy", now) {
		t.Error("the bucket is not full again")
	}
}

// Whatever happens: no trace has more than its spans, no more traces are remembered than may
// be, and no more is recorded than the rate allows.
func TestLimitsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bounds{Spans: rapid.IntRange(1, 5).Draw(t, "spans"), Rate: rapid.IntRange(1, 50).Draw(t, "rate"), Traces: rapid.IntRange(1, 4).Draw(t, "traces")}
		var l limits
		l.init(b)
		begin := time.Unix(1000, 0)
		now := begin
		taken := 0
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "ms")) * time.Millisecond)
			tree := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tree")
			n := rapid.IntRange(0, 6).Draw(t, "trace")
			if rapid.Bool().Draw(t, "root") {
				if _, known := l.traces[id(n)]; !known && l.mayBegin(tree, now) {
					l.begin(id(n), tree)
					taken++
				}
			} else if l.take(id(n), tree, now) {
				taken++
			}
			for at, n := range l.traces {
				if n > b.Spans {
					t.Fatalf("%x has %d spans", at, n)
				}
			}
			if len(l.traces) > b.Traces || len(l.order) > b.Traces {
				t.Fatalf("%d traces", len(l.traces))
			}
		}
		if most := float64(b.Rate) * (1 + now.Sub(begin).Seconds()); float64(taken) > most+1e-6 || uint64(taken) != l.stats().Recorded {
			t.Fatalf("%d spans, at most %v", taken, most)
		}
	})
}

func TestTreeOf(t *testing.T) {
	for path, want := range map[string]string{"/user/a": "/user/a", "/user/a/b/c": "/user/a", "/user": "/user", "": "", "/system/x/y": "/system/x"} {
		if got := treeOf(path); got != want {
			t.Errorf("%q: %q", path, got)
		}
	}
}
