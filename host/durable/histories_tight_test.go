package durable

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// In trees that have little room for bytes starts and commands are refused. Wherever such a system is killed, it comes back and goes on. What was
// refused for want of room is in no record, so it is not compared with one that was never killed.
func TestHistoriesWithLittleRoom(t *testing.T) {
	thorough.Checks(t, 40)
	looks := 0
	rapid.Check(t, func(rt *rapid.T) {
		roles, all := drawHistory(rt, happenings)
		memory := rapid.Int64Range(140, 420).Draw(rt, "memory") << 10
		held := rapid.Int64Range(4725, 7500).Draw(rt, "held")
		p := &play{t: t, rt: rt, roles: roles, kills: true}
		p.done = append(p.done, fmt.Sprint("memory ", memory, " held ", held))
		p.begins = func(w *lived, _ *happening) {
			w.props, w.tight = Props{}, true
			for _, r := range roles {
				l := r.limits()
				l.Tree.Memory, l.Held = memory, held
				w.props[r.Name] = r.props(t).WithLimits(l)
			}
		}
		p.start()
		defer func() { p.end(t) }()
		p.rest()
		p.all(all)
		p.note("at the end", false)
		looks += len(p.looks)
	})
	t.Logf("%d looks", looks)
}
