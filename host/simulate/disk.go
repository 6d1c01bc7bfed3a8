package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// Disk is the disk of a run's store, in memory: it fails, loses power, and is the same for the same plan. The store of its
// system does nothing by itself; [Disk.Work] has it go on.
type Disk struct {
	r       *Run
	fs      *crashfs.FS
	index   *vfs.MemFS
	modules *sync.Map      // code that the store has kept; nil: it keeps none
	packed  *sync.Map      // see durable.Sim
	store   *durable.Store // nil: none is open
	opened  uint64         // processes so far
	checks  uint64
	deaths  uint64
	doomed  int                     // steps until the process ends because its store has failed; 0: it has not
	seen    uint64                  // what has left depends on all before this position of the log
	twin    map[abi.Ref]*port.State // what durable actors were when the process was killed; nil: it is not known
	dead    bool                    // the process has died: nothing that happens counts
	failing error                   // of the injected failures the last one
}

// NewDisk gives the run a disk that is empty.
func (r *Run) NewDisk() *Disk {
	d := &Disk{r: r}
	d.use(crashfs.New())
	d.index = vfs.NewStrictMem()
	r.disk = d
	return d
}

// KeepCode has the stores of the disk keep the code that actors run, which matters only if that changes. packed is for several runs,
// see durable.Sim; it is called before the first process.
func (d *Disk) KeepCode(packed *sync.Map) { d.modules, d.packed = new(sync.Map), packed }

// errDead is what a disk says to a process that has died.
var errDead = errors.New("the process has died")

// use makes a file system the disk.
func (d *Disk) use(fs *crashfs.FS) {
	d.fs = fs
	fs.Fail(func(_ int, what string) error {
		d.r.mu.Lock()
		defer d.r.mu.Unlock()
		switch what {
		case "read", "open", "list", "size": // what cannot be read is no store: that is tested elsewhere
			return nil
		}
		arg, yes := d.r.meets(DiskFails, "")
		if !yes {
			return nil
		}
		err := syscall.EIO
		if arg%2 == 1 {
			err = syscall.ENOSPC
		}
		d.failing = fmt.Errorf("%s: %w", what, err)
		return d.failing
	})
}

// Options are those of a store on the disk.
func (d *Disk) Options(o durable.Options) durable.Options {
	h := mix(d.r.plan.Seed, "store", d.opened, 7)
	d.opened++
	random := rand.NewChaCha8([32]byte{1: byte(d.opened), 2: byte(d.opened >> 8), 3: byte(h), 4: byte(h >> 8), 5: byte(h >> 16), 6: byte(h >> 24)})
	s := &durable.Sim{Rand: random, Segment: 64 << 10, Modules: d.modules, Packed: d.packed, Opened: func(s *durable.Store) { d.store = s }, Recovered: d.recovered, Released: d.released}
	for i := range s.Secret {
		s.Secret[i] = byte(mix(d.r.plan.Seed, "secret", uint64(i), 8))
	}
	if o.Size == 0 {
		o.Size = durable.DefaultSize
	}
	o.Dir, o.FS, o.Index, o.Clock, o.Sim = "store", d.fs, d.index, d.r.virtual, s
	return o
}

// Work has the store write and sync what it has recorded; false if there is nothing to do.
func (d *Disk) Work() bool {
	if d.store == nil {
		return false
	}
	d.r.once.by = 0
	did := d.store.Work()
	d.seen = d.store.End()
	return did
}

// Between is called in the middle of a step that records much: the seed says whether the disk goes on, and whether all ends here, as in
// a process that ends early.
func (d *Disk) Between() (ends bool) {
	if d.store == nil || d.dead {
		return false
	}
	d.checks++
	h := mix(d.r.plan.Seed, "between", d.checks, 9)
	if h%2 == 0 {
		d.Work()
	}
	return h>>8%8 == 0
}

// Doomed reports whether the process is about to end because its store has failed. Then it is not at rest, even if none of
// its actors has work: they may all have stopped.
func (d *Disk) Doomed() bool { return d.doomed > 1 }

// failed reports whether nothing is recorded any more.
func (d *Disk) failed() bool { return d != nil && (d.store == nil || d.store.Err() != nil) }

// phase is where a process stands.
type phase uint8

const (
	runs     phase = iota
	repeats        // its durable actors come back
	releases       // they are back, and what was under way arrives
)

// Turn is called before each step of the system: the seed says whether the disk goes on, whether a checkpoint is made, and
// whether the process dies now. more says that actors have work.
func (d *Disk) Turn() (dies bool) {
	if d.store == nil || d.dead {
		return false
	}
	d.checks++
	h := mix(d.r.plan.Seed, "disk", d.checks, 9)
	if h%3 == 0 {
		d.Work()
	}
	if h>>8%64 == 0 {
		_ = d.store.Checkpoint(context.Background()) // that it fails is no violation: it is tried again
	}
	if d.store.Err() != nil {
		if d.doomed == 0 {
			d.doomed = 2 + int(h>>16%8)
			d.r.Note("the store has failed: %v", d.store.Err())
		}
		if d.doomed--; d.doomed == 1 {
			d.doomed = 0
			return true
		}
		return false
	}
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	_, dies = d.r.meets(Death, "")
	return dies
}

// Keeps reports whether an actor is durable.
func (d *Disk) Keeps(r host.Ref) bool { return d.r.kept(r.UID()) }

// kept says which state of an actor counts: that of a durable one.
func (r *Run) kept(ref abi.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.doors[ref]
	return d != nil && d.kept
}

// Die ends the process: by a signal, which takes what was not written, or by a loss of power, which takes what was not synced,
// in the middle of a write or not. What comes after it finds what that has left.
func (d *Disk) Die(sys *host.System) error {
	d.deaths++
	h := mix(d.r.plan.Seed, "death", d.deaths, 10)
	d.twin = nil
	how := "by a loss of power"
	switch {
	case d.store.Err() != nil:
		how = "because its store has failed"
	case h%3 == 0:
		how = "when all was written"
		for d.Work() {
		}
		if d.store.Err() == nil {
			d.twin = d.r.look(sys)
		}
	}
	d.r.Note("the process dies %s", how)
	d.dead = true
	if d.twin == nil && d.store.Err() == nil && h>>8%2 == 0 { // in the middle of a write
		left := int(h >> 16 % 6)
		d.fs.Fail(func(n int, _ string) error {
			if n >= left {
				return errDead
			}
			return nil
		})
		d.Work()
	}
	after := d.fs
	switch {
	case h>>24%3 == 0 && d.twin != nil, h>>24%3 == 0 && d.store.Err() == nil:
		after = after.Copy() // of a process that was killed all is there that it has written
	default:
		after = after.After(after.Done(), rand.New(rand.NewPCG(h, d.deaths)))
	}
	d.fs.Fail(func(int, string) error { return errDead })
	old := d.index
	old.SetIgnoreSyncs(true)
	port.Freeze(sys)
	for _, top := range sys.View().Tree().Children {
		sys.StopNow(top.Ref)
	}
	sys.RunUntilIdle(mostSteps)
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := sys.Close(ctx)
	_ = d.store.Close()
	d.store = nil
	old.ResetToSyncedState()
	old.SetIgnoreSyncs(false)
	d.use(after)
	return err
}

// Opening is called before the next process begins.
func (d *Disk) Opening() {
	r := d.r
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.doors)
	clear(r.living)
	clear(r.begun)
	clear(r.cut)
	r.held, r.victim = 0, ""
	d.dead, r.phase = false, repeats
	r.aside = rand.NewPCG(r.plan.Seed, d.deaths)
}

// Began is called when the next process has begun. err is why it could not: then it may be tried again.
func (d *Disk) Began(err error) (again bool) {
	r := d.r
	r.mu.Lock()
	r.phase = runs
	r.mu.Unlock()
	if err == nil {
		return false
	}
	if d.failing != nil && (errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC)) {
		d.failing = nil
		r.Note("the process cannot begin: %v", err)
		return true
	}
	r.Violate("a store opens after a crash", "%v", err)
	return false
}

// recovered compares the actors that are back with those that were killed.
func (d *Disk) recovered(sys *host.System) {
	r := d.r
	if d.seen > d.store.End() {
		r.Violate("what has left is durable", "the log ends at %d after a crash, and what has left depends on %d", d.store.End(), d.seen)
	}
	is := r.look(sys)
	r.mu.Lock()
	r.once.crashed(is)
	r.phase = releases
	r.mu.Unlock()
	if d.twin == nil {
		return
	}
	for ref, was := range d.twin {
		if now := is[ref]; now == nil {
			r.Violate("an actor comes back as it was", "%s is gone", was.Path)
		} else if what := differs(was, now); what != "" {
			r.Violate("an actor comes back as it was", "%s: %s", was.Path, what)
		}
	}
	for ref, now := range is {
		if d.twin[ref] == nil {
			r.Violate("an actor comes back as it was", "%s was not there", now.Path)
		}
	}
}

// released begins with what happens from then on: actors may run before the process has begun, for code is exchanged.
func (d *Disk) released() {
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	d.r.phase, d.r.unread = runs, true
	d.r.once.check(d.r)
}

// look is what the durable actors of a system are, which are at rest.
func (r *Run) look(sys *host.System) map[abi.Ref]*port.State {
	all := map[abi.Ref]*port.State{}
	for _, i := range sys.View().AppendInfo(nil) {
		if !r.kept(i.Ref.UID()) {
			continue
		}
		if s := port.Look(sys, i.Ref.UID()); s != nil {
			all[s.Ref] = s
		}
	}
	return all
}

// differs says in what two states differ; "" if they are equal.
func differs(was, now *port.State) string {
	if was.Life == "restarting" && now.Life == "failed" {
		return "" // it goes on with the order to restart
	}
	mail := func(s *port.State) string {
		all := slices.Clone(s.Mail)
		for i := range all {
			all[i].Flags &^= mark.Promised // who waited in the process is gone
		}
		return fmt.Sprintf("%+v", all)
	}
	for _, x := range []struct {
		what string
		a, b any
	}{
		{"state of life", was.Life, now.Life}, {"incarnation", was.Incarnation, now.Incarnation}, {"number of turns", was.Turns, now.Turns},
		{"mailbox", mail(was), mail(now)}, {"number of messages", was.Position, now.Position},
		{"timers", fmt.Sprint(was.Timers), fmt.Sprint(now.Timers)}, {"children", fmt.Sprint(was.Children), fmt.Sprint(now.Children)},
		{"code", fmt.Sprintf("%x", was.Codes), fmt.Sprintf("%x", now.Codes)}, {"other state", was.Rest, now.Rest},
	} {
		if x.a != x.b {
			return fmt.Sprintf("its %s is %v, and was %v", x.what, x.b, x.a)
		}
	}
	if was.Life != "failed" && string(was.Saved) != string(now.Saved) { // of one that has failed, nothing is left
		return fmt.Sprintf("its memory is another one: %d bytes, and were %d", len(now.Saved), len(was.Saved))
	}
	return ""
}
