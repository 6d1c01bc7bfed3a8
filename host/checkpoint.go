package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A checkpoint is the state of all durable actors at one point of the log. They come to rest for it: none is within a
// turn, and nothing that they tell each other is under way, so that what each of them has is all there is. Then nothing of
// them runs until all is copied. What others send them meanwhile waits, and is in the log behind the checkpoint or in it: the
// positions of messages tell which.

// headState is what a checkpoint has besides actors.
type headState struct {
	Version  int              `cbor:"1,keyasint"`
	Lives    []livesState     `cbor:"2,keyasint"`
	Super    supervisor.State `cbor:"3,keyasint"` // of /user
	Jitter   []byte           `cbor:"4,keyasint,omitempty"`
	Children []childState     `cbor:"5,keyasint"` // the durable ones
}

// livesState is how many lives an actor below /user has had.
type livesState struct {
	_    struct{} `cbor:",toarray"`
	Path string
	N    uint64
}

// wholeState is what there is to an actor besides a guest's own state.
type wholeState struct {
	Parent   abi.Ref `cbor:"1,keyasint"`
	Path     string  `cbor:"2,keyasint"`
	Args     []byte  `cbor:"3,keyasint"`
	Code     []byte  `cbor:"4,keyasint"`
	Spawned  bool    `cbor:"5,keyasint,omitempty"` // by its parent, with these options; else the parent's props name it
	Options  []byte  `cbor:"6,keyasint,omitempty"`
	Position uint64  `cbor:"7,keyasint"` // of the last message that the mailbox has taken

	Life      life.State   `cbor:"8,keyasint"`
	Suspended int          `cbor:"9,keyasint,omitempty"`
	Paused    bool         `cbor:"10,keyasint,omitempty"`
	Below     bool         `cbor:"11,keyasint,omitempty"` // and so is all below it
	Begun     bool         `cbor:"12,keyasint,omitempty"`
	Crowded   bool         `cbor:"13,keyasint,omitempty"`
	Orders    uint64       `cbor:"14,keyasint,omitempty"`
	Cause     *abi.Failure `cbor:"15,keyasint,omitempty"`
	Ended     ending       `cbor:"16,keyasint,omitempty"`
	Started   int64        `cbor:"17,keyasint,omitempty"` // the incarnation, ns since 1970
	Turned    int64        `cbor:"18,keyasint,omitempty"` // time of the last turn
	Failed    bool         `cbor:"19,keyasint,omitempty"` // the guest's state is the one after a failed turn

	Due      int64         `cbor:"20,keyasint,omitempty"` // of the receive timeout
	Waits    bool          `cbor:"21,keyasint,omitempty"` // its envelope waits in the mailbox
	Mail     []mailState   `cbor:"22,keyasint,omitempty"`
	Watchers []abi.Ref     `cbor:"23,keyasint,omitempty"`
	Rewind   *rewindState  `cbor:"24,keyasint,omitempty"`
	Start    *startState   `cbor:"25,keyasint,omitempty"` // a start that waits for room
	Restart  *restartState `cbor:"26,keyasint,omitempty"`
	Grace    *graceState   `cbor:"27,keyasint,omitempty"`

	Super     supervisor.State `cbor:"28,keyasint"`
	Jitter    []byte           `cbor:"29,keyasint,omitempty"`
	AutoNames uint64           `cbor:"30,keyasint,omitempty"`
	HostRefs  uint64           `cbor:"31,keyasint,omitempty"`

	Limits *Limits `cbor:"32,keyasint,omitempty"` // nil in those of earlier releases
	Next   []byte  `cbor:"33,keyasint,omitempty"` // what its next incarnation begins with, if that is not Code

	knows map[abi.Ref]bool // actors of the checkpoint; not stored
}

// rewindState is what resume needs.
type rewindState struct {
	Why   string        `cbor:"1,keyasint,omitempty"`
	Guest []byte        `cbor:"2,keyasint,omitempty"`
	Log   []loggedState `cbor:"3,keyasint,omitempty"`
}

type loggedState struct {
	_      struct{} `cbor:",toarray"`
	Mail   mailState
	Now    int64
	Turn   uint64
	Behind bool
	Unread bool
}

type startState struct {
	_     struct{} `cbor:",toarray"`
	Cause *abi.Failure
	Held  bool
}

type restartState struct {
	_                struct{} `cbor:",toarray"`
	Cause            *abi.Failure
	Due              int64 // ns since 1970; of one with a delay
	Delay, Over      bool  // there was a delay; it has passed
	Keep, Hold, Told bool
}

type graceState struct {
	_    struct{} `cbor:",toarray"`
	All  bool
	Due  int64
	Mail []mailState
}

// wrong says why w is no state that an actor can be in.
func (w *wholeState) wrong() string {
	switch {
	case w.Parent == 0 || w.Path == "" || len(w.Path) > abi.MaxPath:
		return "it has no parent or no path"
	case w.Life > life.Restarting || w.Suspended < 0 || w.Ended > endEscalated:
		return "its life is in a state that none can be in"
	case w.Restart != nil != (w.Life == life.Restarting):
		return "it has a restart, or lacks one"
	}
	lists := [][]mailState{w.Mail}
	if w.Grace != nil {
		lists = append(lists, w.Grace.Mail)
	}
	for _, list := range lists {
		for i := range list {
			if list[i].Position == 0 || list[i].Position > w.Position {
				return "its mailbox has a message from nowhere"
			}
		}
	}
	return ""
}

// partOf implements rebuild.Part.
func partOf(b []byte) (rebuild.PartOf, error) {
	var head headState
	if err := stateDecoder.Unmarshal(b, &head); err == nil && head.Version >= oldestState && head.Version <= stateVersion {
		return rebuild.PartOf{}, nil
	}
	s, err := decodeState(b)
	if err != nil || s.Whole == nil {
		return rebuild.PartOf{}, errors.Join(err, errState)
	}
	return rebuild.PartOf{Path: s.Whole.Path, Type: s.Type, Ref: s.Ref, Parent: s.Whole.Parent, Turns: s.Turns, Codes: [2][]byte{s.Whole.Code, s.Whole.Next}}, nil
}

// errNotNow says that a checkpoint cannot be made because something is under way that ends by itself.
var errNotNow = errors.New("host: an actor is between two states")

// checkpoint copies the state of all durable actors, which rest meanwhile. mark is called when everything that is recorded
// later comes after the checkpoint; it must not block. each is called with the parts of the checkpoint, of which the first is
// the head. An actor whose state cannot be saved fails, and there is no checkpoint then.
func checkpoint(ctx context.Context, s *System, mark func() error, each func([]byte) error) error {
	d := s.durable
	d.checkpoints.Lock()
	defer d.checkpoints.Unlock()
	if d.frozen.Load() {
		return ErrClosed
	}
	defer thaw(s)
	if err := keepSolid(ctx, s); err != nil {
		return err
	}
	d.spawning.Lock()
	err := mark()
	all := treeOf(s)
	head := headOf(s, all)
	d.spawning.Unlock()
	if err != nil {
		return err
	}
	var tooLarge []excess
	b, err := stateEncoder.Marshal(head)
	if err == nil {
		err = each(b)
	}
	for _, a := range all {
		if err != nil {
			return err
		}
		var state actorState
		if !visit(ctx, a, func() { err = wholeOf(a, &state) }) {
			return context.Cause(ctx)
		}
		if errors.Is(err, sandbox.ErrNotSaved) {
			unsaved(a, "its state cannot be kept: "+strings.TrimPrefix(err.Error(), "runtime: "))
		}
		if err == nil {
			b, err = stateEncoder.Marshal(&state)
		}
		if most := a.props.limits.Durable; err == nil && most > 0 && int64(len(b)) > most {
			tooLarge = append(tooLarge, excess{a, len(b)})
		}
		if err == nil {
			err = each(b)
		}
	}
	for _, x := range tooLarge { // after the checkpoint: they do not keep others from theirs
		x.a.post(nil, sysmail.Msg{Kind: sysmail.Crash, Kin: sysmail.Kin{Failure: &abi.Failure{
			Kind: abi.FailureMemoryLimit, Reason: fmt.Sprintf("its state has %d bytes in the store, of at most %d: see limits.durable", x.bytes, x.a.props.limits.Durable),
		}}})
	}
	return err
}

// excess is an actor with more bytes in a checkpoint than its limit.
type excess struct {
	a     *actor
	bytes int
}

// unsaved fails an actor that keeps all others from their checkpoint. One that does so again after its restart stops.
func unsaved(a *actor, why string) {
	d := a.sys.durable
	if d.unsaved[a.uid] {
		a.stop(nil, why)
		return
	}
	maps.DeleteFunc(d.unsaved, func(ref abi.Ref, _ bool) bool { return a.sys.here(ref) == nil }) // a guest may spawn such children without end
	d.unsaved[a.uid] = true
	a.post(nil, sysmail.Msg{Kind: sysmail.Crash, Kin: sysmail.Kin{Failure: &abi.Failure{Kind: abi.FailureHost, Reason: why}}})
}

// keepSolid has durable actors rest, and then do nothing at all.
func keepSolid(ctx context.Context, s *System) error {
	d := s.durable
	for {
		if err := keepStill(ctx, s); err != nil {
			return err
		}
		before := d.runs.Load()
		all := append(durableOf(s), s.user)
		if !atRest(all) {
			continue
		}
		d.solid.Store(true)
		for _, a := range all {
			if !visit(ctx, a, func() {}) { // runs that have begun before are over
				return context.Cause(ctx)
			}
		}
		if d.runs.Load() == before {
			return nil
		}
		d.solid.Store(false)
		for _, a := range all {
			a.wake(nil)
		}
	}
}

// atRest reports whether none of the actors has something under way.
func atRest(all []*actor) (rest bool) {
	rest = true
	for _, a := range all {
		if !a.disp.Visit(&a.task, func() { rest = rest && !a.isHeld() && !a.sysq.Waiting() }) {
			return false
		}
	}
	return rest
}

// visit calls f as if it were a run of an actor whose runs do nothing; false if ctx ends before.
func visit(ctx context.Context, a *actor, f func()) bool {
	for !a.disp.Visit(&a.task, f) {
		if a.wake(nil); a.sys.cfg.manual {
			a.sys.RunUntilIdle(1 << 30)
		}
		select {
		case <-a.sys.durable.ran:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// thaw lets durable actors go on.
func thaw(s *System) {
	d := s.durable
	d.solid.Store(false)
	if !d.frozen.Load() {
		d.still.Store(false)
	}
	s.user.wake(nil)
	for _, a := range durableOf(s) {
		a.wake(nil)
	}
}

// treeOf are the durable actors, each behind its parent, siblings in the order of their start.
func treeOf(s *System) (all []*actor) {
	var below func(a *actor)
	below = func(a *actor) {
		for _, k := range a.super.Family.Children() {
			if k.durable && k.life.State() != life.Stopped {
				all = append(all, k)
				below(k)
			}
		}
	}
	below(s.user)
	return all
}

func headOf(s *System, all []*actor) *headState {
	h := &headState{Version: stateVersion, Super: s.user.super.Save(uidOf), Jitter: s.user.jitter(), Children: childrenOf(s.user, func(k *actor) bool { return k.durable })}
	h.Super.Undecided = slices.DeleteFunc(h.Super.Undecided, func(r supervisor.ReportState) bool {
		return !slices.ContainsFunc(all, func(a *actor) bool { return a.uid == r.Of })
	})
	d := s.durable
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, n := range d.lives {
		h.Lives = append(h.Lives, livesState{Path: path, N: n})
	}
	slices.SortFunc(h.Lives, func(a, b livesState) int { return strings.Compare(a.Path, b.Path) })
	return h
}

func uidOf(a *actor) abi.Ref { return a.uid }

// jitter is where the source of the delays is; nil: nothing was drawn.
func (a *actor) jitter() []byte {
	if a.dice == nil {
		return nil
	}
	b, _ := a.dice.pcg.MarshalBinary()
	return b
}

// wholeOf copies the state of an actor, which rests.
func wholeOf(a *actor, s *actorState) error {
	g := a.behaviour.(*guest)
	limits := a.props.limits
	w := &wholeState{
		Limits: &limits,
		Parent: a.parentUID(), Path: a.path, Args: a.args, Code: fingerprintOf(cmp.Or(g.inst.Image, g.own)), Spawned: a.props.spawned,
		Life: a.life.State(), Suspended: a.life.Suspended(), Paused: a.holds.has(holdPaused), Below: a.holds.has(holdBelow), Begun: a.begun.Load(),
		Crowded: a.crowded, Orders: a.orders, Cause: a.cause, Ended: a.ended, Started: a.startedAt.Load(), Turned: g.turnAt, Watchers: a.work.Watch.Watchers(),
		Super: a.super.Save(uidOf), Jitter: a.jitter(),
	}
	if kept := a.props.options; kept != nil {
		w.Options = *kept
	}
	w.AutoNames, w.HostRefs = a.super.Family.Counters()
	s.Whole = w
	if g.inst.Image != nil && g.own != g.inst.Image {
		if next := fingerprintOf(g.own); !bytes.Equal(next, w.Code) {
			w.Next = next
		}
	}
	switch r := a.restart; {
	case a.holds.has(holdSwap) && g.trial != nil && g.inst.Load() != nil && g.inst.Load().Poisoned():
		return errNotNow // it is about to go back to its old code
	case w.Life.Ending(), a.renewals > 0, a.holds.has(holdRenewal), w.Life == life.Restarting && (r == nil || r.leave != nil):
		return errNotNow
	case w.Life == life.Failed && !a.member.Suspended && a.parent != a.sys.user:
		if x := a.parent.super.Save(uidOf); !x.Concerns(a.uid) {
			return errNotNow // it tries to go on, and waits for room
		}
	case w.Life == life.Failed && !a.member.Suspended:
		return errNotNow
	case r != nil:
		w.Restart = &restartState{Cause: r.cause, Delay: r.delay, Over: r.due, Keep: r.keep, Hold: r.hold, Told: r.told, Due: a.due.Load()}
	}
	if x := g.start; x != nil && w.Life == life.Running {
		w.Start = &startState{Cause: x.cause, Held: x.held}
	} else if w.Life == life.Running && !w.Begun {
		return errNotNow
	}
	if err := g.saveTo(s); err != nil {
		return err
	}
	w.Failed = w.Life == life.Failed
	if err := g.saveRewind(w); err != nil {
		return err
	}
	waits := waiting{timers: map[uint64]bool{}, asks: map[uint64]bool{}}
	w.Mail, w.Position = recordedOf(a).save(&waits)
	if x := a.gate.Grace(); x != nil {
		w.Grace = &graceState{All: a.gate.Holds(), Due: a.gate.Due().UnixNano()}
		a.gate.Held(func(e *mailbox.Envelope) { w.Grace.Mail = append(w.Grace.Mail, waits.mail(a, e)) })
	}
	if a.work.Receive != nil {
		w.Due, w.Waits = a.work.Receive.Due().UnixNano(), waits.receive
	}
	for i := range s.Timers {
		s.Timers[i].Waits = waits.timers[s.Timers[i].Key]
	}
	for i := range s.Asks {
		s.Asks[i].Waits = waits.asks[s.Asks[i].Correlation]
	}
	return nil
}

// waiting are the alarms of an actor whose envelopes wait already.
type waiting struct {
	timers, asks map[uint64]bool
	receive      bool
}

// mail is mailOf with the mark of an alarm that is there.
func (w *waiting) mail(a *actor, e *mailbox.Envelope) mailState {
	m := mailOf(e)
	if m.Mark != unmarked || e.Value == nil {
		return m
	}
	switch {
	case e.Kind == abi.KindTimer && a.work.Timers.Current(e):
		m.Mark, w.timers[e.Correlation] = markCurrent, true
	case e.Kind == abi.KindReceiveTimeout && a.work.Receive.Current(e):
		m.Mark, w.receive = markCurrent, true
	case e.Kind == abi.KindAskTimeout && a.work.StillCounts(a, e, a.sysq.Waiting()) == work.Counts:
		m.Mark, w.asks[e.Correlation] = markCurrent, true
	}
	return m
}

// save copies what waits and still counts.
func (b *recordedBox) save(w *waiting) (mail []mailState, position uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var es []*Envelope
	for e := b.inner.Pop(); e != nil; e = b.inner.Pop() {
		es = append(es, e)
		if e.Kind != abi.KindMessage {
			switch b.a.work.StillCounts(b.a, e, b.a.sysq.Waiting()) {
			case work.Over, work.Late, work.Forged:
				continue // it is dropped when its turn comes
			}
		}
		mail = append(mail, w.mail(b.a, e))
	}
	b.inner.PushFront(es...)
	return mail, b.position
}

func (g *guest) saveRewind(w *wholeState) (err error) {
	s := g.inst.States
	if s == nil {
		return nil
	}
	w.Rewind = &rewindState{Why: s.Why}
	if s.Why != "" {
		return nil
	}
	if w.Rewind.Guest, err = sandbox.AppendSnapshot(nil, g.inst.Image, &s.Snap); err != nil {
		return err
	}
	for _, l := range s.Log {
		w.Rewind.Log = append(w.Rewind.Log, loggedState{Mail: mailOf(l.Mail), Now: l.Now, Turn: l.Turn, Behind: l.Behind, Unread: l.Unread})
	}
	return nil
}

// Restore implements rebuild.Port.
func (p *repeats) Restore(parts [][]byte) error {
	s := p.sys
	var head headState
	if len(parts) == 0 {
		return errors.New("a checkpoint without a head")
	}
	if err := stateDecoder.Unmarshal(parts[0], &head); err != nil {
		return fmt.Errorf("the head of the checkpoint: %w", err)
	}
	if head.Version < oldestState || head.Version > stateVersion {
		return fmt.Errorf("the checkpoint has version %d, this host reads versions %d to %d", head.Version, oldestState, stateVersion)
	}
	s.durable.mu.Lock()
	for _, l := range head.Lives {
		s.durable.lives[l.Path] = max(l.N, s.durable.lives[l.Path])
	}
	s.durable.mu.Unlock()
	knows := map[abi.Ref]bool{}
	all := make([]*actorState, len(parts)-1)
	for i, b := range parts[1:] {
		x, err := decodeState(b)
		if err == nil && x.Whole == nil {
			err = errors.New("it has no life")
		}
		if err != nil {
			return fmt.Errorf("actor %d of the checkpoint: %w", i, err)
		}
		all[i], x.Whole.knows, knows[x.Ref] = x, knows, true
	}
	for _, x := range all {
		if err := p.restore(x); err != nil {
			return fmt.Errorf("%s: the checkpoint: %w", x.Whole.Path, err)
		}
	}
	for _, x := range all {
		if a := s.here(x.Ref); a != nil {
			if err := restoreFamily(a, x.Children, &x.Whole.Super, x.Whole.Jitter); err != nil {
				return fmt.Errorf("%s: the checkpoint: %w", a.path, err)
			}
			a.super.Family.SetCounters(x.Whole.AutoNames, x.Whole.HostRefs)
		}
	}
	left := slices.DeleteFunc(head.Children, func(k childState) bool { return s.here(k.Ref) == nil }) // forgotten since
	head.Super.Undecided = slices.DeleteFunc(head.Super.Undecided, func(r supervisor.ReportState) bool { return s.here(r.Of) == nil })
	if err := restoreFamily(s.user, left, &head.Super, head.Jitter); err != nil {
		return fmt.Errorf("the checkpoint: %w", err)
	}
	return nil
}

// restore makes one actor.
func (p *repeats) restore(x *actorState) error {
	w := x.Whole
	parent := p.sys.here(w.Parent)
	if parent == nil {
		if p.left[w.Parent] {
			p.left[x.Ref] = true
			return nil
		}
		return errors.New("its parent is not there")
	}
	name, below := strings.CutPrefix(w.Path, parent.path+"/")
	if !below {
		return fmt.Errorf("it is not below %s", parent.path)
	}
	props, err := p.propsOf(parent, name, x)
	if err != nil || props == nil {
		p.left[x.Ref] = err == nil
		return err
	}
	props.args = Raw(w.Args)
	if props.typ != x.Type || props.module == nil {
		return fmt.Errorf("it is a %s, and was a %s: %w", props.typ, x.Type, rebuild.ErrCode)
	}
	a, err := parent.reserve(nil, name, props, x.Ref)
	if err == nil {
		err = p.runs(a, w.Code)
	}
	if err != nil {
		return err
	}
	if parent == p.sys.user {
		p.now[a.uid] = a.props.limits
	}
	p.limitTo(a, w.Limits)
	if w.Life == life.New {
		parent.launch(nil, a)
	}
	now := &record.Record{Time: p.at.Clock.Now().UnixNano()}
	failed := p.step(a, now, nil, func(scr *scratch) { err = restoreActor(scr, a, x) })
	if err == nil {
		err = p.runs(a, w.Next)
	}
	p.at.now.Store(0)
	p.turns.now.Store(0)
	return errors.Join(err, failed)
}

// propsOf are the props that an actor was made with; nil: it is left out.
func (p *repeats) propsOf(parent *actor, name string, x *actorState) (*Props, error) {
	w := x.Whole
	switch {
	case parent == p.sys.user:
		found, err := p.props(&record.Life{Path: w.Path, Type: x.Type, Args: w.Args, Parent: w.Parent, Incarnation: x.Incarnation, Code: w.Code})
		if err != nil || found == nil {
			return nil, err
		}
		props := *found.(*Props)
		return &props, nil
	case w.Spawned:
		g, ok := parent.behaviour.(*guest)
		if !ok {
			return nil, errors.New("its parent is no guest")
		}
		props, err := g.childProps(x.Type, w.Options)
		return &props, err
	}
	named := named(parent.props.children, name)
	if named == nil {
		return nil, fmt.Errorf("%s starts no such child now", parent.path)
	}
	props := *named
	return &props, nil
}

// restoreActor is the inverse of wholeOf.
func restoreActor(scr *scratch, a *actor, x *actorState) error {
	g, w := a.behaviour.(*guest), x.Whole
	limits := &a.props.limits
	if len(x.Timers) > limits.Timers || len(x.Asks) > limits.Asks || len(x.Watches) > limits.Watches || len(x.Stash) > limits.Stash || len(x.Lookouts) > lookouts.Most {
		return fmt.Errorf("%w: more timers, asks, watches or stashed messages than its limits allow now", errState)
	}
	a.life.Restore(w.Life, w.Suspended)
	if a.holds.drop(holdPaused | holdBelow); w.Paused {
		a.holds.add(holdPaused)
	}
	if w.Below {
		a.holds.add(holdBelow)
	}
	a.number.Store(x.Incarnation)
	a.begun.Store(w.Begun)
	a.startedAt.Store(w.Started)
	a.turns, a.orders, a.cause, a.ended, a.crowded = x.Turns, w.Orders, w.Cause, w.Ended, w.Crowded
	g.spawned, g.turnAt = x.Spawned, w.Turned
	g.setImage()
	g.draw(x.Incarnation)
	if x.Guest != nil {
		snap, err := sandbox.DecodeSnapshot(g.inst.Image, x.Guest, 0) // its memory may be from before a limit was lowered
		if err != nil {
			return err
		}
		g.inst.FallAsleep(snap)
		g.inst.Failed = w.Failed
	}
	if r := w.Rewind; r != nil {
		g.inst.States = &instance.States{Why: r.Why}
		if r.Why == "" {
			snap, err := sandbox.DecodeSnapshot(g.inst.Image, r.Guest, 0)
			if err != nil {
				return err
			}
			g.inst.States.Snap = *snap
			for i := range r.Log {
				l := &r.Log[i]
				g.inst.States.Remember(instance.Logged{Mail: l.Mail.envelope(), Now: l.Now, Turn: l.Turn, Behind: l.Behind, Unread: l.Unread})
			}
		}
		g.inst.NoteStates()
	}
	if err := a.restoreHeld(scr, x); err != nil {
		return err
	}
	for _, text := range x.Lookouts {
		if _, err := a.restoreLookout(text); err != nil {
			return err
		}
	}
	for _, ref := range w.Watchers {
		a.work.Watch.AddWatcher(ref)
	}
	if x.Receive > 0 {
		a.work.Receive = timers.LoadReceive(a, time.Duration(x.Receive), time.Unix(0, w.Due), w.Waits)
	}
	if w.Start != nil {
		g.start = &starting{w.Start.Cause, w.Start.Held}
		a.holds.add(holdInstance)
	}
	if y := w.Restart; y != nil {
		r := &restarting{cause: y.Cause, delay: y.Delay, due: y.Over, keep: y.Keep, hold: y.Hold, told: y.Told}
		if a.restart = r; y.Delay {
			a.closeGate()
			a.due.Store(y.Due)
		}
		if !r.due {
			a.restartAfter(r, time.Unix(0, y.Due).Sub(a.Now()))
		}
	}
	b := recordedOf(a)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.position = w.Position
	for i := range w.Mail {
		if !b.inner.Force(a.envelopeOf(&w.Mail[i])) {
			return errors.New("its mailbox is closed")
		}
	}
	if y := w.Grace; y != nil {
		a.loadGrace(y)
	}
	return nil
}

// envelopeOf is the envelope of m, with what its alarm knows it by.
func (a *actor) envelopeOf(m *mailState) *mailbox.Envelope {
	e := m.envelope()
	if m.Mark == markCurrent {
		switch m.Kind {
		case abi.KindTimer:
			e.Value = a.work.Timers.Mark(m.Correlation)
		case abi.KindReceiveTimeout:
			if a.work.Receive != nil {
				e.Value = a.work.Receive.Mark()
			}
		case abi.KindAskTimeout:
			if ask := a.work.Asks.Get(m.Correlation); ask != nil {
				e.Value = ask
			}
		}
	}
	return e
}

// restoreFamily restores what a supervisor has noted about its children.
func restoreFamily(a *actor, children []childState, state *supervisor.State, jitter []byte) error {
	members := map[abi.Ref]*family.Member[*actor]{}
	for _, m := range a.super.Family.Members() {
		members[m.Child.uid] = m
	}
	for i := range children {
		k := &children[i]
		m, ok := members[k.Ref], false
		if m == nil {
			return fmt.Errorf("its child %q is not there", k.Name)
		}
		if m.Record, ok = k.Record.Child(); !ok {
			return fmt.Errorf("what is noted about its child %q cannot be", k.Name)
		}
		m.Orders, m.Suspended = k.Orders, k.Suspended
	}
	if !a.super.Load(state, func(ref abi.Ref) *family.Member[*actor] { return members[ref] }) {
		return errors.New("its supervision is about children that are not there")
	}
	if jitter != nil {
		a.random()
		return a.dice.pcg.UnmarshalBinary(jitter)
	}
	return nil
}
