package host

import (
	"context"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/swap"
)

// In a manual system nothing comes while somebody waits: who looks at an actor whose turn waits for its record is told so at once.
func TestAnActorThatIsHeldIsUnseen(t *testing.T) {
	r, l := newRecorder(t)
	r.of, r.later = "a", true
	p := puppet(t, on(abi.KindStart, toProbe("start")))
	ref := l.spawn("a", p)
	l.run()
	l.post(ref, script()) // so that it is about to run, which it cannot
	seen := func() (is, unseen bool) {
		for _, x := range swap.Members(context.Background(), l.System, p.module) {
			if x.Ref.UID() == ref.UID() {
				is, unseen = true, x.Unseen
			}
		}
		return
	}
	if is, unseen := seen(); !is || !unseen {
		t.Errorf("held: among the members %v, unseen %v", is, unseen)
	}
	r.later = false
	r.answer(nil)
	if is, unseen := seen(); !is || unseen {
		t.Errorf("answered: among the members %v, unseen %v", is, unseen)
	}
	l.Stop(ref)
	l.run()
	if is, _ := seen(); is {
		t.Error("it is among the members and has gone")
	}
}
