package host

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/stash"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// A guest between two turns as bytes: the state of its instance, keyed by the image's hash, and what the host holds for
// it. A checkpoint of durable actors has such bytes of each of them, with its mailbox and its life, see checkpoint.go.

// stateVersion is the version of the bytes. It goes up with every field: a host that does not know all fields
// would restore a different actor. Version 2 has the lookouts, version 3 mailbox and life, version 4 the
// limits, version 5 the code of the next incarnation. Versions from oldestState on are read.
const (
	stateVersion = 5
	oldestState  = 3
)

// actorState is what the bytes hold. Times are absolute, so that what was due meanwhile is
// due at once.
type actorState struct {
	Version     int          `cbor:"1,keyasint"`
	Ref         abi.Ref      `cbor:"2,keyasint"`
	Type        string       `cbor:"3,keyasint"`
	Incarnation uint64       `cbor:"4,keyasint"`
	Turns       uint64       `cbor:"5,keyasint"`
	Spawned     uint64       `cbor:"6,keyasint"` // children that it has asked for
	Guest       []byte       `cbor:"7,keyasint"` // see sandbox.AppendSnapshot
	Receive     int64        `cbor:"8,keyasint"` // receive timeout, ns; 0: none
	Timers      []timerState `cbor:"9,keyasint"`
	Asks        []askState   `cbor:"10,keyasint"`
	Watches     []watchState `cbor:"11,keyasint"`
	Stash       []mailState  `cbor:"12,keyasint"`
	Children    []childState `cbor:"13,keyasint"`
	Lookouts    []string     `cbor:"14,keyasint"` // paths with patterns, as it has written them

	Whole *wholeState `cbor:"15,keyasint,omitempty"` // of an actor in a checkpoint
}

type timerState struct {
	_       struct{} `cbor:",toarray"`
	Key     uint64
	Due     int64 // ns since 1970
	Period  int64 // ns
	Payload []byte
	Headers []byte
	Pace    uint8
	Waits   bool // its envelope waits in the mailbox
}

type askState struct {
	_           struct{} `cbor:",toarray"`
	Correlation uint64
	Target      abi.Ref
	Answerers   []abi.Ref
	Due         int64
	Trace       []byte
	Observers   []abi.Ref
	Waits       bool // the envelope of its end waits in the mailbox
}

type watchState struct {
	_    struct{} `cbor:",toarray"`
	Ref  abi.Ref
	Path string
}

type mailState struct {
	_           struct{} `cbor:",toarray"`
	Kind        abi.Kind
	Flags       uint16
	Sender      abi.Ref
	SenderPath  string
	Correlation uint64
	Headers     []byte
	Payload     []byte
	Due         int64
	Position    uint64
	Mark        mailMark
	Incarnation uint64 // stashed
	Text        string // stashed, ended: the path
	Attempts    int    // how often its turn has failed
}

// mailMark is what travels beside an envelope within the host. It is in stores: a number never gets another meaning.
type mailMark uint8

const (
	unmarked    mailMark = 0
	markCurrent mailMark = 1 // it is of the timer, the ask or the receive timeout that is there
	markStashed mailMark = 2
	markLasting mailMark = 3 // stashed, and valid in every incarnation
	markEnded   mailMark = 4 // the path of who has ended
)

// childState is a child and what its supervisor has noted about it.
type childState struct {
	_           struct{} `cbor:",toarray"`
	Ref         abi.Ref
	Name        string
	Type        string
	Args        []byte
	Lifetime    uint8
	Significant bool
	Record      supervision.ChildState
	Orders      uint64
	Suspended   bool
}

// errState wraps the reason why bytes are no state of an actor.
var errState = errors.New("host: not the state of this actor")

var stateEncoder, stateDecoder = func() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.EncOptions{Sort: cbor.SortCoreDeterministic, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden}.EncMode()
	if err != nil {
		panic(err)
	}
	dec, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 8, MaxArrayElements: 1 << 20, MaxMapPairs: 64,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return enc, dec
}()

// save is the guest as bytes; it must be between two turns of an incarnation that has begun. Only its own run may
// call it.
func (g *guest) save() ([]byte, error) {
	if !g.actor.begun.Load() {
		return nil, fmt.Errorf("%w: it has no instance", sandbox.ErrNotSaved)
	}
	s := &actorState{}
	if err := g.saveTo(s); err != nil {
		return nil, err
	}
	return stateEncoder.Marshal(s)
}

// saveTo is save without the encoding.
func (g *guest) saveTo(s *actorState) (err error) {
	a := g.actor
	*s = actorState{
		Version: stateVersion, Ref: a.uid, Type: a.props.typ, Incarnation: a.Incarnation(), Turns: a.turns, Spawned: g.spawned, Whole: s.Whole,
	}
	if s.Guest, err = g.saveInstance(); err != nil {
		return err
	}
	if a.work.Receive != nil {
		s.Receive = int64(a.work.Receive.After())
	}
	for _, t := range a.work.Timers.Save() {
		s.Timers = append(s.Timers, timerState{Key: t.Key, Due: t.Due.UnixNano(), Period: int64(t.Period), Payload: t.Payload, Headers: t.Headers, Pace: uint8(t.Pace)})
	}
	for _, c := range a.work.Asks.Correlations() {
		ask := a.work.Asks.Get(c)
		s.Asks = append(s.Asks, askState{Correlation: c, Target: ask.Target, Answerers: ask.Answerers.All(), Due: ask.Due.UnixNano(), Trace: ask.Trace, Observers: ask.Observers()})
	}
	for _, ref := range a.work.Watch.Watched() {
		s.Watches = append(s.Watches, watchState{Ref: ref, Path: a.work.Watch.Path(ref)})
	}
	s.Lookouts = a.sys.lookouts.Of(a)
	a.work.Stash.Each(func(e *mailbox.Envelope) { s.Stash = append(s.Stash, mailOf(e)) })
	s.Children = childrenOf(a, func(*actor) bool { return true })
	return nil
}

// saveInstance is the state of the instance; nil if there is none that a turn could go on with.
func (g *guest) saveInstance() ([]byte, error) {
	if !g.actor.begun.Load() {
		return nil, nil
	}
	x, snap := g.inst.Load(), g.inst.Snapshot
	switch {
	case x != nil && !(x.Poisoned() && g.actor.life.State() == life.Failed):
		snap = &sandbox.Snapshot{}
		if err := x.Save(snap); err != nil {
			return nil, err
		}
	case snap == nil && g.actor.life.State() == life.Failed:
		return nil, nil
	case snap == nil:
		return nil, fmt.Errorf("%w: it has no instance", sandbox.ErrNotSaved)
	}
	return sandbox.AppendSnapshot(nil, g.inst.Image, snap)
}

// childrenOf are the children that a snapshot has.
func childrenOf(a *actor, has func(*actor) bool) (all []childState) {
	for _, m := range a.super.Family.Members() {
		k := m.Child
		if k.life.State() == life.Stopped || !has(k) { // another one may have its name
			continue
		}
		all = append(all, childState{
			Ref: k.uid, Name: k.Name(), Type: k.props.typ, Args: k.args, Lifetime: uint8(k.props.life), Significant: k.props.significant, Record: m.Record.State(),
			Orders: m.Orders, Suspended: m.Suspended,
		})
	}
	return all
}

// mailOf is an envelope as a snapshot has it. Whether it is markCurrent is for the caller to find out.
func mailOf(e *mailbox.Envelope) mailState {
	m := mailState{
		Kind: e.Kind, Flags: e.Flags, Sender: e.Sender, SenderPath: e.SenderPath, Correlation: e.Correlation,
		Headers: bytes.Clone(e.Headers), Payload: bytes.Clone(e.Payload), Due: e.Due, Position: e.Position,
	}
	switch v := e.Value.(type) {
	case stash.Stashed:
		if m.Mark, m.Incarnation, m.Text = markStashed, v.Incarnation, v.Path; v.Lasting {
			m.Mark = markLasting
		}
	case work.EndedPath:
		m.Mark, m.Text = markEnded, string(v)
	case message.Attempts:
		m.Attempts = v.N
	}
	return m
}

// envelope is the inverse of mailOf. Who has asked from Go has gone.
func (m *mailState) envelope() *mailbox.Envelope {
	e := mailbox.New()
	e.Kind, e.Flags, e.Sender, e.SenderPath, e.Correlation, e.Due, e.Position = m.Kind, m.Flags&^mark.Promised, m.Sender, m.SenderPath, m.Correlation, m.Due, m.Position
	e.SetHeaders(m.Headers)
	e.SetPayload(m.Payload)
	switch {
	case m.Mark == markStashed, m.Mark == markLasting:
		e.Value = stash.Stashed{Incarnation: m.Incarnation, Lasting: m.Mark == markLasting, Path: m.Text}
	case m.Mark == markEnded:
		e.Value = work.EndedPath(m.Text)
	case m.Attempts > 0:
		e.Value = message.Attempts{N: m.Attempts}
	}
	return e
}

// wrong says why m is no envelope that an actor can have.
func (m *mailState) wrong() string {
	switch m.Kind {
	case abi.KindMessage, abi.KindReply, abi.KindReplyError, abi.KindTimer, abi.KindAskTimeout, abi.KindReceiveTimeout, abi.KindTerminated, abi.KindSpawnFailed:
	default:
		return "of a kind that is not stored"
	}
	if m.Mark > markEnded || m.Attempts < 0 || m.Attempts > MaxRedeliveries {
		return "marked as none can be"
	}
	return ""
}

// decodeState reads what save has written and checks all that does not depend on the
// actor. b must not change afterwards.
func decodeState(b []byte) (*actorState, error) {
	no := func(why string, args ...any) (*actorState, error) {
		return nil, fmt.Errorf("%w: %s", errState, fmt.Sprintf(why, args...))
	}
	s := &actorState{}
	if err := stateDecoder.Unmarshal(b, s); err != nil {
		var other struct {
			Version int `cbor:"1,keyasint"`
		}
		if s.Version == 0 && cbor.Unmarshal(b, &other) == nil {
			s.Version = other.Version
		}
		if s.Version == 0 || s.Version >= oldestState && s.Version <= stateVersion {
			return no("%v", err)
		}
	}
	switch {
	case s.Version < oldestState || s.Version > stateVersion:
		return no("version %d, this host reads versions %d to %d", s.Version, oldestState, stateVersion)
	case s.Ref == 0 || !abi.ValidTypeName([]byte(s.Type)):
		return no("it has no ref or no type")
	case s.Receive < 0 || s.Receive > int64(abi.MaxDuration):
		return no("a receive timeout of %d ns", s.Receive)
	}
	for i, t := range s.Timers {
		if t.Period < 0 || t.Period > int64(abi.MaxDuration) || t.Pace > uint8(timers.FixedRate) || i > 0 && t.Key <= s.Timers[i-1].Key {
			return no("timer %d is out of order or out of range", i)
		}
	}
	for i, a := range s.Asks {
		if a.Correlation == 0 || i > 0 && a.Correlation <= s.Asks[i-1].Correlation {
			return no("ask %d is out of order", i)
		}
	}
	for i, w := range s.Watches {
		if w.Ref == 0 || i > 0 && w.Ref <= s.Watches[i-1].Ref {
			return no("watch %d is out of order", i)
		}
	}
	for i, text := range s.Lookouts {
		if text == "" || len(text) > abi.MaxPath || i > 0 && text <= s.Lookouts[i-1] {
			return no("pattern %d for future actors is out of order or out of range", i)
		}
	}
	for i := range s.Stash {
		if why := s.Stash[i].wrong(); why != "" {
			return no("stashed message %d is %s", i, why)
		}
	}
	seen := map[string]bool{}
	for i, k := range s.Children {
		if k.Ref == 0 || seen[k.Name] || k.Name == "" || supervision.Lifetime(k.Lifetime) > supervision.Temporary {
			return no("child %d is malformed", i)
		}
		seen[k.Name] = true
	}
	if s.Whole != nil {
		if why := s.Whole.wrong(); why != "" {
			return no("%s", why)
		}
	}
	return s, nil
}

// restore puts a guest, whose incarnation begins, into a state instead of starting it. Its instance is in that
// state already, see admit.
// Its children are started by the caller, which restores the tree.
func (g *guest) restore(ctx *Context, b []byte) error {
	a := g.actor
	s, err := decodeState(b)
	if err != nil {
		return err
	}
	if s.Ref != a.uid || s.Type != a.props.typ {
		return fmt.Errorf("%w: it is of %s %d", errState, s.Type, s.Ref)
	}
	if len(s.Timers) > a.props.limits.Timers || len(s.Asks) > a.props.limits.Asks || len(s.Watches) > a.props.limits.Watches || len(s.Stash) > a.props.limits.Stash || len(s.Lookouts) > lookouts.Most {
		return fmt.Errorf("%w: more timers, asks, watches or stashed messages than its limits allow", errState)
	}
	for _, text := range s.Lookouts {
		if p, ok := a.parsePath(text); !ok || p.UID != 0 {
			return fmt.Errorf("%w: it watches the pattern %q, which is not a path", errState, text)
		}
	}
	a.number.Store(s.Incarnation)
	g.turnTime(ctx.scr)
	a.turns, g.spawned = s.Turns, s.Spawned
	g.draw(s.Incarnation)
	if err := a.restoreHeld(ctx.scr, s); err != nil {
		return err
	}
	for _, text := range s.Lookouts { // those that have come meanwhile are found now
		x, err := a.restoreLookout(text)
		if err != nil {
			return err
		}
		a.lookAround(ctx.scr, x)
	}
	a.work.SetReceiveTimeout(a, time.Duration(s.Receive))
	return nil
}

// restoreHeld restores timers, asks, watches and the stash. Who is watched is told, unless it knows: it is in the same
// checkpoint.
func (a *actor) restoreHeld(scr *scratch, s *actorState) error {
	var set []timers.State
	for _, t := range s.Timers {
		set = append(set, timers.State{Key: t.Key, Due: time.Unix(0, t.Due), Period: time.Duration(t.Period), Pace: timers.Pace(t.Pace), Waits: t.Waits, Payload: t.Payload, Headers: t.Headers})
	}
	a.work.LoadTimers(a, set)
	for i := range s.Asks {
		k := &s.Asks[i]
		ask := &asks.Ask{Target: k.Target, Due: time.Unix(0, k.Due), Trace: k.Trace}
		for _, ref := range k.Answerers {
			ask.Add(ref)
		}
		a.work.LoadAsk(a, k.Correlation, ask, k.Waits)
		for _, ref := range k.Observers {
			a.work.Asks.Observe(k.Correlation, ref)
		}
	}
	for _, w := range s.Watches {
		if t := a.sys.here(w.Ref); s.Whole != nil && (s.Whole.knows[w.Ref] || t != nil && t.durable) {
			if _, err := a.work.AddWatch(a, w.Ref, w.Path); err != nil {
				return err
			}
		} else if err := a.watchRef(scr, w.Ref, w.Path); err != nil {
			return err
		}
	}
	for i := range s.Stash {
		a.work.Keep(a, "", s.Stash[i].envelope())
	}
	return nil
}

// restoreLookout enters a lookout, with nobody found yet.
func (a *actor) restoreLookout(text string) (*lookout, error) {
	p, ok := a.parsePath(text)
	if !ok || p.UID != 0 {
		return nil, fmt.Errorf("%w: it watches the pattern %q, which is not a path", errState, text)
	}
	x := newLookout(a, p, text)
	return x, a.sys.lookouts.Add(x)
}
