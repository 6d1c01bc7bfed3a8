package host

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// View is what can be seen of a system's actors, without taking part: what each is and does, totals, the messages and the
// fuel of running turns. All methods may be called concurrently.
type View struct{ sys *System }

// View is for whoever looks at the system.
func (s *System) View() View { return View{s} }

// Info is the present Info of an actor; ErrUnknown if it has stopped.
func (v View) Info(ref Ref) (Info, error) {
	s := v.sys
	a := s.here(ref.UID())
	if a == nil {
		return Info{}, ErrUnknown
	}
	var i Info
	a.info(&i)
	i.Children = a.super.Family.Len() + away(s).Below(a.uid)
	return i, nil
}

// AppendInfo appends the current Info of every actor, /user and /system included, in no particular order. Actors that start
// or stop during the call may be left out. It holds no lock that a message needs. To add up what actors have done, use
// [View.Census].
func (v View) AppendInfo(to []Info) []Info { return appendInfo(v.sys, to, nil) }

// Census is AppendInfo plus the totals, by type, of stopped actors. Each actor is in one of the two, so their sums never
// decrease from one call to the next. /user and /system have no type and are in neither. Calls wait for each other.
func (v View) Census(to []Info) (infos []Info, ended map[string]TypeStats) {
	s := v.sys
	ended = s.totals.Count(func(c *look.Census) { to = appendInfo(s, to, c) })
	return to, ended
}

// appendInfo leaves out actors that a census does not count as living, if there is one.
func appendInfo(s *System, to []Info, c *look.Census) []Info {
	const together = 32
	var batch [together]*actor
	n := 0
	flush := func() {
		// The fields that are read are rarely in a cache. Reading several actors before
		// anything depends on the values makes the memory fetch all of them at once.
		warm := uint64(0)
		for _, a := range batch[:n] {
			warm += a.tally.Turns.Load() + uint64(a.account.Of(account.Base)) + uint64(a.box.Len()) + uint64(a.uid)
		}
		if warm == 0 {
			return // no actor has uid 0
		}
		for _, a := range batch[:n] {
			if len(to) < cap(to) {
				to = to[:len(to)+1]
			} else {
				to = append(to, Info{})
			}
			a.info(&to[len(to)-1])
		}
	}
	defer away(s).Hold()() // each is on one side
	s.table.Each(func(a *actor) {
		if c != nil && !c.Meets(&a.counted) {
			return
		}
		batch[n] = a
		if n++; n == together {
			flush()
			n = 0
		}
	})
	flush()
	return away(s).AppendInfo(to)
}

// Held is what the host holds for an actor at the moment; ErrUnknown if it has stopped.
func (v View) Held(ref Ref) (Held, error) {
	s := v.sys
	a := s.here(ref.UID())
	if a == nil {
		return Held{}, ErrUnknown
	}
	return a.account.Held(), nil
}

// Tap calls f for the messages of an actor until stop is called or the actor has stopped, with at most payload bytes of
// each payload. f is called by the worker that runs the actor, in the order of its turns: it must be quick, and a Tapped
// is valid until it returns. ended, which may be nil, is called once when the actor has stopped, unless stop was called
// before; it may call stop. Tap fails with ErrUnknown. While any actor is tapped every turn of the system costs some
// nanoseconds more.
func (v View) Tap(ref Ref, payload int, f func(*Tapped), ended func()) (stop func(), err error) {
	s := v.sys
	a := s.here(ref.UID())
	if a == nil {
		return nil, ErrUnknown
	}
	t := look.NewTap(payload, f, ended)
	stop = s.audience.Tap(&a.tapped, t)
	if a.life.State() == life.Stopped { // it may not have seen the tap
		go t.Ended()
	}
	return stop, nil
}

// DefaultInspectTimeout is how long Inspect waits for an actor whose context has no deadline.
const DefaultInspectTimeout = 100 * time.Millisecond

// Inspect looks at one actor. What only the actor and its supervisor know is read between two
// of their turns; it is missing if a turn goes on until ctx ends, or if more than 1000 looks wait already. It fails with
// ErrUnknown if the actor has stopped.
func (v View) Inspect(ctx context.Context, ref Ref) (Inspection, error) {
	s := v.sys
	a := s.here(ref.UID())
	if a == nil {
		return Inspection{}, ErrUnknown
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultInspectTimeout)
		defer cancel()
	}
	x := Inspection{
		Parts: a.account.Held(), Limits: a.rules.Load().limits, Capabilities: a.rules.Load().caps, Lifetime: a.props.life, Replies: int(a.replies.Load()),
	}
	own := a.lookAt(func() {
		x.Counts = &Counts{
			Timers: a.work.Timers.Len(), Asks: a.work.Asks.Len(), Watches: a.work.Watch.Len(), Watchers: len(a.work.Watch.Watchers()),
			Stash: a.work.Stash.Len(), Undecided: a.super.Undecided(),
		}
		if g, ok := a.behaviour.(*guest); ok && g.inst.Image != nil {
			x.Module, x.Code = g.inst.Image.Name(), sandbox.ModuleSum(g.inst.Image)
		}
	})
	var above *look.Visit
	var record supervision.Record
	var left, known bool
	if p := a.parent; p != nil {
		x.Strategy = p.props.strategy
		above = p.lookAt(func() { record, left, known = p.super.Look(&a.member, p.Now()) })
	}
	own.Wait(ctx)
	if !own.Done() {
		x.Counts = nil
	}
	above.Wait(ctx)
	if above.Done() && known {
		x.Record, x.Left = &record, left
	}
	a.info(&x.Info)
	x.Children = a.super.Family.Len() + away(s).Below(a.uid)
	return x, nil
}

// Stats takes a snapshot. It looks at every actor. Totals never go down from one call to the next,
// those of a type included: an actor that stops during the call counts once, as living or as stopped.
func (v View) Stats() Stats {
	s := v.sys
	st := Stats{Actors: s.table.Len() + away(s).Len(), Asleep: int(s.asleep.Load()) + away(s).Len(), Crashes: s.totals.Crashes.Load(), Restarts: s.totals.Restarts.Load()}
	_, st.DeadLetters = s.audience.Letters.All()
	living := map[string]*TypeStats{}
	st.Types = s.totals.Count(func(c *look.Census) {
		defer away(s).Hold()() // each is on one side
		s.table.Each(func(a *actor) {
			if a.parent == nil || !c.Meets(&a.counted) {
				return // a guardian is nobody's
			}
			t := look.OfType(&living, a.props.typ)
			t.Actors++
			t.Add(&a.tally)
		})
		away(s).Count(&living)
	})
	for typ, t := range living {
		t.Join(st.Types[typ])
		st.Types[typ] = *t
	}
	for _, t := range st.Types {
		st.Turns += t.Turns
		st.Fuel += t.Fuel
	}
	return st
}

// Tree is a snapshot of /user and all actors below it. Actors keep running during the call.
func (v View) Tree() Node { tree, _ := v.TreeUpTo(math.MaxInt); return tree }

// TreeUpTo is Tree with at most most actors, at least /user, each before those below it. whole: there are no more.
func (v View) TreeUpTo(most int) (tree Node, whole bool) {
	defer away(v.sys).Hold()() // each is on one side
	tree = v.sys.user.node(&most)
	return tree, most >= 0
}

// node is the tree below the actor; what is left of most is negative if it is not whole.
func (a *actor) node(most *int) Node {
	*most--
	n := Node{Ref: a.ref(), Type: a.props.typ, State: a.life.State().String(), Incarnation: a.Incarnation(), Mailbox: a.box.Len(), Turns: a.tally.Turns.Load()}
	if x := a.inst; x != nil {
		n.Asleep = !x.Awake() && a.life.State() == life.Running
	}
	for _, k := range a.super.Family.Children() {
		if *most <= 0 {
			*most = -1
			break
		}
		n.Children = append(n.Children, k.node(most))
	}
	n.Children = away(a.sys).AppendNodes(n.Children, a.uid, most)
	return n
}

// Totals takes a snapshot.
func (v View) Totals() Totals {
	s := v.sys
	t := Totals{
		Actors: s.table.Len() + away(s).Len(), Asleep: int(s.asleep.Load()) + away(s).Len(), Crashes: s.totals.Crashes.Load(), Restarts: s.totals.Restarts.Load(),
		DeadLetters: s.audience.Letters.N(), Held: s.pool.Held(), Workers: s.disp.Stats().Workers,
	}
	t.HeldLimit, t.ActorLimit = s.pool.Bounds()
	t.DeadReasons = s.audience.Letters.Reasons()
	t.TurnTimes = s.turnTimes.All()
	t.Ended = s.totals.Ended()
	return t
}

// Flowed is a message that was sampled: From, To, Kind, Size, OneIn (it stands for so many messages) and First (of its turn).
// It is reported when the turn that has taken it ends. A message to no actor of the tree (an answer to the outside) is
// sampled when the turn that sends it ends.
type Flowed = look.Flowed

// ErrSampling says that another sample is already running.
var ErrSampling = errors.New("host: the flow is being sampled already")

// SampleFlow calls f for the messages of some turns until stop is called: of every turn at
// first, and of half as many whenever most messages were sampled. So the sum of Flowed.OneIn
// is an unbiased estimate of how many messages there were. f is called by workers, also at
// the same time: it must be quick. Only one caller may sample at a time: ErrSampling.
func (v View) SampleFlow(most int, f func(*Flowed)) (stop func(), err error) {
	stop, ok := v.sys.audience.Sample(look.NewSampler(most, f))
	if !ok {
		return nil, ErrSampling
	}
	return stop, nil
}
