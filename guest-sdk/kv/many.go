package kv

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Query is what to list.
type Query struct {
	Prefix  string
	Cursor  []byte // of the page before; nil: from the beginning
	Limit   int    // entries, 1 to MaxPage; 0: 100. A page may have fewer without being the last
	Values  bool   // else the entries have no Value
	Reverse bool   // from the last key to the first
}

// Page is a part of a list.
type Page struct {
	Entries []Entry // in the order of the bytes of their keys; values are valid as [Entry] says
	Cursor  []byte  // for the next page; nil after the last. It may be kept
}

// List reads a page of the entries whose keys begin with a prefix.
func List(ctx *actor.Context, q Query, then func(ctx *actor.Context, p Page, err error) error) {
	Store{}.List(ctx, q, then)
}

// List is [List] in s.
func (s Store) List(ctx *actor.Context, q Query, then func(ctx *actor.Context, p Page, err error) error) {
	n := 0
	for _, given := range [...]bool{q.Prefix != "", q.Cursor != nil, q.Limit != 0, q.Values, q.Reverse} {
		if given {
			n++
		}
	}
	args := s.args(n, func(w *abi.Writer) {
		if q.Prefix != "" {
			text(w, "prefix", q.Prefix)
		}
		if q.Cursor != nil {
			w.Text("cursor")
			w.ByteString(q.Cursor)
		}
		if q.Limit != 0 {
			w.Text("limit")
			w.Int(int64(q.Limit))
		}
		flag(w, "values", q.Values)
		flag(w, "reverse", q.Reverse)
	})
	s.ask(ctx, "list", args, func(ctx *actor.Context, m *actor.Message, err error) error {
		var p Page
		if err == nil {
			r := m.Reader()
			p.read(r)
			err = wrong(r)
		}
		return then(ctx, p, err)
	})
}

func flag(w *abi.Writer, key string, set bool) {
	if set {
		w.Text(key)
		w.Bool(true)
	}
}

func (p *Page) read(r *abi.Reader) {
	for range r.Map() {
		if !r.OK() {
			return
		}
		switch string(r.TextBytes()) {
		case "entries":
			for range r.Array() {
				if !r.OK() {
					return
				}
				var e Entry
				e.read(r)
				p.Entries = append(p.Entries, e)
			}
		case "cursor":
			p.Cursor = append([]byte{}, r.ByteString()...)
		default:
			r.Skip()
		}
	}
}

// Each calls f with every entry below a prefix, page by page, and then done, without an error or with the
// first one, also one of f. Concurrent writes may be seen or not.
func (s Store) Each(ctx *actor.Context, q Query, f func(ctx *actor.Context, e Entry) error, done func(ctx *actor.Context, err error) error) {
	s.List(ctx, q, func(ctx *actor.Context, p Page, err error) error {
		if err != nil {
			return done(ctx, err)
		}
		for _, e := range p.Entries {
			if err := f(ctx, e); err != nil {
				return done(ctx, err)
			}
		}
		if p.Cursor == nil {
			return done(ctx, nil)
		}
		q.Cursor = p.Cursor
		s.Each(ctx, q, f, done)
		return nil
	})
}

// Op is an operation of a batch, made by PutOp and its like.
type Op struct {
	op, key string
	value   []byte
	delta   int64
	o       Write
}

// PutOp writes a value.
func PutOp(key string, value []byte, o Write) Op { return Op{op: "put", key: key, value: value, o: o} }

// DeleteOp removes an entry, if there is one. Its TTL is ignored.
func DeleteOp(key string, o Write) Op {
	o.TTL = 0
	return Op{op: "delete", key: key, o: o}
}

// AddOp adds to a counter.
func AddOp(key string, delta int64, o Write) Op { return Op{op: "add", key: key, delta: delta, o: o} }

// CheckOp only fails the batch if its condition does not hold; it needs a condition.
func CheckOp(key string, o Write) Op {
	o.TTL = 0
	return Op{op: "check", key: key, o: o}
}

// Batch carries out operations in their order, all or none: each sees what those before it have done.
// then may be nil. The results are in the order of the operations.
func Batch(ctx *actor.Context, ops []Op, then func(ctx *actor.Context, results []Result, err error) error) {
	Store{}.Batch(ctx, ops, then)
}

// Batch is [Batch] in s.
func (s Store) Batch(ctx *actor.Context, ops []Op, then func(ctx *actor.Context, results []Result, err error) error) {
	args := s.write(Write{}, 1, func(w *abi.Writer) {
		w.Text("ops")
		w.Array(len(ops))
		for i := range ops {
			ops[i].write(w)
		}
	})
	if then == nil {
		then = func(*actor.Context, []Result, error) error { return nil }
	}
	s.ask(ctx, "batch", args, func(ctx *actor.Context, m *actor.Message, err error) error {
		var list []Result
		if err == nil {
			r := m.Reader()
			list = readResults(r)
			err = wrong(r)
		}
		return then(ctx, list, err)
	})
}

func (op *Op) write(w *abi.Writer) {
	n := 2 + op.o.keys()
	if op.op == "put" || op.op == "add" {
		n++
	}
	w.Map(n)
	text(w, "op", op.op)
	text(w, "key", op.key)
	switch op.op {
	case "put":
		w.Text("value")
		w.ByteString(op.value)
	case "add":
		w.Text("delta")
		w.Int(op.delta)
	}
	op.o.write(w)
}

func readResults(r *abi.Reader) (list []Result) {
	for range r.Map() {
		if !r.OK() {
			return nil
		}
		if string(r.TextBytes()) != "results" {
			r.Skip()
			continue
		}
		for range r.Array() {
			if !r.OK() {
				return nil
			}
			var x Result
			x.read(r)
			list = append(list, x)
		}
	}
	return list
}
