package gateway

import (
	"errors"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Name is the name of the gateway's own actor below /system.
const Name = "http"

// own is the gateway's own actor: it watches the actors that were made on demand, and is
// the parent of those that requests need. It gets no messages from guests.
type own struct {
	g   *Gateway
	ref host.Ref

	mu   sync.Mutex
	jobs []func(*host.Context)
}

// mostBelow bounds the actors below the gateway's own, and those that it watches.
const mostBelow = 1 << 20

func startOwn(g *Gateway) (*own, error) {
	o := &own{g: g}
	p := host.Native(func() host.Actor { return o }).WithLimits(host.Limits{Children: mostBelow, Watches: mostBelow})
	var err error
	if o.ref, err = g.sys.SpawnService(Name, p); errors.Is(err, host.ErrNameTaken) {
		o.ref, err = g.sys.SpawnService("", p) // of another gateway of the system
	}
	return o, err
}

// do calls f within a turn of the actor.
func (o *own) do(f func(*host.Context)) {
	o.mu.Lock()
	o.jobs = append(o.jobs, f)
	first := len(o.jobs) == 1
	o.mu.Unlock()
	if first {
		_ = o.g.sys.Tell(o.ref, host.Raw{0xf6})
	}
}

// Started implements host.Starter: what was to be done while the actor waited for its restart is done now.
func (o *own) Started(ctx *host.Context) error {
	o.work(ctx)
	return nil
}

// work calls the functions that wait for a turn.
func (o *own) work(ctx *host.Context) {
	o.mu.Lock()
	jobs := o.jobs
	o.jobs = nil
	o.mu.Unlock()
	for _, f := range jobs {
		f(ctx)
	}
}

// Receive implements host.Actor.
func (o *own) Receive(ctx *host.Context, m host.Message) error {
	o.work(ctx)
	if m.Kind == abi.KindTerminated {
		for _, rt := range o.g.table.routes {
			if d, ok := rt.target.(*demand); ok {
				d.ended(m.Sender)
			}
		}
	}
	return nil
}
