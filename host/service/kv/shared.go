package kv

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

// shared is a store that all nodes of a cluster have. Each write is one change of one key, which the cluster orders by its
// revision: that is the entry's version. What a node reads of one key comes from the leader; lists, usage and watches come from a
// copy in memory that follows the changes.
type shared struct {
	env  *service.Env
	at   service.Shared
	of   string // the bundle's name: others have entries of their own
	hub  hub
	stop func()

	ready chan struct{} // closed when the copy has had all that there was

	mu    sync.Mutex // of the copy
	copy  *memory
	usage map[string]Usage // of the copy
	held  held
	bad   int                      // entries that could not be read, since the last one that was logged
	quiet time.Time                // none is logged before
	due   interface{ Stop() bool } // nil: nothing expires
	ended bool
}

// Bounds of a shared store.
const (
	// MaxSharedKey is that of a key, in bytes: it becomes the name of a subject.
	MaxSharedKey = 256
	// casTries is how often an operation without a condition begins anew because others have written.
	casTries = 32
	// firstPause and longestPause bound the times between these attempts.
	firstPause, longestPause = 2 * time.Millisecond, 100 * time.Millisecond
	// shortestTombstone is how long it is known that an entry was removed, at least. Three leases are enough: a node that is not told for
	// longer than one begins anew, with a new copy.
	shortestTombstone = 15 * time.Second
	// linger is how long an entry is kept after it has ended, whatever the clocks say.
	linger = 60 * time.Second
	// quietTime is between two lines of the log about entries that cannot be read.
	quietTime = 10 * time.Second
)

// openShared joins the store, and waits for nothing but that it can be reached.
func openShared(env *service.Env) (*shared, error) {
	if env.Bundle == "" {
		return nil, errors.New("kv: scope: cluster needs the name of a bundle, of which the entries are")
	}
	ctx, cancel := env.WithTimeout(context.Background(), openTime)
	defer cancel()
	at, err := env.Shared(ctx, "kv")
	if err != nil {
		return nil, err
	}
	s := &shared{env: env, at: at, of: env.Bundle, ready: make(chan struct{}), copy: newMemory(), usage: map[string]Usage{}, held: newHeld()}
	s.stop = at.Watch(s.changed, sync.OnceFunc(func() { close(s.ready) }))
	return s, nil
}

// openTime bounds the wait for those that keep the values, and for the copy.
const openTime = 30 * time.Second

// tombstone is how long it is known that an entry was removed.
func (s *shared) tombstone() time.Duration { return max(shortestTombstone, 3*s.at.Lease()) }

// sharedKey is a key of a bundle's namespace as the cluster has it: bytes other than letters, digits, '_' and '-' are written as '~' and two
// hexadecimal digits.
func sharedKey(bundle, ns, key string) string {
	b := make([]byte, 0, len(bundle)+len(ns)+2*len(key)+2)
	b = append(service.AppendSharedName(b, bundle), '.')
	b = append(service.AppendSharedName(b, ns), '.')
	return string(service.AppendSharedName(b, key))
}

// parseSharedKey reverses sharedKey.
func parseSharedKey(text string) (bundle, ns, key string, ok bool) {
	var parts [3][]byte
	n := 0
	for i := 0; i < len(text); i++ {
		switch x := text[i]; {
		case x == '.' && n < 2:
			n++
		case x == '.':
			return "", "", "", false
		case x == '~':
			if i+3 > len(text) {
				return "", "", "", false
			}
			b, err := hex.DecodeString(text[i+1 : i+3])
			if err != nil {
				return "", "", "", false
			}
			parts[n] = append(parts[n], b[0])
			i += 2
		default:
			parts[n] = append(parts[n], x)
		}
	}
	bundle, ns, key = string(parts[0]), string(parts[1]), string(parts[2])
	return bundle, ns, key, bundle != "" && isNamespace(ns) && checkKey(key) == nil && sharedKey(bundle, ns, key) == text
}

// record is what a value says, of the revision that it has; nil if there is none.
func sharedRecord(value []byte, revision uint64) (*record, error) {
	if len(value) == 0 {
		return nil, nil
	}
	r, err := decodeRecord(value)
	if err != nil || len(r.value) > MaxValue || revision == 0 {
		return nil, errRecord
	}
	r.version = revision
	return r, nil
}

// sharedValue is a record as a value: its version is the revision that it will have.
func sharedValue(r record) []byte {
	r.version = 1
	return r.encode()
}

// changed takes a change into the copy. Watchers are told with the lock, since what is told has an order.
func (s *shared) changed(key string, value []byte, revision uint64) {
	bundle, ns, k, ok := parseSharedKey(key)
	r, err := sharedRecord(value, revision)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok = ok && bundle == s.of; !ok {
		ns = "" // of another bundle, or of a node that writes what none should
	}
	s.hold(key, ns, value, r)
	s.held.told(revision)
	if !ok {
		return
	}
	if err != nil {
		s.unreadable(ns, k)
		r = nil
	}
	if r != nil {
		r.value = append([]byte(nil), r.value...)
	}
	s.hub.publish(revision, s.set(nil, ns, k, r, revision, false))
}

// hold notes what the cluster keeps under a key, and for how long; with the lock.
func (s *shared) hold(key, ns string, value []byte, r *record) {
	x := holding{ns: ns, size: sharedSize(key, value)}
	switch {
	case len(value) == 0:
		x.until = s.now() + int64(s.tombstone())
	case r != nil && r.expires > 0:
		x.until = min(r.expires, s.now()+int64(MaxTTL)) + int64(linger+time.Second)
	}
	if s.held.set(key, x); x.until != 0 {
		s.expireLater()
	}
}

// unreadable logs an entry of a member that no node writes, and not each of many; with the lock.
func (s *shared) unreadable(ns, key string) {
	s.bad++
	if now := s.env.Clock.Now(); !now.Before(s.quiet) {
		s.env.Log.Warn("an entry of the cluster cannot be read", "namespace", ns, "key", key, "entries", s.bad)
		s.bad, s.quiet = 0, now.Add(quietTime)
	}
}

// set replaces an entry of the copy; with the lock.
func (s *shared) set(changes []Change, ns, key string, r *record, version uint64, expired bool) []Change {
	at := entryKey(ns, key)
	u := s.usage[ns]
	var w writes
	if b, found, _ := s.copy.get(at); found {
		if old, err := decodeRecord(b); err == nil {
			u.Keys--
			u.Bytes -= cost(key, old)
			if old.expires != 0 {
				w.remove(expiryKey(old.expires, ns, key))
			}
		}
	} else if r == nil {
		return changes
	}
	c := Change{ns: ns, Key: key, Kind: Deleted, Expired: expired, Version: version}
	if r == nil {
		w.remove(at)
	} else {
		w.set(at, r.encode())
		u.Keys++
		u.Bytes += cost(key, r)
		if r.expires != 0 {
			w.set(expiryKey(r.expires, ns, key), nil)
		}
		c.Kind, c.entry = Put, r
	}
	if s.usage[ns] = u; u.Keys <= 0 {
		delete(s.usage, ns)
		w.remove(usageKey(ns))
	} else {
		w.set(usageKey(ns), u.encode())
	}
	_, _ = s.copy.apply(&w, Memory)
	if r != nil && r.expires != 0 {
		s.expireLater()
	}
	return append(changes, c)
}

// expireLater has what expires removed from the copy; with the lock.
func (s *shared) expireLater() {
	if s.due == nil && !s.ended {
		s.due = s.env.Clock.AfterFunc(time.Second, s.expire)
	}
}

// expire removes from the copy what has ended. Those that keep the values forget it by themselves. Its version is that of the entry.
func (s *shared) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = nil
	now := s.env.Clock.Now().UnixNano()
	type entry struct {
		ns, key string
		version uint64
	}
	var ended []entry
	left := false
	_ = s.copy.scan([]byte{spaceExpiry}, []byte{spaceExpiry + 1}, false, func(k, _ []byte) bool {
		at, ns, key, ok := parseExpiryKey(k)
		if ok && at <= now && len(ended) < sweepAtOnce {
			x := entry{ns: ns, key: key}
			if b, found, _ := s.copy.get(entryKey(ns, key)); found {
				if r, err := decodeRecord(b); err == nil {
					x.version = r.version
				}
			}
			ended = append(ended, x)
			return true
		}
		left = ok
		return false
	})
	for _, e := range ended {
		s.hub.publish(e.version, s.set(nil, e.ns, e.key, nil, e.version, true))
	}
	if s.held.pass(now) || left {
		s.expireLater()
	}
}

func (s *shared) now() int64 { return s.env.Clock.Now().UnixNano() }

// got is what the leader has of a key.
type got struct {
	value    []byte
	revision uint64
	err      error
}

// leads reads an entry of the leader: nil if there is none, and the revision with which it may be replaced.
func (s *shared) leads(ctx context.Context, ns, key string) (*record, uint64, error) {
	c := make(chan got, 1)
	s.at.Get(sharedKey(s.of, ns, key), func(value []byte, revision uint64, err error) { c <- got{value, revision, err} })
	g, which := executor.Take(s.env.Clock, c, ctx.Done())
	if which != 0 {
		return nil, 0, late(ctx, "it was not read")
	}
	if g.err != nil {
		return nil, 0, &service.Error{Code: service.Unavailable, Text: "those that keep the store do not answer", Err: g.err}
	}
	r, err := sharedRecord(g.value, g.revision)
	switch {
	case err != nil:
		return nil, 0, &service.Error{Code: service.Unavailable, Text: "the entry cannot be read", Err: err}
	case r != nil && r.ended(s.now()):
		r = nil
	}
	return r, g.revision, nil
}

func (s *shared) read(ctx context.Context, ns, key string) (*Entry, error) {
	if len(key) > MaxSharedKey {
		return nil, tooLong(key)
	}
	r, _, err := s.leads(ctx, ns, key)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, service.Errorf(service.NotFound, "there is no %q", key)
	}
	return r.entry(key), nil
}

func tooLong(key string) error {
	return service.Errorf(service.TooLarge, "key has %d bytes, at most %d in a store of a cluster", len(key), MaxSharedKey)
}

// complete waits until the copy has had all that there was when the store was opened, but not without end.
func (s *shared) complete(ctx context.Context) error {
	ctx, cancel := s.env.WithTimeout(ctx, openTime)
	defer cancel()
	if _, which := executor.Take(s.env.Clock, s.ready, ctx.Done()); which == 1 {
		return late(ctx, "those that keep the store do not answer")
	}
	return nil
}

func (s *shared) page(ctx context.Context, l listing) ([]Entry, []byte, error) {
	if err := s.complete(ctx); err != nil {
		return nil, nil, err
	}
	page, cursor, _, err := l.of(s.copy, s.now())
	return page, cursor, err
}

func (s *shared) used(ctx context.Context, ns string) (Usage, error) {
	if err := s.complete(ctx); err != nil {
		return Usage{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Usage{s.usage[ns].Keys, s.held.bytes[ns]}, nil
}

func (s *shared) namespaces() ([]Info, error) {
	if err := s.complete(context.Background()); err != nil {
		return nil, err
	}
	return namespacesOf(s.copy)
}

func (s *shared) told() *hub { return &s.hub }

func (s *shared) close() error {
	s.mu.Lock()
	s.ended = true
	if s.due != nil {
		s.due.Stop()
	}
	s.mu.Unlock()
	s.stop()
	s.hub.close()
	return nil
}

// changeThen carries out one operation: the cluster orders changes of single keys.
func (s *shared) changeThen(ctx context.Context, ns string, q Quota, ops []Op, _ Durability, visible func()) ([]Result, uint64, error) {
	defer visible()
	switch {
	case len(ops) != 1:
		return nil, 0, service.Errorf(service.BadRequest, "ops has %d operations: a batch in a store of a cluster has one, since the cluster orders changes of single keys", len(ops))
	case len(ops[0].Key) > MaxSharedKey:
		return nil, 0, tooLong(ops[0].Key)
	}
	res, version, err := s.one(ctx, ns, q, &ops[0])
	return []Result{res}, version, err
}

// changeOnce is changeThen: nothing keeps keys together with what all nodes have.
func (s *shared) changeOnce(ctx context.Context, ns string, q Quota, ops []Op, d Durability, visible func(), _ *once.Request) ([]Result, uint64, error) {
	return s.changeThen(ctx, ns, q, ops, d, visible)
}

// one carries out an operation. What decides is the revision with which the entry is replaced.
func (s *shared) one(ctx context.Context, ns string, q Quota, op *Op) (Result, uint64, error) {
	races := 0
	first := op.Kind == OpPut && op.If != nil && (*op.If == 0 || s.knows(ns, op.Key, *op.If)) // then the condition is all that has to be known
	for range casTries {
		var r *record
		var revision uint64
		if first {
			revision = *op.If
		} else {
			var err error
			if r, revision, err = s.leads(ctx, ns, op.Key); err != nil {
				return Result{}, 0, err
			}
			if err := op.holds(r, false); err != nil {
				return Result{}, 0, err
			}
		}
		next, res, err := s.decide(op, r)
		if err != nil {
			return Result{}, 0, err
		}
		if op.Kind == OpCheck || next == nil && r == nil {
			return res, 0, nil
		}
		at, ok, err := s.putWithin(ctx, q, s.writeOf(ns, op.Key, next), revision)
		switch {
		case err != nil:
			return Result{}, 0, err
		case ok:
			if next != nil {
				res.Version = at
			}
			return res, at, nil
		}
		if !first { // somebody else has written in between
			if err := s.pause(ctx, races); err != nil {
				return Result{}, 0, err
			}
			races++
		}
		first = false // or an entry was removed before
	}
	return Result{}, 0, service.Errorf(service.Busy, "%q is written by others all the time; nothing was written", op.Key)
}

// pause waits before an operation begins anew, so that those who write one key do not disturb each other all the time: a random part of
// a time that doubles.
func (s *shared) pause(ctx context.Context, races int) error {
	var b [8]byte
	s.env.Rand(b[:])
	d := time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(min(firstPause<<min(races, 16), longestPause)))
	over := make(chan struct{}, 1)
	timer := s.env.After(d, func() { over <- struct{}{} })
	if _, which := executor.Take(s.env.Clock, over, ctx.Done()); which != 0 {
		timer.Stop()
		return late(ctx, "nothing was written")
	}
	return nil
}

// knows says whether the copy has an entry of that version that has not ended.
func (s *shared) knows(ns, key string, version uint64) bool {
	b, found, _ := s.copy.get(entryKey(ns, key))
	if !found {
		return false
	}
	r, err := decodeRecord(b)
	return err == nil && r.version == version && !r.ended(s.now())
}

// decide is the entry after an operation, nil for none.
func (s *shared) decide(op *Op, r *record) (next *record, res Result, err error) {
	switch op.Kind {
	case OpPut:
		next = &record{expires: op.expires(s.now()), value: op.Value}
	case OpDelete:
		res.Existed = r != nil
	case OpAdd:
		if next, err = op.added(r, s.now()); err == nil {
			res.Count = next.count
		}
	case OpCheck:
	}
	return next, res, err
}

// sharedWrite is a change of an entry, as the cluster takes it.
type sharedWrite struct {
	ns, key string
	at      string // the key that the cluster knows
	value   []byte // nil: it is removed
	stay    int64  // seconds
}

// writeOf is the change to next; nil: the entry is removed.
func (s *shared) writeOf(ns, key string, next *record) *sharedWrite {
	w := &sharedWrite{ns: ns, key: key, at: sharedKey(s.of, ns, key)}
	if next == nil {
		w.stay = int64(s.tombstone() / time.Second)
		return w
	}
	if w.value = sharedValue(*next); next.expires != 0 { // it is removed a while after it has ended, whatever the clocks say
		w.stay = max(1, (next.expires-s.now()+int64(linger))/int64(time.Second))
	}
	return w
}

// putWithin is put, unless a namespace would grow beyond its quota, as far as this node knows what others have written. A removal is
// never refused.
func (s *shared) putWithin(ctx context.Context, q Quota, w *sharedWrite, revision uint64) (at uint64, ok bool, err error) {
	if w.value == nil {
		return s.put(ctx, w, revision)
	}
	if err := s.complete(ctx); err != nil {
		return 0, false, err
	}
	g, err := s.within(q, w)
	if err != nil {
		return 0, false, err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held.end(g, at)
	}()
	return s.put(ctx, w, revision)
}

// within checks the quota of a namespace, and what all of them may hold. The write that it allows is under way until its growth ends.
func (s *shared) within(q Quota, w *sharedWrite) (*growth, error) {
	ns := w.ns
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &growth{ns: ns, keys: 1, bytes: max(0, sharedSize(w.at, w.value)-s.held.of[w.at].size)}
	if _, found, _ := s.copy.get(entryKey(ns, w.key)); found {
		g.keys = 0
	}
	under, all := s.held.underWay(ns)
	is := Usage{s.usage[ns].Keys + under.Keys + g.keys, s.held.bytes[ns] + under.Bytes + g.bytes}
	total := s.held.total + all + g.bytes
	switch {
	case q.Bytes > 0 && is.Bytes > q.Bytes && g.bytes > 0:
		return nil, service.Errorf(service.Quota, "namespace %s would hold %d bytes of %d, with what was removed or has ended a while ago; quota of the grant raises it", ns, is.Bytes, q.Bytes)
	case q.Keys > 0 && is.Keys > q.Keys && g.keys > 0:
		return nil, service.Errorf(service.Quota, "namespace %s would hold %d keys of %d; keys of the grant raises it", ns, is.Keys, q.Keys)
	case total > service.MaxSharedTotal && g.bytes > 0:
		return nil, service.Errorf(service.Quota, "the store of the cluster would hold %d bytes of %d, with what was removed or has ended a while ago", total, service.MaxSharedTotal)
	}
	s.held.begin(g)
	return g, nil
}

type putDone struct {
	at  uint64
	ok  bool
	err error
}

// put replaces an entry of the cluster.
func (s *shared) put(ctx context.Context, w *sharedWrite, revision uint64) (uint64, bool, error) {
	c := make(chan putDone, 1)
	s.at.Put(w.at, w.value, revision, w.stay, func(at uint64, ok bool, err error) { c <- putDone{at, ok, err} })
	d, which := executor.Take(s.env.Clock, c, ctx.Done())
	switch {
	case which != 0:
		return 0, false, late(ctx, "whether it was written is not known")
	case errors.Is(d.err, context.Canceled):
		return 0, false, unavailable(errClosed, "nothing was written")
	case errors.Is(d.err, service.ErrFull):
		return 0, false, &service.Error{Code: service.Quota, Text: "the store of the cluster is full; nothing was written", Err: d.err}
	case errors.Is(d.err, service.ErrNotWritten), errors.Is(d.err, host.ErrNodeLost):
		return 0, false, &service.Error{Code: service.Unavailable, Text: "the node or those that keep the store cannot take it now; nothing was written", Err: d.err}
	case d.err != nil:
		return 0, false, &service.Error{Code: service.Unavailable, Text: "those that keep the store do not answer; whether it was written is not known", Err: d.err}
	}
	return d.at, d.ok, nil
}
