package router

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"pgregory.net/rapid"
)

func routeesOf(names []string) []Routee {
	out := make([]Routee, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}

func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, strconv.Itoa(i))
	}
	return names
}

// where is the name of who has a key.
func where(r *ring, seed uint64, names []string, key string) string {
	return names[r.points[r.find(hash(seed, key))].routee]
}

// One routee less: only its keys move. One more: keys move to it, and no others.
func TestRingMovesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		each := rapid.IntRange(1, 50).Draw(t, "points")
		names := numbered(rapid.IntRange(2, 20).Draw(t, "routees"))
		out := rapid.IntRange(0, len(names)-1).Draw(t, "out")
		less := append(append([]string{}, names[:out]...), names[out+1:]...)
		var all, without ring
		all.fill(seed, each, func(i int) string { return names[i] }, len(names))
		without.fill(seed, each, func(i int) string { return less[i] }, len(less))
		for i := range 300 {
			key := strconv.Itoa(i)
			before, after := where(&all, seed, names, key), where(&without, seed, less, key)
			if before != names[out] && before != after {
				t.Fatalf("the key %s has moved from %s to %s", key, before, after)
			}
			if before == names[out] && after == names[out] {
				t.Fatalf("the key %s is at one that has gone", key)
			}
		}
	})
}

// The order of the routees does not decide, only their names.
func TestRingGoesByNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := numbered(rapid.IntRange(1, 20).Draw(t, "routees"))
		other := rapid.Permutation(names).Draw(t, "order")
		var a, b ring
		a.fill(1, 5, func(i int) string { return names[i] }, len(names))
		b.fill(1, 5, func(i int) string { return other[i] }, len(other))
		for i := range 100 {
			if key := strconv.Itoa(i); where(&a, 1, names, key) != where(&b, 1, other, key) {
				t.Fatal(key)
			}
		}
	})
}

// The more points, the more even: with v points the share of one deviates by about 1/sqrt(v) of
// the mean.
func TestRingIsBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := rapid.IntRange(2, 16).Draw(t, "routees")
		names := numbered(n)
		for _, v := range []int{10, 1000} {
			var r ring
			r.fill(seed, v, func(i int) string { return names[i] }, n)
			count := map[string]int{}
			const keys = 20_000
			for i := range keys {
				count[where(&r, seed, names, strconv.Itoa(i))]++
			}
			mean := float64(keys) / float64(n)
			bound := mean * (1 + 6/math.Sqrt(float64(v))) // 6 standard deviations of a point's share
			for name, k := range count {
				if float64(k) > bound+6*math.Sqrt(mean) {
					t.Fatalf("%d points: %s has %d keys, the mean is %.0f", v, name, k, mean)
				}
			}
		}
	})
}

// With a bounded load nobody has more waiting than the bound, and a message goes to its own
// routee while that has room.
func TestBoundedLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "routees")
		factor := rapid.Float64Range(1.01, 3).Draw(t, "bound")
		loads := make([]int, n)
		h := ConsistentHashing(Hashing{Load: factor, VirtualNodes: 20})(7).(*hashing)
		routees := routeesOf(numbered(n))
		h.Changed(routees)
		h.waiting = func(r *Routee) int { i, _ := strconv.Atoi(r.Name); return loads[i] }
		keys := rapid.IntRange(1, 5).Draw(t, "keys")
		for i := range rapid.IntRange(1, 200).Draw(t, "messages") {
			m := host.Message{Headers: abi.AppendHeader(nil, HeaderKey, strconv.Itoa(i%keys))}
			picked, err := h.Pick(nil, &m, routees)
			if err != nil {
				t.Fatal(err)
			}
			loads[picked[0]]++
			total := 0
			for _, l := range loads {
				total += l
			}
			if most := int(math.Ceil(factor * float64(total) / float64(n))); loads[picked[0]] > most {
				t.Fatalf("%d of %d messages for one of %d", loads[picked[0]], total, n)
			}
			own := h.ring.points[h.ring.find(hash(h.seed, strconv.Itoa(i%keys)))].routee
			if before := total - 1; picked[0] != own && float64(loads[own]) < math.Floor(factor*float64(before)/float64(n)) {
				t.Fatal("a routee with room was passed over")
			}
		}
	})
}

// A resizer stays within its bounds whatever the pressure, and with steady pressure it settles.
func TestResizerSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Resizer{
			Lower: rapid.IntRange(1, 20).Draw(t, "lower"), Pressure: 1, RampUp: rapid.Float64Range(0, 3).Draw(t, "ramp-up"),
			BackoffThreshold: rapid.Float64Range(0, 1).Draw(t, "threshold"), BackoffRate: rapid.Float64Range(0, 1).Draw(t, "rate"), Every: 1,
		}
		r.Upper = r.Lower + rapid.IntRange(0, 50).Draw(t, "more")
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(0, 100).Draw(t, "n")
		for range 50 {
			pressed := rapid.IntRange(0, max(n, 0)).Draw(t, "pressed")
			if n += r.Change(pressed, n); n < r.Lower || n > r.Upper {
				t.Fatalf("%d is not from %d to %d", n, r.Lower, r.Upper)
			}
		}
		for range 200 {
			before := n
			if n += r.Change(n, n); n < before && r.BackoffThreshold < 1 {
				t.Fatalf("full pressure shrinks %d to %d", before, n)
			}
		}
		if n != r.Upper && r.RampUp > 0 {
			t.Fatalf("under full pressure %d of %d", n, r.Upper)
		}
		for range 200 {
			n += r.Change(0, n)
		}
		if n != r.Lower && r.BackoffThreshold > 0 && r.BackoffRate > 0 && r.RampUp == 0 {
			t.Fatalf("without pressure %d of %d", n, r.Lower)
		}
	})
}

// A question asks every routee once, in an order of its own, whoever comes and goes meanwhile: none of
// those that stay is left out, and nobody is asked twice.
func TestOrderOfAQuestion(t *testing.T) {
	firsts := map[uint64]int{}
	rapid.Check(t, func(t *rapid.T) {
		var h head
		for range rapid.IntRange(1, 30).Draw(t, "routees") {
			h.join(Routee{})
		}
		began := h.numbers
		q := question{seed: rapid.Uint64().Draw(t, "seed")}
		asked, gone := map[uint64]bool{}, map[uint64]bool{}
		for {
			switch rapid.IntRange(0, 4).Draw(t, "meanwhile") {
			case 0:
				if n := len(h.routees); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "goes")
					gone[h.routees[i].number] = true
					h.routees = append(h.routees[:i:i], h.routees[i+1:]...)
				}
			case 1:
				if h.numbers < 100 {
					h.join(Routee{})
				}
			}
			i := q.following(h.routees)
			if i < 0 {
				break
			}
			r := &h.routees[i]
			if asked[r.number] {
				t.Fatalf("%d is asked twice", r.number)
			}
			if asked[r.number] = true; q.sent == 0 {
				firsts[r.number]++
			}
			q.passed = q.rank(r)
			q.sent++
		}
		for number := uint64(1); number <= began; number++ {
			if !asked[number] && !gone[number] {
				t.Fatalf("%d was left out", number)
			}
		}
	})
	if len(firsts) < 5 {
		t.Errorf("always the same begin: %v", firsts)
	}
}

// A key is found in a map, and whatever else the payload is, it is none.
func TestFieldOfPayload(t *testing.T) {
	h := ConsistentHashing(Hashing{Field: "user"})(1).(*hashing)
	routees := routeesOf(numbered(3))
	h.Changed(routees)
	big := map[string]any{"user": 7, "aa": make([]byte, MaxKeyed)}
	many := map[string]int{}
	for i := range MaxFields + 1 {
		many[fmt.Sprint(i)] = i
	}
	many["users"] = 1
	for _, c := range []struct {
		v  any
		ok bool
	}{
		{map[string]any{"user": "a"}, true}, {map[string]any{"a": []int{1, 2}, "user": 7, "z": nil}, true}, {map[any]any{1: 2, "user": nil}, true},
		{map[string]any{"users": 1}, false}, {[]string{"user", "a"}, false}, {"user", false}, {nil, false}, {big, false}, {many, false}, {map[string]any{}, false},
	} {
		payload, err := host.Encode(c.v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Pick(nil, &host.Message{Payload: payload}, routees); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNoKey) {
			t.Errorf("%.60v: %v", c.v, err)
		}
	}
}

func FuzzField(f *testing.F) {
	f.Add([]byte{0xa1, 0x61, 'k', 7})
	f.Add([]byte{0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0xa2, 0x81, 0x81, 1, 1, 0x61, 'k'})
	f.Fuzz(func(t *testing.T, b []byte) {
		h := ConsistentHashing(Hashing{Field: "k"})(1).(*hashing)
		if key := h.field(b); key != nil && len(key) > len(b) {
			t.Error("a key that is longer than the payload")
		}
	})
}

func TestHashingChecked(t *testing.T) {
	for _, h := range []Hashing{{VirtualNodes: -1}, {VirtualNodes: MaxVirtualNodes + 1}, {Load: 1}, {Load: 0.5}, {Load: math.NaN()}, {Header: string(make([]byte, 65))}} {
		if h.Check() == nil {
			t.Errorf("%+v", h)
		}
	}
	if err := (Hashing{Load: 1.25, VirtualNodes: 100, Header: "x"}).Check(); err != nil {
		t.Error(err)
	}
}
