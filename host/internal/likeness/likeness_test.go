package likeness_test

import (
	"runtime"
	"testing"

	"github.com/wasmactors/wasmactors/host/internal/likeness"
)

type thing struct {
	key string
	_   *int // a pointer, so that it is not allocated together with others
}

func TestShare(t *testing.T) {
	var l likeness.Last[thing]
	share := func(key string) *thing {
		found, again := l.Find([]byte(key), func(x *thing) bool { return x.key == key })
		if found == nil {
			if found = (&thing{key: key}); again {
				l.Keep(found)
			}
		}
		return found
	}
	a1, a2, a3, a4 := share("a"), share("a"), share("a"), share("a")
	if a1 == a2 || a2 != a3 || a3 != a4 {
		t.Errorf("made for one key in a row: %p %p %p %p", a1, a2, a3, a4)
	}
	b := share("b")
	if a5 := share("a"); a5 == a4 || b.key != "b" || a5.key != "a" {
		t.Error("what was made before another key is shared")
	}
	runtime.KeepAlive([]*thing{a1, a4})
}

// TestShareChecks: equal sums are a hint only, and what nobody uses any more is not kept.
func TestShareChecks(t *testing.T) {
	var l likeness.Last[thing]
	made := 0
	share := func(is bool) *thing {
		found, again := l.Find([]byte("k"), func(*thing) bool { return is })
		if found == nil {
			made++
			if found = (&thing{}); again {
				l.Keep(found)
			}
		}
		return found
	}
	share(true)
	x := share(true)
	if y := share(false); x == y || made != 3 {
		t.Error("shared though it is not the same")
	}
	runtime.KeepAlive(x)
	runtime.GC()
	if share(true); made != 4 {
		t.Error("kept alive")
	}
}
