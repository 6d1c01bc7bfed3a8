//go:build !wasip1

package actortest

import (
	"encoding/binary"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Fake stands in for a service in a [World], or for an actor that a service has made: a stream, a
// connection, a subscription. Its methods may be called by the test and by handlers.
type Fake struct {
	w       *World
	name    string // of the service
	path    string // below /system
	ref     actor.Ref
	handler func(*Call)
	calls   []*Call
	top     bool // the service itself: requests need a grant
	asks    map[uint64]func(Sent)
	asked   uint64
}

// Serve gives the service to all actors that are spawned from now on, except those that exclude it by [Without].
// Requests are recorded and passed to the handler, which answers with [Call.Answer] or [Call.Fail]: at
// once, later in virtual time (see [World.After]), or never. A nil handler answers nothing; the test may do so, by
// [Fake.Calls]. As in a real host a request is refused, and does not reach the handler, if it was forwarded, comes
// from an actor that has not been granted the service, or is not [op, args].
func (w *World) Serve(name string, handler func(*Call)) *Fake {
	w.t.Helper()
	if !abi.ValidServiceName(name) {
		w.t.Fatalf("actortest: a service cannot be called %q", name)
	}
	for _, s := range w.config.services {
		if s.Name == name {
			w.t.Fatalf("actortest: there is a service %s already", name)
		}
	}
	f := w.fake(name, name, handler)
	f.top = true
	Service(name, f.ref)(&w.config)
	return f
}

// Open makes an actor of the service's, whose ref is meant for an answer. Every actor with the ref may ask it. If a request
// does not have the form [op, args], its Call has Op "" and the whole payload as Args.
func (f *Fake) Open(handler func(*Call)) *Fake {
	f.w.fakesMade++
	return f.w.fake(f.name, f.name+"/$"+decimal(f.w.fakesMade), handler)
}

func (w *World) fake(name, path string, handler func(*Call)) *Fake {
	sum := hash("/system/" + path)
	f := &Fake{w: w, name: name, path: path, ref: actor.Ref(binary.LittleEndian.Uint64(sum[:])>>10 | 1<<53), handler: handler, asks: map[uint64]func(Sent){}}
	w.fakes[f.ref] = f
	return f
}

// Ref is the ref to which requests are sent.
func (f *Fake) Ref() actor.Ref { return f.ref }

// Calls are the requests received so far.
func (f *Fake) Calls() []*Call { return f.calls }

// Tell sends a message from the service: an event, a delivery.
func (f *Fake) Tell(to actor.Ref, body actor.Encoder) {
	f.w.send(Sent{Target: Target{To: to}, From: f.ref, Payload: encode(body)})
	f.w.goOn()
}

// Ask sends a question from the service and hands the answer to then, a Reply or a ReplyError.
// An actor that never answers lets it wait.
func (f *Fake) Ask(to actor.Ref, body actor.Encoder, then func(answer Sent)) {
	f.asked++
	f.asks[f.asked] = then
	f.w.send(Sent{Target: Target{To: to}, Kind: Ask, From: f.ref, Correlation: f.asked, Payload: encode(body)})
	f.w.goOn()
}

// Close stops the service: its watchers are notified, and requests to it are answered with an error, as when a service is
// down.
func (f *Fake) Close() {
	if f.w.fakes[f.ref] != f {
		return
	}
	delete(f.w.fakes, f.ref)
	f.w.gone(f.ref, "stopped")
	f.w.goOn()
}

// After calls what after d of virtual time, see [World.Advance].
func (w *World) After(d time.Duration, what func()) {
	w.laterMade++
	w.later = append(w.later, later{w.now.Add(d), w.laterMade, what})
}

// later is a call in virtual time.
type later struct {
	at    time.Time
	order uint64
	what  func()
}

// nextCall returns the index of the call that becomes due first, or -1.
func (w *World) nextCall() int {
	best := -1
	for i, l := range w.later {
		if best < 0 || l.at.Before(w.later[best].at) || l.at.Equal(w.later[best].at) && l.order < w.later[best].order {
			best = i
		}
	}
	return best
}

// call runs what has become due.
func (w *World) call(i int) {
	l := w.later[i]
	w.later = append(w.later[:i:i], w.later[i+1:]...)
	if l.at.After(w.now) {
		w.now = l.at
	}
	l.what()
}

// goOn runs the world, unless it runs already.
func (w *World) goOn() {
	if !w.running {
		w.t.Helper()
		w.Run()
	}
}

// serve hands a message to a fake.
func (w *World) serve(f *Fake, s Sent) {
	w.t.Helper()
	if w.fakes[f.ref] != f {
		w.lost(step{ask: s.Kind == Ask, sent: s})
		return
	}
	switch s.Kind {
	case Reply, ReplyError:
		then := f.asks[s.Correlation]
		if then == nil {
			w.dead = append(w.dead, s)
			return
		}
		delete(f.asks, s.Correlation)
		then(s)
		return
	}
	c := &Call{Service: f.name, Sender: s.From, Wanted: s.Correlation != 0 && s.From != 0, Timeout: s.Timeout, At: w.now, fake: f, sent: s}
	if a := w.actors[s.From]; a != nil {
		c.Path, c.incarnation = a.Path(), a.start.Incarnation
	}
	if f.top {
		switch a := w.actors[s.From]; {
		case s.Kind == Forward:
			c.Fail(service.Denied, "a forwarded message carries no grant")
			return
		case a == nil || !a.granted(f.ref):
			c.Fail(service.Denied, "the sender has no grant for the service "+f.name)
			return
		}
	}
	r := abi.NewReader(s.Payload)
	if r.Array() == 2 && r.OK() {
		c.Op, c.Args = r.Text(), r.Raw()
	} else {
		r.Fail(abi.ErrArity)
	}
	if err := r.Done(); err != nil {
		if f.top {
			c.Fail(service.BadRequest, "a request is [op, args]: "+err.Error())
			return
		}
		c.Op, c.Args = "", s.Payload
	}
	f.calls = append(f.calls, c)
	if f.handler != nil {
		f.handler(c)
	}
}

// granted reports whether the actor was started with the ref of a service.
func (a *Actor) granted(ref actor.Ref) bool {
	for _, s := range a.start.Services {
		if s.Ref == ref {
			return true
		}
	}
	return false
}
