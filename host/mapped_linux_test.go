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

// heavyEcho is echo.wasm with 256 KiB that are not zero, so that its memory is mapped.
func heavyEcho(t *testing.T, e *sandbox.Engine) Props {
	t.Helper()
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
	return Guest(must(e.Load(t.Context(), m.Encode(), sandbox.ImageConfig{Name: "heavy"}))(t), "echo")
}

// mappedSystem is a system in virtual time whose engine maps so many memories.
func mappedSystem(t *testing.T, mapped int, idle time.Duration) (*sandbox.Engine, *System) {
	t.Helper()
	engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMostMapped(mapped)))(t)
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	return engine, newSystem(t, NewConfig("mapped").WithManual().WithClock(NewVirtualClock(time.Unix(1000, 0))).WithIdleAfter(idle))
}

// Where as many memories are mapped as may be a guest of a large image takes the instance of one that is
// idle, whoever is awake, and gets no copy of megabytes.
func TestGuestsOfLargeImagesTakeTurns(t *testing.T) {
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
			engine, sys := mappedSystem(t, c.mapped, c.idle)
			heavy := heavyEcho(t, engine)
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
			if s := sys.View().Stats(); s.Asleep != c.asleep || s.Crashes != 0 {
				t.Errorf("%d are asleep", s.Asleep)
			}
		})
	}
}

// Guests of other images keep their instances: they would make no room. What nobody uses any more does.
func TestLargeImagesLeaveOthersAwake(t *testing.T) {
	engine, sys := mappedSystem(t, 4, DefaultIdleAfter)
	a, b := heavyEcho(t, engine), heavyEcho(t, engine)
	spawn := func(p Props, name string, n int) (refs []Ref) {
		for i := range n {
			refs = append(refs, must(sys.Spawn(fmt.Sprint(name, i), p))(t))
			sys.RunUntilIdle(1 << 20)
		}
		return refs
	}
	first := spawn(a, "a", 4)
	spawn(echo(t, engine), "light", 20)
	spawn(b, "b", 5)
	if n := sys.View().Stats().Asleep; n != 4 {
		t.Errorf("%d are asleep, all but one of the last should be", n)
	}
	for _, r := range first {
		if !guestOf(sys.table.Get(r.UID())).inst.Awake() {
			t.Error("one of another image sleeps")
		}
		sys.Stop(r)
	}
	sys.RunUntilIdle(1 << 20)
	spawn(b, "c", 4)
	if n := sys.View().Stats().Asleep; n != 4 {
		t.Errorf("%d are asleep, although instances were free", n)
	}
}

// A guest that its own tree has no room for puts nobody of another tree to sleep.
func TestTreeWithoutRoomTakesNoMappings(t *testing.T) {
	engine, sys := mappedSystem(t, 3, DefaultIdleAfter)
	heavy := heavyEcho(t, engine)
	memory := int64(sandbox.Weight(heavy.module.Image())) + 100_000
	var others []Ref
	for i := range 2 {
		others = append(others, must(sys.Spawn(fmt.Sprint("g", i), heavy))(t))
	}
	top := must(sys.Spawn("top", Func(func(ctx *Context, m Message) error {
		_, err := ctx.Spawn("", heavy)
		return err
	}).WithLimits(Limits{Tree: TreeLimits{Memory: memory}})))(t)
	sys.RunUntilIdle(1 << 20)
	for range 5 {
		if err := sys.Tell(top, 1); err != nil {
			t.Fatal(err)
		}
		sys.RunUntilIdle(1 << 20)
	}
	for _, r := range others {
		if !guestOf(sys.table.Get(r.UID())).inst.Awake() {
			t.Errorf("%v sleeps", r)
		}
	}
}
