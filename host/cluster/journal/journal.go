// Package journal keeps the events of keys that are spread over a cluster, so that the next owner of a key goes on from what the one
// before has stored. It stands between the events of package host/persist and a replicated log.
//
// Each shard of a kind has a fence in the log, which an owner puts there before the first of its keys begins. Every record says which
// fence its writer knows, and the log refuses it if there is another one by then. So nothing is stored by two owners at once, whatever
// they know of each other. A turn that stores something takes effect when the log has confirmed it, and not before: nothing of it
// leaves the actor, not even to another actor of the same node.
package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/histogram"
	"github.com/wasmactors/wasmactors/supervision"
)

// Options of a journal.
type Options struct {
	Log cluster.Log
	// Node and Born are the life of the node that the journal is of.
	Node uint16
	Born uint64
	// Sure is cluster.Node.Sure of the node; nil: it is always sure.
	Sure func() (passed uint64, ok bool)
	// Clock runs what is tried again.
	Clock host.Clock
	// Refused is told of what was found in the log and is not what a node writes; nil: nobody is told. It must not block.
	Refused func(text string)
	// Kept bounds the bytes of events and snapshots of all keys that live here, which are in memory; 0: DefaultKept.
	Kept int64
	// Manual is for simulations: all is for one goroutine, and calls of the log are answered by others.
	Manual bool

	skip guard
}

// guard is a rule that keeps what is promised. Simulations leave out one at a time, and must notice it.
type guard uint32

const (
	guardFence  guard = 1 << iota // a record is for its fence only
	guardAnswer                   // a turn is answered when its record is confirmed
	guardNumber                   // copies of records that come late do not count
	guardLeast                    // a key is read where all is that was confirmed
	guardSure                     // what stores nothing waits until the node is sure of the shard
	guardPassed                   // a node that was passed is not sure of what it had
	guardErase                    // a key does not begin while it is erased
	guardBegun                    // a key begins when it is recorded that it lives
	guardEnded                    // it is recorded that a key does not live any more
	guardList                     // what is recorded of the keys that live is for its fence only
)

// Journal is the recorder (host.Config.WithStore) of a system whose actors of some kinds keep their events in a log. It is safe for
// concurrent use.
type Journal struct {
	opt    Options
	events *persist.Journal

	mu     sync.Mutex
	kinds  map[string]*kind
	keys   map[abi.Ref]*key
	tries  uint64 // fences that were tried
	held   []*key // whose turns wait, or have waited, in order
	looks  bool   // they are looked at soon
	at     uint64 // where the next record would be, in the order of this journal
	bytes  int64  // of records that wait
	kept   int64  // bytes of what the keys have that live here
	took   histogram.Histogram
	closed bool
	counts Counts
}

// Counts are since the journal was made.
type Counts struct {
	Loaded  uint64 // keys that were read
	Stored  uint64 // records that were confirmed
	Refused uint64 // records that were refused since their owner has the shard no more
	Whole   uint64 // keys that were written anew, in one record
	Bytes   uint64 // of the records that were confirmed
	Crowded uint64 // keys that did not begin, and turns that stored nothing, since there was no room for them in memory
	Held    uint64 // turns that stored nothing, and waited until this node was sure of the shard
	Behind  uint64 // turns that waited until their key was written anew
}

// Figures are how a journal does now.
type Figures struct {
	Counts
	Keys    int   // that live here
	Kept    int64 // bytes of what they have, in memory
	Waiting int64 // bytes of records that are not confirmed
	Confirm histogram.Counts
	Used    uint64 // bytes of the bundle's log, and how many it may have; 0: that is not known
	Most    uint64
}

// Sized is a log that knows how full it is.
type Sized interface {
	// Size is how many bytes it had when that was found out last, and how many it may have; 0: it is not known. It does not block.
	Size() (used, most uint64)
}

// DefaultKept is the bound of what living keys have in memory, in bytes, for each node and bundle.
const DefaultKept = 512 << 20

// MaxBytes is the most that limits.durable may be for a key: all that there is of it fits into a record.
const MaxBytes = 768 << 10

// mostWaiting bounds the bytes of records that wait for the log.
const mostWaiting = 64 << 20

// Errors of turns.
var (
	// ErrMoved says that the shard of the key is not this node's. Nothing was stored.
	ErrMoved = errors.New("journal: the shard of the key has moved")
	// ErrAnew says that the actor has to begin again from the log: its shard was another's in between, or the outcome of its last
	// record is not known.
	ErrAnew = errors.New("journal: the actor begins again from the log, which may have what it does not know")
	// ErrSpoilt says that the log has something of a key that no node writes.
	ErrSpoilt = errors.New("journal: what the log has is not what a node writes")

	// ErrCrowded says that the keys that live here have so many events that there is no room for more in memory.
	ErrCrowded error = bound{"the keys that live on this node have as many bytes of events as may be in memory: have them end sooner (keyed.idle, keyed.max) or keep less (limits.durable)", "keyed.idle"}

	// ErrLives says that the actor of a key is there, so what it has stays.
	ErrLives = errors.New("journal: the actor of the key is there: what it has can be erased when it has ended")
	// ErrNothing says that the log has nothing of a key.
	ErrNothing = errors.New("journal: there is nothing of the key")

	errErased = errors.New("journal: the key is being erased already")
)

var _ interface {
	record.Recorder
	record.Outputs
	record.Freezer
	shard.Journal
} = (*Journal)(nil)

// New makes a journal. The caller closes it after the system.
func New(o Options) (*Journal, error) {
	if o.Kept == 0 {
		o.Kept = DefaultKept
	}
	j := &Journal{opt: o, kinds: map[string]*kind{}, keys: map[abi.Ref]*key{}, at: 1}
	var err error
	j.events, err = persist.Open(persist.Options{Manual: o.Manual, Living: true, Left: j.left})
	return j, err
}

// Events has the events of the keys that live here. Props of their actors are made by its methods.
func (j *Journal) Events() *persist.Journal { return j.events }

// Kind says that the keys of an actor at the top keep their events here, and in how many shards they are.
func (j *Journal) Kind(name string, shards int) { j.kind(name, shards).events = true }

func (j *Journal) kind(name string, shards int) *kind {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.kinds[name]
	if k == nil {
		k = &kind{name: name, n: shards, shards: map[int]*part{}}
		j.kinds[name] = k
	}
	return k
}

// Counts counts.
func (j *Journal) Counts() Counts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts
}

// Figures are how it does.
func (j *Journal) Figures() Figures {
	f := Figures{Confirm: j.took.Counts()}
	if s, ok := j.opt.Log.(Sized); ok {
		f.Used, f.Most = s.Size()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	f.Counts, f.Keys, f.Kept, f.Waiting = j.counts, len(j.keys), j.kept, j.bytes
	return f
}

// keep counts what a key has in memory now; the caller holds the lock.
func (j *Journal) keep(k *key, bytes int64) {
	j.kept += bytes - k.kept
	k.kept = bytes
}

// crowded reports whether so many bytes more are too many; the caller holds the lock.
func (j *Journal) crowded(more int64) bool {
	if j.kept+more <= j.opt.Kept {
		return false
	}
	j.counts.Crowded++
	return true
}

// Resting implements record.Freezer.
func (*Journal) Resting() {}

// Freeze implements record.Freezer: nothing is stored any more, and what waits for the log is answered with an error.
func (j *Journal) Freeze() {
	j.mu.Lock()
	j.closed = true
	var ends []func()
	for _, name := range slices.Sorted(maps.Keys(j.kinds)) {
		k := j.kinds[name]
		for s := range k.n {
			if p := k.shards[s]; p != nil {
				ends = append(ends, j.release(p)...)
			}
		}
	}
	j.mu.Unlock()
	for _, f := range ends {
		f()
	}
}

// Close ends it, after its system.
func (j *Journal) Close() error {
	j.Freeze()
	return j.events.Close()
}

// Turn implements record.Recorder.
func (j *Journal) Turn(t *record.Turn) {
	id := j.events.ID(t.Actor)
	j.mu.Lock()
	k := j.keys[t.Actor]
	if id != "" && t.Done > 0 && !t.Waits && (k == nil || k.incarnation != t.Incarnation) {
		p, name := j.partOf(id)
		if p == nil {
			j.mu.Unlock()
			t.Answer(blamed(errKind))
			return
		}
		j.forget(k)
		k = &key{part: p, name: name, id: id, incarnation: t.Incarnation}
		j.keys[t.Actor], p.keys[k] = k, struct{}{}
		f := j.load(k, func(err error) { j.loaded(t, err) })
		j.mu.Unlock()
		f()
		return
	}
	broken := k != nil && k.broken
	j.mu.Unlock()
	x, ours, err := j.events.Prepare(t)
	switch {
	case !ours || err != nil || x.Record == nil:
		if ours && broken && err == nil && t.Done > 0 {
			err = ErrAnew
		}
		if err == nil && ours && k != nil && t.Done > 0 {
			j.hold(t, k)
			return
		}
		t.Answer(err)
	case k == nil:
		t.Answer(ErrMoved)
	default:
		j.store(t, k, x)
	}
}

// loaded goes on with the turn of a start.
func (j *Journal) loaded(t *record.Turn, err error) {
	x, _, wrong := j.events.Prepare(t)
	if err == nil {
		err = wrong
	}
	if err == nil && x.Record != nil {
		err = errStart
	}
	t.Answer(blamed(err))
}

// Note implements record.Recorder.
func (*Journal) Note(*record.Record) {}

// Later implements record.Outputs: nothing waits, since turns are answered when they are stored.
func (*Journal) Later(_ uint64, _ int, f func(error)) { f(nil) }

// partOf is the shard of an actor's ID, and the key's name; nil if it is of no kind.
func (j *Journal) partOf(id string) (*part, string) {
	rest, ok := strings.CutPrefix(id, "/user/")
	kind, name, cut := strings.Cut(rest, "/")
	k := j.kinds[kind]
	if !ok || !cut || k == nil || !k.events || name == "" || strings.Contains(name, "/") {
		return nil, ""
	}
	return k.part(shard.Of(name, k.n)), name
}

// left is called when an actor has ended.
func (j *Journal) left(r abi.Ref) {
	j.mu.Lock()
	k := j.keys[r]
	j.forget(k)
	delete(j.keys, r)
	var end func()
	if k != nil && k.held != nil {
		end = j.unheld(k, ErrMoved)
	}
	j.mu.Unlock()
	if end != nil {
		end()
	}
}

// forget has a shard forget an incarnation that has ended; the caller holds the lock.
func (j *Journal) forget(k *key) {
	if k != nil {
		delete(k.part.keys, k)
		j.keep(k, 0)
	}
}

// again runs f after a while, which is longer for each try. f looks whether it still counts then.
func (j *Journal) again(try int, f func()) {
	j.opt.Clock.AfterFunc(min(firstPause<<min(try, 8), mostPause), f)
}

// Pauses before what has failed is tried again.
const (
	firstPause = 10 * time.Millisecond
	mostPause  = 500 * time.Millisecond
)

func (j *Journal) refuse(format string, args ...any) {
	if j.opt.Refused != nil {
		j.opt.Refused(fmt.Sprintf(format, args...))
	}
}

// idle waits until the events that live here are in their index; that takes no time that counts.
func (j *Journal) idle() { _ = j.events.Idle(context.Background()) }

// Supervised is how keepers of such actors treat them: what the log has refused concerns one key only. An actor that can go on begins
// again; of one whose shard has moved, or whose events cannot be read or have no room, the next message begins another one. All else is as s says.
func Supervised(s supervision.Strategy) supervision.Strategy {
	rule := func(reason string, d supervision.Directive) supervision.Rule {
		return supervision.Rule{Kinds: []abi.FailureKind{abi.FailureHost}, Reason: record.Unrecorded + reason + "*", Directive: d}
	}
	crowded := supervision.Rule{Kinds: []abi.FailureKind{abi.FailureMemoryLimit}, Reason: ErrCrowded.Error() + "*", Directive: supervision.Stop}
	return s.WithFirst(rule(ErrMoved.Error(), supervision.Stop), rule(ErrSpoilt.Error(), supervision.Stop), crowded, rule("", supervision.Restart))
}
