package host

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// A guest that waits for nothing but its supervisor gives its instance, whose state is lost, to who needs it; and one is
// enough.
func TestWhatIsLostMakesRoom(t *testing.T) {
	l := newCrowdedLab(t, 0, supervision.Default().WithOtherwise(supervision.Suspend), halfAMinute)
	failed := l.spawn("failed", puppet(t))
	l.tell(failed, script(trap()))
	if !guestOf(l.table.Get(failed.UID())).inst.Awake() || !l.awake.MakeRoom(nil, instance.Any) {
		t.Error("it gives nothing")
	}
	if guestOf(l.table.Get(failed.UID())).inst.Awake() || l.awake.MakeRoom(nil, instance.Any) {
		t.Error("it has given nothing")
	}
}

// Guests whose states cannot be kept stay awake, and are no room for anybody; others are looked for.
func TestStatesThatCannotBeKeptStay(t *testing.T) {
	const stubborn = 2 * instance.MostPutAway
	engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(stubborn+1)))(t)
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	image := load(t, engine, "testdata/brute.wasm")
	l := newCrowdedLab(t, 0, supervision.Default(), halfAMinute)
	var all []Ref
	for i := range stubborn {
		ref := l.spawn(fmt.Sprint("g", i), Guest(image, "brute"))
		l.tell(ref, order(verbTable, 10, nil))
		all = append(all, ref)
	}
	gives := l.spawn("gives", Guest(image, "brute"))
	l.spawn("newcomer", Guest(image, "brute"))
	if guestOf(l.table.Get(gives.UID())).inst.Awake() || len(l.seen(EventRefused)) != 0 {
		t.Error("the newcomer did not get the instance that there is")
	}
	for _, ref := range all {
		if !guestOf(l.table.Get(ref.UID())).inst.Awake() || l.info(ref).Failed {
			t.Errorf("%v has lost its instance", ref)
		}
	}
}

// What waits for a guest that may not handle it now, such as one that is paused, does not keep it awake.
func TestAPausedGuestSleepsOverItsMail(t *testing.T) {
	l := newCrowdedLab(t, 0, supervision.Default(), halfAMinute)
	ref := l.spawn("g", puppet(t))
	must(0, l.Operate().Pause(ref, false))(t)
	l.run()
	l.tell(ref, script(rec(recAdd, 3, nil)))
	l.pass(time.Minute)
	l.pass(time.Minute)
	if guestOf(l.table.Get(ref.UID())).inst.Awake() {
		t.Error("it is awake")
	}
	must(0, l.Operate().Unpause(ref, false))(t)
	l.run()
	if got := answer(t, l.System, ref, script(rec(recReport, 0, nil))); fmt.Sprint(got) != "3" {
		t.Errorf("it holds %v, not 3", got)
	}
}

// A guest that could not start does not count as awake, also when it has gone: else others would sleep for it.
func TestAFailedStartCountsForNothing(t *testing.T) {
	l := newCrowdedLab(t, 1, supervision.Default().WithOtherwise(supervision.Stop), nil)
	one := l.spawn("one", puppet(t))
	poor := Limits{Tree: TreeLimits{Memory: sandbox.Weight(puppetImage(t)) / 2}}
	for i := range 3 {
		name := fmt.Sprint("none", i)
		if l.spawn(name, puppet(t).WithLimits(poor)); l.state(name) != "gone" {
			t.Fatalf("%s is %s", name, l.state(name))
		}
	}
	l.tell(one, script(rec(recAdd, 3, nil)))
	if !guestOf(l.table.Get(one.UID())).inst.Awake() {
		t.Error("the only guest may not stay awake")
	}
}

// Guests that can never sleep count as well: others make room for them.
func TestSleeplessGuestsCount(t *testing.T) {
	code := must(os.ReadFile("testdata/puppet.wasm"))(t)
	image := must(newEngine(t).Load(t.Context(), code, sandbox.ImageConfig{NoFreeze: true}))(t)
	l := newCrowdedLab(t, 2, supervision.Default(), nil)
	a, b := l.spawn("a", puppet(t)), l.spawn("b", puppet(t))
	l.spawn("sleepless", Guest(image, "puppet").WithArgs(script()))
	awake := 0
	for _, ref := range []Ref{a, b} {
		if guestOf(l.table.Get(ref.UID())).inst.Awake() {
			awake++
		}
	}
	if awake != 1 {
		t.Errorf("%d others are awake, not 1", awake)
	}
}
