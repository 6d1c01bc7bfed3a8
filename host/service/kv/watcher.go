package kv

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/supervision"
)

// watcher is the actor that reports changes to another actor. It uses asks: the next message is
// sent when the last one was answered, so the receiver has at most one of them in its mailbox.
type watcher struct {
	p     *provider
	key   watchKey
	w     *watch
	ref   atomic.Pointer[host.Ref]
	poked atomic.Bool // a wake-up message is on its way to this actor
	free  func()      // gives the grant's bytes back

	// Of the actor.
	seq     uint64
	waiting bool // for an answer, or for the pause after none came
}

// watchKey tells watches apart: a second one of the same actor replaces the first.
type watchKey struct {
	watcher           host.Ref
	namespace, prefix string
}

// watchers are those of a service.
type watchers struct {
	mu sync.Mutex
	of map[watchKey]*watcher
}

const (
	// WatchGrace is how long a watcher may take to answer. Then the changes of that message count
	// as missed.
	WatchGrace = 30 * time.Second
	// watchPause is how long to wait before sending again to an actor that does not accept
	// messages.
	watchPause = time.Second
	// toldAtOnce is how many changes a message has at most, and toldBytes how large it is.
	toldAtOnce = 64
	toldBytes  = 48 << 10
)

// watch begins one.
func (p *provider) watch(ctx context.Context, r *request, t *ticket) (any, error) {
	var a watchArgs
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	s, err := space(r.Grant, a.Namespace)
	if err == nil {
		err = asError(checkPrefix(a.Prefix))
	}
	if err == nil && !r.Wanted() {
		err = service.Errorf(service.BadRequest, "watch must be an ask: changes are sent to the asker")
	}
	if err == nil {
		err = t.turn(ctx)
	}
	if err != nil {
		return nil, err
	}
	free, err := r.Hold(WatchBytes)
	if err != nil {
		return nil, err
	}
	w := &watcher{p: p, key: watchKey{r.Sender, s.Namespace, a.Prefix}, free: free}
	var since uint64
	if w.w, since, err = p.store.told().watch(s.Namespace, a.Prefix, a.Values, w.poke); err != nil {
		free()
		return nil, err
	}
	before := p.watchers.put(w) // requests of one actor are carried out one after the other
	ref, err := r.Spawn(host.Native(func() host.Actor { return w }).WithLifetime(supervision.Temporary))
	if err != nil {
		w.close()
		if before != nil {
			p.watchers.put(before)
		}
		return nil, err
	}
	w.ref.Store(&ref)
	if before != nil {
		p.env.System.Stop(*before.ref.Load())
	}
	w.poke()
	return struct {
		Watch   uint64 `cbor:"watch"`
		Version uint64 `cbor:"version"`
	}{uint64(ref.UID()), since}, nil
}

// poke wakes the actor up; any goroutine may.
func (w *watcher) poke() {
	ref := w.ref.Load()
	if ref != nil && w.poked.CompareAndSwap(false, true) {
		_ = w.p.env.System.Tell(*ref, nil) // an error says that it has ended
	}
}

// Started implements host.Starter.
func (w *watcher) Started(ctx *host.Context) error { return ctx.Watch(w.key.watcher) }

// Receive implements host.Actor.
func (w *watcher) Receive(ctx *host.Context, m host.Message) error {
	switch m.Kind {
	case abi.KindMessage:
		w.poked.Store(false)
		if isClose(m.Payload) {
			if m.Correlation != 0 {
				_ = ctx.Reply(nil)
			}
			ctx.Stop(ctx.Self())
			return nil
		}
	case abi.KindTerminated:
		ctx.Stop(ctx.Self())
		return nil
	case abi.KindReply:
		w.waiting = false
	case abi.KindReplyError, abi.KindAskTimeout:
		w.w.miss()
		return ctx.After(1, watchPause, 0, nil)
	case abi.KindTimer:
		w.waiting = false
	default:
		return host.ErrUnhandled
	}
	return w.tell(ctx)
}

// isClose reports whether a message is ["close", null].
func isClose(payload []byte) bool {
	r := abi.NewReader(payload)
	if r.Peek() != abi.TypeArray || r.Array() != 2 {
		return false
	}
	op := r.Text()
	r.Skip()
	return r.Done() == nil && op == "close"
}

// told is a message to a watcher.
type told struct {
	_        struct{} `cbor:",toarray"`
	What     string
	Contents toldOf
}

type toldOf struct {
	Watch     uint64       `cbor:"watch"`
	Namespace string       `cbor:"namespace"`
	Prefix    string       `cbor:"prefix"`
	Seq       uint64       `cbor:"seq"`
	Gap       bool         `cbor:"gap,omitempty"`
	Changes   []toldChange `cbor:"changes"`
}

type toldChange struct {
	Op string `cbor:"op"` // put, delete or expire
	wireEntry
	Omitted bool `cbor:"omitted,omitempty"` // the value is too large for it
}

// tell sends queued changes, unless the last message was not answered yet.
func (w *watcher) tell(ctx *host.Context) error {
	if w.waiting {
		return nil
	}
	list, gap, ended := w.w.take(toldAtOnce, toldBytes)
	if ended {
		ctx.Stop(ctx.Self())
		return nil
	}
	if len(list) == 0 && !gap {
		return nil
	}
	w.seq++
	msg := told{What: "kv_changes", Contents: toldOf{Watch: uint64(ctx.Self().UID()), Namespace: w.key.namespace, Prefix: w.key.prefix, Seq: w.seq, Gap: gap, Changes: make([]toldChange, len(list))}}
	for i := range list {
		msg.Contents.Changes[i] = list[i].wire()
	}
	w.waiting = true
	return ctx.Ask(w.key.watcher, msg, 1, WatchGrace)
}

func (c *Change) wire() toldChange {
	out := toldChange{Op: "put", wireEntry: wireEntry{Key: c.Key, Version: c.Version}, Omitted: c.Omitted}
	switch {
	case c.Kind == Deleted && c.Expired:
		out.Op = "expire"
	case c.Kind == Deleted:
		out.Op = "delete"
	case c.Entry != nil:
		out.wireEntry = c.Entry.wire(true)
	}
	return out
}

// Stopped implements host.Stopper.
func (w *watcher) Stopped(*host.Context) { w.close() }

func (w *watcher) close() {
	w.w.close()
	w.p.watchers.remove(w)
	w.free()
}

// put enters a watch, and returns the one that it replaces.
func (ws *watchers) put(w *watcher) (before *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	before = ws.of[w.key]
	ws.of[w.key] = w
	return before
}

func (ws *watchers) remove(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.of[w.key] == w {
		delete(ws.of, w.key)
	}
}
