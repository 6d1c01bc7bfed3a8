package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

// TestRoomForCompilations: those that compile at a time take no more together than
// there is, and one that would take more than all of it is alone.
func TestRoomForCompilations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{roomBytes: 100}
		e.room = semaphore.NewWeighted(e.roomBytes)
		var now, peak atomic.Int64
		var wg sync.WaitGroup
		for _, bytes := range []uint64{40, 1000, 30, 60, 100, 1 << 63, 10, 70, 50} {
			wg.Go(func() {
				err := e.within(context.Background(), bytes, func() error {
					n := now.Add(int64(min(bytes, 100)))
					for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
					}
					time.Sleep(time.Second)
					now.Add(-int64(min(bytes, 100)))
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if peak.Load() > 100 {
			t.Errorf("%d bytes at a time", peak.Load())
		}
		ctx, cancel := context.WithCancel(context.Background())
		err := e.within(context.Background(), 100, func() error {
			cancel()
			return e.within(ctx, 1, func() error { return nil })
		})
		if !errors.Is(err, context.Canceled) {
			t.Error("who waits is not interrupted:", err)
		}
	})
	if n := compileRoom(); n < 64<<20 {
		t.Errorf("%d bytes for compilations", n)
	}
}

// TestParallelLoads: no more modules are worked at than the bound says, reading
// included, and who waits for his turn is interrupted.
func TestParallelLoads(t *testing.T) {
	e := newEngine(t, NewConfig().WithParallelLoads(2))
	raw := guest(t, "echo")
	var now, peak atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			i, err := e.LoadFrom(t.Context(), Source{sha256.Sum256(raw), func(context.Context) ([]byte, error) {
				if n := now.Add(1); n > peak.Load() {
					peak.Store(n)
				}
				return raw, nil
			}}, ImageConfig{Progress: func(stage string) {
				if stage == "compile" {
					now.Add(-1)
				}
			}})
			if err != nil {
				t.Error(err)
				return
			}
			i.Close()
		})
	}
	wg.Wait()
	if peak.Load() > 2 {
		t.Errorf("%d at a time", peak.Load())
	}
	ctx, cancel := context.WithCancel(context.Background())
	blocked, release := make(chan struct{}), make(chan struct{})
	for range 2 {
		wg.Go(func() {
			_, _ = e.LoadFrom(t.Context(), Source{Read: func(context.Context) ([]byte, error) {
				blocked <- struct{}{}
				<-release
				return nil, errors.New("no")
			}}, ImageConfig{})
		})
		<-blocked
	}
	cancel()
	if _, err := e.Load(ctx, raw, ImageConfig{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(release)
	wg.Wait()
}
