package durable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// An actor that waits for room at its start deals with signals meanwhile. Its start has its turn where the records have it, behind those,
// and not earlier, though there is room earlier when they are repeated.
func TestAStartThatHasWaitedForRoomWaitsAgain(t *testing.T) {
	waited := 0
	for memory := int64(144 << 10); memory < 176<<10; memory += 2 << 10 {
		for late := range 2 {
			l := host.Limits{}
			l.Tree.Memory = memory
			w, err := live(t, crashfs.New(), host.NewVirtualClock(time.Unix(1_700_000_000, 0)), Props{"p0": role{Name: "p0"}.props(t).WithLimits(l)}, false)
			if err != nil {
				t.Fatal(err)
			}
			w.rest()
			ref, err := w.Lookup("/user/p0")
			if err != nil {
				t.Fatal(err)
			}
			child := role{Start: []act{{Kind: byte(abi.KindStart)}}}
			_ = w.Tell(ref, host.Raw(scriptOf(w.spawner(ref), []act{
				{Cmds: []cmd{{Op: "identify", Path: "./a", Key: 1}, {Op: "send", Path: "./a", Key: 1}, {Op: "spawn", Name: "c", Then: child.Start}}}})))
			w.rest()
			before := fmt.Sprint(w.look()["/user/p0/c"])
			_ = w.Operate().Pause(ref, true)
			w.rest()
			_ = w.Operate().Unpause(ref, true)
			w.rest()
			for range 3 {
				w.clock.Advance(20 * time.Millisecond)
				w.rest()
			}
			want := w.look()
			if strings.Contains(before, "Held:true") && strings.Contains(want["/user/p0/c"], "Held:false") {
				waited++
			}
			back, err := live(t, w.fs.Copy(), host.NewVirtualClock(w.clock.Now()), w.props, late == 1)
			if err != nil {
				t.Fatalf("%d bytes: %v", memory, err)
			}
			back.rest()
			for path, x := range back.look() {
				if want[path] != x {
					t.Errorf("%d bytes: %s: %s", memory, path, around(want[path], x))
				}
			}
			back.end(t)
			w.end(t)
		}
	}
	if waited == 0 {
		t.Error("none has waited")
	}
}
