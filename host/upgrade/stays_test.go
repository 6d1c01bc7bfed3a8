package upgrade_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// TestCannotGoBack: a durable actor whose new code has crashed, and that cannot go back, has crashed: it begins anew, loses no message
// that has come since, and its store opens whenever the power fails.
func TestCannotGoBack(t *testing.T) {
	take := swap.Take
	defer func() { swap.Take = take }()
	for name, c := range map[string]struct {
		hinder     func(w *lasting, b host.Ref)
		version, n int // afterwards
		did        string
	}{
		"no room for its record": {func(_ *lasting, b host.Ref) {
			swap.Take = func(ctx context.Context, system any, ref abi.Ref) (*swap.Taken, error) {
				x, err := take(ctx, system, ref)
				if err == nil && ref == b.UID() {
					x.Switch = func(context.Context, *swap.Code, *swap.Trial) error { return wal.ErrFull }
				}
				return x, err
			}
		}, 2, 3, upgrade.Upgraded},
		"much has come in": {func(w *lasting, b host.Ref) { // with the turns that are run with the one that traps it is more than is kept
			send := func(n int) {
				if err := w.Tell(b, append(host.Raw{0x59, byte(n >> 8), byte(n)}, make([]byte, n)...)); err != nil {
					t.Fatal(err)
				}
			}
			for range 17 {
				send(15_000)
				w.rest()
			}
			send(5000)
		}, 1, 23, upgrade.WentBack},
		"it is never between two turns": {func(_ *lasting, b host.Ref) {
			swap.Take = func(ctx context.Context, system any, ref abi.Ref) (*swap.Taken, error) {
				if ref == b.UID() {
					return nil, swap.ErrNotNow
				}
				return take(ctx, system, ref)
			}
		}, 2, 3, upgrade.Upgraded},
		"it is restarted": {func(w *lasting, b host.Ref) {
			restart := sync.OnceValue(func() error { return w.Operate().Restart(b) })
			swap.Take = func(ctx context.Context, system any, ref abi.Ref) (*swap.Taken, error) {
				if ref == b.UID() {
					if err := restart(); err != nil {
						return nil, err
					}
					for w.Step() {
					}
				}
				return take(ctx, system, ref)
			}
		}, 2, 3, upgrade.Upgraded},
	} {
		t.Run(name, func(t *testing.T) {
			swap.Take = take
			old, new := byHand(t, "tally1"), byHand(t, "tally2")
			fs, kept := crashfs.New(), &sync.Map{}
			w := must(openLasting(t, fs, kept, old))(t)
			w.count("a")
			w.count("b")
			keep(t, w.store, new)
			b := must(w.Lookup("/user/b"))(t)
			r := must(upgrade.Run(context.Background(), w.System, w.module, new, upgrade.Options{Probation: time.Minute, Wait: func(context.Context, time.Duration) {
				c.hinder(w, b)
				for _, m := range []byte{9, 1, 1} {
					if err := w.Tell(b, host.Raw{m}); err != nil {
						t.Fatal(err)
					}
				}
				w.rest()
			}}))(t)
			first := fs.Done()
			swap.Take = take
			w.rest()
			if a := of(&world{t: t}, r, "/b"); r.Crashes != 1 || a.Did != c.did {
				t.Errorf("%+v", r)
			}
			if v, n := w.count("b"); v != c.version || n != c.n {
				t.Errorf("%+v: it has version %d and counts %d", of(&world{t: t}, r, "/b"), v, n)
			}
			look, last := w.look(), fs.Done()
			if err := w.store.Checkpoint(context.Background()); err != nil {
				t.Fatal(err)
			}
			if w.look()["b"] != look["b"] {
				t.Error("it has changed")
			}
			w.end()
			for changes := first; changes <= last; changes++ {
				for seed := range uint64(3) {
					x, err := openLasting(t, fs.After(changes, rand.New(rand.NewPCG(seed, uint64(changes)))), kept, old)
					if err != nil {
						t.Fatalf("after %d changes: %v", changes, err)
					}
					if changes == last && x.looks["b"] != look["b"] {
						t.Errorf("it is\n%s\nand was\n%s", x.looks["b"], look["b"])
					}
					if v, n := x.count("b"); v != 2 && v != 1 || n < 1 {
						t.Errorf("after %d changes: version %d counts %d", changes, v, n)
					}
					x.end()
				}
			}
		})
	}
}

// TestPartsOfAState: a process that is killed between two parts of a snapshot leaves nothing to the next one. There has to be room for
// all parts before there is one.
func TestPartsOfAState(t *testing.T) {
	image, fs, kept := byHand(t, "tally1"), crashfs.New(), &sync.Map{}
	w := must(openLasting(t, fs, kept, image))(t)
	w.count("a")
	for n, want := range map[int64]error{1 << 20: nil, 200 << 20: wal.ErrBusy, 9 << 30: durable.ErrFull} {
		if err := w.store.AdmitAll(n); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	ref := must(w.Lookup("/user/a"))(t)
	x := must(swap.Take(context.Background(), w.System, ref.UID()))(t)
	x.Let()
	b := record.Pack(must(sandbox.AppendSnapshot(nil, x.Image, x.State))(t))
	code := must(sandbox.Fingerprint(x.Image))(t)
	note := func(part, from, to int) {
		w.store.Note(&record.Record{Kind: record.Exchanged, Actor: ref.UID(), Time: x.Entry.Now, Exchange: &record.Exchange{
			Code: code[:], Way: record.Copied, State: b[from:to], Part: uint64(part), More: to < len(b)}})
		w.rest()
	}
	note(0, 0, len(b)/3)
	w.end() // as if it were killed
	for n := 2; n < 4; n++ {
		fs = fs.Copy()
		w = must(openLasting(t, fs, kept, image))(t)
		if v, m := w.count("a"); v != 1 || m != n {
			t.Errorf("version %d counts %d", v, m)
		}
		x = must(swap.Take(context.Background(), w.System, ref.UID()))(t)
		x.Let()
		b = record.Pack(must(sandbox.AppendSnapshot(nil, x.Image, x.State))(t))
		for i := range 3 {
			note(i, i*len(b)/3, (i+1)*len(b)/3)
		}
		w.end()
	}
}
