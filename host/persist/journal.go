// Package persist has actors whose state is what has happened to them. They store events, and snapshots of what the events
// have made of them, and are fed them at their next start, whatever the code is then. Guests do so by guest-sdk/persist, actors
// in Go by a [Log]. The rules are in abi/persist; see docs/guide/event-sourcing.md.
//
// A [Journal] is where the events of a system's actors are. That of host/durable is behind the store's log; [Memory] is one
// for tests.
package persist

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/record"
)

// Values of abi/persist.
type (
	// Event is something that has happened to an actor.
	Event = rules.Event
	// Snapshot is what the events up to a number have made of an actor.
	Snapshot = rules.Snapshot
	// Schema is what an actor's code knows about events.
	Schema = rules.Schema
	// Recovery says what an actor is fed at its start.
	Recovery = rules.Recovery
	// Retention says when snapshots are made by themselves.
	Retention = rules.Retention
)

// Options of a journal's index.
type Options struct {
	Dir string // its folder; "": in memory
	Key []byte // encrypts its values; nil or 32 bytes
	FS  vfs.FS // for tests; nil: the machine's
	// Failed is called once, from another goroutine, with the error after which nothing is applied any more.
	Failed func(error)
	// Manual is for simulations: the index follows only in Work, and in what waits for it. All is for one goroutine then.
	Manual bool
	// Living has the journal drop what an actor has stored when it ends: the log is elsewhere, and [Journal.Load] brings it back.
	// There are no tags then.
	Living bool
	// Left is called when an actor has ended; nil: nobody is told.
	Left func(r abi.Ref)
}

// Journal has the events of a system's actors. It is safe for concurrent use.
type Journal struct {
	index  *index
	failed func(error)
	manual bool
	living bool
	left   func(abi.Ref)

	mu      sync.Mutex
	members map[abi.Ref]*member
	ids     map[string]*state
	queue   []*taken // of the log, not in the index; from next on
	next    int
	queued  int64
	durable uint64 // what is before it would survive
	applied uint64 // what is before it is in the index
	changed chan struct{}
	err     error
	closed  bool
	space   int64 // of the index's files

	steps uint64       // of whoever applies
	whole sync.Mutex   // what there is of an ID is replaced, or removed: both write all that is known of it
	count atomic.Int64 // members
	work  chan struct{}
	done  chan struct{}
}

// state is what is known of an ID that has an actor, or something in the queue.
type state struct {
	users  int
	meta   meta   // of the index
	last   uint64 // number of the last event that is stored
	after  uint64 // position of the last record, 0: none in this process
	queued int64  // bytes of the queue
	queue  []*taken

	replacing int   // records of the queue that take the place of all before them
	since     int64 // bytes of the last one of these, and of what is behind it; of the whole queue if there is none
}

// bytes is what the ID has when all that is stored is in the index.
func (s *state) bytes() int64 {
	if s.replacing > 0 {
		return s.since
	}
	return s.meta.bytes + s.queued
}

// push and pop are for a record at the end of the queue, and for the first one, which is in the index now.
func (s *state) push(t *taken) {
	s.queue, s.queued = append(s.queue, t), s.queued+t.bytes
	if s.since += t.bytes; t.replaces {
		s.replacing, s.since = s.replacing+1, t.bytes
	}
}

func (s *state) pop(t *taken) {
	s.queue, s.queued = s.queue[1:], s.queued-t.bytes
	if t.replaces {
		s.replacing--
	}
	if s.replacing == 0 {
		s.since = s.queued
	}
}

// member is an actor with events.
type member struct {
	ref    host.Ref
	id     string
	limit  int64
	state  *state
	feed   *feed
	staged *taken // what an actor in Go has stored in its turn
}

// Open opens or makes the index of a journal. The caller closes it.
func Open(o Options) (*Journal, error) {
	x, err := openIndex(o.Dir, o.FS, o.Key)
	if err != nil {
		return nil, err
	}
	x.untagged = o.Living
	j := &Journal{
		index: x, failed: o.Failed, manual: o.Manual, living: o.Living, left: o.Left, members: map[abi.Ref]*member{}, ids: map[string]*state{}, changed: make(chan struct{}),
		work: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if j.applied, err = x.applied(); err != nil {
		return nil, errors.Join(err, x.close())
	}
	j.space = x.size()
	if !j.manual {
		go j.apply()
	}
	return j, nil
}

// join is called for each actor that keeps events, before its first turn.
func (j *Journal) join(r host.Ref, f *feed, limit int64) {
	id := r.Path() // below the system
	j.mu.Lock()
	defer j.mu.Unlock()
	s, err := j.stateOf(id)
	if err != nil {
		f.broken = err
		s = &state{}
	}
	s.users++
	m := &member{ref: r, id: id, limit: limit, state: s, feed: f}
	j.members[r.UID()] = m
	j.count.Store(int64(len(j.members)))
	f.member = m
}

// stateOf is the state of an ID; the caller holds the lock.
func (j *Journal) stateOf(id string) (*state, error) {
	if s := j.ids[id]; s != nil {
		return s, nil
	}
	if !validID(id) {
		return nil, fmt.Errorf("persist: %.100q cannot be the ID of an actor", id)
	}
	m, err := j.index.meta(id)
	if err != nil {
		return nil, err
	}
	s := &state{meta: m, last: m.last}
	j.ids[id] = s
	return s, nil
}

func (j *Journal) leave(m *member) {
	j.mu.Lock()
	there := j.members[m.ref.UID()] == m
	if there {
		delete(j.members, m.ref.UID())
		j.count.Store(int64(len(j.members)))
		m.state.users--
		if j.living && m.state.users == 0 && j.ids[m.id] == m.state {
			j.forget(m.id, m.state)
		}
		j.drop(m.id)
	}
	j.mu.Unlock()
	if there && j.left != nil {
		j.left(m.ref.UID())
	}
}

// drop forgets a state that nobody needs; the caller holds the lock.
func (j *Journal) drop(id string) {
	if s := j.ids[id]; s != nil && s.users == 0 && len(s.queue) == 0 {
		delete(j.ids, id)
	}
}

// of is the member with a ref, nil if there is none.
func (j *Journal) of(r abi.Ref) *member {
	if j == nil || j.count.Load() == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.members[r]
}

// Actors are those that keep events now, in the order of their paths.
func (j *Journal) Actors() (all []host.Ref) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, m := range j.members {
		all = append(all, m.ref)
	}
	slices.SortFunc(all, func(a, b host.Ref) int { return strings.Compare(a.Path(), b.Path()) })
	return all
}

// Turn is what an actor's turns have stored. It is valid until the turn is answered.
type Turn struct {
	member *member
	taken  *taken
	// Record is what has to be written to the log; nil: nothing.
	Record []byte
	// Waits says that the turn has to wait until the log is durable: it starts or stops actors, which cannot be put off.
	Waits bool
}

// errGuests are errors of guests whose SDK has no part in this.
var (
	errNoEvents = errors.New("the actor is durable: events, and its code keeps none: register the type by guest-sdk/persist")
	errTooEarly = errors.New("persist: an event before the end of the recovery")
)

// Prepare reads what the turns of an actor have stored. ours is false if the actor keeps no events. An error is the answer to
// the turn.
func (j *Journal) Prepare(t *record.Turn) (x Turn, ours bool, err error) {
	m := j.of(t.Actor)
	if m == nil {
		return x, false, nil
	}
	x.member = m
	staged := m.staged
	m.staged = nil
	starts := len(t.Mail) > 0 && t.Mail[0].Kind == abi.KindStart
	feeds := len(t.Mail) > 0 && t.Mail[0].Kind == abi.KindRecover
	if feeds && t.Done == 0 {
		m.feed.over(false)
		return x, true, nil
	}
	if t.Done == 0 {
		return x, true, nil
	}
	last, begun := m.state.last, false
	take := staged
	err2 := t.Commands(func(_ int, c *abi.Command) {
		switch c.Op {
		case abi.OpSpawn, abi.OpStop:
			x.Waits = true
		case abi.OpPersist:
			var e rules.Entry
			if err != nil {
				return
			}
			if err = rules.DecodeEntry(&e, c.Payload); err != nil {
				return
			}
			switch {
			case e.Kind == rules.EntryRecover && starts && !begun:
				begun = true
				err = m.feed.begin(e.Recovery)
				return
			case e.Kind == rules.EntryRecover:
				err = errors.New("persist: what to recover is said once, in the turn of the start")
				return
			case starts, feeds && !m.feed.final, !feeds && !m.feed.passes():
				err = errTooEarly
				return
			}
			if take == nil {
				take = &taken{}
			}
			// The outbox is the guest's memory.
			raw := append([]byte(nil), c.Payload...)
			_ = rules.DecodeEntry(&e, raw)
			take.add(e, raw)
		}
	})
	switch {
	case err2 != nil && err == nil:
		err = err2
	case starts && !begun && err == nil:
		err = errNoEvents
	}
	if why := m.feed.why(); feeds && why != nil { // the guest may not know what that envelope says
		m.feed.over(false)
		return x, true, record.Refuse(abi.FailureGuestError, why)
	}
	if err == nil && take != nil {
		err = j.admit(m, take, &last)
	}
	if err != nil {
		if feeds {
			m.feed.over(false)
		}
		return x, true, refused(err)
	}
	if feeds {
		m.feed.over(true)
	}
	if take != nil {
		take.time = t.Time
		x.taken, x.Record = take, take.encode(nil)
	}
	return x, true, nil
}

// refused is an error about what an actor has stored.
func refused(err error) error {
	kind := abi.FailureABIViolation
	switch {
	case errors.As(err, new(*LimitError)), errors.As(err, new(*TurnTooLargeError)):
		kind = abi.FailureMemoryLimit
	case errors.Is(err, errNoEvents): // no restart gives it other code
		kind = abi.FailureInit
	}
	return record.Refuse(kind, err)
}

// LimitError is the error of an actor whose events, or whose state, are too large.
type LimitError struct{ Bytes, Limit int64 }

func (e *LimitError) Error() string {
	return fmt.Sprintf("what it has stored, with what it is about to, has %d bytes, of at most %d: raise limits.durable, or have it keep less", e.Bytes, e.Limit)
}

// ManifestKey is for dead letters.
func (e *LimitError) ManifestKey() string { return "limits.durable" }

// TurnTooLargeError is the error of an actor that stores more at once than a record of the log may have.
type TurnTooLargeError struct{ Entries int }

func (e *TurnTooLargeError) Error() string {
	return fmt.Sprintf("persist: turns that ran together store %d events, snapshots and deletions, of at most %d: store less in a turn", e.Entries, rules.MaxTurn)
}

// admit checks what depends on what was stored before.
func (j *Journal) admit(m *member, x *taken, last *uint64) error {
	before := *last
	x.id = m.id
	for i := range x.entries {
		e := &x.entries[i]
		switch e.Kind {
		case rules.EntryEvent:
			if e.Event.Number != *last+1 {
				return fmt.Errorf("persist: event %d after event %d", e.Event.Number, *last)
			}
			*last++
		case rules.EntryDeleteEvents:
			if e.To > *last { // those that come later are not meant
				e.To = *last
				x.raw[i] = rules.AppendEntry(nil, e)
			}
		case rules.EntrySnapshot:
			if e.Snapshot.Number > *last {
				return fmt.Errorf("persist: a snapshot of event %d, and there are %d", e.Snapshot.Number, *last)
			}
		}
	}
	x.measure(before, true)
	if n := len(x.entries); n > rules.MaxTurn {
		return &TurnTooLargeError{n}
	}
	if m.limit <= 0 || x.bytes == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	n := x.bytes
	if !x.replaces {
		n += m.state.bytes()
	}
	if n > m.limit {
		return &LimitError{n, m.limit}
	}
	return nil
}

// Stored takes over what was written to the log, in the order of the log. It returns the position that the turn depends on.
// A turn that has stored nothing is at 0.
func (j *Journal) Stored(x *Turn, position uint64) (after uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := x.member.state
	if t := x.taken; t != nil {
		t.position = position
		j.enqueue(s, t)
	}
	return s.after
}

// enqueue notes a record that the index does not have; the caller holds the lock.
func (j *Journal) enqueue(s *state, t *taken) {
	for i := range t.entries {
		if e := &t.entries[i]; e.Kind == rules.EntryEvent {
			s.last = e.Event.Number
		}
	}
	s.after = t.position
	s.push(t)
	j.queue, j.queued = append(j.queue, t), j.queued+t.bytes
}

// Busy reports whether the index is behind the log by so much that turns should wait.
func (j *Journal) Busy() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queued > mostQueued
}

const mostQueued = 64 << 20

// Replay is for a record that was read from the log at the start, in order.
func (j *Journal) Replay(position uint64, b []byte) error {
	t, err := decodeTaken(append([]byte(nil), b...))
	if err != nil {
		return err
	}
	for j.Busy() {
		if err := j.await(context.Background(), position); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if position < j.applied {
		return nil
	}
	s, err := j.stateOf(t.id)
	if err != nil {
		return err
	}
	for i := range t.entries { // those behind the first follow on it
		if e := &t.entries[i]; e.Kind == rules.EntryEvent {
			if e.Event.Number != s.last+1 {
				return fmt.Errorf("%w: event %d of %s comes after event %d: the events before it are missing", ErrRecord, e.Event.Number, t.id, s.last)
			}
			break
		}
	}
	t.measure(s.last, false)
	t.position = position
	j.enqueue(s, t)
	j.durable = position + 1
	j.ring()
	return nil
}

// Durable says that all before a position of the log would survive. It does not block.
func (j *Journal) Durable(position uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if position > j.durable {
		j.durable = position
	}
	if j.next < len(j.queue) {
		j.ring()
		j.tell() // whoever waits for events has them found
	}
}

func (j *Journal) ring() {
	select {
	case j.work <- struct{}{}:
	default:
	}
}

// apply brings into the index what is durable, until the journal is closed.
func (j *Journal) apply() {
	defer close(j.done)
	for range j.work {
		for j.step() {
		}
		j.mu.Lock()
		over := j.closed
		j.mu.Unlock()
		if over {
			return
		}
	}
}

// Work has a manual journal bring into the index what is durable, and reports whether there was anything.
func (j *Journal) Work() (did bool) {
	for j.step() {
		did = true
	}
	return did
}

// stepRecords bounds what is applied at a time; as often as sweepEvery says deleted events are removed in between.
const (
	stepRecords = 512
	sweepEvery  = 8
)

// sweep removes some events that are deleted; false if there are none.
func (j *Journal) sweep() bool {
	j.whole.Lock()
	defer j.whole.Unlock()
	id, m, found, err := j.index.sweep()
	if err != nil {
		j.fail(err)
		return false
	}
	if found {
		j.mu.Lock()
		if s := j.ids[id]; s != nil {
			s.meta = m
		}
		j.mu.Unlock()
	}
	return found
}

// step applies some records, or removes some events that are deleted; false if there is nothing to do.
func (j *Journal) step() bool {
	j.mu.Lock()
	n := j.next
	for n < len(j.queue) && n-j.next < stepRecords && j.queue[n].position < j.durable {
		n++
	}
	list, err := j.queue[j.next:n:n], j.err
	j.mu.Unlock()
	if err != nil {
		return false
	}
	if len(list) == 0 {
		return j.sweep()
	}
	if j.steps++; j.steps%sweepEvery == 0 { // under load there is always something to apply
		j.sweep()
	}
	metas, err := j.index.apply(list)
	if err != nil {
		j.fail(err)
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, t := range list {
		s := j.ids[t.id]
		s.pop(t)
		s.meta = metas[t.id]
		j.queued -= t.bytes
		j.drop(t.id)
	}
	j.applied = list[len(list)-1].position + 1
	clear(list)
	if j.next = n; j.next == len(j.queue) {
		j.queue, j.next = j.queue[:0], 0
	} else if j.next > 4*stepRecords {
		j.queue, j.next = append([]*taken(nil), j.queue[j.next:]...), 0
	}
	j.tell()
	return true
}

// tell tells those who wait for something new; the caller holds the lock.
func (j *Journal) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// fail ends the journal: what is stored from now on could not be found.
func (j *Journal) fail(err error) {
	j.mu.Lock()
	first := j.err == nil && !j.closed
	if j.err == nil {
		j.err = err
	}
	j.tell()
	failed := j.failed
	j.mu.Unlock()
	switch {
	case !first || failed == nil:
	case j.manual:
		failed(err)
	default:
		go failed(err)
	}
}

// Err is why the journal has failed, nil if it has not.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// await waits until all records before a position are in the index.
func (j *Journal) await(ctx context.Context, position uint64) error {
	for {
		j.mu.Lock()
		changed, err := j.changed, j.err
		there := j.next == len(j.queue) || j.queue[j.next].position >= position
		if j.closed && !there && err == nil {
			err = errClosed
		}
		j.mu.Unlock()
		if err != nil || there {
			return err
		}
		if j.manual && j.step() {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Settle has all records before a position, which is durable, in the index for good: the log need not keep them. applied is how far the index
// says that it has come, then and for good: it is less than the position where nothing was stored in between, whatever is applied meanwhile.
func (j *Journal) Settle(ctx context.Context, position uint64) (applied uint64, err error) {
	if err := j.await(ctx, position); err != nil {
		return 0, err
	}
	applied = min(position, j.Applied())
	if err := j.index.flush(); err != nil {
		return 0, err
	}
	n := j.index.size()
	j.mu.Lock()
	j.space = n
	j.mu.Unlock()
	return applied, nil
}

// Applied is the position before which everything is in the index.
func (j *Journal) Applied() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.applied
}

// Used is about how many bytes the index's files have.
func (j *Journal) Used() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.space
}

// Idle waits until nothing is left to be applied or removed, for as long as nothing more comes.
func (j *Journal) Idle(ctx context.Context) error { return j.await(ctx, math.MaxUint64) }

// Close closes the index. Nobody stores anything any more.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	j.ring()
	if !j.manual {
		<-j.done
	}
	j.mu.Lock()
	j.tell()
	j.mu.Unlock()
	return j.index.close()
}
