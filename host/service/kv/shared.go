package kv

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
)

// shared is a store that all nodes of a cluster have. Each write is one change of one key, which the cluster orders by its
// revision: that is the entry's version. What a node reads of one key comes from the leader; lists, usage and watches come from a
// copy in memory that follows the changes.
type shared struct {
	env  *service.Env
	at   service.Shared
	hub  hub
	stop func()

	ready chan struct{} // closed when the copy has had all that there was

	mu    sync.Mutex // of the copy
	copy  *memory
	usage map[string]Usage
	due   interface{ Stop() bool } // nil: nothing expires
	ended bool
}

// Bounds of a shared store.
const (
	// MaxSharedKey is that of a key, in bytes: it becomes the name of a subject.
	MaxSharedKey = 256
	// casTries is how often an operation without a condition begins anew because others have written.
	casTries = 32
	// tombstone is how long it is known that an entry was removed, in seconds: what a node has missed for longer it reads again.
	tombstone = 3600
)

// openShared joins the store, and waits for nothing but that it can be reached.
func openShared(env *service.Env) (*shared, error) {
	ctx, cancel := env.WithTimeout(context.Background(), openTime)
	defer cancel()
	at, err := env.Shared(ctx, "kv")
	if err != nil {
		return nil, err
	}
	s := &shared{env: env, at: at, ready: make(chan struct{}), copy: newMemory(), usage: map[string]Usage{}}
	s.stop = at.Watch(s.changed, sync.OnceFunc(func() { close(s.ready) }))
	return s, nil
}

// openTime bounds the wait for those that keep the values.
const openTime = 30 * time.Second

// sharedKey is a key of a namespace as the cluster has it: bytes other than letters, digits, '_' and '-' are written as '~' and two
// hexadecimal digits.
func sharedKey(ns, key string) string {
	const hexDigits = "0123456789abcdef"
	b := make([]byte, 0, len(ns)+2*len(key)+1)
	for i, text := range [2]string{ns, key} {
		if i == 1 {
			b = append(b, '.')
		}
		for j := range len(text) {
			switch x := text[j]; {
			case x >= 'a' && x <= 'z', x >= 'A' && x <= 'Z', x >= '0' && x <= '9', x == '_', x == '-':
				b = append(b, x)
			default:
				b = append(b, '~', hexDigits[x>>4], hexDigits[x&15])
			}
		}
	}
	return string(b)
}

// parseSharedKey reverses sharedKey.
func parseSharedKey(text string) (ns, key string, ok bool) {
	var parts [2][]byte
	n := 0
	for i := 0; i < len(text); i++ {
		switch x := text[i]; {
		case x == '.' && n == 0:
			n = 1
		case x == '.':
			return "", "", false
		case x == '~':
			if i+3 > len(text) {
				return "", "", false
			}
			b, err := hex.DecodeString(text[i+1 : i+3])
			if err != nil {
				return "", "", false
			}
			parts[n] = append(parts[n], b[0])
			i += 2
		default:
			parts[n] = append(parts[n], x)
		}
	}
	ns, key = string(parts[0]), string(parts[1])
	return ns, key, isNamespace(ns) && checkKey(key) == nil && sharedKey(ns, key) == text
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

// changed takes a change into the copy.
func (s *shared) changed(key string, value []byte, revision uint64) {
	ns, k, ok := parseSharedKey(key)
	if !ok {
		return // of a node that writes what none should
	}
	r, err := sharedRecord(value, revision)
	if err != nil {
		s.env.Log.Warn("an entry of the cluster cannot be read", "namespace", ns, "key", k)
		r = nil
	}
	if r != nil {
		r.value = append([]byte(nil), r.value...)
	}
	s.mu.Lock()
	changes := s.set(nil, ns, k, r, revision, false)
	s.mu.Unlock()
	s.hub.publish(revision, changes)
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

// expire removes from the copy what has ended. Those that keep the values forget it by themselves.
func (s *shared) expire() {
	s.mu.Lock()
	s.due = nil
	now := s.env.Clock.Now().UnixNano()
	type entry struct{ ns, key string }
	var ended []entry
	left := false
	_ = s.copy.scan([]byte{spaceExpiry}, []byte{spaceExpiry + 1}, false, func(k, _ []byte) bool {
		at, ns, key, ok := parseExpiryKey(k)
		if ok && at <= now && len(ended) < sweepAtOnce {
			ended = append(ended, entry{ns, key})
			return true
		}
		left = ok
		return false
	})
	var changes []Change
	for _, e := range ended {
		changes = s.set(changes, e.ns, e.key, nil, 0, true)
	}
	if left {
		s.expireLater()
	}
	s.mu.Unlock()
	s.hub.publish(0, changes)
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
	s.at.Get(sharedKey(ns, key), func(value []byte, revision uint64, err error) { c <- got{value, revision, err} })
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

// complete waits until the copy has had all that there was when the store was opened.
func (s *shared) complete(ctx context.Context) error {
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

func (s *shared) used(ns string) (Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage[ns], nil
}

func (s *shared) namespaces() ([]Info, error) { return namespacesOf(s.copy) }

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

// one carries out an operation. What decides is the revision with which the entry is replaced.
func (s *shared) one(ctx context.Context, ns string, q Quota, op *Op) (Result, uint64, error) {
	first := op.Kind == OpPut && op.If != nil // then the condition is all that has to be known
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
			if err := holds(op, r); err != nil {
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
		if err := s.within(ns, q, op.Key, next); err != nil {
			return Result{}, 0, err
		}
		at, ok, err := s.put(ctx, ns, op.Key, next, revision)
		switch {
		case err != nil:
			return Result{}, 0, err
		case ok:
			if next != nil {
				res.Version = at
			}
			return res, at, nil
		}
		first = false // somebody else has written, or an entry was removed before
	}
	return Result{}, 0, service.Errorf(service.Busy, "%q is written by others all the time; nothing was written", op.Key)
}

// holds checks an operation's condition.
func holds(op *Op, r *record) error {
	switch {
	case op.If == nil:
	case *op.If == 0 && r != nil:
		return service.Errorf(service.Exists, "%q exists, in version %d", op.Key, r.version)
	case *op.If != 0 && r == nil:
		return service.Errorf(service.Conflict, "%q does not exist, so it does not have version %d", op.Key, *op.If)
	case *op.If != 0 && r.version != *op.If:
		return service.Errorf(service.Conflict, "%q has version %d, not %d", op.Key, r.version, *op.If)
	}
	return nil
}

// decide is the entry after an operation, nil for none.
func (s *shared) decide(op *Op, r *record) (next *record, res Result, err error) {
	expires := int64(0)
	if op.TTL > 0 {
		expires = s.now() + int64(op.TTL)
	}
	switch op.Kind {
	case OpPut:
		next = &record{expires: expires, value: op.Value}
	case OpDelete:
		res.Existed = r != nil
	case OpAdd:
		is := record{counter: true, expires: expires}
		if r != nil {
			if !r.counter {
				return nil, res, service.Errorf(service.Conflict, "%q holds bytes, no counter", op.Key)
			}
			is.count, is.expires = r.count, r.expires
		}
		sum := is.count + op.Delta
		if (sum > is.count) != (op.Delta > 0) && op.Delta != 0 {
			return nil, res, service.Errorf(service.Conflict, "%q holds %d, and %d more do not fit into 64 bits", op.Key, is.count, op.Delta)
		}
		is.count, res.Count = sum, sum
		next = &is
	case OpCheck:
	}
	return next, res, nil
}

// within refuses what makes a namespace grow beyond its quota, as far as this node knows what others have written.
func (s *shared) within(ns string, q Quota, key string, next *record) error {
	if next == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.usage[ns]
	is := Usage{was.Keys + 1, was.Bytes + cost(key, next)}
	if b, found, _ := s.copy.get(entryKey(ns, key)); found {
		if old, err := decodeRecord(b); err == nil {
			is.Keys--
			is.Bytes -= cost(key, old)
		}
	}
	if q.Bytes > 0 && is.Bytes > q.Bytes && is.Bytes > was.Bytes {
		return service.Errorf(service.Quota, "namespace %s would hold %d bytes of %d; quota of the grant raises it", ns, is.Bytes, q.Bytes)
	}
	if q.Keys > 0 && is.Keys > q.Keys && is.Keys > was.Keys {
		return service.Errorf(service.Quota, "namespace %s would hold %d keys of %d; keys of the grant raises it", ns, is.Keys, q.Keys)
	}
	return nil
}

type putDone struct {
	at  uint64
	ok  bool
	err error
}

// put replaces an entry of the cluster.
func (s *shared) put(ctx context.Context, ns, key string, next *record, revision uint64) (uint64, bool, error) {
	var value []byte
	stay := int64(tombstone)
	if next != nil {
		value, stay = sharedValue(*next), 0
		if next.expires != 0 { // it is removed a while after it has ended, whatever the clocks say
			stay = max(1, (next.expires-s.now())/int64(time.Second)+60)
		}
	}
	c := make(chan putDone, 1)
	s.at.Put(sharedKey(ns, key), value, revision, stay, func(at uint64, ok bool, err error) { c <- putDone{at, ok, err} })
	d, which := executor.Take(s.env.Clock, c, ctx.Done())
	switch {
	case which != 0:
		return 0, false, late(ctx, "whether it was written is not known")
	case errors.Is(d.err, context.Canceled):
		return 0, false, unavailable(errClosed, "nothing was written")
	case d.err != nil:
		return 0, false, &service.Error{Code: service.Unavailable, Text: "those that keep the store do not answer; whether it was written is not known", Err: d.err}
	}
	return d.at, d.ok, nil
}
