package rerun

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// player is an incarnation that is repeated. It is a turn.Speaker.
type player struct {
	x      *sandbox.Instance
	image  *runtime.Image
	of     *recorder.Incarnation
	begun  bool
	parked *sandbox.Snapshot // its state, while it has no instance

	key   abi.RefKey
	ahead uint64 // number of the next child
	next  uint64 // number of the next turn
	chain recorder.Chain

	in   sandbox.Entry
	res  sandbox.Result
	cmds []abi.Command

	failed *failed // the last entry, if it has failed
	denies bool    // the entry was refused because the actor keeps no events
	plant  func(*sandbox.Entry)
}

// failed is an entry that has failed, and the state before it: a guest that is resumed goes on from there.
type failed struct {
	before sandbox.Snapshot
	saved  bool
	ahead  uint64
	mail   []abi.Envelope
	now    int64
	first  uint64
	done   int
}

// Of what is repeated; a recording may have less.
const mostOutbox = 64 << 20

func newPlayer(image *runtime.Image, of *recorder.Incarnation) *player {
	p := &player{image: image, of: of, next: of.Turns}
	p.in = sandbox.Entry{TurnFuel: min(cmp.Or(of.Fuel, view.DefaultFuel), mostFuel), MemoryLimit: of.Memory, OutboxLimit: min(of.Outbox, mostOutbox), Seed: of.Seed, Killable: true}
	return p
}

// Self implements turn.Speaker.
func (p *player) Self() abi.Ref { return p.of.Ref }

// Persists implements turn.Speaker: whether the actor kept events is known from how it failed.
func (p *player) Persists() bool { return !p.denies }

// NextChild implements turn.Speaker.
func (p *player) NextChild() abi.Ref {
	ref := abi.ChildRef(p.key, p.of.Ref.Node(), p.ahead)
	p.ahead++
	return ref
}

// awake gets the player an instance in its state.
func (p *player) awake() error {
	if p.x != nil {
		return nil
	}
	x, err := sandbox.Get(p.image)
	if err != nil {
		return err
	}
	p.x = x
	if p.parked != nil {
		err = x.Restore(p.parked)
		p.parked = nil
	}
	return err
}

// park gives the instance back until the next entry; false: it cannot.
func (p *player) park() bool {
	if p.x == nil || p.failed != nil {
		return false
	}
	var s sandbox.Snapshot
	if p.x.Save(&s) != nil {
		return false
	}
	p.parked = s.Clone()
	p.close()
	return true
}

func (p *player) close() {
	if p.x != nil {
		p.x.Put()
		p.x = nil
	}
}

// begin brings the guest to the state before its first entry.
func (p *player) begin(now int64, first *abi.Envelope) error {
	p.begun = true
	if p.of.Snapshot != nil {
		s, err := sandbox.DecodeSnapshot(p.image, p.of.Snapshot, p.of.Memory)
		if err != nil {
			return err
		}
		p.key, p.ahead = p.of.Key, p.of.Spawned
		return p.x.Restore(s)
	}
	var start abi.Start
	if first.Kind != abi.KindStart {
		return errors.New("it does not begin with a start")
	}
	if err := abi.DecodeStart(&start, first.Payload); err != nil {
		return fmt.Errorf("its start cannot be read: %w", err)
	}
	p.key, p.ahead = start.RefKey, start.Spawned
	if p.image.Frozen() {
		return nil
	}
	in := p.in
	in.Seed, in.Now = p.of.Prepare, now
	if p.plant != nil {
		p.plant(&in)
	}
	if f := p.x.Prepare(&in); f != nil {
		return fmt.Errorf("the initialisation of the module fails: %w", f)
	}
	return nil
}

// outcome is what an entry has come to.
type outcome struct {
	done    int
	failure *abi.Failure
	outbox  []byte // valid until the next entry
	fuel    uint64
	judged  bool // the turn behind done is one that the host has refused
}

// errInbox says that a message does not fit.
var errInbox = errors.New("a message does not fit the guest's inbox")

// run repeats an entry with its messages. free says that it may come out differently, as another module's does.
func (p *player) run(e *recorder.Record, mail []abi.Envelope, free bool) (o outcome, err error) {
	if err := p.awake(); err != nil {
		return o, err
	}
	p.x.ForgetKill()
	if !p.begun {
		if err := p.begin(e.Now, &mail[0]); err != nil {
			return o, err
		}
	}
	if f := p.failed; f != nil {
		p.failed = nil
		if e.Rewound {
			if err := p.goBack(f); err != nil {
				return o, err
			}
		}
	}
	if e.Failed {
		f := &failed{ahead: p.ahead, now: e.Now, first: p.next, done: e.Done}
		if f.saved = p.x.Save(&f.before) == nil; f.saved {
			f.before = *f.before.Clone()
		}
		for i := range mail {
			m := mail[i]
			m.Headers, m.Payload = clone(m.Headers), clone(m.Payload)
			f.mail = append(f.mail, m)
		}
		p.failed = f
	}
	in := &p.in
	in.Now, in.FirstTurn, in.Most, in.Cut = e.Now, p.next, e.Done, nil
	if e.Failed {
		if in.Most = 0; e.Ended {
			in.Most = e.Done + 1
		}
		if !free && (!e.Judged || e.Cut != nil && e.Cut.Stage != sandbox.StageWork) {
			in.Cut = e.Cut
		}
		p.denies = e.Failure.Kind == abi.FailureABIViolation && strings.HasPrefix(e.Failure.Reason, "persist: ")
	}
	for i := range mail {
		if !p.x.Push(&mail[i]) {
			return o, errInbox
		}
	}
	if p.plant != nil {
		p.plant(in)
	}
	p.x.Run(in, &p.res)
	o = p.read(e, free)
	in.Seed, p.denies = p.of.Seed, false
	o.outbox, o.fuel = p.x.Outbox(o.done), p.res.Fuel
	if o.judged {
		o.outbox = p.x.Outbox(o.done + 1)
	}
	p.next += uint64(e.Done)
	if e.Failed {
		p.next++
	}
	return o, nil
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// goBack brings the guest to the state before the turn that has failed.
func (p *player) goBack(f *failed) error {
	if !f.saved {
		return errors.New("it was resumed, and its state cannot be saved")
	}
	if err := p.x.Restore(&f.before); err != nil {
		return err
	}
	p.x.ForgetKill()
	p.ahead = f.ahead
	if f.done == 0 {
		return nil
	}
	for i := range f.mail {
		if !p.x.Push(&f.mail[i]) {
			return errInbox
		}
	}
	in := p.in
	in.Now, in.FirstTurn, in.Most, in.Cut = f.now, f.first, f.done, nil
	p.x.Run(&in, &p.res)
	if p.res.Failure != nil {
		return fmt.Errorf("resuming it fails: %w", p.res.Failure)
	}
	p.read(&recorder.Record{Done: f.done}, true)
	p.x.Discard()
	return nil
}

// read is what the host does with the commands of turns, as far as it does not depend on other actors.
func (p *player) read(e *recorder.Record, free bool) (o outcome) {
	ahead := p.ahead
	var f *abi.Failure
	for o.done < p.res.Turns {
		at, cmds, ok, err := p.x.NextTurn(p.cmds)
		p.cmds = cmds[:0]
		if err != nil {
			if !errors.As(err, &f) {
				f = &abi.Failure{Kind: abi.FailureABIViolation, Reason: err.Error()}
			}
			break
		}
		if !ok {
			break
		}
		if _, f = turn.Examine(cmds, at, &p.res, p); f != nil {
			break
		}
		if e.Failed && e.Judged && !free && o.done == e.Done { // what the host has found too costly depends on other actors
			p.ahead = ahead
			o.judged = true
			f := e.Failure
			o.failure = &f
			return o
		}
		ahead = p.ahead
		o.done++
	}
	p.ahead = ahead
	if o.failure = p.res.Failure; f != nil {
		if o.failure = f; p.res.Turns == 1 {
			f.Fuel = p.res.Fuel
		}
	}
	return o
}
