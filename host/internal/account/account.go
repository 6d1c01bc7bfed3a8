// Package account counts the bytes that the host holds for its actors, and bounds them:
// for one actor, for an actor and all below it, and for the system.
package account

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Kind is what the bytes are for.
type Kind uint8

// The kinds.
const (
	Base     Kind = iota // the actor itself: its structures, its path, its arguments
	Memory               // a guest's instance: memory, tables, what it needs besides
	Mailbox              // messages that wait
	Stash                // messages that were put aside
	Timers               // with their payloads
	Asks                 // that wait for answers
	Watches              // of other actors
	Snapshot             // of a guest that sleeps, or can be resumed
	Kinds
)

var names = [Kinds]string{"base", "memory", "mailbox", "stash", "timers", "asks", "watches", "snapshot"}

// String is the name as views show it.
func (k Kind) String() string { return names[k] }

// Pool is what a part of the system may hold together. All methods are for any
// goroutine.
type Pool struct {
	name   string
	prefix string
	above  *Pool
	bytes  int64 // the bound; 0: none
	most   int64 // actors; 0: no bound
	held   atomic.Int64
	actors atomic.Int64
	lifted atomic.Bool // of one that is part of no other
}

// NewPool makes a pool. name says whose it is, prefix begins the settings that raise its bounds:
// "memory" and "actors" follow it. 0 bytes or actors is no bound. What it holds counts for
// the pool above, too.
func NewPool(name, prefix string, above *Pool, bytes, actors int64) *Pool {
	p := new(Pool)
	p.Init(name, prefix, above, bytes, actors)
	return p
}

// Init is NewPool for a pool that is a field of something else.
func (p *Pool) Init(name, prefix string, above *Pool, bytes, actors int64) {
	p.name, p.prefix, p.above, p.bytes, p.most = name, prefix, above, bytes, actors
}

// whose says whose the pool is: that of the actor at a path and all below it, or of what it was named for.
func (p *Pool) whose() string {
	if _, rest, ok := strings.Cut(p.name, "://"); ok {
		if at := strings.IndexByte(rest, '/'); at >= 0 {
			return "the tree of " + rest[at:]
		}
	}
	return p.name
}

// Held is the number of bytes that are reserved, in steps of Step.
func (p *Pool) Held() int64 { return p.held.Load() }

// Actors is the number of actors in it.
func (p *Pool) Actors() int64 { return p.actors.Load() }

// Bounds are the most bytes and actors that the pool may have; 0: no bound.
func (p *Pool) Bounds() (bytes, actors int64) { return p.bytes, p.most }

// Lift has no bound of p, which is part of no other, and of all pools below refuse anything until it is lifted no more, but for guests'
// memory: what was there once is there again, whatever the bounds are by then.
func (p *Pool) Lift(on bool) { p.lifted.Store(on) }

// Lifted reports whether the bounds of p, which is part of no other, are lifted.
func (p *Pool) Lifted() bool { return p.lifted.Load() }

// isLifted reports whether the bounds of p and of all above are lifted.
func (p *Pool) isLifted() bool {
	for p.above != nil {
		p = p.above
	}
	return p.lifted.Load()
}

// Error says that something would exceed a bound.
type Error struct {
	What  string // "bytes" or "actors"
	Whose string // of the pool, or of the actor
	Key   string // the setting that raises the bound
	Bound int64
	Pool  *Pool // whose bytes they are; nil: it is about others
	Never bool  // the actor alone would exceed it
}

// Root reports whether the pool is part of no other.
func (p *Pool) Root() bool { return p.above == nil }

// Helps reports whether it would be room if less were held from p.
func (e *Error) Helps(p *Pool) bool {
	for ; p != nil; p = p.above {
		if p == e.Pool {
			return true
		}
	}
	return false
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s has reached its limit of %d %s; %s raises it", e.Whose, e.Bound, e.What, e.Key)
}

// spare is the part of the system's bound, and of a large tree's, that guests' memory leaves to everything else: guests
// take whatever room there is, and sleep for others, but not while they run. So a message or a new actor finds
// some room meanwhile.
const spare = 16

// largeTree is from which bound on a tree has a spare part, in bytes. Below, one guest may be all that is meant to fit.
const largeTree = 1 << 30

// mostFor is how many bytes may be held after something of a kind was taken; 0: there is no bound.
func (p *Pool) mostFor(k Kind) int64 {
	if k == Memory && (p.above == nil || p.bytes >= largeTree) {
		return p.bytes - p.bytes/spare
	}
	return p.bytes
}

// reserve takes n bytes for something of a kind in p and all above, or nothing.
func (p *Pool) reserve(k Kind, n int64) *Error {
	for q := p; q != nil; q = q.above {
		if !q.add(n, q.mostFor(k)) {
			if k != Memory && p.isLifted() {
				q.held.Add(n)
				continue
			}
			for r := p; r != q; r = r.above {
				r.held.Add(-n)
			}
			return &Error{What: "bytes", Whose: q.whose(), Key: q.prefix + "memory", Bound: q.bytes, Pool: q}
		}
	}
	return nil
}

// smaller reports whether p, or a pool above it, is too small for n bytes of something of a kind.
func (p *Pool) smaller(k Kind, n int64) bool {
	for ; p != nil; p = p.above {
		if most := p.mostFor(k); most > 0 && n > most {
			return true
		}
	}
	return false
}

// add takes n bytes, or nothing: a request that is too large does not hinder others.
func (p *Pool) add(n, most int64) bool {
	for {
		held := p.held.Load()
		if most > 0 && held+n > most {
			return false
		}
		if p.held.CompareAndSwap(held, held+n) {
			return true
		}
	}
}

// take takes n bytes, whatever the bounds are: they are held already.
func (p *Pool) take(n int64) {
	for q := p; q != nil; q = q.above {
		q.held.Add(n)
	}
}

// Enter counts an actor in p and all above, unless one of them has as many as it may.
func (p *Pool) Enter() error {
	for q := p; q != nil; q = q.above {
		if n := q.actors.Add(1); q.most > 0 && n > q.most && !p.isLifted() {
			for r := p; ; r = r.above {
				r.actors.Add(-1)
				if r == q {
					break
				}
			}
			return &Error{What: "actors", Whose: q.whose(), Key: q.prefix + "actors", Bound: q.most}
		}
	}
	return nil
}

// Reserve counts actors and bytes in p and all above, unless one of them has no room. Negative numbers give back what was reserved.
func (p *Pool) Reserve(actors, bytes int64) error {
	for q := p; q != nil && actors > 0; q = q.above {
		if q.most > 0 && q.actors.Load()+actors > q.most && !p.isLifted() {
			return &Error{What: "actors", Whose: q.whose(), Key: q.prefix + "actors", Bound: q.most}
		}
	}
	if bytes <= 0 {
		p.take(bytes)
	} else if err := p.reserve(Base, bytes); err != nil {
		return err
	}
	for q := p; q != nil; q = q.above {
		q.actors.Add(actors)
	}
	return nil
}

// Claim counts an actor that has its place reserved in the pool above all: nothing refuses it.
func (p *Pool) Claim() {
	for q := p; q.above != nil; q = q.above {
		q.actors.Add(1)
	}
}

// Leave undoes Enter.
func (p *Pool) Leave() {
	for q := p; q != nil; q = q.above {
		q.actors.Add(-1)
	}
}

// Step is the unit in which an account takes from its pool, so that small changes touch
// nothing that is shared.
const Step = 4 << 10

// Account is the account of one actor. Only the actor's own run may change it, except for messages; Of and
// Total are for any goroutine.
type Account struct {
	pool     *Pool
	own      int64 // bound of everything but guest memory; 0: none
	kinds    [Kinds]atomic.Int64
	small    atomic.Int64 // the sum of all kinds but Memory, Mailbox and Snapshot; only the owner changes it
	reserved int64        // in the pool, without the mailbox
	counted  bool         // as an actor of the pool
}

// Init begins an account in a pool. own limits the held bytes without guest memory.
func (a *Account) Init(pool *Pool, own int64) { a.pool, a.own = pool, own }

// Open is Init for an actor that holds base bytes from its start to its end, and that counts as an actor of the pool until
// Close if counted says so. reserved says that the pool has kept room for it, see Pool.Reserve. The error says which bound
// is met; then nothing is held.
func (a *Account) Open(pool *Pool, own, base int64, reserved, counted bool) error {
	a.Init(pool, own)
	if reserved {
		pool.Claim()
		a.Note(Base, base)
		a.counted = counted
		return nil
	}
	if counted {
		if err := pool.Enter(); err != nil {
			return err
		}
	}
	if err := a.Set(Base, base); err != nil {
		if counted {
			pool.Leave()
		}
		return err
	}
	a.counted = counted
	return nil
}

// Limit sets what Init calls own. Nothing else may use the account meanwhile.
func (a *Account) Limit(own int64) { a.own = own }

// Pool is where the account takes from.
func (a *Account) Pool() *Pool { return a.pool }

// Of is what is held of one kind.
func (a *Account) Of(k Kind) int64 { return a.kinds[k].Load() }

// Total is all that is held.
func (a *Account) Total() int64 { return a.outsideMailbox() + a.kinds[Mailbox].Load() }

// set changes a kind, which is not the mailbox.
func (a *Account) set(k Kind, before, n int64) {
	a.kinds[k].Store(n)
	if k != Memory && k != Snapshot {
		a.small.Store(a.small.Load() + n - before)
	}
}

// Set changes what is held of a kind. If it is more than before it may be refused: then
// nothing has changed.
func (a *Account) Set(k Kind, n int64) error {
	before := a.kinds[k].Load()
	if n == before {
		return nil
	}
	if n > before {
		if err := a.room(k, n-before); err != nil {
			return err
		}
	}
	a.set(k, before, n)
	if n < before {
		a.adjust()
	}
	return nil
}

// Note is Set for what is held already and so cannot be refused.
func (a *Account) Note(k Kind, n int64) {
	before := a.kinds[k].Load()
	if before == n {
		return
	}
	a.set(k, before, n)
	if need := a.outsideMailbox(); need > a.reserved {
		more := roundUp(need - a.reserved)
		a.pool.take(more)
		a.reserved += more
	}
	a.adjust()
}

// room reserves for n more bytes of a kind.
func (a *Account) room(k Kind, n int64) error {
	if a.own > 0 && k != Memory {
		if held := a.besides(k); held+n > a.own {
			return &Error{What: "bytes besides its memory", Whose: "the actor", Key: "limits.held", Bound: a.own}
		}
	}
	if k == Mailbox {
		return errOrNil(a.pool.reserve(k, n))
	}
	if need := a.outsideMailbox() + n; need > a.reserved {
		more := roundUp(need - a.reserved)
		if err := a.pool.reserve(k, more); err != nil {
			err.Never = a.pool.smaller(k, need)
			return err
		}
		a.reserved += more
	}
	return nil
}

// besides returns the bytes that count for the actor's own limit when more of a kind is requested: everything except
// guest memory, and except the state of a sleeping guest, unless that is what is wanted.
func (a *Account) besides(k Kind) int64 {
	n := a.small.Load() + a.kinds[Mailbox].Load()
	if k == Snapshot {
		n += a.kinds[Snapshot].Load()
	}
	return n
}

// outsideMailbox is the sum without the mailbox, which other goroutines change concurrently.
func (a *Account) outsideMailbox() int64 {
	return a.small.Load() + a.kinds[Memory].Load() + a.kinds[Snapshot].Load()
}

func errOrNil(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}

// adjust gives back what is reserved beyond the need, except for some steps.
func (a *Account) adjust() {
	if spare := a.reserved - a.outsideMailbox(); spare >= 2*Step {
		back := spare / Step * Step
		a.pool.take(-back)
		a.reserved -= back
	}
}

func roundUp(n int64) int64 { return (n + Step - 1) / Step * Step }

// GrowMailbox reserves n more bytes for messages. Any goroutine that holds the mailbox's
// own lock may call it.
func (a *Account) GrowMailbox(n int64) error {
	if err := a.room(Mailbox, n); err != nil {
		return err
	}
	a.kinds[Mailbox].Add(n)
	return nil
}

// ShrinkMailbox gives bytes for messages back; with a negative number it takes more that
// are held already.
func (a *Account) ShrinkMailbox(n int64) {
	a.kinds[Mailbox].Add(-n)
	a.pool.take(-n)
}

// Close gives everything back. It may be called more than once.
func (a *Account) Close() {
	if a.counted {
		a.counted = false
		defer a.pool.Leave()
	}
	a.pool.take(-a.reserved - a.kinds[Mailbox].Load())
	a.reserved = 0
	a.small.Store(0)
	for k := range a.kinds {
		if a.kinds[k].Load() != 0 {
			a.kinds[k].Store(0)
		}
	}
}

// Above is the pool that this one counts for, too; nil for that of the system.
func (p *Pool) Above() *Pool { return p.above }
