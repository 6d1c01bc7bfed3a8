package guests

import (
	"math"
	"testing"

	"github.com/wasmactors/wasmactors/host/metrics/exposition"
)

// Whatever a guest sends, what is taken of it is granted, finite and bounded.
func FuzzUpdates(f *testing.F) {
	f.Add([]byte("\x81\x82\x67n_total\x01"))
	f.Add([]byte("\x82\x82\x61g\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00\x82\x61h\x20"))
	f.Add([]byte("\x81\x82\x61g\xfb\x7f\xf8\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x81\x82\x61g\x1b\xff\xff\xff\xff\xff\xff\xff\xff"))
	s, err := New(map[string][]Metric{"/user/a": {{Name: "n_total", Kind: exposition.Counter}, {Name: "g", Kind: exposition.Gauge}, {Name: "h", Kind: exposition.Histogram}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		_, g := s.grantOf("/user/a/b")
		all, err := g.read(payload)
		if err != nil && len(all) > 0 || len(all) > MaxUpdates {
			t.Fatalf("%d updates, %v", len(all), err)
		}
		for _, c := range all {
			if !(math.Abs(c.value) <= MaxValue) || c.of.Kind == exposition.Counter && c.value < 0 || g.by[c.of.Name] != c.of {
				t.Fatalf("%s: %v", c.of.Name, c.value)
			}
		}
	})
}
