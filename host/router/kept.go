package router

import "github.com/wasmactors/wasmactors/host"

// A routee that a keeper stands for is sent to through the keeper, which does not become a routee
// by that: it is not watched or stopped, and its own load is not the routee's.

// kept is such a routee. It belongs to the router's turns.
type kept struct {
	at     host.Address
	far    bool // on another node, of which nothing is known here: whoever is at the path is the routee
	passed int  // messages of the router's that may wait at the keeper
}

// load is the load of the actor, plus what the router has sent it and the keeper has perhaps not
// handed on yet.
func (k *kept) load(sys *host.System) (host.Load, bool) {
	if k.far {
		return host.Load{Open: true}, true
	}
	keeper, alive := sys.Load(k.at.To)
	if !alive {
		return host.Load{}, false
	}
	waits := keeper.Waiting
	if keeper.Running {
		waits++ // the one that the keeper hands on
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

// address is where to send a message to the routee, which counts as on its way from then on.
func (r *Routee) address() host.Address {
	if r.kept == nil {
		return host.Address{To: r.Ref}
	}
	r.kept.passed++
	return r.kept.at
}

// path is the path of the routee.
func (r *Routee) path() string {
	if r.kept == nil {
		return r.Ref.Path()
	}
	return r.kept.at.Path()
}

// there is the actor, or no actor if it does not run now.
func (r *Routee) there() (host.Ref, bool) {
	if r.kept == nil {
		return r.Ref, true
	}
	return r.sys.Find(r.kept.at)
}
