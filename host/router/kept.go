package router

import "github.com/wasmactors/wasmactors/host"

// A routee that a keeper stands for is sent to by way of the keeper, which is nobody's routee for
// that: it is not watched, not stopped, and how much it has to do is not what a routee has to do.

// kept is such a routee. It belongs to the router's turns.
type kept struct {
	at     host.Address
	passed int // messages of the router's that may wait at the keeper
}

// load is that of the actor, with what the router has sent it and the keeper has perhaps not
// handed on yet.
func (k *kept) load(sys *host.System) (host.Load, bool) {
	keeper, alive := sys.Load(k.at.To)
	if !alive {
		return host.Load{}, false
	}
	waits := keeper.Waiting
	if keeper.Running {
		waits++ // the one that it hands on
	}
	k.passed = min(k.passed, waits)
	l := host.Load{Open: true}
	if ref, there := sys.Find(k.at); there {
		if now, alive := sys.Load(ref); alive {
			l = now
		}
	}
	l.Waiting += k.passed
	l.Open = l.Open && keeper.Open
	return l, true
}

// address is where the routee is sent to; of a message that is on its way.
func (r *Routee) address() host.Address {
	if r.kept == nil {
		return host.Address{To: r.Ref}
	}
	r.kept.passed++
	return r.kept.at
}

// path is that of the routee.
func (r *Routee) path() string {
	if r.kept == nil {
		return r.Ref.Path()
	}
	return r.kept.at.Path()
}

// there is the actor; nobody if it is not there.
func (r *Routee) there() (host.Ref, bool) {
	if r.kept == nil {
		return r.Ref, true
	}
	return r.sys.Find(r.kept.at)
}
