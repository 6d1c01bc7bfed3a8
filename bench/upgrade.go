package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// upgrades measures how long actors handle no message while their code is exchanged, and how long that takes for all of them. They are
// accounts of the ledger, which are asked things meanwhile.
func upgrades(l *lab) error {
	for _, kind := range []struct{ name, file, title string }{{"go", "ledger", "standard Go"}, {"tinygo", "ledger-tinygo", "TinyGo"}} {
		for _, lasts := range []bool{false, true} {
			which := map[bool]string{false: "volatile", true: "durable"}[lasts]
			name := pauseBench(which, kind.title)
			code, err := guestFile(kind.file)
			if err != nil {
				if err := l.report.write(record{Bench: name, Who: ourFigure, Missing: "the guest was not built"}); err != nil {
					return err
				}
				continue
			}
			if err := l.upgrade(code, name, max(50, l.scale(1000)), lasts, false); err != nil {
				return err
			}
			if !lasts {
				if err := l.upgrade(code, allBench(kind.title), max(500, l.scale(10_000)), false, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pauseBench and allBench name the figures.
func pauseBench(which, guest string) string {
	return "upgrade of 1000 " + which + " actors, pause p99, " + guest
}

func allBench(guest string) string { return "upgrade of 10,000 actors while messages flow, " + guest }

// upgrade upgrades n actors again and again, to one of two modules that differ in what says nothing, and reports the pauses, or how long it
// has taken for all.
func (l *lab) upgrade(code []byte, name string, n int, lasts, whole bool) error {
	w, err := openUpgraded(l.ctx, code, n, lasts)
	if err != nil {
		return err
	}
	var p50s, firsts []float64
	p99, err := l.repeat(func() (float64, error) {
		stop, asked := w.flow()
		began := time.Now()
		r, err := w.exchange(l.ctx)
		took := time.Since(began)
		longest, lost := stop()
		switch {
		case err != nil:
			return 0, err
		case lost != nil:
			return 0, fmt.Errorf("an ask meanwhile: %w", lost)
		case r.Stopped != "" || len(r.Actors) != n || slices.ContainsFunc(r.Actors, func(a upgrade.Actor) bool { return a.Did != upgrade.Upgraded }):
			return 0, fmt.Errorf("not all were upgraded: %s, %+v", r.Stopped, r.Types)
		case asked.Load() == 0:
			return 0, errors.New("no messages have flowed")
		}
		p50s, firsts = append(p50s, float64(r.P50)/1e6), append(firsts, float64(longest)/1e6)
		if whole {
			return took.Seconds(), nil
		}
		return float64(r.P99) / 1e6, nil
	})
	if err == nil && whole {
		err = l.report.alone(name, "s", p99, fmt.Sprintf("%d actors; the longest ask meanwhile %.3g ms", n, median(firsts)))
	} else if err == nil {
		err = l.report.alone(name, "ms", p99, fmt.Sprintf("%d actors; p50 %.3g ms; the longest ask meanwhile %.3g ms", n, median(p50s), median(firsts)))
	}
	return errors.Join(err, w.close(l.ctx))
}

// upgraded is a system whose actors change between two images.
type upgraded struct {
	engine *runtime.Engine
	images [2]*runtime.Image
	module *host.Module
	store  *durable.Store // nil: they are volatile
	dir    string
	sys    *host.System
	refs   []host.Ref
}

func openUpgraded(ctx context.Context, code []byte, n int, lasts bool) (w *upgraded, err error) {
	w = &upgraded{}
	if w.engine, err = runtime.New(ctx, runtime.NewConfig()); err != nil {
		return nil, err
	}
	for i := range w.images {
		other := append(code[:len(code):len(code)], 0, 2, 1, byte('a'+i)) // a section that says nothing
		if w.images[i], err = w.engine.Load(ctx, other, runtime.ImageConfig{Name: "ledger"}); err != nil {
			return nil, err
		}
	}
	w.module = host.NewModule(w.images[0])
	p := host.GuestOf(w.module, "account").WithArgs(0)
	cfg := host.NewConfig("bench").WithGuardian(supervision.Default().WithSilence(true)).WithMaxActors(n + 1000)
	release := func() {}
	if !lasts {
		w.sys, err = host.New(cfg)
	} else {
		if w.dir, err = os.MkdirTemp("", "bench-store-"); err != nil {
			return nil, err
		}
		p = p.WithDurable()
		props := durable.Props{}
		for i := range n {
			props[strconv.Itoa(i)] = p
		}
		if w.store, err = durable.Open(durable.Options{Dir: w.dir}); err != nil {
			return nil, err
		}
		var x *durable.Starting
		if x, err = w.store.Prepare(cfg, props); err == nil {
			w.sys, release = x.System(), x.Release
			_, err = x.Recover()
		}
	}
	for i := 0; i < n && err == nil; i++ {
		var ref host.Ref
		ref, err = w.sys.Spawn(strconv.Itoa(i), p)
		w.refs = append(w.refs, ref)
	}
	release()
	for _, ref := range w.refs {
		if err == nil {
			_, err = w.sys.Ask(ctx, ref, 1) // it begins with its first message: before that it has no state to take over
		}
	}
	return w, err
}

// exchange has all actors go over to the image that they do not run.
func (w *upgraded) exchange(ctx context.Context) (*upgrade.Report, error) {
	to := w.images[0]
	if w.module.Image() == to {
		to = w.images[1]
	}
	return upgrade.Run(ctx, w.sys, w.module, to, upgrade.Options{})
}

// flow has two askers ask accounts until stop is called, which returns how long the longest answer took. asked counts.
func (w *upgraded) flow() (stop func() (time.Duration, error), asked *atomic.Int64) {
	asked = &atomic.Int64{}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex
	var longest time.Duration
	var lost error
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				_, err := w.sys.Ask(context.Background(), w.refs[rand.IntN(len(w.refs))], 1)
				took := time.Since(began)
				mu.Lock()
				longest, lost = max(longest, took), errors.Join(lost, err)
				mu.Unlock()
				if asked.Add(1); err != nil {
					return
				}
				time.Sleep(200 * time.Microsecond)
			}
		})
	}
	return func() (time.Duration, error) {
		cancel()
		all.Wait()
		return longest, lost
	}, asked
}

func (w *upgraded) close(ctx context.Context) error {
	err := w.sys.Close(ctx)
	if w.store != nil {
		err = errors.Join(err, w.store.Close(), os.RemoveAll(w.dir))
	}
	return errors.Join(err, w.engine.Close(ctx))
}
