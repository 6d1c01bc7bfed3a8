package eventbus_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/eventbus"
)

// A full bus watches all its actors, though no two subscriptions have one in common: all are gone when they have ended.
func TestAFullBusWatchesAll(t *testing.T) {
	const most = host.DefaultWatches * 3 / 4
	w := newWorld(t)
	b := actorsBus(w, most)
	var all []host.Ref
	for i := range most {
		s, a := w.actor(fmt.Sprint("s", i)), w.actor(fmt.Sprint("a", i))
		if made, err := b.Subscribe(s, a); !made || err != nil {
			t.Fatal(i, err)
		}
		all = append(all, s, a)
		w.run()
	}
	if b.Len() != most || b.Watched() != 2*most {
		t.Fatalf("%d subscriptions, %d are watched", b.Len(), b.Watched())
	}
	for _, ref := range all {
		w.Stop(ref)
	}
	w.run()
	if b.Len() != 0 || b.Watched() != 0 {
		t.Errorf("%d subscriptions are left, %d are watched", b.Len(), b.Watched())
	}
}

// What makes no subscription, ends none, or reaches nobody says so.
func TestWhatDoesNothingSaysSo(t *testing.T) {
	w := newWorld(t)
	b, err := eventbus.NewActors(w.System, func(e about) host.Ref { return e.ref }, func(e about) any {
		if e.n < 0 {
			return func() {}
		}
		return e.n
	}, 2)
	if err != nil {
		t.Fatal(err)
	}
	w.run()
	x, y := w.actor("x"), w.actor("y")
	for _, pair := range [][2]host.Ref{{{}, x}, {x, {}}} {
		if made, err := b.Subscribe(pair[0], pair[1]); made || !errors.Is(err, host.ErrNobody) {
			t.Errorf("nobody: %v, %v", made, err)
		}
	}
	if n := b.UnsubscribeAll(x); n != 0 {
		t.Errorf("%d subscriptions have ended", n)
	}
	if n, err := b.Publish(about{x, -1}); n != 0 || err != nil {
		t.Errorf("nobody listens: %d, %v", n, err)
	}
	if made, err := b.Subscribe(y, x); !made || err != nil {
		t.Fatal(err)
	}
	if n, err := b.Publish(about{x, -1}); n != 0 || err == nil {
		t.Errorf("what cannot be encoded: %d, %v", n, err)
	}
	b.Close()
	z := w.actor("z")
	for _, pair := range [][2]host.Ref{{x, y}, {z, z}} { // two that are watched, and one that is not
		if made, err := b.Subscribe(pair[0], pair[1]); made || !errors.Is(err, host.ErrStopped) {
			t.Errorf("the bus is closed: %v, %v", made, err)
		}
	}
}
