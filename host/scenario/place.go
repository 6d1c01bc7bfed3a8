package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/service/gateway"
)

// place is where a system runs: the only one of a scenario, or one life of a node.
type place struct {
	name            string // of the node; empty: there is only one place
	bundle          *bundle.Bundle
	clock           host.Clock
	sys             *host.System
	exec            *executor.Sim // runs services, and the clients
	events          *host.Subscription
	faultyMailboxes map[string]*faultyMailbox
	gateway         *gateway.Gateway   // nil: the scenario makes no requests
	clients         map[string]*client // WebSockets, by name
	life            *life              // nil: it is no node of a cluster
}

func newPlace(name string, b *bundle.Bundle) *place {
	return &place{name: name, bundle: b, faultyMailboxes: map[string]*faultyMailbox{}, clients: map[string]*client{}}
}

// boot starts the system of a place. configure, which may be nil, changes its configuration, and watch is called with the system before
// any actor is started.
func (w *world) boot(p *place, clock host.Clock, configure func(host.Config) host.Config, watch func(*host.System) error) error {
	was := w.place
	w.place = p
	defer func() { w.place = was }()
	b, s, by := p.bundle, w.scenario, w.simulated
	p.clock, p.exec = clock, executor.NewSim(clock)
	all := b.Manifest.HTTP
	if b.Manifest.HTTP = nil; s.outside() {
		b.Manifest.HTTP = routes(all, w)
	}
	var watched error
	_, err := b.Start(func(cfg host.Config) host.Config {
		cfg = by.configure(cfg.WithManual().WithClock(clock).WithSeed(s.seed), clock)
		if configure != nil {
			cfg = configure(cfg)
		}
		return cfg
	}, func(sys *host.System) {
		p.sys = sys
		w.runs(sys, true)
		by.begin(p, sys)
		p.events = sys.Subscribe(mostEvents, nil)
		if watch != nil {
			watched = watch(sys)
		}
	})
	b.Manifest.HTTP = all
	if err == nil {
		err = watched
	}
	if err != nil {
		return err
	}
	p.gateway = b.Gateway()
	for _, path := range s.standIns {
		if !w.stage.has(path) {
			if _, err := p.sys.Spawn(strings.TrimPrefix(path, "/user/"), w.standIn(path).props()); err != nil {
				return fmt.Errorf("the stand-in %s: %w", path, err)
			}
		}
	}
	return nil
}

// after has f done on the place's clock.
func (p *place) after(d time.Duration, f func()) { p.clock.AfterFunc(d, f) }

// runs notes a system that turns may have to be killed of.
func (w *world) runs(sys *host.System, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.systems = slices.DeleteFunc(w.systems, func(x *host.System) bool { return x == sys }); yes {
		w.systems = append(w.systems, sys)
	}
}

// kill ends the turns that run. Any goroutine may call it.
func (w *world) kill() {
	w.mu.Lock()
	all := slices.Clone(w.systems)
	w.mu.Unlock()
	for _, sys := range all {
		for _, i := range sys.View().AppendInfo(nil) {
			if strings.HasPrefix(i.Ref.Path(), "/user/") {
				sys.StopNow(i.Ref)
			}
		}
	}
}

// stopAll stops the actors of a place, and lets them end.
func (p *place) stopAll() {
	if p.sys == nil {
		return
	}
	for _, top := range p.sys.View().Tree().Children {
		p.sys.Stop(top.Ref)
	}
	p.sys.RunUntilIdle(mostTurns)
}

// disconnect ends the clients of a place. Those that wait for a turn end after release.
func (p *place) disconnect(release func()) {
	for _, c := range p.clients {
		c.cancel()
	}
	release()
	for _, c := range p.clients {
		c.end()
	}
	clear(p.clients)
}

// tearDown ends a place as a machine without power does: nothing of what its actors and services still do can be seen.
func (w *world) tearDown(p *place) {
	if p.sys == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	port.Freeze(p.sys)
	for _, top := range p.sys.View().Tree().Children {
		p.sys.StopNow(top.Ref)
	}
	p.sys.RunUntilIdle(mostTurns)
	p.disconnect(p.exec.Release)
	_ = p.sys.Close(ctx)
	w.runs(p.sys, false)
}
