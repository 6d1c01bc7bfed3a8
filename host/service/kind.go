package service

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// Service is a service that was defined. It is immutable and for any goroutine.
type Service[S, G any] struct {
	def      Definition[S, G]
	settings *Shape
	grant    *Shape
}

var nameRule = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Define makes a service. It panics if the definition is not valid: a name that is not valid,
// fields without tags, texts without a reach, no Open.
func Define[S, G any](d Definition[S, G]) *Service[S, G] {
	if !nameRule.MatchString(d.Name) || d.Open == nil {
		panic(fmt.Sprintf("service: %q is not defined: it needs a valid name and Open", d.Name))
	}
	if d.AtOnce <= 0 {
		d.AtOnce = DefaultInAll
	}
	d.Bounds = d.Bounds.or(Bounds{AtOnce: DefaultAtOnce, Bytes: DefaultBytes, Timeout: DefaultTimeout, Wait: DefaultWait})
	s := &Service[S, G]{def: d, settings: ShapeOf(reflect.TypeFor[S]()), grant: ShapeOf(reflect.TypeFor[G]())}
	mustDeclare("the settings of "+d.Name, s.settings)
	mustDeclare("the grants of "+d.Name, s.grant)
	s.settings.Doc = d.Doc
	s.grant.Doc = d.Doc
	return s
}

// Kind is a [Service] of any types, as manifests use it.
type Kind interface {
	// Name and Doc are those of the definition.
	Name() string
	Doc() string
	// SettingsShape and GrantShape describe the settings and grants; without keys they have no
	// fields. Grants have the keys of [Bounds] in addition.
	SettingsShape() *Shape
	GrantShape() *Shape
	// NewSettings and NewGrant return pointers to empty ones.
	NewSettings() any
	NewGrant() any
	// CheckSettings and CheckGrant say what is wrong with decoded ones; an error
	// may be one of [At].
	CheckSettings(settings any) error
	CheckGrant(grant any) error
	// GrantOf is what host.Props.WithGrant takes. Actors with the result of one call share
	// its bounds.
	GrantOf(grant any, b Bounds) any
	// StartWith is [Service.Start].
	StartWith(sys *host.System, env *Env, settings any) (*Running, error)
}

// Name implements [Kind].
func (s *Service[S, G]) Name() string { return s.def.Name }

// Doc implements [Kind].
func (s *Service[S, G]) Doc() string { return s.def.Doc }

// SettingsShape implements [Kind].
func (s *Service[S, G]) SettingsShape() *Shape { return s.settings }

// GrantShape implements [Kind].
func (s *Service[S, G]) GrantShape() *Shape { return s.grant }

// NewSettings implements [Kind].
func (s *Service[S, G]) NewSettings() any { return new(S) }

// NewGrant implements [Kind].
func (s *Service[S, G]) NewGrant() any { return new(G) }

// CheckSettings implements [Kind].
func (s *Service[S, G]) CheckSettings(settings any) error {
	if s.def.CheckSettings == nil {
		return nil
	}
	return s.def.CheckSettings(settings.(*S))
}

// CheckGrant implements [Kind].
func (s *Service[S, G]) CheckGrant(grant any) error {
	if s.def.CheckGrant == nil {
		return nil
	}
	return s.def.CheckGrant(grant.(*G))
}

// GrantOf implements [Kind].
func (s *Service[S, G]) GrantOf(grant any, b Bounds) any { return s.Grant(*grant.(*G), b) }

// StartWith implements [Kind].
func (s *Service[S, G]) StartWith(sys *host.System, env *Env, settings any) (*Running, error) {
	return s.Start(sys, env, settings.(*S))
}

var grantIDs atomic.Uint64

// Grant is a grant for host.Props.WithGrant. Actors with the result of one call share its
// bounds. The grant must not be changed afterwards, and is not checked here.
func (s *Service[S, G]) Grant(g G, b Bounds) *Granted[G] {
	return &Granted[G]{id: grantIDs.Add(1), grant: g, budget: newBudget(b.or(s.def.Bounds))}
}

// Start opens the provider and starts the service's actor; call it before the actors that use the service are
// started. nil settings are empty ones, a nil env has nothing. The service ends with the system.
func (s *Service[S, G]) Start(sys *host.System, env *Env, settings *S) (*Running, error) {
	if settings == nil {
		settings = new(S)
	}
	full := env.complete(sys)
	full.Log = full.Log.With("service", s.def.Name)
	f := newFrame(s.def.Name, full, s.def.AtOnce, func() (Provider[G], error) { return s.def.Open(full, settings) })
	provider, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("the service %s cannot be opened: %w", s.def.Name, err)
	}
	f.now = newSession(f, provider)
	ref, err := sys.SpawnService(s.def.Name, f.props())
	if err != nil {
		return nil, errors.Join(err, provider.Close(context.Background()))
	}
	f.ref.Store(&ref)
	r := &Running{name: s.def.Name, ref: ref, counts: &f.counts, work: f.work, waits: &f.waits, outage: f.isDown, closed: make(chan struct{})}
	r.provider = func() any {
		if s := f.session(); s != nil {
			return s.provider
		}
		return nil
	}
	sys.BeforeClose(func(ctx context.Context) {
		if d, ok := r.provider().(Drainer); ok {
			d.Drain(ctx)
		}
	})
	full.Go(func() {
		executor.Take(full.Clock, sys.Terminated())
		if r.err = f.close(); r.err != nil {
			full.Log.Error("the service was not closed in order", "error", r.err)
		}
		close(r.closed)
	})
	return r, nil
}

// Running is a service of a system.
type Running struct {
	name     string
	ref      host.Ref
	provider func() any
	counts   *counts
	work     func() (open, busy int)
	waits    *atomic.Int64
	outage   func() Outage
	closed   chan struct{}
	err      error
}

// Name is the name of the service.
func (r *Running) Name() string { return r.name }

// Ref is the ref of its actor.
func (r *Running) Ref() host.Ref { return r.ref }

// Provider is what Open has returned, for code that knows its type: tools for the operator of a bundle. It is
// nil while the service is down, and another one after that.
func (r *Running) Provider() any { return r.provider() }

// Outage reports whether the service is down: its actor has failed or was killed, and it is not open again.
func (r *Running) Outage() (o Outage, down bool) {
	o = r.outage()
	return o, !o.Since.IsZero()
}

// Counts are how the requests so far have ended, sorted by operation and code.
func (r *Running) Counts() []Count { return r.counts.all() }

// Times are how long requests took, sorted by operation.
func (r *Running) Times() []Times { return r.counts.allTimes() }

// Open is how many requests Serve works on.
func (r *Running) Open() int {
	open, _ := r.work()
	return open
}

// Waiting is how many requests wait until those of their grant that are in progress leave room.
func (r *Running) Waiting() int { return int(r.waits.Load()) }

// Busy is Open plus what waits for its turn, or for its answer to be sent: 0 means that the service does nothing
// until it is asked.
func (r *Running) Busy() int {
	_, busy := r.work()
	return busy
}

// Wait returns when the system has ended and the provider is closed, with its error, or when
// ctx ends.
func (r *Running) Wait(ctx context.Context) error {
	select { // of whoever waits for the service
	case <-r.closed:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Figures are what its provider counts for itself; none while it is down.
func (r *Running) Figures() []Figure {
	if m, ok := r.provider().(Measured); ok {
		return m.Figures()
	}
	return nil
}
