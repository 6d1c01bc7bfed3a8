package keyed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// A guest of standard Go, which takes many messages in one call, asks who is there; a keyed actor is there while
// it lives, and nobody starts it by asking.
func TestGuestsIdentifyKeyedActors(t *testing.T) {
	w := newWorld(t)
	w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	finder := func(name string, send ...string) host.Ref {
		ref := must(w.Spawn(name, host.GuestOf(servicetest.Module(t), "identify-finder").WithCapabilities(host.Capabilities{Send: send})))(t)
		w.run()
		return ref
	}
	f, none := finder("finder", "/user/users/*"), finder("none")
	const nobody = "actor: no such actor"
	w.asks(f, "/user/users/ann", nobody)
	w.asks(f, []string{"/user/users/*"}, "0")
	if w.starts["ann"] != 0 {
		t.Error("it is started by who asks for it")
	}
	if err := w.TellPath("/user/users/ann", "hello"); err != nil {
		t.Fatal(err)
	}
	w.run()
	ann := must(w.Lookup("/user/users/ann"))(t)
	uid := fmt.Sprint(uint64(ann.UID()))
	w.asks(f, "/user/users/ann", uid)
	w.asks(f, "../users/ann", uid)
	w.asks(f, []string{"/user/*/a??"}, "1 /user/users/ann")
	w.asks(f, []string{"/user/users/ann"}, "1 /user/users/ann")
	w.asks(f, "/user/none", nobody)
	w.asks(none, "/user/users/ann", nobody)
	w.asks(none, []string{"/user/users/*"}, "0")
	w.pass(2 * time.Minute)
	w.asks(f, "/user/users/ann", nobody)
	if w.starts["ann"] != 1 {
		t.Errorf("%d starts", w.starts["ann"])
	}

	// Several at once, in one call of the guest, in the order in which they were asked.
	for i := range 7 {
		if err := w.TellPath(fmt.Sprintf("/user/users/k%d", i), "hello"); err != nil {
			t.Fatal(err)
		}
	}
	w.run()
	var all []*host.Pending
	for i := range 20 {
		all = append(all, must(w.Request(f, fmt.Sprintf("/user/users/k%d", i)))(t))
	}
	w.run()
	for i, p := range all {
		got := answerOf(<-p.Answer())
		ref, err := w.Lookup(fmt.Sprintf("/user/users/k%d", i))
		if want := fmt.Sprint(uint64(ref.UID())); i < 7 && (err != nil || got != want) || i >= 7 && got != nobody {
			t.Errorf("k%d: %q, want %q, %v", i, got, want, err)
		}
	}
	if got := w.ask(f, []string{"/user/users/k*"}); !strings.HasPrefix(got, "7 /user/users/k0 /user/users/k1 ") {
		t.Error(got)
	}
}
