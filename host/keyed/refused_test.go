package keyed_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/supervision"
)

// What a keeper does not pass on, for whatever bound, is a dead letter like everything that is not
// delivered, with the path that it was sent to and the manifest's key; who asks gets an error that is one
// of host's. Nothing of it vanishes, and it can be delivered again.
func TestRefusedMessagesAreDeadLetters(t *testing.T) {
	busy := func(w *world) { w.tell(must(w.Lookup("/user/users"))(t), "a", "timer 1h") }
	for _, c := range []struct {
		name string
		c    func(keyed.Config) keyed.Config
		do   func(*world)
		key  string
		err  error
		is   error
	}{
		{"max", func(c keyed.Config) keyed.Config { return c.WithMax(1) }, busy, "keyed.max", keyed.ErrFull, host.ErrLimit},
		{"max, evict", func(c keyed.Config) keyed.Config { return c.WithMax(1).WithAtLimit(keyed.Evict) }, busy, "keyed.max", keyed.ErrFull, host.ErrLimit},
		{"bytes", func(c keyed.Config) keyed.Config { return c.WithMaxBytes(17 << 10) }, busy, "keyed.max-bytes", keyed.ErrFull, host.ErrLimit},
		{"buffer", func(c keyed.Config) keyed.Config { return c.WithBuffer(1, 1000) },
			func(w *world) {
				r := must(w.Lookup("/user/users"))(t)
				w.tell(r, "b", "0")
				must(0, w.Operate().Pause(must(w.Lookup("/user/users/b"))(t), false))(t)
				w.post(r, order("passivate", "b"))
				w.run()
				w.tell(r, "b", "waits")
			}, "keyed.buffer", keyed.ErrBuffer, host.ErrMailboxFull},
		{"failed", func(c keyed.Config) keyed.Config {
			return c.WithSupervision(supervision.Default().WithOtherwise(supervision.Stop))
		}, func(w *world) { w.tell(must(w.Lookup("/user/users"))(t), "b", "crash") }, "", keyed.ErrFailed, host.ErrRestarting},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.start(c.c(keyed.New(w.worker())))
			for len(w.log.C()) > 0 {
				<-w.log.C()
			}
			c.do(w)
			_, before := w.DeadLetters()
			to := must(w.AddressOf("/user/users/b"))(t)
			if err := w.Tell(to.To, to.Message("told")); err != nil {
				t.Fatal(err)
			}
			w.run()
			p := must(w.Request(r, keyed.For("b", "asked")))(t)
			w.run()
			select {
			case m := <-p.Answer():
				if err := m.Err(); !errors.Is(err, c.err) || !errors.Is(err, c.is) {
					t.Errorf("the asker is told %v", err)
				}
			default:
				t.Error("the asker is told nothing")
			}
			letters, all := w.DeadLetters()
			if all != before+2 {
				t.Fatalf("%d dead letters: %+v", all-before, letters)
			}
			told, asked := letters[len(letters)-2], letters[len(letters)-1]
			if told.Reason != host.DeadRefused || told.Key != c.key || !strings.HasSuffix(told.Path, "/user/users/b") || asked.Reason != host.DeadRefused || !strings.HasSuffix(asked.Path, "/user/users") {
				t.Errorf("%+v\n%+v", told, asked)
			}
			w.pass(time.Hour)
			w.pass(10 * time.Minute) // there is room again
			w.heard = nil
			if _, err := w.Operate().Redeliver(told.ID); err != nil {
				t.Error(err)
			}
			w.run()
			if c.name != "bytes" && c.name != "buffer" {
				w.wants("b:told")
			}
			for len(w.log.C()) > 0 {
				if e := <-w.log.C(); e.Kind == host.EventUnhandled {
					t.Errorf("it is unhandled, too: %+v", e.Dead)
				}
			}
		})
	}
}

// So is one for a path that is nobody's.
func TestBadKeysAreDeadLetters(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	if err := w.Tell(r, host.Headed{Value: 1, Headers: map[string]string{keyed.HeaderKey: strings.Repeat("k", 300)}}); err != nil {
		t.Fatal(err)
	}
	w.run()
	if letters, _ := w.DeadLetters(); len(letters) != 1 || letters[0].Reason != host.DeadRefused {
		t.Errorf("%+v", letters)
	}
	if !errors.Is(keyed.ErrBadKey, host.ErrBadName) {
		t.Error("it is no bad name")
	}
}
