package alarm

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/clock"
	"pgregory.net/rapid"
)

// Whatever is set, stopped and rung: what is pending is what can still ring.
func TestPendingIsWhatCanStillRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := clock.NewVirtual(time.Unix(0, 0))
		var b Board
		var all []Alarm
		rung, stopped := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				d := time.Duration(rapid.IntRange(-5, 50).Draw(t, "d"))
				all = append(all, b.After(v, d, func() {
					rung++
					if b.Pending() == 0 {
						t.Fatal("not pending while it rings")
					}
				}))
			},
			"stop": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip()
				}
				if all[rapid.IntRange(0, len(all)-1).Draw(t, "i")].Stop() {
					stopped++
				}
			},
			"pass": func(t *rapid.T) { v.Advance(time.Duration(rapid.IntRange(0, 30).Draw(t, "by"))) },
			"": func(t *rapid.T) {
				if want := len(all) - rung - stopped; b.Pending() != want || v.Pending() != want {
					t.Fatalf("%d are pending, want %d", b.Pending(), want)
				}
			},
		})
	})
	if (Alarm{}).Stop() {
		t.Error("an alarm that was never set was stopped")
	}
}
