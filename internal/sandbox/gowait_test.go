package sandbox

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// TestGoGuestThatWaits: what cannot end within a turn fails it at once, and says
// where; goroutines and timers as such are fine.
func TestGoGuestThatWaits(t *testing.T) {
	goSetups(t, func(t *testing.T, e *Engine) {
		x := get(t, loadGo(t, e, ImageConfig{Env: []string{"GREETING=hello"}, MemoryLimit: 32 << 20})) // the image of TestGoGuest
		defer x.Put()
		for _, c := range []struct {
			what  byte
			value uint64
			fails string // how the failure's message begins
			where string
		}{
			{what: 13, value: 3},
			{what: 14},
			{what: 15},
			{what: 16},
			{20, 0, "the guest waits within a turn", "time.Sleep("},
			{21, 0, "fatal error: all goroutines are asleep", "[chan receive]"},
			{22, 0, "fatal error: all goroutines are asleep", "[select (no cases)]"},
			{23, 0, "the guest waits within a turn", "[select]"},
			{24, 0, "fatal error: all goroutines are asleep", "[sync.Mutex.Lock]"},
			{25, 0, "the guest waits within a turn", "[chan receive]"},
		} {
			log := &logLines{}
			in := &Entry{Now: 1_700_000_000_000_000_123, TurnFuel: 100_000_000, Log: log}
			v, f := say(t, x, in, c.what)
			switch {
			case c.fails == "":
				if f != nil || v != c.value {
					t.Errorf("%d: %d, %v", c.what, v, f)
				}
			case f == nil || f.Kind != abi.FailureGuestPanic || !strings.HasPrefix(f.Message, c.fails):
				t.Errorf("%d: %v", c.what, f)
			case !strings.HasPrefix(f.GuestStack, "goroutine ") || !strings.Contains(f.GuestStack, c.where) || !strings.Contains(f.GuestStack, "main.wait("):
				t.Errorf("%d: the stack is %s", c.what, f.GuestStack)
			}
			if len(*log) > 40 {
				t.Errorf("%d: %d lines logged", c.what, len(*log))
			}
			if f != nil {
				if err := x.Reset(); err != nil {
					t.Fatal(err)
				}
			}
			if v, f := say(t, x, in, 0); f != nil || v != 0 {
				t.Errorf("%d: the turn after it: %d, %v", c.what, v, f)
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
		}
		if _, f := say(t, x, &Entry{Now: 1_700_000_000_000_000_123, TurnFuel: 1_500_000}, 20); f == nil || f.Kind != abi.FailureFuel || f.Message != waited {
			t.Errorf("out of fuel while dying: %v", f)
		}
	})
}

// TestWaitIsCountedATurn: a guest that does not mind being refused is ended, and
// the count starts over with each turn.
func TestWaitIsCountedATurn(t *testing.T) {
	e := newEngine(t, NewConfig().WithCacheDir(t.TempDir()))
	i := load(t, e, "sleeper", ImageConfig{})
	x := get(t, i)
	defer x.Put()
	for _, c := range []struct {
		waits byte
		ok    bool
	}{{maxWaits - 1, true}, {2*maxWaits - 1, true}, {2 * maxWaits, false}, {1, true}} {
		in := &Entry{TurnFuel: 1_000_000}
		refused, f := say(t, x, in, c.waits)
		if (f == nil) != c.ok {
			t.Errorf("%d waits: %v", c.waits, f)
		}
		switch {
		case f != nil:
			if f.Kind != abi.FailureGuestPanic || f.Message != waited {
				t.Errorf("%+v", f)
			}
			if err := x.Reset(); err != nil {
				t.Fatal(err)
			}
		case refused != uint64(c.waits)/maxWaits:
			t.Errorf("%d of %d waits were refused", refused, c.waits)
		}
	}
}
