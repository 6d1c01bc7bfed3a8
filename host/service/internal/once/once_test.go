package once

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/host"
)

// FuzzKept: what is read is what was written, or refused.
func FuzzKept(f *testing.F) {
	k := Kept{Key: [16]byte{1}, At: 5, Answer: []byte{7}}
	f.Add(k.Append(nil))
	f.Add([]byte{version})
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := Decode(b); err == nil && !bytes.Equal(k.Append(nil), b) {
			t.Errorf("%x is %+v", b, k)
		}
	})
}

// TestTheWindow: whatever an actor asks, in whatever order its requests are done, no key is dropped whose request can come again
// within Keep; and what stays is what is open, and the last one.
func TestTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var kept []Kept
		open := map[uint64]*Request{}
		number, now := uint64(0), int64(0)
		settled := func() uint64 {
			low := number + 1
			for n := range open {
				low = min(low, n)
			}
			return low
		}
		serve := func(r *Request) {
			has := slices.ContainsFunc(kept, func(k Kept) bool { return k.Is(r) })
			if !has {
				kept = slices.DeleteFunc(kept, func(k Kept) bool { return k.Dropped(r, now) })
				kept = append(kept, Kept{Number: r.Effect.Number, Key: r.Effect.Key, At: now})
			}
		}
		done := map[uint64]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				number++
				r := &Request{Life: 1, Effect: &host.Effect{Number: number, Key: [16]byte{byte(number), byte(number >> 8)}}}
				open[number] = r
				r.Effect.Settled = settled()
			},
			"serve": func(t *rapid.T) {
				for _, n := range rapid.SliceOfDistinct(rapid.SampledFrom(append(keys(open), 0)), rapid.ID).Draw(t, "which") {
					if r := open[n]; r != nil {
						serve(r)
						done[n] = true
					}
				}
			},
			"answer": func(t *rapid.T) {
				n := rapid.SampledFrom(append(keys(open), 0)).Draw(t, "which")
				if done[n] {
					delete(open, n)
				}
			},
			"crash": func(t *rapid.T) { // all that is open comes again
				for _, n := range keys(open) {
					open[n].Effect.Settled = settled()
				}
			},
			"later": func(t *rapid.T) { now += int64(Keep) / 1000 },
			"": func(t *rapid.T) {
				for n := range open {
					if i := slices.IndexFunc(kept, func(k Kept) bool { return k.Number == n }); done[n] && i < 0 {
						t.Fatalf("request %d may come again, and is forgotten", n)
					}
				}
			},
		})
	})
}

func keys(m map[uint64]*Request) (all []uint64) {
	for n := range m {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}
