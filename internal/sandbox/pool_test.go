package sandbox

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestManyWorkers takes, runs, fails and gives back instances of one image from
// many goroutines.
func TestManyWorkers(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		i := load(t, e, "echo", ImageConfig{})
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				in := entry()
				in.TurnFuel = 100_000
				for n := range 40 {
					x, err := Get(i)
					if err != nil {
						t.Error(err)
						return
					}
					var out Result
					what := []byte{0, 10, 1, 4, 2, 13, 8}[(n+w)%7]
					x.Push(message(10))
					x.Push(message(what))
					x.Run(in, &out)
					if wantFailure := what == 1 || what == 2; (out.Failure != nil) != wantFailure {
						t.Errorf("%d: %v", what, out.Failure)
					}
					if _, cmds, ok, err := x.NextTurn(nil); !ok || err != nil || cmds[0].Correlation != 2 {
						t.Errorf("an instance that is not fresh: %v %v", cmds, err)
					}
					x.Put()
				}
			})
		}
		wg.Wait()
		if n := e.Instances(); n > 8 {
			t.Errorf("%d instances for 8 workers", n)
		}
	})
}

func TestTooManyInstances(t *testing.T) {
	e := newEngine(t, NewConfig().WithMaxInstances(2))
	i := load(t, e, "single", ImageConfig{})
	a, b := get(t, i), get(t, i)
	if _, err := Get(i); err != ErrTooManyInstances {
		t.Errorf("a third: %v", err)
	}
	a.Put()
	c := get(t, i)
	c.Put()
	b.Put()
}

// TestPoolIsBounded: what is given back beyond the budget is thrown away.
func TestPoolIsBounded(t *testing.T) {
	cfg := NewConfig()
	cfg.poolBytes = 5 * pooledBase * 2
	e := newEngine(t, cfg)
	i := load(t, e, "single", ImageConfig{})
	var all []*Instance
	for range 50 {
		all = append(all, get(t, i))
	}
	for _, x := range all {
		x.Put()
	}
	if n := e.Instances(); n == 0 || n > 10 {
		t.Errorf("%d instances are kept", n)
	}
}

// TestCloseWithInstancesOut: an image that is closed lives until its last
// instance is put back.
func TestCloseWithInstancesOut(t *testing.T) {
	for name, cfg := range setups {
		t.Run(name, func(t *testing.T) {
			e, err := New(context.Background(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			i := load(t, e, "echo", ImageConfig{})
			x, y := get(t, i), get(t, i)
			y.Put()
			if err := e.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if _, err := Get(i); err != ErrClosed {
				t.Errorf("Get: %v", err)
			}
			if _, err := e.Load(context.Background(), guest(t, "echo"), ImageConfig{}); !errors.Is(err, ErrClosed) {
				t.Errorf("Load: %v", err)
			}
			push(t, x, 0)
			if out, _, err := run(t, x, entry()); out.Failure != nil || err != nil {
				t.Error("the instance no longer works:", out.Failure, err)
			}
			x.Put()
			if e.Instances() != 0 || e.space.Live() != 0 || e.pooled.Load() != 0 {
				t.Errorf("%d instances, %d memories, %d pooled bytes are left", e.Instances(), e.space.Live(), e.pooled.Load())
			}
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCloseWhileWorking(t *testing.T) {
	e, err := New(context.Background(), NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	i := load(t, e, "single", ImageConfig{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			in := entry()
			for {
				x, err := Get(i)
				if err == ErrClosed {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				var out Result
				x.Push(message(0))
				x.Run(in, &out)
				x.Put()
			}
		})
	}
	for e.Instances() == 0 {
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if e.Instances() != 0 || e.space.Live() != 0 || e.pooled.Load() != 0 {
		t.Errorf("%d instances, %d memories, %d pooled bytes are left", e.Instances(), e.space.Live(), e.pooled.Load())
	}
}
