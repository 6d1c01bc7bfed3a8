package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/stray"
	"github.com/wasmactors/wasmactors/host/internal/trail"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
)

// spawn makes a child and starts it. Any goroutine may call it; scr is nil outside
// workers.
func (a *actor) spawn(scr *scratch, name string, p *Props, uid abi.Ref) (*actor, error) {
	if away(a.sys).Len() > 0 {
		a.child(name) // it returns before its name is asked for
	}
	if d := a.sys.durable; d != nil && scr == nil {
		d.spawning.RLock()
		defer d.spawning.RUnlock()
	}
	child, err := a.reserve(scr, name, p, uid)
	if err == nil {
		a.launch(scr, child)
	}
	return child, err
}

// reserve makes a child, which has its name and its ref from now on, and is not started yet.
func (a *actor) reserve(scr *scratch, name string, p *Props, uid abi.Ref) (*actor, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if scr != nil && scr.trace.On {
		a.sys.tracing.Origins.Put(uid, trail.Origin{At: scr.trace.Context})
	}
	if name != "" && !abi.ValidName([]byte(name)) {
		return nil, errs.BadName(name)
	}
	return reserveNamed(a, scr, name, p, uid)
}

// reserveNamed is reserve for a name that may also be one that the host has made up.
func reserveNamed(a *actor, scr *scratch, name string, p *Props, uid abi.Ref) (*actor, error) {
	if a.doomed() != nil {
		return nil, ErrStopped
	}
	m, refusal, err := a.enroll(scr, name, p, uid)
	for i := 0; err != nil && i < instance.MostPutAway && a.makeRoomFor(scr, err, i); i++ { // not under the family's lock
		m, refusal, err = a.enroll(scr, name, p, uid)
	}
	switch {
	case err != nil:
		return nil, err
	case refusal == family.Closed:
		return nil, ErrStopped
	case refusal == family.Full:
		return nil, ErrTooManyChildren
	case refusal == family.Taken:
		return nil, ErrNameTaken
	}
	return m.Child, nil
}

// makeRoomFor is makeRoom for a child, tried for the nth time. If that takes long and the parent is a guest, other actors
// run in between. If the system has no room and no guest is idle, a spawn from outside waits for a moment. A refusal then
// means that there is really no room, and not that all guests have just got a message.
func (a *actor) makeRoomFor(scr *scratch, err error, nth int) bool {
	if g, ok := a.behaviour.(*guest); ok && scr != nil {
		defer g.inst.Pause(scr.w, a.Now())
	}
	if a.sys.room.MakeRoom(&a.tree.awake, nil, err) {
		return true
	}
	if full := new(account.Error); scr != nil || a.sys.cfg.Manual || !errors.As(err, &full) || full.Pool == nil || !full.Pool.Root() {
		return false
	}
	time.Sleep(time.Millisecond << nth)
	return true
}

// enroll makes the child, and the system knows it.
func (a *actor) enroll(scr *scratch, name string, p *Props, uid abi.Ref) (*family.Member[*actor], family.Refusal, error) {
	most := a.rules.Load().limits.Children
	if a.sys.pool.Lifted() {
		most = math.MaxInt32
	}
	return a.super.Family.Adopt(name, most, func(name string) (*family.Member[*actor], error) {
		child, err := newActor(a.sys, a, name, uid, p)
		if err != nil {
			return nil, err
		}
		if scr != nil { // within the parent's own Run, which may be a start while ancestors are suspended
			child.life.Inherit(a.life.Burden())
		}
		if a.life.Held(life.Below) {
			child.life.Hold(life.Paused | life.Below)
		}
		if !a.sys.table.Put(uid, child) {
			child.box.CloseAccount()
			child.sys.places.Leave(&child.place, workplace.Pins(child.props.dispatch))
			return nil, ErrNameTaken
		}
		live(child, 1)
		child.member.Child = child
		return &child.member, nil
	})
}

// startChildren starts the children that the props name, unless they have survived.
func (a *actor) startChildren(scr *scratch) {
	children := a.rules.Load().children
	if p := a.sys.repeats.Load().of(a); p != nil {
		p.startChildren(a, scr, children)
		return
	}
	for i := range children {
		k := &children[i]
		if a.child(k.Name) == nil {
			ref := a.nextHostRef()
			if _, err := a.spawn(scr, k.Name, &k.Props, ref); err != nil {
				unstarted(a, k.Name, k.Props.typ, ref, err)
			}
		}
	}
}

// child finds a child by its name.
func (a *actor) child(name string) *actor {
	m := a.super.Family.Find(name)
	if m == nil && a == a.sys.user && away(a.sys).ReturnNamed(name) {
		m = a.super.Family.Find(name)
	}
	if m != nil {
		return m.Child
	}
	return nil
}

// getOrSpawn finds the child of a name, or makes it. It waits for a child that is stopping: its
// name is free when it has gone.
func (a *actor) getOrSpawn(ctx context.Context, name string, p Props) (ref Ref, made bool, err error) {
	if name == "" {
		return Ref{}, false, errs.BadName(name)
	}
	for {
		if k := a.child(name); k != nil && !k.life.State().Ending() {
			return k.ref(), false, nil
		}
		k, err := a.spawn(nil, name, &p, a.nextHostRef())
		if err == nil {
			return k.ref(), true, nil
		}
		if !errors.Is(err, ErrNameTaken) {
			return Ref{}, false, err
		}
		if k = a.child(name); k == nil || !k.life.State().Ending() {
			if ctx.Err() != nil {
				return Ref{}, false, ctx.Err()
			}
			continue // it has just gone, or somebody else was first
		}
		ended, err := a.sys.Ended(k.ref())
		if err != nil {
			continue
		}
		if err := a.sys.wait(ctx, ended); err != nil {
			return Ref{}, false, err
		}
	}
}

// newActor prepares an actor; it is not yet known to anybody.
func newActor(s *System, parent *actor, name string, uid abi.Ref, p *Props) (*actor, error) {
	a, r := withRules(parent, p)
	a.sys, a.parent, a.uid, a.props, a.timedNext = s, parent, uid, &r.Props, uint32(uint64(uid)%timedEvery)
	a.rules.Store(r)
	if parent == nil {
		a.path = s.root + "/" + name
		a.elements = []string{name}
		a.tree = &tree{guesses: &s.strangers}
	} else {
		a.above, a.path = parent.uid, parent.path+"/"+name
		a.elements = append(append(make([]string, 0, len(parent.elements)+1), parent.elements...), name)
		if a.tree = parent.tree; parent.parent == nil {
			a.tree = &tree{guesses: &s.strangers}
			if name[0] != '$' {
				a.tree.guesses = new(stray.Guesses)
			}
		}
	}
	if parent != nil && parent.props.keeps {
		a.kept, a.endings = new(life.Kept), true
	}
	a.args = nullPayload
	if p.args != nil {
		args, err := Encode(p.args)
		if err != nil {
			return nil, err
		}
		a.args = args
	}
	a.pool = s.pool
	if parent != nil {
		l, top := r.limits.Tree, parent.parent == nil
		if top && l.Memory == 0 {
			l.Memory = s.cfg.TreeMemory
		}
		a.pool = a.tree.poolFor(parent.pool, top, a.path, l)
	}
	err := a.account.Open(a.pool, r.limits.Held, baseBytes(a.path, a.args, a.props), away(s).Has(uid), parent != nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLimit, err)
	}
	if a.durable, err = isDurable(s, parent, p); err != nil {
		a.account.Close() // which the mailbox does not have yet
		return nil, err
	}
	box, told := p.rare.Get().Mailbox, a.durable && parent != nil
	usual := told && box == nil && s.cfg.Mailboxes == nil
	if told && !usual {
		box = recordedMailbox(a, box)
	}
	if s.cfg.Mailboxes != nil {
		box = s.cfg.Mailboxes(a.ref(), box)
	}
	a.box.Init(box, MailboxLimits{Messages: r.limits.Mailbox, Bytes: r.limits.MailboxBytes}, &a.account)
	if usual {
		recordUsual(a)
	} else {
		introduce(a)
	}
	a.sysq.Init()
	a.super.Init(&r.strategy)
	a.ctx.actor = a
	a.behaviour = p.make(a)
	if g, ok := a.behaviour.(*guest); ok {
		a.inst = &g.inst
	}
	switch {
	case s.cfg.Commit == nil || s.durable != nil && !a.durable && !p.events && s.repeats.Load() == nil:
		a.place.Init(a)
	default:
		a.place.Init(recorded{a})
	}
	if s.durable != nil && (a.durable || p.events) && parent != nil {
		a.looks = uint8(lookCommit)
	}
	a.throughput = workplace.Messages(p.dispatch, s.cfg.Throughput)
	if err := s.places.Take(&a.place, workplace.PoolOf(p.dispatch), workplace.Pins(p.dispatch)); err != nil {
		a.box.CloseAccount()
		return nil, err
	}
	a.place.Join(&a.tree.turns, s.disp)
	return a, nil
}
