package durable

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// after is what a crash leaves of a disk now.
func after(fs *crashfs.FS) *crashfs.FS { return fs.After(fs.Done(), rand.New(rand.NewPCG(1, 1))) }

// boundless has numbers that others may take for an end: none of them is one that a store cannot have.
var boundless = host.Limits{Fuel: math.MaxUint64, Memory: math.MaxUint64, Message: -1, Durable: -1}

// A store opens whatever has become of the limits since it was written, and with the state that there was then.
func TestLimitsChange(t *testing.T) {
	image := puppetImage(t)
	timer := func(key uint64) host.Raw {
		return script(rec(recAdd, 1), rec(0, 0, abi.AppendTimer(nil, key, uint64(time.Hour), 0, nil)))
	}
	for name, c := range map[string]struct {
		before, after host.Limits
		tell          []host.Raw
		want          int
	}{
		"less fuel":     {host.Limits{}, host.Limits{Fuel: 20_000}, []host.Raw{script(rec(recAdd, 3), rec(0, 4))}, 3},
		"more fuel":     {host.Limits{Fuel: 20_000}, host.Limits{}, []host.Raw{add, script(rec(recAdd, 3), rec(0, 4))}, 0},
		"fewer timers":  {host.Limits{}, host.Limits{Timers: 1}, []host.Raw{timer(1), timer(2), timer(3)}, 3},
		"more timers":   {host.Limits{Timers: 2}, host.Limits{}, []host.Raw{timer(1), timer(2), timer(3)}, 3},
		"less held":     {host.Limits{}, host.Limits{Held: 8 << 10}, []host.Raw{timer(1), big(12 << 10), script(rec(recAdd, 1), rec(0, 0, abi.AppendTimer(nil, 9, 1<<40, 0, text(strings.Repeat("x", 9000)))))}, 3},
		"less memory":   {host.Limits{}, host.Limits{Memory: 64 << 10}, []host.Raw{add}, 1},
		"no bounds":     {boundless, boundless, []host.Raw{add}, 1},
		"shorter boxes": {host.Limits{}, host.Limits{Mailbox: 1}, []host.Raw{add, add, add}, 3},
	} {
		for _, checkpoint := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				then := Props{"a": puppet(image).WithLimits(c.before), "b": puppet(image)}
				now := Props{"a": puppet(image).WithLimits(c.after), "b": puppet(image)}
				fs := crashfs.New()
				w, err := openStepped(t, fs, then)
				if err != nil {
					t.Fatal(err)
				}
				ref, err := w.Lookup("/user/a")
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range c.tell {
					if err := w.Tell(ref, m); err != nil {
						t.Fatal(err)
					}
				}
				w.rest()
				if checkpoint {
					if err := w.store.Checkpoint(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if n, ok := w.count("a"); !ok || n != c.want {
					t.Fatal("it has counted", n, ok)
				}
				fs = after(fs)
				w.close()
				for life, props := range []Props{now, now, then, now} { // the third one repeats what the second one did
					w, err := openStepped(t, fs, props)
					if err != nil {
						t.Fatalf("life %d, with a checkpoint %v: %v", life, checkpoint, err)
					}
					if n, ok := w.count("a"); !ok || n != c.want {
						t.Errorf("life %d, with a checkpoint %v: it has counted %d of %d", life, checkpoint, n, c.want)
					}
					fs = after(fs)
					if life == 3 && name == "less fuel" { // what comes now has what there is now
						_ = w.Tell(ref, script(rec(0, 4)))
						if n, ok := w.count("a"); !ok || n != 0 {
							t.Errorf("a turn of much fuel has not failed: %d %v", n, ok)
						}
					}
					w.close()
				}
			})
		}
	}
}

// What an actor has refused does not arrive after a crash, even if its sender has recorded nothing since; nor does a question
// that was handed on, and whose asker was told that there will be no answer.
func TestRefusedMessages(t *testing.T) {
	image := puppetImage(t)
	forward := script(rec(0, 0, abi.AppendForward(nil, 0, "/user/b")))
	for name, m := range map[string]host.Raw{
		"a message":               script(rec(recAdd, 1), rec(0, 0, send("/user/b", add))),
		"two, of which one fits":  script(rec(recAdd, 1), rec(0, 0, send("/user/b", add), send("/user/b", add))),
		"a question, handed on":   script(rec(recAdd, 1), rec(0, 0, abi.AppendAsk(nil, 0, "/user/c", 7, uint64(time.Hour), nil, forward))),
		"several, in their order": script(rec(recAdd, 1), rec(0, 0, send("/user/b", script(rec(recAdd, 1), rec(0, 0, send("/user/a", add)))), send("/user/b", script(rec(recAdd, 5))))),
	} {
		t.Run(name, func(t *testing.T) {
			small := Props{"a": puppet(image), "b": puppet(image).WithLimits(host.Limits{Mailbox: 1}), "c": puppet(image)}
			fs := crashfs.New()
			w, err := openStepped(t, fs, small)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Spawn("c", small["c"]); err != nil {
				t.Fatal(err)
			}
			w.rest()
			a, _ := w.Lookup("/user/a")
			b, _ := w.Lookup("/user/b")
			if err := w.Operate().Pause(b, false); err != nil {
				t.Fatal(err)
			}
			w.rest()
			fits := 1
			if !strings.HasPrefix(name, "two") && !strings.HasPrefix(name, "several") {
				if err := w.Tell(b, add); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Tell(a, m); err != nil {
				t.Fatal(err)
			}
			w.rest()
			if n := refusals(t, w.store, b.UID()); n != 1 {
				t.Errorf("%d refusals of it are recorded", n)
			}
			fs = after(fs)
			w.close()
			w, err = openStepped(t, fs, Props{"a": puppet(image), "b": puppet(image), "c": puppet(image)})
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			if err := w.Operate().Unpause(b, false); err != nil {
				t.Fatal(err)
			}
			w.rest()
			if n, ok := w.count("b"); !ok || n != fits {
				t.Errorf("it has counted %d, and %d had been accepted", n, fits)
			}
		})
	}
}

// refusals is how many messages an actor has refused, as the log has it.
func refusals(t testing.TB, s *Store, of abi.Ref) (n int) {
	t.Helper()
	var all records
	for r, err := range s.log.Read(0) {
		if err != nil {
			t.Fatal(err)
		}
		v, err := all.next(&r)
		if err != nil {
			t.Fatal(err)
		}
		if x, ok := v.(*record.Record); ok && x.Kind == record.Refused && x.Actor == of {
			n++
		}
	}
	return n
}
