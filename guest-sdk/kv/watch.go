package kv

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Watch notifies this actor of changes below a prefix, until it stops or calls [Unwatch]. The notifications are messages,
// which [Changes] reads. They report changes after version. A second watch of the same prefix replaces the first, so an
// actor watches again in each incarnation. values says whether messages have the values, too.
func Watch(ctx *actor.Context, prefix string, values bool, then func(ctx *actor.Context, watch actor.Ref, version uint64, err error) error) {
	Store{}.Watch(ctx, prefix, values, then)
}

// Watch is [Watch] in s.
func (s Store) Watch(ctx *actor.Context, prefix string, values bool, then func(ctx *actor.Context, watch actor.Ref, version uint64, err error) error) {
	n := 1
	if values {
		n = 2
	}
	args := s.args(n, func(w *abi.Writer) {
		text(w, "prefix", prefix)
		flag(w, "values", values)
	})
	s.ask(ctx, "watch", args, func(ctx *actor.Context, m *actor.Message, err error) error {
		var ref actor.Ref
		var version uint64
		if err == nil {
			r := m.Reader()
			for range r.Map() {
				if !r.OK() {
					break
				}
				switch string(r.TextBytes()) {
				case "watch":
					ref = r.Ref()
				case "version":
					version = r.Uint()
				default:
					r.Skip()
				}
			}
			err = wrong(r)
		}
		return then(ctx, ref, version, err)
	})
}

// Unwatch ends a watch.
func Unwatch(ctx *actor.Context, watch actor.Ref) { service.TellRef(ctx, watch, "close", nil) }

// Change is the change of an entry.
type Change struct {
	Op      string // put, delete, or expire
	Entry          // with a value or a count after a put, if the watch wants values
	Omitted bool   // the value is too large to be told
}

// Changed is one message of a watch.
type Changed struct {
	Watch     actor.Ref
	Namespace string
	Prefix    string
	Seq       uint64 // 1, 2, 3, ...: of the messages of this watch
	Gap       bool   // earlier changes were missed: list the prefix again if you need them
	Changes   []Change
}

const changesName = "kv_changes"

// Changes reads a message of a watch, and tells the service that there may be another; ok is false
// if msg is none. Values are valid until Receive returns.
func Changes(ctx *actor.Context, m *actor.Message) (c Changed, ok bool) {
	if m.Kind() != actor.KindMessage {
		return c, false
	}
	r := m.Reader()
	if r.Peek() != abi.TypeArray || r.Array() != 2 || r.Peek() != abi.TypeText || string(r.TextBytes()) != changesName {
		return c, false
	}
	c.read(r)
	if r.Done() != nil || c.Watch != m.Sender() {
		return Changed{}, false // a forgery by somebody else
	}
	_ = ctx.Reply(nil)
	return c, true
}

func (c *Changed) read(r *abi.Reader) {
	for range r.Map() {
		if !r.OK() {
			return
		}
		switch string(r.TextBytes()) {
		case "watch":
			c.Watch = r.Ref()
		case "namespace":
			c.Namespace = r.Text()
		case "prefix":
			c.Prefix = r.Text()
		case "seq":
			c.Seq = r.Uint()
		case "gap":
			c.Gap = r.Bool()
		case "changes":
			for range r.Array() {
				if !r.OK() {
					return
				}
				var x Change
				x.read(r)
				c.Changes = append(c.Changes, x)
			}
		default:
			r.Skip()
		}
	}
}

func (x *Change) read(r *abi.Reader) {
	for range r.Map() {
		if !r.OK() {
			return
		}
		switch key := string(r.TextBytes()); key {
		case "op":
			x.Op = r.Text()
		case "omitted":
			x.Omitted = r.Bool()
		default:
			x.Entry.field(r, key)
		}
	}
}
