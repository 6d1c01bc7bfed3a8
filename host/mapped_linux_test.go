//go:build linux && (amd64 || arm64) && !portable

package host

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Where as many memories are mapped as may be a guest of a large image takes the instance of one that is
// idle, whoever is awake, and gets no copy of megabytes.
func TestGuestsOfLargeImagesTakeTurns(t *testing.T) {
	code, err := os.ReadFile("testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	m.Memories[0].Min += 4
	m.Data = append(m.Data, wasm.Data{Offset: wasm.Expr{0x41, 0x80, 0x80, 0x04, 0x0b}, Bytes: bytes.Repeat([]byte{1}, 4<<16)}) // at 64 KiB
	for name, c := range map[string]struct {
		mapped int
		idle   time.Duration
		asleep int
	}{
		"3 are mapped":                    {3, DefaultIdleAfter, 37},
		"as many as Linux grants":         {0, DefaultIdleAfter, 0},
		"3 are mapped, and nobody sleeps": {3, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMostMapped(c.mapped)))(t)
			t.Cleanup(func() { _ = engine.Close(t.Context()) })
			heavy := Guest(must(engine.Load(t.Context(), m.Encode(), sandbox.ImageConfig{Name: "heavy"}))(t), "echo")
			sys := newSystem(t, NewConfig("mapped").WithManual().WithClock(NewVirtualClock(time.Unix(1000, 0))).WithIdleAfter(c.idle))
			var refs []Ref
			for i := range 40 {
				refs = append(refs, must(sys.Spawn(fmt.Sprint("g", i), heavy))(t))
				sys.RunUntilIdle(1 << 20)
			}
			for round := range 3 {
				for _, r := range refs {
					if got := answer(t, sys, r, round+1); fmt.Sprint(got) != fmt.Sprint(round+1) {
						t.Fatalf("%v, not %d", got, round+1)
					}
				}
			}
			if s := sys.Stats(); s.Asleep != c.asleep || s.Crashes != 0 {
				t.Errorf("%d are asleep", s.Asleep)
			}
		})
	}
}
