package host

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmactors/wasmactors/supervision"
)

// grown reports what has gone down from one look to the next.
func grown(t *testing.T, who string, before, now map[string]TypeStats) {
	t.Helper()
	for typ, x := range before {
		if y := now[typ]; y.Turns < x.Turns || y.Crashes < x.Crashes || y.Restarts < x.Restarts || y.Fuel < x.Fuel {
			t.Errorf("%s: %s goes down: %+v, before %+v", who, typ, y, x)
		}
	}
}

// statsByCensus adds up a census as Stats would.
func statsByCensus(infos []Info, ended map[string]TypeStats) map[string]TypeStats {
	for _, i := range infos {
		if !i.Parent.IsZero() {
			x := ended[i.Type]
			x.Actors++
			x.Join(TypeStats{Turns: i.Turns, Crashes: i.Crashes, Restarts: i.Restarts, Fuel: i.Fuel})
			ended[i.Type] = x
		}
	}
	return ended
}

// Actors of two types start, work, crash and end while others look: what only grows never goes down, in
// Stats and in Census, and in the end everything was counted once.
func TestStatsNeverGoDown(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 600
	}
	s := newSystem(t, NewConfig("test").WithGuardian(supervision.Default().WithOtherwise(supervision.Restart)))
	native := Func(func(_ *Context, m Message) error {
		if m.Correlation == 0 {
			return errors.New("boom")
		}
		return nil
	})
	guest := counting(t, NewModule(load(t, newEngine(t), "testdata/puppet.wasm")))
	done := make(chan struct{})
	var lookers sync.WaitGroup
	var looks atomic.Int64
	look := func(who string, take func() map[string]TypeStats) {
		lookers.Go(func() {
			last := map[string]TypeStats{}
			for {
				now := take()
				grown(t, who, last, now)
				last = now
				looks.Add(1)
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	stats := func() map[string]TypeStats {
		st := s.View().Stats()
		var sum TypeStats
		for _, x := range st.Types {
			sum.Join(x)
		}
		if sum.Turns != st.Turns || sum.Fuel != st.Fuel {
			t.Errorf("%d turns and %d of fuel in all, %+v by type", st.Turns, st.Fuel, sum)
		}
		return st.Types
	}
	var infos []Info
	census := func() map[string]TypeStats {
		var ended map[string]TypeStats
		infos, ended = s.View().Census(infos[:0])
		return statsByCensus(infos, ended)
	}
	look("Stats", stats)
	look("Stats again", stats)
	look("Census", census)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			// An actor has worked for a while before it ends, so that it was looked at.
			var living []Ref
			end := func() {
				ref := living[0]
				living = living[1:]
				ended, err := s.Ended(ref)
				if err != nil {
					t.Error(err)
					return
				}
				_ = s.Tell(ref, 1) // one in Go fails, and restarts
				s.Stop(ref)        // while its supervisor hears of the failure, as likely as not
				<-ended
			}
			for i := range rounds / 3 {
				p := native
				if i%4 == 0 {
					p = guest
				}
				ref, err := s.Spawn("", p)
				if err != nil {
					t.Error(err)
					return
				}
				if i%4 != 0 {
					_ = s.Tell(ref, 1)
				}
				if living = append(living, ref); len(living) > 64 {
					end()
				}
			}
			for len(living) > 0 {
				end()
			}
		})
	}
	workers.Wait()
	close(done)
	lookers.Wait()
	if looks.Load() < 3 {
		t.Errorf("%d looks", looks.Load())
	}
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := s.View().Stats()
	if by := census(); !maps.Equal(st.Types, by) {
		t.Errorf("Stats: %v, Census: %v", st.Types, by)
	}
	if x := st.Types["native"]; x.Actors != 0 || x.Crashes != st.Crashes || x.Crashes == 0 || x.Restarts != st.Restarts {
		t.Errorf("%+v, in all %+v", x, st)
	}
	if x := st.Types["puppet"]; x.Actors != 0 || x.Turns == 0 || x.Fuel == 0 {
		t.Errorf("%+v", x)
	}
}
