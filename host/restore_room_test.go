package host

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/seldom"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// savedPuppet is a puppet that has counted to 7, what it was saved as, and the secret of its system.
func savedPuppet(t *testing.T, image *sandbox.Image) (p Props, secret Secret) {
	from := puppet(t)
	p = Guest(image, "puppet").WithArgs(from.args).WithCapabilities(from.caps)
	l := newCrowdedLab(t, 0, supervision.Default(), nil)
	ref := l.spawn("saved", p)
	l.tell(ref, script(rec(recAdd, 7, nil)))
	state := stateOfGuest(t, l.System, ref)
	p.rare = p.rare.With(func(r *seldom.Props) { r.State = &state })
	l.Stop(ref)
	l.run()
	return p, l.Secret()
}

// A guest for whose state there is no room has it when there is, and starts over only after that.
func TestRestoreWaitsForRoom(t *testing.T) {
	engine := must(sandbox.New(t.Context(), sandbox.NewConfig().WithMaxInstances(1)))(t)
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	image := load(t, engine, "testdata/puppet.wasm")
	p, secret := savedPuppet(t, image)
	l := newCrowdedLab(t, 0, supervision.Default().WithOtherwise(supervision.Restart), func(c Config) Config { return c.WithSecret(secret) })
	other := must(sandbox.Get(image))(t) // of somebody else
	back := l.spawn("saved", p)
	if i := l.info(back); i.State != StateStarved {
		t.Fatalf("%+v", i)
	}
	for range 20 {
		l.pass(100 * time.Millisecond)
	}
	other.Put()
	l.pass(instance.MostRetry)
	report := func() string { return fmt.Sprint(answer(t, l.System, back, script(rec(recReport, 0, nil)))) }
	if got := report(); got != "7" {
		t.Errorf("it holds %s, not 7", got)
	}
	l.tell(back, script(trap()))
	if got := report(); got != "0" {
		t.Errorf("it holds %s after a restart", got)
	}
}

// A restore that a bound of the actor's own refuses is no start without room: it is not delayed as such. Nor
// does it keep an instance.
func TestRestoreBeyondALimitIsNoLackOfRoom(t *testing.T) {
	engine := newEngine(t)
	p, secret := savedPuppet(t, load(t, engine, "testdata/puppet.wasm"))
	s := must(saved.Decode(*p.rare.State))(t)
	s.Lookouts = []string{"/user/*" + strings.Repeat("a", lookouts.MostBehindStar+1)}
	changed := must(saved.Encoder.Marshal(s))(t)
	p.rare = p.rare.With(func(r *seldom.Props) { r.State = &changed })
	l := newCrowdedLab(t, 0, supervision.Default().WithOtherwise(supervision.Suspend), func(c Config) Config { return c.WithSecret(secret) })
	ref := l.spawn("saved", p)
	a := l.table.Get(ref.UID())
	if i := l.info(ref); !i.Failed || a.crowded || a.hasInstance() || must(l.View().Held(ref))(t).Memory != 0 {
		t.Errorf("%+v, crowded %v, awake %v", i, a.crowded, a.hasInstance())
	}
	if n := len(l.seen(EventRefused)); n != 0 {
		t.Errorf("told %d times that there is no room", n)
	}
}
