package keyed_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// A dead letter for the actor of a key is delivered again although that one has ended meanwhile: its
// keeper starts it, as for any message to its path.
func TestRedeliverToAnActorThatHasEnded(t *testing.T) {
	w := newWorld(t)
	keeper := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	w.tell(keeper, "a", "1")
	a := must(w.Lookup("/user/users/a"))(t)
	w.pass(time.Minute)
	w.there()
	w.heard = nil
	if err := w.Tell(a, "2"); !errors.Is(err, host.ErrUnknown) && !errors.Is(err, host.ErrStopped) {
		t.Fatal("its ref is that of an incarnation:", err)
	}
	letters, _ := w.DeadLetters()
	if len(letters) != 1 || !strings.HasSuffix(letters[0].Path, "/user/users/a") {
		t.Fatalf("%+v", letters)
	}
	id := letters[0].ID
	if err := w.Operate().CanRedeliver(id); err != nil {
		t.Error(err)
	}
	w.there() // to ask is not to start
	to, err := w.Operate().Redeliver(id)
	if err != nil || to != keeper {
		t.Fatal(to, err)
	}
	w.run()
	w.wants("a:2")
	w.there("a")
	if w.starts["a"] != 2 {
		t.Error(w.starts)
	}
	if _, err := w.Operate().Redeliver(id); !errors.Is(err, host.ErrNotKept) {
		t.Error("twice:", err)
	}
}

// So is what a guest has sent before there was a keeper; what can be nobody's name stays what it is.
func TestRedeliverWhatGuestsSent(t *testing.T) {
	w := newWorld(t)
	teller := must(w.Spawn("teller", host.GuestOf(servicetest.Module(t), "path-teller").WithCapabilities(host.Capabilities{Send: []string{"/user/users/**"}})))(t)
	w.run()
	paths := []string{"/user/users/ann", "/user/users/a b", "/user/users/none/x", "/user/users/bob"}
	for _, path := range paths {
		if err := w.Tell(teller, []any{path, "for " + path}); err != nil {
			t.Fatal(err)
		}
	}
	w.run()
	letters, _ := w.DeadLetters()
	if len(letters) != len(paths) {
		t.Fatalf("%d letters", len(letters))
	}
	for i, l := range letters {
		if err := w.Operate().CanRedeliver(l.ID); !errors.Is(err, host.ErrUnknown) {
			t.Errorf("%s: %v", paths[i], err)
		}
	}
	keeper := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	for i, l := range letters {
		can := w.Operate().CanRedeliver(l.ID)
		to, err := w.Operate().Redeliver(l.ID)
		if i%3 != 0 {
			if !errors.Is(can, host.ErrUnknown) || !errors.Is(err, host.ErrUnknown) {
				t.Errorf("%s: %v %v", paths[i], can, err)
			}
			continue
		}
		if can != nil || err != nil || to != keeper {
			t.Errorf("%s: %v %v %v", paths[i], can, to, err)
		}
	}
	w.run()
	slices.Sort(w.heard)
	w.wants("ann:for /user/users/ann", "bob:for /user/users/bob")
}
