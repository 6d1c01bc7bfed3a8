package durable

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/supervision"
)

// stepped is a system in steps, whose store is on a simulated disk. a counts what it is told, and tells b, which counts that.
type stepped struct {
	*host.System
	t     testing.TB
	store *Store
}

// both is for a: it counts, and so does b.
var both = script(rec(recAdd, 1), rec(0, 0, send("/user/b", add)))

// openStepped opens it in one of both ways, alternately: every test that opens many has both.
func openStepped(t testing.TB, fs wal.FS, props Props) (*stepped, error) {
	t.Helper()
	return openSteppedAs(t, fs, props, opens.Add(1)%2 == 0)
}

var opens atomic.Uint64 // systems in steps

// someSpace has a store keep old frames as usual, or as long as it may, or as short as it can without moving all of them each time: every
// test that opens many has each.
func someSpace() *space {
	return []*space{nil, {slack: 64 << 20}, {}}[spaces.Add(1)%3]
}

var spaces atomic.Uint64

// openSteppedAs is openStepped; late has actors return late.
func openSteppedAs(t testing.TB, fs wal.FS, props Props, late bool) (*stepped, error) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	store, err := Open(Options{Dir: "store", FS: fs, Lazy: late, space: someSpace(), Sim: &Sim{Rand: random, Segment: 64 << 10, Secret: host.Secret{5}}})
	if err != nil {
		return nil, err
	}
	cfg := host.NewConfig("w").WithGuardian(supervision.Default().WithOtherwise(supervision.Restart)).WithManual()
	x, err := prepared(store, cfg, props)
	if err != nil {
		return nil, errorsOf(err, store.Close())
	}
	w := &stepped{x.System(), t, store}
	back, err := x.Recover()
	if err != nil {
		x.Abandon()
		w.close()
		return nil, err
	}
	for _, name := range []string{"a", "b", "idle"} {
		if _, ok := props[name]; ok && !back[name] {
			if _, err := w.Spawn(name, props[name]); err != nil {
				x.Abandon()
				w.close()
				return nil, err
			}
		}
	}
	x.Release()
	w.rest()
	return w, nil
}

// rest has everything go on that can.
func (w *stepped) rest() {
	for w.Step() || w.store.Work() {
	}
}

func (w *stepped) close() {
	_ = w.Close(w.t.Context())
	_ = w.store.Close()
}

// count is the answer of an actor; false if there is none.
func (w *stepped) count(name string) (n int, ok bool) {
	ref, err := w.Lookup("/user/" + name)
	if err != nil {
		return 0, false
	}
	p, err := w.Request(ref, script(rec(recReport, 0)))
	if err != nil {
		return 0, false
	}
	defer p.Cancel()
	w.rest()
	select {
	case m := <-p.Answer():
		if m.Err() != nil {
			return 0, false
		}
		return int(m.Payload[0]), true
	default:
		return 0, false
	}
}

// known is what had left the process when there had been so many changes of the disk.
type known struct{ changes, a, b int }

const countedTo = 20

// work has a and b count, with checkpoints in between, and idle before the first of them. The disk goes on after every third message.
func (w *stepped) work(fs *crashfs.FS) (all []known) {
	for i := 1; i <= countedTo; i++ {
		ref, err := w.Lookup("/user/a")
		if err != nil {
			return all // the store has failed
		}
		_ = w.Tell(ref, both)
		if i == 2 {
			_ = w.TellPath("/user/idle", add)
		}
		for w.Step() {
		}
		if i%3 != 0 {
			continue
		}
		a, one := w.count("a")
		b, two := w.count("b")
		if one && two {
			all = append(all, known{fs.Done(), a, b})
		}
		if i == 9 || i == 12 || i == 18 {
			_ = w.store.Checkpoint(w.t.Context()) // it may fail with the disk
		}
	}
	return all
}

// holds checks what a disk has on which the power has failed after so many changes.
func holds(t *testing.T, w *stepped, all []known, changes int) {
	t.Helper()
	a, one := w.count("a")
	b, two := w.count("b")
	if c, ok := w.count("idle"); !ok || c > 1 || c == 0 && len(all) > 0 && all[0].changes <= changes {
		t.Errorf("after %d changes idle has counted %d (%v)", changes, c, ok)
	}
	if !one || !two || a != b || a > countedTo {
		t.Errorf("after %d changes a has counted %d (%v), and b %d (%v)", changes, a, one, b, two)
	}
	for _, k := range all {
		if k.changes <= changes && (a < k.a || b < k.b) {
			t.Errorf("after %d changes a has counted %d and b %d, and said %d and %d before", changes, a, b, k.a, k.b)
		}
	}
}

func stride(n int) int {
	if thorough.Of(false, true) {
		return 1
	}
	return n
}

// TestEveryCrashOfASystem: whenever the power fails, and whatever of the sectors that were not synced is there, torn or not, the
// system comes back with all that it has said, and each message was handled once.
func TestEveryCrashOfASystem(t *testing.T) {
	image := puppetImage(t)
	props := Props{"a": puppet(image), "b": puppet(image), "idle": puppet(image)}
	fs := crashfs.New()
	w, err := openStepped(t, fs, props)
	if err != nil {
		t.Fatal(err)
	}
	first := fs.Done()
	all := w.work(fs)
	w.close()
	if len(all) < 6 || w.store.Figures().Checkpoint.Count == 0 || all[len(all)-1].b < countedTo-3 {
		t.Fatalf("too little has happened: %+v", all)
	}
	opened := 0
	for changes := first; changes <= fs.Done(); changes++ {
		for seed := range uint64(thorough.Of(8, 100)) {
			after := fs.After(changes, rand.New(rand.NewPCG(seed, uint64(changes))))
			x, err := openSteppedAs(t, after, props, (seed+uint64(changes))%2 == 0)
			if err != nil {
				t.Errorf("after %d changes, seed %d: %v", changes, seed, err)
				continue
			}
			holds(t, x, all, changes)
			x.close()
			opened++
		}
	}
	t.Logf("%d changes, %d systems", fs.Done()-first, opened)
}

// TestEveryByteOfASystem: a byte of the store that has changed is found, or the state is the same.
func TestEveryByteOfASystem(t *testing.T) {
	image := puppetImage(t)
	props := Props{"a": puppet(image), "b": puppet(image), "idle": puppet(image)}
	fs := crashfs.New()
	w, err := openStepped(t, fs, props)
	if err != nil {
		t.Fatal(err)
	}
	all := w.work(fs)
	end := fs.Copy()
	w.close()
	last := all[len(all)-1]
	names, err := end.List()
	if err != nil {
		t.Fatal(err)
	}
	refused, same := 0, 0
	for _, name := range names {
		used := len(end.Bytes(name))
		for used > 0 && end.Bytes(name)[used-1] == 0 {
			used--
		}
		for at := 0; at < used; at += stride(61) {
			x := end.Copy()
			x.Flip(name, 8*at+at%8)
			w, err := openSteppedAs(t, x, props, at/stride(61)%2 == 0)
			if err != nil {
				if d := new(wal.Damage); !errors.As(err, &d) && !errors.Is(err, ErrRecord) {
					t.Errorf("%s, byte %d: it is not said what is damaged: %v", name, at, err)
				}
				refused++
				continue
			}
			if a, ok := w.count("a"); !ok || a < last.a && used-at > 1024 {
				t.Errorf("%s, byte %d of %d: a has counted %d (%v), and had said %d", name, at, used, a, ok, last.a)
			}
			w.close()
			same++
		}
	}
	if t.Logf("%d refused, %d the same", refused, same); refused < 10*same {
		t.Error("too few were refused")
	}
}

// TestEveryFailureOfADisk: whichever call of the disk fails, once or for good, what has left is there after a loss of power.
func TestEveryFailureOfADisk(t *testing.T) {
	image := puppetImage(t)
	props := Props{"a": puppet(image), "b": puppet(image), "idle": puppet(image)}
	for _, failure := range []error{syscall.EIO, syscall.ENOSPC} {
		for _, good := range []bool{false, true} {
			failed := 0
			for n, reached := 0, true; reached; n += 1 {
				reached = false
				late := (n%2 == 0) == good // of two ways to fail each call, each has one
				fs := crashfs.New()
				fs.Fail(func(i int, _ string) error {
					if i == n || good && i > n {
						reached = true
						return failure
					}
					return nil
				})
				var all []known
				w, err := openSteppedAs(t, fs, props, late)
				switch {
				case err == nil:
					all = w.work(fs)
					if w.store.Err() != nil {
						failed++
						if _, ok := w.count("a"); ok {
							t.Errorf("call %d: a has answered without a store", n)
						}
					}
					w.close()
				case !errors.Is(err, failure):
					t.Errorf("call %d: %v", n, err)
				}
				fs.Fail(nil)
				x, err := openSteppedAs(t, fs.After(fs.Done(), rand.New(rand.NewPCG(1, uint64(n)))), props, late)
				if err != nil {
					t.Errorf("call %d, the next process: %v", n, err)
					continue
				}
				holds(t, x, all, fs.Done())
				x.close()
			}
			if failed == 0 {
				t.Error("the store has never failed")
			}
		}
	}
}

// TestRealTimeDecidesNothing: a checkpoint of a simulation is made however slow the machine is.
func TestRealTimeDecidesNothing(t *testing.T) {
	image := puppetImage(t)
	w, err := openStepped(t, crashfs.New(), Props{"a": puppet(image), "b": puppet(image)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	ref, err := w.Lookup("/user/a")
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Tell(ref, both)
	late, cancel := context.WithTimeout(t.Context(), -time.Hour)
	defer cancel()
	if err := w.store.Checkpoint(late); err != nil {
		t.Error(err)
	}
	if n := w.store.Figures().Checkpoint.Count; n != 1 {
		t.Errorf("%d checkpoints", n)
	}
}
