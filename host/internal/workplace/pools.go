package workplace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// MostPools bounds the pools of a system.
const MostPools = 64

// Pool is a pool for actors that block: at most Workers of their turns run at a time.
type Pool struct {
	Name    string
	Workers int
}

// CheckPools says what is wrong with the pools of a system.
func CheckPools(all []Pool) error {
	seen := map[string]bool{}
	for _, p := range all {
		switch {
		case !abi.ValidName([]byte(p.Name)) || seen[p.Name]:
			return fmt.Errorf("host: %q is not a valid name for a pool, or is in use already", printable.Clip(p.Name, 100))
		case p.Workers < 1 || p.Workers > dispatch.MaxWorkers:
			return fmt.Errorf("host: the pool %s has %d workers, must have 1 to %d", p.Name, p.Workers, dispatch.MaxWorkers)
		}
		seen[p.Name] = true
	}
	if len(seen) > MostPools {
		return fmt.Errorf("host: %d pools, at most %d", len(seen), MostPools)
	}
	return nil
}

// Pools are a system's dispatcher, its pools and its threads. All methods are for any goroutine, except Open and Close.
type Pools struct {
	usual   *dispatch.Dispatcher
	pools   []Pool
	named   map[string]*dispatch.Dispatcher
	most    int // threads
	manual  bool
	pinned  atomic.Int64
	threads sync.WaitGroup
}

// Open opens pools beside the usual dispatcher, and allows most threads. Where the system is stepped by hand, manual, all run
// on the usual one.
func (s *Pools) Open(usual *dispatch.Dispatcher, all []Pool, most int, manual bool) {
	s.usual, s.pools, s.most, s.manual = usual, all, most, manual
	if manual {
		return
	}
	s.named = map[string]*dispatch.Dispatcher{}
	for _, p := range all {
		s.named[p.Name] = dispatch.New(dispatch.Config{Workers: p.Workers, Fixed: true})
	}
}

// Take gives an actor its place: on the named pool, on a thread of its own, or else on the usual dispatcher. It fails with
// errs.ErrBadProps if there is no such pool, and with errs.ErrLimit if there are as many threads as there may be.
func (s *Pools) Take(p *Place, pool string, pinned bool) error {
	p.disp = s.usual
	switch {
	case pool != "":
		if !slices.ContainsFunc(s.pools, func(x Pool) bool { return x.Name == pool }) {
			return fmt.Errorf("%w: the system has no pool %q", errs.ErrBadProps, printable.Clip(pool, 100))
		}
		if d := s.named[pool]; d != nil {
			p.disp = d
		}
	case pinned && !s.manual:
		if s.pinned.Add(1) > int64(s.most) {
			s.pinned.Add(-1)
			return fmt.Errorf("%w: %d actors have a thread of their own, see Config.WithPinned", errs.ErrLimit, s.most)
		}
		s.threads.Add(1)
		p.disp = dispatch.New(dispatch.Config{Workers: 1, Fixed: true, Threads: true})
	}
	return nil
}

// Leave ends the thread of an actor that has stopped, if it has one. The thread itself may call it.
func (s *Pools) Leave(p *Place, pinned bool) {
	if !pinned || p.disp == s.usual {
		return
	}
	s.pinned.Add(-1)
	go func() {
		defer s.threads.Done()
		_ = p.disp.Close(context.Background())
	}()
}

// Threads is how many actors have a thread of their own.
func (s *Pools) Threads() int { return int(s.pinned.Load()) }

// Close waits for the pools and threads, whose actors have stopped; until ctx ends it lets turns that wait begin.
func (s *Pools) Close(ctx context.Context) {
	for _, p := range s.pools {
		if d := s.named[p.Name]; d != nil && d.Close(ctx) != nil {
			_ = d.Close(context.Background())
		}
	}
	s.threads.Wait()
}
