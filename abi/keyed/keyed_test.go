package keyed

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

func TestKeysHaveNames(t *testing.T) {
	for key, want := range map[string]string{
		"ann": "ann", "a/b": "a~2Fb", "a~b": "a~7Eb", ".": "~2E", "..": "~2E~2E", "...": "...", "a#7": "a~237", "\x00\xff": "~00~FF",
		"{id}": "~7Bid~7D", "*": "~2A", "é": "~C3~A9", strings.Repeat("k", abi.MaxName): strings.Repeat("k", abi.MaxName),
	} {
		name, ok := Name(key)
		if again, back := Key(name); !ok || name != want || !back || again != key || !abi.ValidName([]byte(name)) {
			t.Errorf("%q: %q, %v; back: %q, %v", key, name, ok, again, back)
		}
	}
	for _, key := range []string{"", strings.Repeat("k", abi.MaxName+1), strings.Repeat("/", abi.MaxName/3+1)} {
		if name, ok := Name(key); ok {
			t.Errorf("%.20q has the name %.20q", key, name)
		}
	}
	for _, name := range []string{"", ".", "..", "~", "a~4", "~41", "~2f", "~zz", "a b", "a/b", "~2E~2E~2E", strings.Repeat("k", abi.MaxName+1)} {
		if key, ok := Key(name); ok {
			t.Errorf("%.20q is the name of %.20q", name, key)
		}
	}
}

// Each key has a name of its own.
func FuzzName(f *testing.F) {
	f.Add("ann", "a~6En")
	f.Add("..", "~2E~2E")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, ok := Name(a)
		if !ok {
			return
		}
		if back, known := Key(x); !known || back != a || !abi.ValidName([]byte(x)) || x == "." || x == ".." {
			t.Errorf("%q: %q, back %q, %v", a, x, back, known)
		}
		if y, ok := Name(b); ok && (x == y) != (a == b) {
			t.Errorf("%q and %q: %q and %q", a, b, x, y)
		}
		if key, ok := Key(b); ok {
			if again, valid := Name(key); !valid || again != b {
				t.Errorf("%q is the name of %q, whose name is %q", b, key, again)
			}
		}
	})
}
