// Package host is the actor system: a tree of supervised actors, some of them
// guests in WebAssembly instances, some of them Go. It is what an application
// embeds.
//
// A system is made by [New]; [Guest] and [Native] describe actors, [System.Spawn]
// starts them, [System.Tell] and [System.Ask] talk to them. What happens in the
// tree comes out of [System.Subscribe]. Messages are CBOR: any Go value that
// fxamacker/cbor can encode.
//
// docs/architecture/actors.md lists the guarantees.
package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/extension"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/outside"
	"github.com/wasmactors/wasmactors/host/internal/recordbox"
	"github.com/wasmactors/wasmactors/host/internal/residency"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/setup"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// New starts a system. [System.Close] ends it.
func New(c Config) (*System, error) {
	cfg := setup.PartsOf(&c)
	if cfg.Clock == nil {
		return nil, fmt.Errorf("host: the Config is not valid: make it with NewConfig")
	}
	if !abi.ValidName([]byte(cfg.Name)) {
		return nil, fmt.Errorf("host: the system's name: %w", errs.BadName(cfg.Name))
	}
	if err := workplace.CheckPools(cfg.Pools); err != nil {
		return nil, err
	}
	if err := cfg.CheckNode(); err != nil {
		return nil, err
	}
	s := &System{cfg: *cfg, secret: cfg.Secret, done: make(chan struct{}), root: ref.Root(cfg.Name, cfg.Node)}
	s.temp = s.root + "/temp"
	s.seen = &s.audience
	s.audience.Open(directoryOf{s}, func() time.Time { return s.cfg.Clock.Now() }, cfg.Tracer != nil, &s.looks)
	if cfg.Box != nil {
		s.audience.Recent.Keep(blackbox.MostEvents)
	}
	if cfg.Tape != nil {
		cfg.Tape.Hide(s.audience.Secrets.Set)
	}
	if s.secret == nil {
		s.secret = secret.New()
	}
	if s.durable = newDurability(&s.cfg, s.secret); cfg.Commit != nil && s.durable == nil {
		s.looks.Store(lookCommit)
	}
	if cfg.Faults != nil {
		s.looks.Or(lookFault)
	}
	s.pool = account.NewPool("the system", "system.", nil, cfg.Memory, cfg.Actors)
	s.tracing.Tracer, s.tracing.Clock, s.tracing.Secrets = cfg.Tracer, cfg.Clock, &s.audience.Secrets
	s.bound = asks.Binding{Node: cfg.Node, Waits: s.outside.Has, Elsewhere: func(uid abi.Ref) bool { return s.far.To(uid) != nil }}
	s.audience.Letters.Init(cfg.Dead, cfg.DeadBytes)
	s.time.Init(cfg.Clock)
	s.far.Init(cfg.Node, &s.time)
	s.told = recordbox.Told{Recorder: cfg.Recorder, Gate: cfg.Gate, Direct: cfg.Direct, Time: &s.time}
	if s.time.Real() {
		for i := range s.wheels {
			s.wheels[i] = clock.NewWheel(cfg.Clock)
		}
	}
	s.awake = residency.New(cfg.SweepClock(), cfg.IdleAfter, cfg.MostAwake)
	s.tenant = func(a *actor) instance.Owner { return tenant{a} }
	s.room = instance.Room{List: s.awake, Asleep: &s.asleep, Real: s.time.Real()}
	s.outside.Init(kernel{s}, outside.Config{
		Key: s.secret.AskKey(cfg.EpochNow()), Node: cfg.Node, Path: s.temp, Timeout: cfg.AskTimeout, Traced: cfg.Tracer != nil, Carries: cfg.Values != nil,
		Time: &s.time, Recent: &s.recent, Done: s.done,
	})
	switch {
	case cfg.Nested:
		s.disp = dispatch.NewNested()
	case cfg.Order != nil:
		s.disp = dispatch.NewChosen(func(n int, at func(int) dispatch.Runnable) int {
			return cfg.Order(n, func(i int) Ref { return at(i).(interface{ ref() Ref }).ref() })
		})
	case cfg.Shuffle != nil:
		s.disp = dispatch.NewShuffled(*cfg.Shuffle)
	case cfg.Manual:
		s.disp = dispatch.NewManual()
	default:
		s.disp = dispatch.New(dispatch.Config{Workers: cfg.Workers, MaxDetached: cfg.LongTurns})
	}
	s.places.Open(s.disp, cfg.Pools, cfg.Pinned, cfg.Manual)
	s.nodes.Of = nodes
	var err error
	if s.user, err = s.guardian("user", 0, cfg.Guardian); err != nil {
		return nil, err
	}
	if s.services, err = s.guardian("system", 1, ofServices); err != nil {
		return nil, err
	}
	if cfg.Log != nil {
		s.logEvents(cfg.Log)
	}
	for _, x := range cfg.Extensions {
		if err := extension.Load(x, s); err != nil {
			return nil, errors.Join(err, s.Close(context.Background()))
		}
	}
	return s, nil
}

// maxTopLevel bounds the children of a guardian.
const maxTopLevel = 1 << 24

// ofServices is the strategy of /system, whatever the one of /user is: what others rely on comes back, at ever
// longer intervals, and what it is asked until then is answered at once.
var ofServices = supervision.Default().WithOtherwise(supervision.Restart).WithBackoff(supervision.Backoff{
	Policy:    backoff.WithCap(backoff.Exponential(100*time.Millisecond, 30*time.Second, 2), backoff.NoJitter(), 30*time.Second, true),
	Meanwhile: supervision.MeanwhileReply, Reply: "unavailable: the service has failed, and is about to be started again",
})

func (s *System) guardian(name string, k uint64, strategy supervision.Strategy) (*actor, error) {
	p := Func(func(*Context, Message) error { return ErrUnhandled }).WithSupervision(strategy).WithLimits(Limits{Children: maxTopLevel})
	a, err := newActor(s, nil, name, abi.ChildRef(s.secret.RefKey(secret.ForGuardians, 0), s.cfg.Node, k), &p)
	if err != nil {
		return nil, err
	}
	s.table.Put(a.uid, a)
	s.nodes.Roots = append(s.nodes.Roots, a)
	a.post(nil, sysmail.Msg{Kind: sysmail.Start})
	return a, nil
}

// Name is the name of the system.
func (s *System) Name() string { return s.cfg.Name }

// Clock is the system's clock.
func (s *System) Clock() Clock { return s.cfg.Clock }

// Spawn starts an actor below /user; an empty name lets the system choose.
// Messages may be sent at once.
func (s *System) Spawn(name string, p Props) (Ref, error) { return s.spawnBelow(s.user, name, p) }

// SpawnService starts an actor below /system, whose actors stop after those of /user. It is for
// actors that others rely on until they have stopped. Whatever it fails with it is started again, after 100 ms to
// 30 s; questions are answered with an error until then, and everything else becomes a dead letter.
func (s *System) SpawnService(name string, p Props) (Ref, error) {
	return s.spawnBelow(s.services, name, p)
}

// SpawnBelow starts a child of an actor; an empty name lets the host choose. It is
// [Context.Spawn] for other goroutines, such as those of a service that answers later. The
// error is ErrUnknown if the parent has ended, and ErrStopped if it is stopping.
func (s *System) SpawnBelow(parent Ref, name string, p Props) (Ref, error) {
	a := s.here(parent.UID())
	if a == nil {
		return Ref{}, ErrUnknown
	}
	k, err := a.spawn(nil, name, &p, a.nextHostRef())
	if err != nil {
		return Ref{}, err
	}
	return k.ref(), nil
}

func (s *System) spawnBelow(guardian *actor, name string, p Props) (Ref, error) {
	uid, ok := namedRef(guardian, name)
	if !ok {
		uid = guardian.nextHostRef()
	}
	a, err := guardian.spawn(nil, name, &p, uid)
	if err != nil {
		return Ref{}, s.closedIf(err)
	}
	return a.ref(), nil
}

// closedIf turns ErrStopped of a guardian into ErrClosed: a guardian stops only with the system.
func (s *System) closedIf(err error) error {
	if errors.Is(err, ErrStopped) {
		return ErrClosed
	}
	return err
}

// GetOrSpawn finds the actor of a name below /user, or starts it; made says which. Of
// several callers one starts it. If the actor of the name is stopping, it waits for the end,
// until ctx ends.
func (s *System) GetOrSpawn(ctx context.Context, name string, p Props) (ref Ref, made bool, err error) {
	ref, made, err = s.user.getOrSpawn(ctx, name, p)
	return ref, made, s.closedIf(err)
}

// Tell sends a message without a sender. An error says that it was not accepted; it
// is a dead letter then, too.
func (s *System) Tell(to Ref, v any) error { return s.TellFrom(Ref{}, to, v) }

// TryTell is Tell for callers that try again: if the mailbox is full, the message stays
// the caller's and is not a dead letter.
func (s *System) TryTell(to Ref, v any) error { return s.tell(Ref{}, to, v, mark.Try) }

// TellFrom sends a message with an actor as its sender, which will get the answer.
func (s *System) TellFrom(from, to Ref, v any) error { return s.tell(from, to, v, 0) }

func (s *System) tell(from, to Ref, v any, flags uint16) error {
	e, err := message.Envelope(v)
	if err != nil {
		return err
	}
	e.Sender, e.SenderPath = from.UID(), from.URI()
	if a := s.here(from.UID()); from.UID() != 0 && a != nil {
		e.Attached = message.StillBelow(a.rules.Load().attached, e.Attached)
	}
	e.Flags |= flags
	if s.cfg.Tracer != nil || e.Value != nil {
		span := s.fromOutside(context.Background(), SendSpan, to, e)
		err := s.deliver(nil, to.UID(), e)
		s.tracing.Sent(span, err)
		return err
	}
	return s.deliver(nil, to.UID(), e)
}

// Stop stops an actor after its current turn: its children first, then itself.
// What waits in its mailbox becomes dead letters.
func (s *System) Stop(ref Ref) {
	s.signal(nil, ref.UID(), signal.Signal{Kind: signal.Stop})
}

// StopNow is Stop and kills the running turn, if it is a guest's: it ends within a
// quantum and has no effect.
func (s *System) StopNow(ref Ref) {
	s.signal(nil, ref.UID(), signal.Signal{Kind: signal.Kill})
}

// PoisonPill stops an actor when it has handled what is in its mailbox now. It counts as
// a stop by the actor itself: a permanent actor is started again, see StopGracefully.
func (s *System) PoisonPill(ref Ref) error { return s.control(ref.UID(), mark.Poison) }

func (s *System) control(to abi.Ref, flag uint16) error {
	e := mailbox.New()
	e.Flags = flag
	return s.deliver(nil, to, e)
}

// StopGracefully stops an actor for good when it has handled what is in its mailbox now,
// and waits until it has stopped; its name is free then. If ctx ends first it stops the actor at once
// and returns the context's error.
func (s *System) StopGracefully(ctx context.Context, ref Ref) error {
	ended, err := s.Ended(ref)
	if err != nil {
		return nil // it has gone already
	}
	e := mailbox.New()
	e.Flags = mark.Poison | mark.ForGood
	if err := s.deliver(nil, ref.UID(), e); err != nil {
		s.Stop(ref)
	}
	if err := s.wait(ctx, ended); err != nil {
		s.Stop(ref)
		return err
	}
	return nil
}

// Subscribe delivers the events that filter lets pass (all if it is nil), as many
// as the buffer holds; see [Subscription]. The filter is called by workers: it
// must be quick and safe for concurrent use.
func (s *System) Subscribe(buffer int, filter func(*Event) bool) *Subscription {
	return s.audience.Add(buffer, filter)
}

// DeadLetters returns the last dead letters, oldest first, and how many there
// were in all.
func (s *System) DeadLetters() ([]DeadLetter, uint64) {
	letters, n := s.audience.Letters.All()
	return s.audience.Secrets.Letters(letters...), n
}

// DeadLetter is a dead letter that is kept, with all of its payload if it is whole. It fails
// with ErrNotKept.
func (s *System) DeadLetter(id uint64) (DeadLetter, error) {
	l, err := s.audience.Letters.Get(id)
	if err != nil {
		return DeadLetter{}, err
	}
	return s.audience.Secrets.Letters(l)[0], nil
}

// BeforeClose registers a function that Close calls before any actor stops, so that the sources of
// work end first: with the context of Close, and concurrently with the other such functions. It is
// called once, and not if the system ends by itself.
func (s *System) BeforeClose(f func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = append(s.closing, f)
}

func (s *System) prepareClose(ctx context.Context) {
	s.mu.Lock()
	closing := s.closing
	s.closing = nil
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, f := range closing {
		all.Go(func() { f(ctx) })
	}
	all.Wait()
}

// Close stops all actors, in order, and waits; then it closes the extensions. If ctx ends
// first, running turns are killed and its error is returned after the system has ended.
func (s *System) Close(ctx context.Context) error {
	s.prepareClose(ctx)
	closeDurable(ctx, s)
	s.ending.Store(true)
	if s.cfg.Tape != nil {
		s.cfg.Tape.Ending(s.time.Now())
	}
	if s.user.post(nil, sysmail.Msg{Kind: sysmail.Stop, Kin: sysmail.Kin{Reason: "shutdown"}}) && s.cfg.Manual {
		s.RunUntilIdle(1 << 30)
	}
	err := s.wait(ctx, s.done)
	if err != nil {
		s.killAll()
		<-s.done
	}
	if closing := s.disp.Close(ctx); closing != nil {
		s.killAll()
		_ = s.disp.Close(context.Background())
	}
	s.places.Close(ctx)
	if failed := s.extensions.End(ctx); failed != nil {
		err = errors.Join(err, failed)
	}
	s.awake.Close()
	s.audience.Close()
	s.logging.Wait()
	return err
}

func (s *System) wait(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// killAll kills the turns that run.
func (s *System) killAll() {
	s.table.Each(func(a *actor) {
		if x := a.inst; x != nil {
			x.Kill("shutdown")
		}
	})
}

// Terminated is closed when all actors have stopped.
func (s *System) Terminated() <-chan struct{} { return s.done }

// Cause is the failure that has ended the system; nil if it was asked to end.
func (s *System) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.audience.Secrets.Error(s.cause)
}

// escalated ends the system: a failure has reached the top.
func (s *System) escalated(scr *scratch, guardian *actor, f *abi.Failure) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = f
	}
	s.mu.Unlock()
	freezeDurable(s)
	s.ending.Store(true)
	guardian.post(scr, sysmail.Msg{Kind: sysmail.Stop, Kin: sysmail.Kin{Reason: "failed: " + f.Error()}})
}

// guardianStopped continues the end: after /user comes /system, after that the system itself.
func (s *System) guardianStopped(a *actor) {
	if a == s.user {
		s.services.post(nil, sysmail.Msg{Kind: sysmail.Stop, Kin: sysmail.Kin{Reason: "shutdown"}})
		return
	}
	s.seen.Terminated(s.cfg.Clock.Now())
	s.outside.Close()
	close(s.done)
}

// logf reports something of the host's own about an actor.
func (s *System) logf(a *actor, level int, format string, args ...any) {
	if !s.seen.Quiet() {
		s.seen.Said(a, level, fmt.Sprintf(format, args...), nil)
	}
}
