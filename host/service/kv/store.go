package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

// store holds all namespaces of a bundle. One goroutine carries out the writes, in one order: so
// conditions are checked, versions assigned and quotas counted without a lock, while earlier
// writes are still being synced. Its methods may be called concurrently.
type store struct {
	clock host.Clock
	log   *slog.Logger
	eng   atomic.Pointer[engine]
	again func(engine) (engine, error) // opens a failed engine again; nil: never

	commits chan *commit
	revive  chan struct{}
	sync    chan *commit // applied, in order, not yet as durable as they should be
	quit    chan struct{}
	gone    chan struct{} // closed when the last write is answered
	opening chan struct{} // held to open a new engine, and in the end to close the last one
	closing sync.Once
	latest  atomic.Int64 // latest time that was seen, ns: it does not go back
	hub     hub
	sweeper sweeper

	// Of the goroutine that writes.
	next, reserved uint64 // versions: the next one, and the last one reserved
	usage          map[string]Usage
	revived        time.Time
}

const (
	// waitingWrites is how many writes may wait for their turn.
	waitingWrites = 256
	// unsynced is how many may wait for a sync.
	unsynced = 2048
	// versionsAhead is how many versions are reserved on the disk at a time: a version is never
	// given twice, whatever a crash loses.
	versionsAhead = 1 << 20
	// sweepEvery is how often expired entries are removed at most.
	sweepEvery = 10 * time.Second
	// sweepAtOnce is how many entries one commit removes.
	sweepAtOnce = 256
	// reviveEvery is how often a failed store is opened again.
	reviveEvery = time.Second
)

// commit is a write on its way.
type commit struct {
	ns         string
	quota      Quota
	ops        []Op
	durability Durability
	visible    func()
	once       *once.Request // nil: it has no key
	sweep      bool          // removes expired entries; no caller waits for it

	results []Result
	version uint64
	changes []Change
	wait    func() error
	done    chan error // takes one
}

// Quota bounds what a namespace may hold after a write that makes it grow; 0 is no bound.
type Quota struct{ Keys, Bytes int64 }

// openStore begins with what an engine holds.
func openStore(eng engine, clock host.Clock, log *slog.Logger, again func(engine) (engine, error)) (*store, error) {
	s := &store{
		clock: clock, log: log, again: again,
		commits: make(chan *commit, waitingWrites), revive: make(chan struct{}, 1),
		sync: make(chan *commit, unsynced), quit: make(chan struct{}), gone: make(chan struct{}),
		opening: make(chan struct{}, 1),
	}
	if err := s.load(eng); err != nil {
		if changed, why := eng.trouble(); why == nil || changed != nil || again == nil {
			return nil, err
		}
		s.eng.Store(&eng) // for now
	}
	executor.Go(clock, s.write)
	executor.Go(clock, s.acknowledge)
	return s, nil
}

// load reads the state of an engine.
func (s *store) load(eng engine) error {
	b, found, err := eng.get(metaFormat)
	if err != nil {
		return err
	}
	var last uint64
	if found {
		v, n := binary.Uvarint(b)
		if n != len(b) {
			return damagedMeta("format")
		}
		if v != format {
			return fmt.Errorf("kv: the store has format %d, and this program knows %d: a newer one has written it", v, format)
		}
		if b, found, err = eng.get(metaVersion); err != nil {
			return err
		}
		if last, n = binary.Uvarint(b); !found || n != len(b) {
			return damagedMeta("version")
		}
	} else {
		var w writes
		w.set(metaFormat, binary.AppendUvarint(nil, format))
		w.set(metaVersion, binary.AppendUvarint(nil, 0))
		if err := applyNow(eng, &w); err != nil {
			return err
		}
	}
	s.next, s.reserved, s.usage = last+1, last, map[string]Usage{}
	s.eng.Store(&eng)
	s.dueNext(eng)
	return nil
}

func damagedMeta(what string) error {
	return fmt.Errorf("%w: its record of %s cannot be read", ErrDamaged, what)
}

func applyNow(eng engine, w *writes) error {
	wait, err := eng.apply(w, Disk)
	if err != nil {
		return err
	}
	return wait()
}

func (s *store) engine() engine { return *s.eng.Load() }

// now is the time, in ns. Expired entries stay expired when the machine's clock is set back.
func (s *store) now() int64 {
	now := s.clock.Now().UnixNano()
	for {
		was := s.latest.Load()
		if now <= was {
			return was
		}
		if s.latest.CompareAndSwap(was, now) {
			return now
		}
	}
}

// change carries out operations on a namespace, all or none. They see each other's effects. After
// an Unavailable or Timeout error it is not known whether they were carried out.
func (s *store) change(ctx context.Context, ns string, q Quota, ops []Op, d Durability) ([]Result, uint64, error) {
	return s.changeThen(ctx, ns, q, ops, d, func() {})
}

// changeThen is change, and calls visible when others can see it, or when it is refused.
// It may be called after the return, too.
func (s *store) changeThen(ctx context.Context, ns string, q Quota, ops []Op, d Durability, visible func()) ([]Result, uint64, error) {
	return s.changeOnce(ctx, ns, q, ops, d, visible, nil)
}

// submit has a write carried out, and waits until it is as durable as it should be.
func (s *store) submit(ctx context.Context, c *commit) ([]Result, uint64, error) {
	if _, why := s.engine().trouble(); why != nil {
		s.heal()
		return nil, 0, unavailable(why, "nothing was written")
	}
	switch executor.Put(s.clock, s.commits, c, ctx.Done(), s.quit) {
	case 1:
		return nil, 0, late(ctx, "it was not written")
	case 2:
		return nil, 0, unavailable(errClosed, "nothing was written")
	}
	for {
		changed, why := s.engine().trouble()
		if why != nil {
			select {
			case err := <-c.done:
				return c.results, c.version, err
			default:
				return nil, 0, unavailable(why, "whether it was written is not known")
			}
		}
		err, which := executor.Take(s.clock, c.done, changed, s.gone, ctx.Done())
		switch which {
		case 0:
			if err != nil {
				return nil, 0, err
			}
			return c.results, c.version, nil
		case 2:
			select {
			case err := <-c.done:
				return c.results, c.version, err
			default:
				return nil, 0, unavailable(errClosed, "nothing was written")
			}
		case 3:
			return nil, 0, late(ctx, "whether it was written is not known")
		}
	}
}

func unavailable(why error, known string) error {
	text := "the store cannot write"
	switch {
	case errors.Is(why, errClosed):
		text = "the store is closing"
	case service.DiskTrouble(why) != "":
		text = service.DiskTrouble(why)
	}
	return &service.Error{Code: service.Unavailable, Text: text + "; " + known, Err: why}
}

func late(ctx context.Context, known string) error {
	code := service.Timeout
	if errors.Is(context.Cause(ctx), context.Canceled) {
		code = service.Cancelled
	}
	return &service.Error{Code: code, Text: known, Err: context.Cause(ctx)}
}

// heal asks for a new engine instead of one that has failed.
func (s *store) heal() {
	if s.again == nil {
		return
	}
	select {
	case s.revive <- struct{}{}:
	default:
	}
}

// write is the goroutine that writes.
func (s *store) write() {
	defer close(s.sync)
	for {
		var c *commit
		revive := false
		executor.Await(s.clock, func() bool {
			select {
			case c = <-s.commits:
			default:
				select {
				case <-s.revive:
					revive = true
				default:
					return s.closed()
				}
			}
			return true
		}, func() {
			select {
			case c = <-s.commits:
			case <-s.revive:
				revive = true
			case <-s.quit:
			}
		})
		switch {
		case c != nil:
			s.commit(c)
		case revive:
			s.replace()
		default:
			for {
				select {
				case c := <-s.commits:
					c.done <- unavailable(errClosed, "nothing was written")
				default:
					return
				}
			}
		}
	}
}

// closed reports whether the store has been closed.
func (s *store) closed() bool {
	select {
	case <-s.quit:
		return true
	default:
		return false
	}
}

// replace opens the store again if it has failed. Closing makes it fail, too: then its files
// belong to the next process that opens them.
func (s *store) replace() {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-s.quit:
		return
	}
	if s.closed() {
		return
	}
	old := s.engine()
	changed, why := old.trouble()
	now := s.clock.Now()
	if why == nil || changed != nil || now.Sub(s.revived).Abs() < reviveEvery {
		return
	}
	s.revived = now
	eng, err := s.again(old)
	if err == nil {
		if err = s.load(eng); err != nil {
			if _, why := eng.trouble(); why != nil {
				s.eng.Store(&eng) // for now: the next attempt follows from it
			} else {
				err = errors.Join(err, eng.close())
			}
		}
	}
	if err != nil {
		s.log.Warn("the store cannot be opened again yet", "error", err)
		return
	}
	if s.closed() { // close may have stopped waiting
		_ = eng.close()
		return
	}
	s.log.Info("the store is open again")
	s.hub.gap() // unacknowledged writes may have been written
}

// commit decides about a write and applies it.
func (s *store) commit(c *commit) {
	eng := s.engine()
	t := &turn{store: s, eng: eng, ns: c.ns, now: s.now()}
	var err error
	if c.sweep {
		err = t.expire(sweepAtOnce)
	} else {
		err = t.perform(c)
		for tries := 0; service.CodeOf(err) == service.Quota && tries < 4; tries++ {
			// Expired entries must not count.
			if n, failed := s.sweepNow(); failed != nil || n == 0 {
				break
			}
			t = &turn{store: s, eng: eng, ns: c.ns, now: s.now()}
			err = t.perform(c)
		}
	}
	if err == nil {
		err = t.apply(c)
	}
	if c.sweep {
		s.dueNext(eng)
	} else if err == nil {
		for i := range t.list {
			if x := t.list[i].is; x != nil && x.expires != 0 {
				s.dueAt(x.expires)
			}
		}
	}
	if c.visible != nil {
		c.visible()
	}
	if err != nil {
		var known *service.Error
		if !errors.As(err, &known) {
			err = unavailable(err, "nothing was written")
		}
		c.done <- err
		return
	}
	if c.durability == Memory {
		c.done <- nil
	}
	executor.Put(s.clock, s.sync, c)
}

// acknowledge waits until applied writes are durable, answers them, and notifies the watchers, in
// order.
func (s *store) acknowledge() {
	defer close(s.gone)
	for {
		c, which := executor.Take(s.clock, s.sync)
		if which != 0 {
			return
		}
		err := c.wait()
		if err == nil {
			s.hub.publish(c.version, c.changes)
		}
		if c.durability == Memory {
			continue
		}
		if err != nil {
			err = unavailable(err, "whether it was written is not known")
		}
		c.done <- err
	}
}

// version is the next one.
func (s *store) version(eng engine) (uint64, error) {
	if s.next > s.reserved {
		var w writes
		w.set(metaVersion, binary.AppendUvarint(nil, s.next+versionsAhead))
		if err := applyNow(eng, &w); err != nil {
			return 0, err
		}
		s.reserved = s.next + versionsAhead
	}
	v := s.next
	s.next++
	return v, nil
}

// used is how much a namespace holds.
func (s *store) used(_ context.Context, ns string) (u Usage, err error) {
	b, found, err := s.engine().get(usageKey(ns))
	if err == nil && found {
		u, err = decodeUsage(b)
	}
	if err != nil {
		return Usage{}, s.cannotRead(err)
	}
	return u, nil
}

func (s *store) usageOf(eng engine, ns string) (Usage, error) {
	if u, ok := s.usage[ns]; ok {
		return u, nil
	}
	b, found, err := eng.get(usageKey(ns))
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	if found {
		if u, err = decodeUsage(b); err != nil {
			return Usage{}, err
		}
	}
	s.usage[ns] = u
	return u, nil
}

// sweeper removes expired entries: when the next one is due, and at most every sweepEvery. While nothing
// expires it has no timer.
type sweeper struct {
	mu     sync.Mutex
	timer  interface{ Stop() bool } // nil: nothing is due
	when   int64                    // of the timer, ns
	last   int64                    // when the last sweep began, ns
	closed bool
}

// dueAt says that an entry expires, at a time in ns.
func (s *store) dueAt(at int64) {
	w := &s.sweeper
	w.mu.Lock()
	defer w.mu.Unlock()
	at = max(at, w.last+int64(sweepEvery))
	if w.closed || w.timer != nil && w.when <= at {
		return
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.when = at
	w.timer = s.clock.AfterFunc(max(time.Unix(0, at).Sub(s.clock.Now()), 0), s.sweepDue)
}

// sweepDue asks for a sweep. After it the writing goroutine looks for what is due next.
func (s *store) sweepDue() {
	w := &s.sweeper
	w.mu.Lock()
	w.timer, w.last = nil, s.clock.Now().UnixNano()
	w.mu.Unlock()
	select {
	case s.commits <- &commit{sweep: true, durability: Memory, done: make(chan error, 1)}:
	default: // busy
		s.dueAt(0)
	}
}

// dueNext finds out when the next entry expires. What is left over from a sweep counts, too.
func (s *store) dueNext(eng engine) {
	err := eng.scan([]byte{spaceExpiry}, []byte{spaceExpiry + 1}, false, func(k, _ []byte) bool {
		if at, _, _, ok := parseExpiryKey(k); ok {
			s.dueAt(at)
		}
		return false
	})
	if err != nil { // the engine has failed, or is about to
		s.dueAt(0)
	}
}

// sweepNow sweeps in a separate commit, before the current one.
func (s *store) sweepNow() (int, error) {
	c := &commit{sweep: true, durability: Memory, done: make(chan error, 1)}
	t := &turn{store: s, eng: s.engine(), now: s.now()}
	err := t.expire(sweepAtOnce)
	n := len(t.list)
	if err == nil && n > 0 {
		err = t.apply(c)
	}
	if err != nil || n == 0 {
		return 0, err
	}
	executor.Put(s.clock, s.sync, c)
	return n, nil
}

// close ends operations in progress.
func (s *store) close() error {
	var err error
	s.closing.Do(func() {
		close(s.quit)
		s.sweeper.mu.Lock()
		s.sweeper.closed = true
		if t := s.sweeper.timer; t != nil {
			t.Stop()
		}
		s.sweeper.mu.Unlock()
		s.hub.close()
		err = s.end()
	})
	return err
}

// end closes the engine. Calls that are stuck in it are waited for only a while.
func (s *store) end() error {
	ctx, cancel := executor.WithTimeout(executor.Machine, context.Background(), closeTime)
	defer cancel()
	select {
	case s.opening <- struct{}{}: // for good
	case <-ctx.Done():
	}
	_, why := s.engine().trouble()
	if why == nil {
		executor.Take(s.clock, s.gone, ctx.Done())
	}
	return s.engine().close()
}
