// Package blob stores large objects with the host, in the namespace that the actor was granted
// under capabilities.blob in the manifest.
//
//	blob.Put(ctx, "report.txt", data, blob.Options{}, time.Second, func(ctx *actor.Context, o blob.Object, err error) error { ... })
//
// An object larger than a message is written with [Create] and guest-sdk/stream, and comes as
// a stream from [Get]. It is there as a whole, and durable, when [Finish] or Put has called then
// without an error; until then, and after an error, the previous object stays. Errors are *service.Error: ErrNotFound, ErrExists, ErrConflict,
// ErrQuota, ErrReadOnly, ...
package blob

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
)

// Object is what is known of an object.
type Object struct {
	Name     string // of List alone
	Size     int64  // bytes
	SHA256   [32]byte
	Type     string // as stated by its writer
	Modified time.Time
}

// Options say how an object is stored.
type Options struct {
	Type   string    // such as image/png
	Absent bool      // ErrExists if there is one already
	Match  *[32]byte // ErrConflict unless what is there has this hash
	SHA256 *[32]byte // ErrConflict unless what is sent has this hash
}

// Put stores an object whose bytes fit into a message.
func Put(ctx *actor.Context, name string, data []byte, opt Options, timeout time.Duration, then func(ctx *actor.Context, o Object, err error) error) {
	if data == nil {
		data = []byte{}
	}
	service.Ask(ctx, "blob", "put", &put{name, data, opt}, timeout, object(then))
}

// Create begins an object that comes in parts: to is the stream to write to, with stream.Write or
// stream.WriteAll, then Finish; or stream.Abort.
func Create(ctx *actor.Context, name string, opt Options, timeout time.Duration, then func(ctx *actor.Context, to actor.Ref, err error) error) {
	service.Ask(ctx, "blob", "put", &put{name, nil, opt}, timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, 0, err)
		}
		var a answer
		if !a.read(m.Reader()) || a.sink == 0 {
			return then(ctx, 0, errAnswer)
		}
		return then(ctx, a.sink, nil)
	})
}

// Finish publishes what was written to a stream of [Create].
func Finish(ctx *actor.Context, to actor.Ref, timeout time.Duration, then func(ctx *actor.Context, o Object, err error) error) {
	stream.End(ctx, to, timeout, object(then))
}

// Range is which part of an object is wanted, and how. The zero Range is all of it.
type Range struct {
	Offset int64 // bytes; beyond the end nothing is left
	Length int64 // bytes; 0: to the end
	Verify bool  // the hash of the whole object is compared before the first byte comes
}

// Content is the result of Get: Data, or From if there is more than fits into an answer.
type Content struct {
	Object
	Data []byte    // valid until then returns
	From actor.Ref // to be read with package stream; 0: Data is all
}

// Get gets an object, or a range of it.
func Get(ctx *actor.Context, name string, part Range, timeout time.Duration, then func(ctx *actor.Context, c Content, err error) error) {
	service.Ask(ctx, "blob", "get", &get{name, part}, timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, Content{}, err)
		}
		var a answer
		if !a.read(m.Reader()) {
			return then(ctx, Content{}, errAnswer)
		}
		return then(ctx, Content{a.Object, a.data, a.source}, nil)
	})
}

// Stat tells what is known of an object.
func Stat(ctx *actor.Context, name string, timeout time.Duration, then func(ctx *actor.Context, o Object, err error) error) {
	service.Ask(ctx, "blob", "stat", &texts{"name", name, "", ""}, timeout, object(then))
}

// Delete deletes an object; existed reports whether there was one. With match it must have that
// hash, or the error is ErrConflict.
func Delete(ctx *actor.Context, name string, match *[32]byte, timeout time.Duration, then func(ctx *actor.Context, existed bool, err error) error) {
	service.Ask(ctx, "blob", "delete", &put{name, nil, Options{Match: match}}, timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, false, err)
		}
		var a answer
		if !a.read(m.Reader()) {
			return then(ctx, false, errAnswer)
		}
		return then(ctx, a.existed, nil)
	})
}

// List lists objects whose names begin with prefix and come after the name after ("": from the start),
// in the order of their bytes. next is the after of the next list, "" at the end.
func List(ctx *actor.Context, prefix, after string, timeout time.Duration, then func(ctx *actor.Context, objects []Object, next string, err error) error) {
	service.Ask(ctx, "blob", "list", &texts{"after", after, "prefix", prefix}, timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, "", err)
		}
		var a answer
		if !a.read(m.Reader()) {
			return then(ctx, nil, "", errAnswer)
		}
		return then(ctx, a.objects, a.next, nil)
	})
}

var errAnswer = &service.Error{Code: service.Internal, Text: "the answer cannot be read"}

func object(then func(ctx *actor.Context, o Object, err error) error) service.Then {
	return func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, Object{}, err)
		}
		var a answer
		if !a.read(m.Reader()) {
			return then(ctx, Object{}, errAnswer)
		}
		return then(ctx, a.Object, nil)
	}
}

// answer is any answer of the service's. Keys that it does not know are skipped.
type answer struct {
	Object
	data         []byte
	source, sink actor.Ref
	existed      bool
	objects      []Object
	next         string
}

func (a *answer) read(r *abi.Reader) bool {
	for range r.Map() {
		key := r.TextBytes()
		switch string(key) {
		case "data":
			a.data = r.ByteString()
		case "source":
			a.source = r.Ref()
		case "sink":
			a.sink = r.Ref()
		case "existed":
			a.existed = r.Bool()
		case "next":
			a.next = r.Text()
		case "objects":
			for range r.Array() {
				var o answer
				for range r.Map() {
					o.Object.field(r, string(r.TextBytes()))
				}
				if !r.OK() {
					return false
				}
				a.objects = append(a.objects, o.Object)
			}
		default:
			a.Object.field(r, string(key))
		}
	}
	return r.Done() == nil
}

func (o *Object) field(r *abi.Reader, key string) {
	switch key {
	case "name":
		o.Name = r.Text()
	case "size":
		o.Size = r.Int()
	case "sha256":
		copy(o.SHA256[:], r.ByteString())
	case "type":
		o.Type = r.Text()
	case "modified":
		o.Modified = time.Unix(0, r.Int()).UTC()
	default:
		r.Skip()
	}
}

// put is the arguments of put and delete.
type put struct {
	name string
	data []byte
	opt  Options
}

// MarshalCBOR implements actor.Encoder.
func (p *put) MarshalCBOR(w *abi.Writer) {
	n := 1
	for _, has := range [...]bool{p.data != nil, p.opt.Absent, p.opt.Match != nil, p.opt.SHA256 != nil, p.opt.Type != ""} {
		if has {
			n++
		}
	}
	w.Map(n)
	if p.data != nil {
		w.Text("data")
		w.ByteString(p.data)
	}
	if p.opt.Absent {
		w.Text("if")
		w.Text("absent")
	}
	if p.opt.Match != nil {
		w.Text("match")
		w.ByteString(p.opt.Match[:])
	}
	w.Text("name")
	w.Text(p.name)
	if p.opt.SHA256 != nil {
		w.Text("sha256")
		w.ByteString(p.opt.SHA256[:])
	}
	if p.opt.Type != "" {
		w.Text("type")
		w.Text(p.opt.Type)
	}
}

type get struct {
	name string
	part Range
}

// MarshalCBOR implements actor.Encoder.
func (g *get) MarshalCBOR(w *abi.Writer) {
	n := 1
	for _, has := range [...]bool{g.part.Length != 0, g.part.Offset != 0, g.part.Verify} {
		if has {
			n++
		}
	}
	w.Map(n)
	if g.part.Length != 0 {
		w.Text("length")
		w.Int(g.part.Length)
	}
	w.Text("name")
	w.Text(g.name)
	if g.part.Offset != 0 {
		w.Text("offset")
		w.Int(g.part.Offset)
	}
	if g.part.Verify {
		w.Text("verify")
		w.Bool(true)
	}
}

// texts is a map of one or two texts, in the order of their keys.
type texts struct{ k1, v1, k2, v2 string }

// MarshalCBOR implements actor.Encoder.
func (t *texts) MarshalCBOR(w *abi.Writer) {
	if t.k2 == "" {
		w.Map(1)
	} else {
		w.Map(2)
	}
	w.Text(t.k1)
	w.Text(t.v1)
	if t.k2 != "" {
		w.Text(t.k2)
		w.Text(t.v2)
	}
}
