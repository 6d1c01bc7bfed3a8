package typed_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/host/typed/testdata/mapped"
)

// A method is a message, and messages are handled one at a time, in their order.
func TestC01_MethodsAreMessages(t *testing.T) {
	w := newWorld(t)
	bank := w.guest("bank", "bank")
	teller := w.teller(bank, 0)
	w.tell(teller, "note a", "whole 3", "note b", "pay 7")
	w.wants("asked 7", "note a", "pay 3 whole euros", "note b", "pay 7 EUR", "receipt 1 for 7")
	w.wantUnhandled()
}

// What has no answer is told; what has one is asked, and its continuation is called with the answer, or with the
// error that is the answer, or when there is none in time. Nothing blocks: others are handled meanwhile.
func TestC02_TheResultDecides(t *testing.T) {
	w := newWorld(t)
	bank := w.guest("bank", "bank")
	teller := w.teller(bank, 0)
	w.tell(teller, "note a")
	w.wants("note a")
	w.pass(time.Minute) // nobody waits for an answer to it
	w.wants()
	w.tell(teller, "pay 0", "count")
	w.wants("asked 0", "pay 0 EUR", "no receipt for 0: actor: the answer is an error: nothing is no payment", "1 payments, <nil>")
	w.tell(teller, "pay -2", "note meanwhile")
	w.wants("asked -2", "pay -2 EUR", "note meanwhile")
	w.pass(time.Minute)
	w.wants("no receipt for -2: actor: there was no answer in time")
	// A failure of the turn is an answer at once.
	w.tell(teller, "pay -1")
	if !slices.ContainsFunc(w.heard, func(s string) bool {
		return strings.HasPrefix(s, "no receipt for -1: ") && strings.Contains(s, "robbery")
	}) {
		t.Errorf("nobody was told of the failure: %q", w.heard)
	}
}

// The time is that of the protocol, unless the stub was given another.
func TestC03_Timeout(t *testing.T) {
	w := newWorld(t)
	bank := w.guest("bank", "bank")
	for _, c := range []struct{ given, want time.Duration }{{0, 2 * time.Second}, {300 * time.Millisecond, 300 * time.Millisecond}} {
		w.tell(w.teller(bank, c.given), "pay -2")
		w.heard = nil
		w.pass(c.want - time.Millisecond)
		w.wants()
		w.pass(time.Millisecond)
		w.wants("no receipt for -2: actor: there was no answer in time")
	}
}

// A stop comes before the calls that wait, a poison pill after those that were made before it.
func TestC04_StopAndPoisonPill(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name string
		end  func(host.Ref) error
		want []string
	}{
		{"stop", func(r host.Ref) error { w.Stop(r); return nil }, []string{"stopped"}},
		{"poison", w.PoisonPill, []string{"note a", "note b", "stopped"}},
	} {
		bank := w.guest(c.name, "bank")
		w.heard = nil
		for _, text := range []string{"a", "b"} {
			if err := w.TellFrom(w.probe, bank, headed("bank.note@1", map[string]any{"text": text})); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.end(bank); err != nil {
			t.Fatal(err)
		}
		w.run()
		w.wants(c.want...)
	}
}

// The hooks of actors are those of an actor with a protocol, and it gets what is not a call.
func TestC05_HooksAndReceiver(t *testing.T) {
	w := newWorld(t)
	w.heard = nil
	bank := w.guest("bank", "bank")
	w.wants("started")
	other := must(w.Spawn("other", host.Func(func(*host.Context, host.Message) error { return nil })))(t)
	if err := w.TellFrom(other, bank, "watch"); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.Stop(other)
	w.run()
	w.wants("the end of another")
	w.tell(bank, "other", "strange")
	w.wants("other")
	w.wantUnhandled("")
	w.tell(bank, headed("bank.payment@3", map[string]any{"cents": -1, "currency": "EUR"}))
	w.wants("before a restart: guest_error: a robbery", "started")
	w.Stop(bank)
	w.run()
	w.wants("stopped")
}

// A stub sends to whatever has the ref: an actor in Go that reads the same messages, or a router.
func TestC06_StubsOverAnyRef(t *testing.T) {
	w := newWorld(t)
	worker := host.Guest(must(image())(t), "bank").WithCapabilities(host.Capabilities{Send: []string{"/user/*"}})
	pool := must(w.Spawn("banks", router.Pool(2, worker, router.RoundRobin).Props()))(t)
	w.run()
	teller := w.teller(pool, 0)
	w.tell(teller, "pay 5", "pay 6", "pay 7", "count", "count")
	counts := 0
	for _, s := range w.heard {
		if s == "2 payments, <nil>" || s == "1 payments, <nil>" {
			counts++
		}
	}
	if counts != 2 {
		t.Errorf("the calls were not answered through the router: %q", w.heard)
	}

	var b = bindings(t, w)
	native := must(w.Spawn("native", host.Native(func() host.Actor { return b })))(t)
	teller = w.teller(native, 0)
	w.tell(teller, "pay 8", "second 9", "whole 3")
	w.wants("asked 8", "Go pays 8 EUR", "Go pays 9 EUR", "Go pays 3 whole", "receipt 8 for 8")

	// From Go the compiler holds both ends to it.
	bank := host.To[*mapped.Payment](w.guest("bank", "bank"))
	w.heard = nil
	if err := bank.Tell(w.System, &mapped.Payment{Cents: 4, Currency: "USD"}); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.wants("pay 4 USD")
	answered := make(chan error, 1)
	go func() {
		r, err := host.AskRef(context.Background(), w.System, bank, &mapped.Payment{Cents: 5, Currency: "USD"})
		if err == nil && r.Number != 2 {
			t.Errorf("receipt %d", r.Number)
		}
		answered <- err
	}()
	for done := false; !done; {
		w.run()
		select {
		case err := <-answered:
			if done = true; err != nil {
				t.Error(err)
			}
		case <-time.After(time.Millisecond):
		}
	}
}
