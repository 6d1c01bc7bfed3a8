//go:build !wasip1

package fake

import (
	"bytes"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// KV is the service kv. Versions, conditions, batches, lists, watches and the ends of entries are those of the real one.
type KV struct {
	Service
	spaces  map[string]*space
	names   []string
	version uint64
	watches []*watch
	due     time.Time // when entries are looked at next, zero: never
}

// space is a namespace.
type space map[string]*kv.Entry

// NewKV makes a store. The actors are granted these namespaces; without any it is one, which needs no name.
func NewKV(w *actortest.World, namespaces ...string) *KV {
	s := &KV{spaces: map[string]*space{}, names: namespaces}
	if len(namespaces) == 0 {
		s.names = []string{"main"}
	}
	for _, name := range s.names {
		s.spaces[name] = &space{}
	}
	s.begin(w, kv.Name, s.do)
	return s
}

// In is a namespace of the store, for the test.
func (s *KV) In(namespace string) *Namespace {
	if s.spaces[namespace] == nil {
		panic("fake: kv has no namespace " + namespace)
	}
	return &Namespace{s, namespace}
}

// Namespace is what a test sees of a namespace.
type Namespace struct {
	s    *KV
	name string
}

// Get is an entry as it is now; false: there is none.
func (n *Namespace) Get(key string) (kv.Entry, bool) {
	n.s.expire()
	e := (*n.s.spaces[n.name])[key]
	if e == nil {
		return kv.Entry{}, false
	}
	return *e, true
}

// Value is the value of an entry, nil if there is none.
func (n *Namespace) Value(key string) []byte {
	e, _ := n.Get(key)
	return e.Value
}

// Count is the count of a counter, 0 if there is none.
func (n *Namespace) Count(key string) int64 {
	e, _ := n.Get(key)
	return e.Count
}

// Keys are those that begin with a prefix, sorted.
func (n *Namespace) Keys(prefix string) []string {
	n.s.expire()
	return n.s.keys(n.name, prefix)
}

// Put writes a value, as an operator would.
func (n *Namespace) Put(key string, value []byte) {
	n.change(op{kind: "put", key: key, value: value})
}

// Delete removes an entry.
func (n *Namespace) Delete(key string) { n.change(op{kind: "delete", key: key}) }

// SetCount makes the entry a counter with this count.
func (n *Namespace) SetCount(key string, count int64) {
	n.change(op{kind: "delete", key: key}, op{kind: "add", key: key, delta: count})
}

func (n *Namespace) change(ops ...op) {
	if _, err := n.s.write(n.name, ops); err != nil {
		panic("fake: kv: " + err.Error())
	}
}

// Get is [Namespace.Get] of the first namespace, as are those below.
func (s *KV) Get(key string) (kv.Entry, bool)  { return s.In(s.names[0]).Get(key) }
func (s *KV) Value(key string) []byte          { return s.In(s.names[0]).Value(key) }
func (s *KV) Count(key string) int64           { return s.In(s.names[0]).Count(key) }
func (s *KV) Keys(prefix string) []string      { return s.In(s.names[0]).Keys(prefix) }
func (s *KV) Put(key string, value []byte)     { s.In(s.names[0]).Put(key, value) }
func (s *KV) Delete(key string)                { s.In(s.names[0]).Delete(key) }
func (s *KV) SetCount(key string, count int64) { s.In(s.names[0]).SetCount(key, count) }

func (s *KV) keys(space, prefix string) (found []string) {
	for key := range *s.spaces[space] {
		if strings.HasPrefix(key, prefix) {
			found = append(found, key)
		}
	}
	sort.Strings(found)
	return found
}

// op is one operation.
type op struct {
	kind, key string
	value     []byte
	delta     int64
	ttl       time.Duration
	is        *uint64 // the version that the entry must have; 0: there must be none

	given map[string]bool
}

func (o *op) field(key string, r *abi.Reader) bool {
	switch key {
	case "op":
		o.kind = r.Text()
	case "key":
		o.key = r.Text()
	case "value":
		o.value = append([]byte{}, r.ByteString()...)
	case "delta":
		o.delta = r.Int()
	case "ttl":
		o.ttl = time.Duration(r.Int())
	case "if_version":
		v := r.Uint()
		o.is = &v
	default:
		return false
	}
	if o.given == nil {
		o.given = map[string]bool{}
	}
	o.given[key] = true
	return true
}

// check refuses what can never succeed.
func (o *op) check() *service.Error {
	puts, adds := o.kind == "put", o.kind == "add"
	switch {
	case !puts && !adds && o.kind != "delete" && o.kind != "check":
		return wrong(service.BadRequest, "op is "+strconv.Quote(o.kind)+", and none of put, delete, add, check")
	case o.key == "" || !utf8.ValidString(o.key):
		return wrong(service.BadRequest, "key is empty, or not UTF-8")
	case len(o.key) > kv.MaxKey:
		return wrong(service.TooLarge, "key has "+strconv.Itoa(len(o.key))+" bytes, at most "+strconv.Itoa(kv.MaxKey))
	case len(o.value) > kv.MaxValue:
		return wrong(service.TooLarge, "value has "+strconv.Itoa(len(o.value))+" bytes, at most "+strconv.Itoa(kv.MaxValue))
	case puts != o.given["value"] || adds != o.given["delta"] || o.given["ttl"] && !puts && !adds:
		return wrong(service.BadRequest, o.kind+" does not take these arguments")
	case o.ttl != 0 && (o.ttl < time.Millisecond || o.ttl > 100*365*24*time.Hour):
		return wrong(service.BadRequest, "ttl is "+o.ttl.String())
	case o.kind == "check" && o.is == nil:
		return wrong(service.BadRequest, "check needs if_version")
	}
	return nil
}

// arguments are those of any operation.
type arguments struct {
	namespace, durability, prefix string
	cursor                        []byte
	limit                         int64
	values, reverse               bool
	op                            op
	ops                           []op
}

// taken are the keys of each operation.
var taken = map[string]string{
	"get": " namespace key ", "put": " namespace key value ttl if_version durability ", "delete": " namespace key if_version durability ",
	"add": " namespace key delta ttl if_version durability ", "list": " namespace prefix cursor limit values reverse ",
	"batch": " namespace ops durability ", "watch": " namespace prefix values ",
}

func (a *arguments) read(c *actortest.Call) *service.Error {
	keys, ok := taken[c.Op]
	if !ok {
		return wrong(service.BadRequest, "there is no operation "+strconv.Quote(c.Op))
	}
	return fields(c.Reader(), func(key string, r *abi.Reader) bool {
		if !strings.Contains(keys, " "+key+" ") {
			return false
		}
		switch key {
		case "namespace":
			a.namespace = r.Text()
		case "durability":
			a.durability = r.Text()
		case "prefix":
			a.prefix = r.Text()
		case "cursor":
			a.cursor = append([]byte{}, r.ByteString()...)
		case "limit":
			a.limit = r.Int()
		case "values":
			a.values = r.Bool()
		case "reverse":
			a.reverse = r.Bool()
		case "ops":
			for range r.Array() {
				var o op
				for range r.Map() {
					if k := r.Text(); !r.OK() || !o.field(k, r) {
						r.Fail(&abi.Error{Reason: "unknown key " + k})
						break
					}
				}
				if !r.OK() {
					break
				}
				a.ops = append(a.ops, o)
			}
		default:
			return a.op.field(key, r)
		}
		return true
	})
}

// inSpace finds the namespace of a request.
func (s *KV) inSpace(name string) (string, *service.Error) {
	switch {
	case name == "" && len(s.names) == 1:
		return s.names[0], nil
	case name == "":
		return "", wrong(service.BadRequest, "namespace must be one of "+strings.Join(s.names, ", "))
	case s.spaces[name] == nil:
		return "", wrong(service.Denied, "namespace "+strconv.Quote(name)+" is not granted, but "+strings.Join(s.names, ", "))
	}
	return name, nil
}

func (s *KV) do(c *actortest.Call) (actor.Encoder, *service.Error) {
	s.expire()
	var a arguments
	if err := a.read(c); err != nil {
		return nil, err
	}
	name, err := s.inSpace(a.namespace)
	if err != nil {
		return nil, err
	}
	switch d := kv.Durability(a.durability); d {
	case "", kv.Disk, kv.OS, kv.Memory:
	default:
		return nil, wrong(service.BadRequest, "durability is "+strconv.Quote(a.durability))
	}
	if len(a.prefix) > kv.MaxKey {
		return nil, wrong(service.TooLarge, "prefix has "+strconv.Itoa(len(a.prefix))+" bytes")
	}
	switch c.Op {
	case "get":
		return s.get(name, a.op.key)
	case "list":
		return s.list(name, &a)
	case "watch":
		return s.watch(c, name, &a)
	case "batch":
		if len(a.ops) == 0 {
			return nil, wrong(service.BadRequest, "ops is empty")
		}
		if len(a.ops) > kv.MaxOps {
			return nil, wrong(service.TooLarge, "ops has "+strconv.Itoa(len(a.ops))+" operations, at most "+strconv.Itoa(kv.MaxOps))
		}
	default:
		a.op.kind, a.ops = c.Op, []op{a.op}
		a.ops[0].kind = c.Op
	}
	for i := range a.ops {
		if err := a.ops[i].check(); err != nil {
			return nil, err
		}
	}
	before := s.version
	results, err := s.write(name, a.ops)
	if err != nil {
		return nil, err
	}
	version := s.version
	if version == before { // nothing has changed
		version = 0
	}
	if c.Op != "batch" {
		return &results[0], nil
	}
	return actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("version")
		w.Uint(version)
		w.Text("results")
		w.Array(len(results))
		for i := range results {
			results[i].MarshalCBOR(w)
		}
	}), nil
}

func (s *KV) get(space, key string) (actor.Encoder, *service.Error) {
	if key == "" || len(key) > kv.MaxKey {
		return nil, wrong(service.BadRequest, "key is empty, or too long")
	}
	e := (*s.spaces[space])[key]
	if e == nil {
		return nil, wrong(service.NotFound, strconv.Quote(key)+" does not exist")
	}
	x := shown{entry: *e, values: true}
	x.entry.Key = ""
	return &x, nil
}

// shown is an entry in an answer.
type shown struct {
	entry   kv.Entry
	values  bool
	change  string // of a watch
	omitted bool
}

// MarshalCBOR implements actor.Encoder.
func (x *shown) MarshalCBOR(w *abi.Writer) {
	e := &x.entry
	valued := x.values && len(e.Value) > 0 && !x.omitted
	n := 1
	for _, has := range [...]bool{x.change != "", e.Key != "", valued, e.Counter, e.Expires != 0, x.omitted} {
		if has {
			n++
		}
	}
	w.Map(n)
	if x.change != "" {
		w.Text("op")
		w.Text(x.change)
	}
	if e.Key != "" {
		w.Text("key")
		w.Text(e.Key)
	}
	if valued {
		w.Text("value")
		w.ByteString(e.Value)
	}
	if e.Counter {
		w.Text("count")
		w.Int(e.Count)
	}
	w.Text("version")
	w.Uint(e.Version)
	if e.Expires != 0 {
		w.Text("expires")
		w.Int(e.Expires)
	}
	if x.omitted {
		w.Text("omitted")
		w.Bool(true)
	}
}

// Bounds of a page, of the real service.
const (
	usualPage = 100
	pageBytes = 56 << 10
)

func (s *KV) list(space string, a *arguments) (actor.Encoder, *service.Error) {
	if a.limit < 0 || a.limit > kv.MaxPage {
		return nil, wrong(service.BadRequest, "limit is "+strconv.FormatInt(a.limit, 10)+", which is not between 1 and "+strconv.Itoa(kv.MaxPage))
	}
	limit := int(a.limit)
	if limit == 0 {
		limit = usualPage
	}
	found := s.keys(space, a.prefix)
	if a.reverse {
		sort.Sort(sort.Reverse(sort.StringSlice(found)))
	}
	if a.cursor != nil {
		last := string(a.cursor)
		if len(last) < 2 || last[0] != 1 || !strings.HasPrefix(last[1:], a.prefix) {
			return nil, wrong(service.BadRequest, "cursor is not one that a list has returned")
		}
		last = last[1:]
		i := sort.Search(len(found), func(i int) bool {
			if a.reverse {
				return found[i] < last
			}
			return found[i] > last
		})
		found = found[i:]
	}
	n, size := 0, 0
	for n < min(len(found), limit) {
		e := (*s.spaces[space])[found[n]]
		size += len(e.Key) + 48
		if a.values {
			size += len(e.Value)
		}
		if n > 0 && size > pageBytes {
			break
		}
		n++
	}
	more := n < len(found)
	return actor.Func(func(w *abi.Writer) {
		if more {
			w.Map(2)
		} else {
			w.Map(1)
		}
		w.Text("entries")
		w.Array(n)
		for _, key := range found[:n] {
			x := shown{entry: *(*s.spaces[space])[key], values: a.values}
			x.MarshalCBOR(w)
		}
		if more {
			w.Text("cursor")
			w.ByteString(append([]byte{1}, found[n-1]...))
		}
	}), nil
}

// result is what an operation has done.
type result struct {
	kind    string
	version uint64
	count   int64
	existed bool
}

// MarshalCBOR implements actor.Encoder.
func (x *result) MarshalCBOR(w *abi.Writer) {
	n := 0
	for _, has := range [...]bool{x.kind == "add", x.version != 0, x.kind == "delete"} {
		if has {
			n++
		}
	}
	w.Map(n)
	if x.kind == "add" {
		w.Text("count")
		w.Int(x.count)
	}
	if x.version != 0 { // 0: a later operation of the batch has undone it
		w.Text("version")
		w.Uint(x.version)
	}
	if x.kind == "delete" {
		w.Text("existed")
		w.Bool(x.existed)
	}
}

// write carries out operations in their order, all or none.
func (s *KV) write(name string, ops []op) ([]result, *service.Error) {
	space := *s.spaces[name]
	touched := map[string]*kv.Entry{} // nil: deleted
	var order []string
	results := make([]result, len(ops))
	for i := range ops {
		o := &ops[i]
		e, seen := touched[o.key]
		if !seen {
			e = space[o.key]
			order = append(order, o.key)
		}
		changed := seen && e != nil && e.Version == 0 // in this batch
		if o.is != nil {
			switch {
			case *o.is == 0 && e != nil:
				return nil, wrong(service.Exists, strconv.Quote(o.key)+" exists")
			case *o.is != 0 && (e == nil || changed || e.Version != *o.is):
				return nil, wrong(service.Conflict, strconv.Quote(o.key)+" does not have version "+strconv.FormatUint(*o.is, 10))
			}
		}
		results[i].kind = o.kind
		switch o.kind {
		case "put":
			e = &kv.Entry{Key: o.key, Value: bytes.Clone(o.value), Expires: s.expires(o.ttl)}
			if e.Value == nil {
				e.Value = []byte{}
			}
		case "delete":
			results[i].existed = e != nil
			e = nil
		case "add":
			is := kv.Entry{Key: o.key, Counter: true}
			switch {
			case e == nil:
				is.Expires = s.expires(o.ttl)
			case !e.Counter:
				return nil, wrong(service.Conflict, strconv.Quote(o.key)+" holds bytes, no counter")
			default:
				is.Count, is.Expires = e.Count, e.Expires
			}
			sum := is.Count + o.delta
			if (sum > is.Count) != (o.delta > 0) && o.delta != 0 {
				return nil, wrong(service.Conflict, strconv.Quote(o.key)+" holds "+strconv.FormatInt(is.Count, 10)+", and the sum does not fit into 64 bits")
			}
			is.Count, results[i].count = sum, sum
			e = &is
		}
		touched[o.key] = e
	}
	changes := false
	for _, key := range order {
		changes = changes || space[key] != touched[key]
	}
	if !changes {
		return results, nil
	}
	s.version++
	for _, key := range order {
		was, e := space[key], touched[key]
		switch {
		case e == was:
			continue
		case e == nil:
			delete(space, key)
			s.changed(name, &shown{change: "delete", entry: kv.Entry{Key: key, Version: s.version}})
		default:
			e.Version = s.version
			space[key] = e
			s.changed(name, &shown{change: "put", entry: *e, values: true})
			s.expireAt(e.Expires)
		}
	}
	s.news()
	for i := range results {
		if kind := results[i].kind; kind == "put" || kind == "add" {
			results[i].version = s.version
		}
	}
	return results, nil
}

func (s *KV) expires(ttl time.Duration) int64 {
	if ttl <= 0 {
		return 0
	}
	return s.w.Now().Add(ttl).UnixNano()
}

// expireAt has entries looked at when one ends, so that watchers hear of it.
func (s *KV) expireAt(ns int64) {
	if ns == 0 {
		return
	}
	if at := time.Unix(0, ns); s.due.IsZero() || at.Before(s.due) {
		s.due = at
		s.w.After(at.Sub(s.w.Now()), s.expire)
	}
}

// expire removes what has ended.
func (s *KV) expire() {
	now := s.w.Now()
	if s.due.IsZero() || now.Before(s.due) {
		return
	}
	s.due = time.Time{}
	next := int64(0)
	for _, name := range s.names {
		for _, key := range s.keys(name, "") {
			e := (*s.spaces[name])[key]
			switch {
			case e.Expires == 0:
			case e.Expires <= now.UnixNano():
				delete(*s.spaces[name], key)
				s.version++
				s.changed(name, &shown{change: "expire", entry: kv.Entry{Key: key, Version: s.version}})
			case next == 0 || e.Expires < next:
				next = e.Expires
			}
		}
	}
	s.expireAt(next)
	s.news()
}
