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

// A keyed guest is told its key, whatever bytes it has, in each incarnation; what it spawns has none.
func TestGuestsKnowTheirKeys(t *testing.T) {
	w := newWorld(t)
	props := host.GuestOf(servicetest.Module(t), "keyed-self").WithCapabilities(host.Capabilities{Spawn: []string{"*"}})
	keeper := w.start(keyed.New(props).WithIdle(time.Minute))
	single := must(w.Spawn("single", props))(t)
	w.run()
	w.asks(single, "who", `"single" ""`)
	for _, key := range []string{"ann", "a/b", "..", "a#7", "~41", "\x00é", strings.Repeat("k", 255)} {
		name := must(keyed.Name(key))(t)
		want := fmt.Sprintf("%q %q", name, key)
		w.asks(keeper, keyed.For(key, "who"), want)
		w.tell(keeper, key, "crash")
		w.run()
		w.asks(keeper, keyed.For(key, "who"), want)
		w.asks(keeper, keyed.For(key, "spawn"), `"child" ""`)
	}
	w.pass(2 * time.Minute)
	w.asks(keeper, keyed.For("ann", "who"), `"ann" "ann"`)
}

// So is one in Go.
func TestActorsInGoKnowTheirKeys(t *testing.T) {
	w := newWorld(t)
	worker := host.Func(func(ctx *host.Context, m host.Message) error {
		key, ok := keyed.Of(ctx)
		return ctx.Reply(fmt.Sprintf("%q %v", key, ok))
	})
	keeper := w.start(keyed.New(worker).WithIdle(time.Minute))
	single := must(w.Spawn("single", worker))(t)
	w.run()
	w.asks(single, "who", `"" false`)
	for _, key := range []string{"ann", "a/b", "..", "a#7"} {
		w.asks(keeper, keyed.For(key, "who"), fmt.Sprintf("%q true", key))
	}
}
