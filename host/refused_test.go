package host

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// A spawn that is refused is told to whoever watches the system: who asked, for what,
// and whether a capability or a limit was in the way. The dead letters of an actor say
// where it is.
func TestRefusalsAreEvents(t *testing.T) { everyManner(t, rowRefusalsAreEvents) }

func rowRefusalsAreEvents(t *testing.T) {
	l := newStage(t, nil)
	sub := l.Subscribe(100, func(e *Event) bool { return e.Kind == EventRefused || e.Kind == EventDeadLetter })
	g := l.spawn("guest", puppet(t).WithCapabilities(Capabilities{Spawn: []string{"puppet"}}).WithLimits(Limits{Children: 1}))
	key := childKeyOf(guestOf(l.table.Get(g.UID())))
	spawn := func(typ, name string, k uint64) []byte {
		return abi.AppendSpawn(nil, abi.ChildRef(key, 0, k), typ, name, nil, nil)
	}
	l.say(g, script(now(spawn("other", "x", 0), spawn("puppet", "y", 1), spawn("puppet", "z", 2), abi.AppendSend(nil, 0, "/user/secret", 0, 0, nil, []byte{1}))))
	l.run()
	var refused []Refusal
	var letters []DeadLetter
	for len(sub.C()) > 0 {
		e := <-sub.C()
		if e.Refused != nil {
			if e.Ref != g {
				t.Errorf("by %v", e.Ref)
			}
			refused = append(refused, *e.Refused)
		}
		if e.Dead != nil {
			letters = append(letters, *e.Dead)
		}
	}
	if len(refused) != 2 || refused[0].Type != "other" || refused[0].Name != "x" || !refused[0].Denied || refused[0].Limit ||
		refused[1].Name != "z" || refused[1].Denied || !refused[1].Limit {
		t.Errorf("%+v", refused)
	}
	if len(letters) != 1 || letters[0].From != "/user/guest" {
		t.Errorf("%+v", letters)
	}
}
