// Package kv stores what must outlive an actor: bytes and counters under keys, in a namespace that
// the actor's grant names.
//
//	kv.Get(ctx, "user/7", func(ctx *actor.Context, e kv.Entry, err error) error {
//		if errors.Is(err, service.ErrNotFound) { ... }
//		...
//		kv.Put(ctx, "user/7", value, kv.Write{IfVersion: e.Version}, nil)
//		return nil
//	})
//
// Requests of one actor are carried out in the order in which it has made them. They leave when the turn has
// ended: a turn that fails has written nothing. docs/services/kv.md states the guarantees.
package kv

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Bounds of the service.
const (
	MaxKey   = 1024     // bytes of a key, which is UTF-8
	MaxValue = 60 << 10 // bytes of a value
	MaxOps   = 256      // operations of a batch
	MaxPage  = 1000     // entries of a page
)

// DefaultTimeout is how long a request waits for its answer if a [Store] says nothing.
const DefaultTimeout = 10 * time.Second

// Store is a namespace. The zero value is the only one that the actor was granted.
type Store struct {
	Namespace  string        // "" if the grant has only one
	Timeout    time.Duration // 0: DefaultTimeout
	Durability Durability    // "": the grant's
}

// In is the namespace of a name.
func In(namespace string) Store { return Store{Namespace: namespace} }

// Durability is what a write survives once it is answered.
type Durability string

// The durabilities.
const (
	Disk   Durability = "disk"   // a power failure
	OS     Durability = "os"     // the end of the process
	Memory Durability = "memory" // nothing: it reaches the disk a second later
)

// Entry is what is stored under a key.
type Entry struct {
	Key     string
	Value   []byte // valid until the function that got it returns
	Counter bool   // it holds Count instead
	Count   int64
	Version uint64 // grows with every write of a store, and never comes again
	Expires int64  // ns since 1970, 0: it stays
}

// Decode reads a value that [Encode] has made.
func (e *Entry) Decode(d actor.Decoder) error {
	r := abi.NewReader(e.Value)
	d.UnmarshalCBOR(r)
	return r.Done()
}

// Encode makes a value of anything that can be sent.
func Encode(v actor.Encoder) []byte {
	w := abi.NewWriter(nil)
	v.MarshalCBOR(w)
	return w.Bytes()
}

// Write says how to write, and under which condition.
type Write struct {
	TTL       time.Duration // after which it expires; 0: never. Add: only of a new counter
	IfVersion uint64        // only if the entry has this version, else ErrConflict; 0: any
	IfAbsent  bool          // only if there is none, else ErrExists
}

// Get reads an entry; err is ErrNotFound if there is none.
func Get(ctx *actor.Context, key string, then func(ctx *actor.Context, e Entry, err error) error) {
	Store{}.Get(ctx, key, then)
}

// Put writes a value and passes its version to then, which may be nil.
func Put(ctx *actor.Context, key string, value []byte, o Write, then func(ctx *actor.Context, version uint64, err error) error) {
	Store{}.Put(ctx, key, value, o, then)
}

// Delete removes an entry; existed is false if there was none. then may be nil.
func Delete(ctx *actor.Context, key string, o Write, then func(ctx *actor.Context, existed bool, err error) error) {
	Store{}.Delete(ctx, key, o, then)
}

// Add adds to a counter, which begins with 0. then may be nil. After a timeout do not repeat it
// unless it may count twice.
func Add(ctx *actor.Context, key string, delta int64, o Write, then func(ctx *actor.Context, count int64, err error) error) {
	Store{}.Add(ctx, key, delta, o, then)
}

// Get is [Get] in s.
func (s Store) Get(ctx *actor.Context, key string, then func(ctx *actor.Context, e Entry, err error) error) {
	s.ask(ctx, "get", s.args(1, func(w *abi.Writer) { text(w, "key", key) }), func(ctx *actor.Context, m *actor.Message, err error) error {
		var e Entry
		if err == nil {
			r := m.Reader()
			e.read(r)
			err = wrong(r)
		}
		e.Key = key
		return then(ctx, e, err)
	})
}

// Put is [Put] in s.
func (s Store) Put(ctx *actor.Context, key string, value []byte, o Write, then func(ctx *actor.Context, version uint64, err error) error) {
	args := s.write(o, 2, func(w *abi.Writer) {
		text(w, "key", key)
		w.Text("value")
		w.ByteString(value)
	})
	if then == nil {
		service.Tell(ctx, Name, "put", args)
		return
	}
	s.ask(ctx, "put", args, func(ctx *actor.Context, m *actor.Message, err error) error {
		res, err := result(m, err)
		return then(ctx, res.Version, err)
	})
}

// Delete is [Delete] in s.
func (s Store) Delete(ctx *actor.Context, key string, o Write, then func(ctx *actor.Context, existed bool, err error) error) {
	args := s.write(Write{IfVersion: o.IfVersion, IfAbsent: o.IfAbsent}, 1, func(w *abi.Writer) { text(w, "key", key) })
	if then == nil {
		service.Tell(ctx, Name, "delete", args)
		return
	}
	s.ask(ctx, "delete", args, func(ctx *actor.Context, m *actor.Message, err error) error {
		res, err := result(m, err)
		return then(ctx, res.Existed, err)
	})
}

// Add is [Add] in s.
func (s Store) Add(ctx *actor.Context, key string, delta int64, o Write, then func(ctx *actor.Context, count int64, err error) error) {
	args := s.write(o, 2, func(w *abi.Writer) {
		text(w, "key", key)
		w.Text("delta")
		w.Int(delta)
	})
	if then == nil {
		service.Tell(ctx, Name, "add", args)
		return
	}
	s.ask(ctx, "add", args, func(ctx *actor.Context, m *actor.Message, err error) error {
		res, err := result(m, err)
		return then(ctx, res.Count, err)
	})
}

// Name is the name of the service.
const Name = "kv"

func (s Store) ask(ctx *actor.Context, op string, args actor.Encoder, then service.Then) {
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	service.Ask(ctx, Name, op, args, timeout, then)
}

// args are n arguments, and the namespace.
func (s Store) args(n int, more func(w *abi.Writer)) actor.Encoder {
	return actor.Func(func(w *abi.Writer) {
		if s.Namespace != "" {
			n++
		}
		w.Map(n)
		if s.Namespace != "" {
			text(w, "namespace", s.Namespace)
		}
		more(w)
	})
}

// write are the arguments of a request that writes.
func (s Store) write(o Write, n int, more func(w *abi.Writer)) actor.Encoder {
	if s.Durability != "" {
		n++
	}
	return s.args(n+o.keys(), func(w *abi.Writer) {
		more(w)
		o.write(w)
		if s.Durability != "" {
			text(w, "durability", string(s.Durability))
		}
	})
}

func (o Write) keys() int {
	n := 0
	if o.TTL != 0 {
		n++
	}
	if o.IfAbsent || o.IfVersion != 0 {
		n++
	}
	return n
}

func (o Write) write(w *abi.Writer) {
	if o.TTL != 0 {
		w.Text("ttl")
		w.Int(int64(o.TTL))
	}
	switch {
	case o.IfAbsent:
		w.Text("if_version")
		w.Uint(0)
	case o.IfVersion != 0:
		w.Text("if_version")
		w.Uint(o.IfVersion)
	}
}

func text(w *abi.Writer, key, value string) {
	w.Text(key)
	w.Text(value)
}

// read reads an entry, skipping keys that it does not know.
func (e *Entry) read(r *abi.Reader) {
	for range r.Map() {
		if !r.OK() {
			return
		}
		e.field(r, string(r.TextBytes()))
	}
}

func (e *Entry) field(r *abi.Reader, key string) {
	switch key {
	case "key":
		e.Key = r.Text()
	case "value":
		e.Value = r.ByteString()
	case "count":
		e.Counter, e.Count = true, r.Int()
	case "version":
		e.Version = r.Uint()
	case "expires":
		e.Expires = r.Int()
	default:
		r.Skip()
	}
}

// Result is what an operation has done.
type Result struct {
	Version uint64 // put, add: of the entry
	Count   int64  // add: the new value
	Existed bool   // delete: there was one
}

func (x *Result) read(r *abi.Reader) {
	for range r.Map() {
		if !r.OK() {
			return
		}
		switch string(r.TextBytes()) {
		case "version":
			x.Version = r.Uint()
		case "count":
			x.Count = r.Int()
		case "existed":
			x.Existed = r.Bool()
		default:
			r.Skip()
		}
	}
}

func result(m *actor.Message, err error) (res Result, _ error) {
	if err != nil {
		return res, err
	}
	r := m.Reader()
	res.read(r)
	return res, wrong(r)
}

// wrong is an error for an answer that is not what it should be.
func wrong(r *abi.Reader) error {
	if err := r.Done(); err != nil {
		return &service.Error{Code: service.Internal, Text: "the answer of kv cannot be read: " + err.Error()}
	}
	return nil
}
