// Package window is how the actors of a system are seen: host.View is its View. It takes no part, and costs the actors nothing but
// what a tap, a sample or a visit says.
package window

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/view"
)

// View is what can be seen of a system's actors, without taking part: what each is and does, totals, the messages and the
// fuel of running turns. All methods may be called concurrently.
type View struct{ of Engine }

// Of is a View of a system.
func Of(e Engine) View { return View{e} }

// Info is the present Info of an actor; ErrUnknown if it has stopped.
func (v View) Info(of ref.Ref) (view.Info, error) {
	a := v.of.Here(of.UID())
	if a == nil {
		return view.Info{}, errs.ErrUnknown
	}
	return v.info(a), nil
}

// info is the Info of an actor, with the number of children.
func (v View) info(a Actor) view.Info {
	i := a.Info()
	i.Children = a.Below() + v.of.Away().Below(i.Ref.UID())
	return i
}

// AppendInfo appends the current Info of every actor, /user and /system included, in no particular order. Actors that start
// or stop during the call may be left out. It holds no lock that a message needs. To add up what actors have done, use
// [View.Census].
func (v View) AppendInfo(to []view.Info) []view.Info { return v.of.AppendInfo(to, nil) }

// Census is AppendInfo plus the totals, by type, of stopped actors. Each actor is in one of the two, so their sums never
// decrease from one call to the next. /user and /system have no type and are in neither. Calls wait for each other.
func (v View) Census(to []view.Info) (infos []view.Info, ended map[string]view.TypeStats) {
	ended = v.of.Counts().Count(func(c *look.Census) { to = v.of.AppendInfo(to, c) })
	return to, ended
}

// Held is what the host holds for an actor at the moment; ErrUnknown if it has stopped.
func (v View) Held(of ref.Ref) (view.Held, error) {
	a := v.of.Here(of.UID())
	if a == nil {
		return view.Held{}, errs.ErrUnknown
	}
	return a.Held(), nil
}

// Tap calls f for the messages of an actor until stop is called or the actor has stopped, with at most payload bytes of
// each payload. f is called by the worker that runs the actor, in the order of its turns: it must be quick, and a Tapped
// is valid until it returns. ended, which may be nil, is called once when the actor has stopped, unless stop was called
// before; it may call stop. Tap fails with ErrUnknown. While any actor is tapped every turn of the system costs some
// nanoseconds more.
func (v View) Tap(of ref.Ref, payload int, f func(*look.Tapped), ended func()) (stop func(), err error) {
	a := v.of.Here(of.UID())
	if a == nil {
		return nil, errs.ErrUnknown
	}
	t := look.NewTap(payload, f, ended)
	stop = v.of.Audience().Tap(a.Taps(), t)
	if a.Stopped() { // it may not have seen the tap
		go t.Ended()
	}
	return stop, nil
}

// DefaultInspectTimeout is how long Inspect waits for an actor whose context has no deadline.
const DefaultInspectTimeout = 100 * time.Millisecond

// Inspect looks at one actor. What only the actor and its supervisor know is read between two
// of their turns; it is missing if a turn goes on until ctx ends, or if more than 1000 looks wait already. It fails with
// ErrUnknown if the actor has stopped.
func (v View) Inspect(ctx context.Context, of ref.Ref) (view.Inspection, error) {
	a := v.of.Here(of.UID())
	if a == nil {
		return view.Inspection{}, errs.ErrUnknown
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultInspectTimeout)
		defer cancel()
	}
	var x view.Inspection
	a.Bounds(&x)
	own := a.Visit(func() { a.Details(&x) })
	above := a.VisitAbove(&x, func() { a.Record(&x) })
	own.Wait(ctx)
	own.Done() // what is not done by now never will be
	above.Wait(ctx)
	above.Done()
	x.Info = v.info(a)
	return x, nil
}

// Stats takes a snapshot. It looks at every actor. Totals never go down from one call to the next,
// those of a type included: an actor that stops during the call counts once, as living or as stopped.
func (v View) Stats() view.Stats {
	figures := v.of.Figures()
	st := view.Stats{Actors: figures.Actors, Asleep: figures.Asleep, Crashes: figures.Crashes, Restarts: figures.Restarts}
	_, st.DeadLetters = v.of.Audience().Letters.All()
	living := map[string]*view.TypeStats{}
	st.Types = v.of.Counts().Count(func(c *look.Census) {
		defer v.of.Away().Hold()() // each is on one side
		v.of.Each(func(a Actor) {
			if a.Guardian() || !c.Meets(a.Counted()) {
				return // a guardian is nobody's
			}
			t := look.OfType(&living, a.Type())
			t.Actors++
			t.Add(a.Tally())
		})
		v.of.Away().Count(&living)
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
func (v View) Tree() view.Node { tree, _ := v.TreeUpTo(math.MaxInt); return tree }

// TreeUpTo is Tree with at most most actors, at least /user, each before those below it. whole: there are no more.
func (v View) TreeUpTo(most int) (tree view.Node, whole bool) {
	defer v.of.Away().Hold()() // each is on one side
	tree = v.node(v.of.User(), &most)
	return tree, most >= 0
}

// node is the tree below an actor; what is left of most is negative if it is not whole.
func (v View) node(a Actor, most *int) view.Node {
	*most--
	n := a.Node()
	a.Children(func(k Actor) bool {
		if *most <= 0 {
			*most = -1
			return false
		}
		n.Children = append(n.Children, v.node(k, most))
		return true
	})
	n.Children = v.of.Away().AppendNodes(n.Children, n.Ref.UID(), most)
	return n
}

// Totals takes a snapshot.
func (v View) Totals() view.Totals {
	t := v.of.Figures()
	letters := &v.of.Audience().Letters
	t.DeadLetters, t.DeadReasons = letters.N(), letters.Reasons()
	t.Ended = v.of.Counts().Ended()
	return t
}

// ErrSampling says that another sample is already running.
var ErrSampling = errors.New("host: the flow is being sampled already")

// SampleFlow calls f for the messages of some turns until stop is called: of every turn at
// first, and of half as many whenever most messages were sampled. So the sum of Flowed.OneIn
// is an unbiased estimate of how many messages there were. f is called by workers, also at
// the same time: it must be quick. Only one caller may sample at a time: ErrSampling.
func (v View) SampleFlow(most int, f func(*look.Flowed)) (stop func(), err error) {
	stop, ok := v.of.Audience().Sample(look.NewSampler(most, f))
	if !ok {
		return nil, ErrSampling
	}
	return stop, nil
}
