//go:build !wasip1

package fake

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// watch tells an actor of changes below a prefix, a message at a time.
type watch struct {
	s                 *KV
	fake              *actortest.Fake
	to                actor.Ref
	namespace, prefix string
	values            bool
	waiting           bool // for the answer to the last message
	ended             bool
	gap               bool
	seq               uint64
	list              []shown
	held              int
}

// size is what a change counts.
func (x *shown) size() int {
	n := 128 + len(x.entry.Key)
	if x.values && !x.omitted {
		n += len(x.entry.Value)
	}
	return n
}

// Bounds of the real service.
const (
	toldAtOnce = 64 // changes of a message
	toldBytes  = 48 << 10
	watchPause = time.Second // before it sends again to an actor that did not take the last message
	toldValue  = 32 << 10    // larger ones are left out

	heldChanges = 1024 // for a slow watcher: what does not fit is a gap
	heldBytes   = 128 << 10
)

func (s *KV) watch(c *actortest.Call, name string, a *arguments) (actor.Encoder, *service.Error) {
	if !c.Wanted {
		return nil, wrong(service.BadRequest, "watch must be an ask: changes are sent to the asker")
	}
	x := &watch{s: s, to: c.Sender, namespace: name, prefix: a.prefix, values: a.values}
	x.fake = s.Open(func(c *actortest.Call) {
		if c.Op == "close" {
			c.Answer(nil)
			x.close()
		}
	})
	kept := s.watches[:0]
	for _, other := range s.watches {
		if other.to == x.to && other.namespace == name && other.prefix == a.prefix {
			other.ended = true
			other.fake.Close()
			continue
		}
		kept = append(kept, other)
	}
	s.watches = append(kept, x)
	since := s.version
	return actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("watch")
		w.Ref(x.fake.Ref())
		w.Text("version")
		w.Uint(since)
	}), nil
}

func (x *watch) close() {
	x.ended = true
	for i, other := range x.s.watches {
		if other == x {
			x.s.watches = append(x.s.watches[:i:i], x.s.watches[i+1:]...)
		}
	}
	x.fake.Close()
}

// changed queues a change for those who watch.
func (s *KV) changed(space string, c *shown) {
	for _, x := range s.watches {
		if x.namespace != space || len(c.entry.Key) < len(x.prefix) || c.entry.Key[:len(x.prefix)] != x.prefix {
			continue
		}
		own := *c
		own.values = c.values && x.values
		own.omitted = own.values && len(own.entry.Value) > toldValue
		if len(x.list) >= heldChanges || x.held+own.size() > heldBytes {
			x.list, x.held, x.gap = nil, 0, true
			continue
		}
		x.held += own.size()
		x.list = append(x.list, own)
	}
}

// news tells those who watch.
func (s *KV) news() {
	for _, x := range append([]*watch(nil), s.watches...) {
		x.tell()
	}
}

// tell sends what has changed, unless the last message was not answered yet.
func (x *watch) tell() {
	if x.waiting || x.ended || len(x.list) == 0 && !x.gap {
		return
	}
	n, size := 0, 0
	for n < min(len(x.list), toldAtOnce) {
		if size += x.list[n].size(); n > 0 && size > toldBytes {
			break
		}
		n++
	}
	now := x.list[:n:n]
	x.list = x.list[n:]
	for i := range now {
		x.held -= now[i].size()
	}
	x.seq++
	gap := x.gap
	x.gap, x.waiting = false, true
	x.fake.Ask(x.to, actor.Func(func(w *abi.Writer) {
		w.Array(2)
		w.Text("kv_changes")
		n := 5
		if gap {
			n++
		}
		w.Map(n)
		w.Text("watch")
		w.Ref(x.fake.Ref())
		w.Text("namespace")
		w.Text(x.namespace)
		w.Text("prefix")
		w.Text(x.prefix)
		w.Text("seq")
		w.Uint(x.seq)
		if gap {
			w.Text("gap")
			w.Bool(true)
		}
		w.Text("changes")
		w.Array(len(now))
		for i := range now {
			now[i].MarshalCBOR(w)
		}
	}), func(answer actortest.Sent) {
		if answer.Kind == actortest.ReplyError {
			x.list, x.held, x.gap = nil, 0, true
			x.s.w.After(watchPause, func() { x.waiting = false; x.tell() })
			return
		}
		x.waiting = false
		x.tell()
	})
}
