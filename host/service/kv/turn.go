package kv

import (
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
)

// OpKind is what an operation does.
type OpKind uint8

// The operations of a write.
const (
	OpPut    OpKind = iota // sets a value
	OpDelete               // removes an entry, if there is one
	OpAdd                  // adds to a counter; one that is missing is 0
	OpCheck                // only checks its condition
)

// Op is a part of a write.
type Op struct {
	Kind  OpKind
	Key   string
	Value []byte        // OpPut
	Delta int64         // OpAdd
	TTL   time.Duration // OpPut, and OpAdd of a counter that is missing; 0: it stays
	// If is the version that the entry must have; 0: there must be none; nil: any.
	If *uint64
}

// Result is what an operation has done.
type Result struct {
	Version uint64 // OpPut, OpAdd: of the entry
	Count   int64  // OpAdd: the counter's new value
	Existed bool   // OpDelete: there was one
}

// turn is a write as it is decided.
type turn struct {
	store *store
	eng   engine
	ns    string
	now   int64

	list  []touched // in the order of the first touch
	index map[string]int
	w     writes
	usage map[string]Usage
	kept  int64 // bytes that requests which are kept add to the namespace
}

// touched is an entry before and after.
type touched struct {
	ns, key     string
	stood       *record // in the engine, expired or not
	is          *record
	expired     bool // by time, before this turn
	unversioned bool // is was set in this turn
}

// entry finds an entry as this turn has left it.
func (t *turn) entry(key string) (*touched, error) {
	if i, ok := t.index[key]; ok {
		return &t.list[i], nil
	}
	x := touched{ns: t.ns, key: key}
	b, found, err := t.eng.get(entryKey(t.ns, key))
	if err != nil {
		return nil, err
	}
	if found {
		if x.stood, err = decodeRecord(b); err != nil {
			return nil, err
		}
		if x.is = x.stood; x.is.ended(t.now) {
			x.is, x.expired = nil, true
		}
	}
	if t.index == nil {
		t.index = map[string]int{}
	}
	t.index[key] = len(t.list)
	t.list = append(t.list, x)
	return &t.list[len(t.list)-1], nil
}

func (r *record) ended(now int64) bool { return r.expires != 0 && r.expires <= now }

// perform decides about the operations of a write.
func (t *turn) perform(c *commit) error {
	if c.once != nil {
		if again, err := t.remembered(c); again || err != nil {
			return err
		}
	}
	c.results = make([]Result, len(c.ops))
	for i := range c.ops {
		if err := t.one(&c.ops[i], &c.results[i]); err != nil {
			if len(c.ops) > 1 {
				return within(fmt.Sprintf("ops[%d]", i), err)
			}
			return err
		}
	}
	if c.once != nil && t.changed() {
		if err := t.forget(c); err != nil {
			return err
		}
	}
	return t.withinQuota(c.quota)
}

func (t *turn) one(op *Op, res *Result) error {
	x, err := t.entry(op.Key)
	if err != nil {
		return err
	}
	if err := op.holds(x.is, x.unversioned); err != nil {
		return err
	}
	switch op.Kind {
	case OpPut:
		x.is, x.unversioned = &record{expires: op.expires(t.now), value: op.Value}, true
	case OpDelete:
		res.Existed = x.is != nil
		x.is = nil
	case OpAdd:
		is, err := op.added(x.is, t.now)
		if err != nil {
			return err
		}
		x.is, x.unversioned, res.Count = is, true, is.count
	case OpCheck:
	}
	return nil
}

// holds checks the condition of an operation on an entry, nil if there is none. unversioned: the batch has changed it before.
func (op *Op) holds(is *record, unversioned bool) error {
	if op.If == nil {
		return nil
	}
	version := "that of this batch"
	if is != nil && !unversioned {
		version = fmt.Sprint(is.version)
	}
	switch {
	case *op.If == 0 && is != nil:
		return service.Errorf(service.Exists, "%q exists, in version %s", op.Key, version)
	case *op.If != 0 && is == nil:
		return service.Errorf(service.Conflict, "%q does not exist, so it does not have version %d", op.Key, *op.If)
	case *op.If != 0 && (unversioned || is.version != *op.If):
		return service.Errorf(service.Conflict, "%q has version %s, not %d", op.Key, version, *op.If)
	}
	return nil
}

// added is a counter after an OpAdd, nil before if there is none. now is in ns since 1970.
func (op *Op) added(was *record, now int64) (*record, error) {
	is := &record{counter: true}
	switch {
	case was == nil:
		is.expires = op.expires(now)
	case !was.counter:
		return nil, service.Errorf(service.Conflict, "%q holds bytes, no counter", op.Key)
	default:
		is.count, is.expires = was.count, was.expires
	}
	sum := is.count + op.Delta
	if (sum > is.count) != (op.Delta > 0) && op.Delta != 0 {
		return nil, service.Errorf(service.Conflict, "%q holds %d, and %d more do not fit into 64 bits", op.Key, is.count, op.Delta)
	}
	is.count = sum
	return is, nil
}

// expires is when an entry that the operation makes ends; 0: never.
func (op *Op) expires(now int64) int64 {
	if op.TTL <= 0 {
		return 0
	}
	return now + int64(op.TTL)
}

// count computes what the namespaces hold after this turn.
func (t *turn) count() error {
	t.usage = map[string]Usage{}
	for i := range t.list {
		x := &t.list[i]
		u, ok := t.usage[x.ns]
		if !ok {
			var err error
			if u, err = t.store.usageOf(t.eng, x.ns); err != nil {
				return err
			}
		}
		if x.stood != nil {
			u.Keys--
			u.Bytes -= cost(x.key, x.stood)
		}
		if x.is != nil {
			u.Keys++
			u.Bytes += cost(x.key, x.is)
		}
		t.usage[x.ns] = Usage{max(u.Keys, 0), max(u.Bytes, 0)}
	}
	if t.kept != 0 {
		u := t.usage[t.ns] // a request that is kept has changed something
		t.usage[t.ns] = Usage{u.Keys, max(u.Bytes+t.kept, 0)}
	}
	return nil
}

// withinQuota refuses what makes a namespace grow beyond its quota.
func (t *turn) withinQuota(q Quota) error {
	if err := t.count(); err != nil {
		return err
	}
	is, was := t.usage[t.ns], t.store.usage[t.ns]
	if q.Bytes > 0 && is.Bytes > q.Bytes && is.Bytes > was.Bytes {
		return service.Errorf(service.Quota, "namespace %s would hold %d bytes of %d; quota of the grant raises it", t.ns, is.Bytes, q.Bytes)
	}
	if q.Keys > 0 && is.Keys > q.Keys && is.Keys > was.Keys {
		return service.Errorf(service.Quota, "namespace %s would hold %d keys of %d; keys of the grant raises it", t.ns, is.Keys, q.Keys)
	}
	return nil
}

// expire decides to remove some expired entries, of any namespace.
func (t *turn) expire(most int) error {
	var failed error
	err := t.eng.scan([]byte{spaceExpiry}, expiryKey(t.now+1, "", ""), false, func(k, _ []byte) bool {
		at, ns, key, ok := parseExpiryKey(k)
		if !ok {
			failed = errRecord
			return false
		}
		b, found, err := t.eng.get(entryKey(ns, key))
		if err != nil {
			failed = err
			return false
		}
		x := touched{ns: ns, key: key, expired: true}
		if found {
			if x.stood, failed = decodeRecord(b); failed != nil {
				return false
			}
		}
		if x.stood == nil || x.stood.expires != at {
			t.w.remove(expiryKey(at, ns, key)) // left over
			return true
		}
		t.list = append(t.list, x)
		return len(t.list) < most
	})
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return t.count()
}

// apply writes what was decided.
func (t *turn) apply(c *commit) (err error) {
	c.wait = done
	if !t.changed() {
		return nil
	}
	if c.version, err = t.store.version(t.eng); err != nil {
		return err
	}
	for i := range t.list {
		t.write(&t.list[i], c)
	}
	for ns, u := range t.usage {
		if u == (Usage{}) {
			t.w.remove(usageKey(ns))
		} else {
			t.w.set(usageKey(ns), u.encode())
		}
	}
	for i := range c.ops {
		if k := c.ops[i].Kind; k == OpPut || k == OpAdd {
			c.results[i].Version = c.version
		}
	}
	if c.once != nil {
		t.remember(c)
	}
	if c.wait, err = t.eng.apply(&t.w, c.durability); err != nil {
		return err
	}
	for ns, u := range t.usage {
		t.store.usage[ns] = u
	}
	return nil
}

// changed reports whether there is anything to write.
func (t *turn) changed() bool {
	for i := range t.list {
		if t.list[i].stood != t.list[i].is {
			return true
		}
	}
	return len(t.w.list) > 0
}

// write adds the change of an entry to the engine's writes.
func (t *turn) write(x *touched, c *commit) {
	if x.stood == x.is {
		return
	}
	if x.unversioned && x.is != nil {
		x.is.version = c.version
	}
	if x.stood != nil && x.stood.expires != 0 && (x.is == nil || x.is.expires != x.stood.expires) {
		t.w.remove(expiryKey(x.stood.expires, x.ns, x.key))
	}
	if x.is == nil {
		t.w.remove(entryKey(x.ns, x.key))
		c.changes = append(c.changes, Change{ns: x.ns, Key: x.key, Kind: Deleted, Expired: x.expired})
		return
	}
	t.w.set(entryKey(x.ns, x.key), x.is.encode())
	if x.is.expires != 0 {
		t.w.set(expiryKey(x.is.expires, x.ns, x.key), nil)
	}
	c.changes = append(c.changes, Change{ns: x.ns, Key: x.key, Kind: Put, entry: x.is})
}

// within says where in a request an error is.
func within(where string, err error) error {
	e, ok := err.(*service.Error)
	if !ok {
		return err
	}
	c := *e
	c.Text = where + ": " + c.Text
	return &c
}
