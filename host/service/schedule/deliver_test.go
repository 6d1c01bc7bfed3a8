package schedule

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// A run for the actor of a key starts it if it is not there, whether its answer matters or not; a path
// that nobody can have is an error, and the run is tried again.
func TestRunsStartKeptActors(t *testing.T) {
	sys, err := host.New(host.NewConfig("keys"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sys.Close(t.Context()) })
	heard := make(chan string, 10)
	worker := host.Func(func(ctx *host.Context, m host.Message) error {
		var r Run
		if err := m.Decode(&r); err != nil {
			return err
		}
		heard <- ctx.Self().Name() + " " + r.Entry
		return ctx.Reply("done")
	})
	if _, err := sys.Spawn("keys", keyed.New(worker).WithIdle(time.Millisecond).Props()); err != nil {
		t.Fatal(err)
	}
	s := &sender{sys, sys.Clock()}
	send := func(to string, d Delivery) (bool, error) {
		return s.send(t.Context(), &run{item: &item{Entry: Entry{Name: "e", To: to, Delivery: d}}, attempt: 1})
	}
	for _, d := range []Delivery{Ask, Tell, Once} {
		for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if _, err := sys.Lookup("/user/keys/a"); err != nil {
				break
			}
			if time.Now().After(until) {
				t.Fatal("it is not passivated")
			}
		}
		if retry, err := send("/user/keys/a", d); retry || err != nil {
			t.Fatal(d, retry, err)
		}
		select {
		case got := <-heard:
			if got != "a e" {
				t.Error(got)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nobody has heard of it")
		}
	}
	for _, to := range []string{"/user/keys/a b", "/user/keys/a/below", "/user/none/a"} {
		if retry, err := send(to, Tell); !retry || !errors.Is(err, host.ErrUnknown) {
			t.Error(to, retry, err)
		}
	}
	if names := sys.Select("/user/keys/*"); slices.ContainsFunc(names, func(r host.Ref) bool { return r.Name() != "a" }) {
		t.Error(names)
	}
}
