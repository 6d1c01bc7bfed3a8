package host

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// A guest between two turns as bytes, without its mailbox: the state of its instance, keyed
// by the image's hash, and what the host holds for it. It is the seam for durable actors:
// only tests write such bytes yet.

// stateVersion is the version of the bytes. It goes up with every field: a host that does not know all fields
// would restore a different actor. Version 2 has the lookouts.
const stateVersion = 2

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
}

type timerState struct {
	_       struct{} `cbor:",toarray"`
	Key     uint64
	Due     int64 // ns since 1970
	Period  int64 // ns
	Payload []byte
}

type askState struct {
	_           struct{} `cbor:",toarray"`
	Correlation uint64
	Target      abi.Ref
	Answerers   []abi.Ref
	Due         int64
}

type watchState struct {
	_    struct{} `cbor:",toarray"`
	Ref  abi.Ref
	Path string
}

type mailState struct {
	_           struct{} `cbor:",toarray"`
	Kind        abi.Kind
	Flags       uint8
	Sender      abi.Ref
	SenderPath  string
	Correlation uint64
	Headers     []byte
	Payload     []byte
}

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

// save is the guest as bytes; it must be between two turns, and awake. Only its own run may
// call it.
func (g *guest) save() ([]byte, error) {
	a, x := g.actor, g.inst.Load()
	if x == nil || !a.begun.Load() {
		return nil, fmt.Errorf("%w: it has no instance", sandbox.ErrNotSaved)
	}
	var snap sandbox.Snapshot
	if err := x.Save(&snap); err != nil {
		return nil, err
	}
	memory, err := sandbox.AppendSnapshot(nil, g.image, &snap)
	if err != nil {
		return nil, err
	}
	s := actorState{
		Version: stateVersion, Ref: a.uid, Type: a.props.typ, Incarnation: a.Incarnation(), Turns: a.turns, Spawned: g.spawned,
		Guest: memory,
	}
	if a.work.Receive != nil {
		s.Receive = int64(a.work.Receive.After())
	}
	for _, t := range a.work.Timers.Save() {
		s.Timers = append(s.Timers, timerState{Key: t.Key, Due: t.Due.UnixNano(), Period: int64(t.Period), Payload: t.Payload})
	}
	for _, c := range a.work.Asks.Correlations() {
		ask := a.work.Asks.Get(c)
		s.Asks = append(s.Asks, askState{Correlation: c, Target: ask.Target, Answerers: ask.Answerers.All(), Due: ask.Due.UnixNano()})
	}
	for _, ref := range a.work.Watch.Watched() {
		s.Watches = append(s.Watches, watchState{Ref: ref, Path: a.work.Watch.Path(ref)})
	}
	s.Lookouts = a.sys.lookouts.of(a)
	a.work.Stash.Each(func(e *mailbox.Envelope) { s.Stash = append(s.Stash, stateOf(e)) })
	for _, m := range a.super.Family.Members() {
		k := m.Child
		if k.life.State() == life.Stopped { // another one may have its name
			continue
		}
		s.Children = append(s.Children, childState{
			Ref: k.uid, Name: k.Name(), Type: k.props.typ, Args: k.args, Lifetime: uint8(k.props.life), Significant: k.props.significant, Record: m.Record.State(),
		})
	}
	return stateEncoder.Marshal(&s)
}

func stateOf(e *mailbox.Envelope) mailState {
	return mailState{
		Kind: e.Kind, Flags: uint8(e.Flags & (mark.NoInfluence | mark.Suppressed)), Sender: e.Sender, SenderPath: e.SenderPath,
		Correlation: e.Correlation, Headers: bytes.Clone(e.Headers), Payload: bytes.Clone(e.Payload),
	}
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
		if s.Version == 0 || s.Version == stateVersion {
			return no("%v", err)
		}
	}
	switch {
	case s.Version != stateVersion:
		return no("version %d, this host reads version %d", s.Version, stateVersion)
	case s.Ref == 0 || !abi.ValidTypeName([]byte(s.Type)):
		return no("it has no ref or no type")
	case s.Receive < 0 || s.Receive > int64(abi.MaxDuration):
		return no("a receive timeout of %d ns", s.Receive)
	}
	for i, t := range s.Timers {
		if t.Period < 0 || t.Period > int64(abi.MaxDuration) || i > 0 && t.Key <= s.Timers[i-1].Key {
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
	for i, e := range s.Stash {
		if e.Kind != abi.KindMessage && e.Kind != abi.KindReply && e.Kind != abi.KindReplyError || uint16(e.Flags)&^(mark.NoInfluence|mark.Suppressed) != 0 {
			return no("stashed message %d is of a kind that is not stored", i)
		}
	}
	seen := map[string]bool{}
	for i, k := range s.Children {
		if k.Ref == 0 || seen[k.Name] || k.Name == "" || supervision.Lifetime(k.Lifetime) > supervision.Temporary {
			return no("child %d is malformed", i)
		}
		seen[k.Name] = true
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
	if len(s.Timers) > a.props.limits.Timers || len(s.Asks) > a.props.limits.Asks || len(s.Watches) > a.props.limits.Watches || len(s.Stash) > a.props.limits.Stash || len(s.Lookouts) > mostLookouts {
		return fmt.Errorf("%w: more timers, asks, watches or stashed messages than its limits allow", errState)
	}
	for _, text := range s.Lookouts {
		if p, ok := a.parsePath(text); !ok || p.uid != 0 {
			return fmt.Errorf("%w: it watches the pattern %q, which is not a path", errState, text)
		}
	}
	a.number.Store(s.Incarnation)
	g.turnTime(ctx.scr)
	a.turns, g.spawned = s.Turns, s.Spawned
	g.draw(s.Incarnation)
	var set []timers.State
	for _, t := range s.Timers {
		set = append(set, timers.State{Key: t.Key, Due: time.Unix(0, t.Due), Period: time.Duration(t.Period), Payload: t.Payload})
	}
	a.work.LoadTimers(a, set)
	for _, k := range s.Asks {
		ask, err := a.work.AddAsk(a, k.Correlation, k.Target, time.Unix(0, k.Due).Sub(a.TurnTime()), nil)
		if err != nil {
			return err
		}
		for _, ref := range k.Answerers {
			ask.Add(ref)
		}
	}
	for _, w := range s.Watches {
		if err := a.watchRef(ctx.scr, w.Ref, w.Path); err != nil {
			return err
		}
	}
	for _, text := range s.Lookouts { // those that have come meanwhile are found now
		p, _ := a.parsePath(text)
		x := &lookout{watcher: a, text: text, at: p.elements, child: p.child}
		if err := a.sys.lookouts.add(x); err != nil {
			return err
		}
		a.lookAround(ctx.scr, x)
	}
	for _, m := range s.Stash {
		e := mailbox.New()
		e.Kind, e.Flags, e.Sender, e.SenderPath, e.Correlation = m.Kind, uint16(m.Flags), m.Sender, m.SenderPath, m.Correlation
		e.SetHeaders(m.Headers)
		e.SetPayload(m.Payload)
		a.work.Keep(a, "", e)
	}
	a.work.SetReceiveTimeout(a, time.Duration(s.Receive))
	return nil
}
