package observe

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/supervision"
)

// planning bounds the wait for supervisors, all together, that are in the middle of a
// turn.
const planning = time.Second

// checkedVerb is a verb whose arguments were checked.
type checkedVerb struct {
	Verb
	directive supervision.Directive
	kind      abi.FailureKind
}

// Do applies a command to actors and reports what was done, sorted by path. It does not wait until the command has taken
// effect: a running turn ends first (see host's methods for each). If the command does not apply to an actor, its Change has
// an Error that says why, and the others are still done. Do itself fails only if the verb is invalid. With DryRun nothing
// changes.
func (o *Observer) Do(v Verb) (Outcome, error) {
	d, err := v.check()
	if err != nil {
		return Outcome{}, err
	}
	m, err := v.Select.compile("")
	if err != nil {
		return Outcome{}, err
	}
	var chosen []host.Info
	o.afresh(func(s *snapshot) {
		for i := range s.infos {
			if x := &s.infos[i]; m.match(x) && (!x.Parent.IsZero() || d.guardians(x)) {
				chosen = append(chosen, *x)
			}
		}
	})
	slices.SortFunc(chosen, func(a, b host.Info) int { return a.Ref.Compare(b.Ref) })
	ctx, cancel := context.WithTimeout(context.Background(), planning)
	defer cancel()
	out := Outcome{Version: Version, Verb: v.Verb, DryRun: v.DryRun, Changed: []Change{}}
	changes := make([]Change, len(chosen))
	for i := range chosen { // all before the first order, which changes what the others do
		x, c := &chosen[i], &changes[i]
		*c = Change{Path: x.Ref.Path(), Ref: refText(x.Ref), State: stateOf(x.State)}
		c.Did, c.Error = o.plan(ctx, d, x)
	}
	for i, c := range changes {
		if c.Error == "" && !v.DryRun {
			if err := o.carryOut(d, &chosen[i]); err != nil {
				c.Did, c.Error = "", reason(err)
			}
		}
		out.add(c)
	}
	if !v.DryRun {
		o.expire() // the next view shows the changes
	}
	return out, nil
}

func (v Verb) check() (checkedVerb, error) {
	d := checkedVerb{Verb: v}
	if !slices.Contains(Verbs(), v.Verb) {
		return d, invalid("there is no verb %q; the verbs are %s", clip(v.Verb), strings.Join(Verbs(), ", "))
	}
	if v.Select.Empty() {
		return d, invalid("which actors? Select some by paths (/** is all), types, states or refs")
	}
	if v.Directive != "" && v.Verb != VerbDecide || (v.Reason != "" || v.Kind != "") && v.Verb != VerbCrash || v.Subtree && v.Verb != VerbPause && v.Verb != VerbUnpause {
		return d, invalid("%s takes no directive (decide does), reason or kind (crash does), or subtree (pause and unpause do)", v.Verb)
	}
	switch v.Verb {
	case VerbDecide:
		x, ok := supervision.ParseDirective(v.Directive)
		if !ok || x != supervision.Resume && x != supervision.Restart && x != supervision.Stop {
			return d, invalid("the directive is resume, restart or stop, not %q", clip(v.Directive))
		}
		d.directive = x
	case VerbCrash:
		if d.kind = abi.FailureGuestError; v.Kind != "" {
			var ok bool
			if d.kind, ok = abi.ParseFailureKind(v.Kind); !ok {
				return d, invalid("there is no failure of the kind %q", clip(v.Kind))
			}
		}
		if len(v.Reason) > mostReason {
			return d, invalid("a reason has at most %d bytes", mostReason)
		}
	}
	return d, nil
}

// mostReason bounds the reason of a simulated failure, in bytes.
const mostReason = 1024

// guardians reports whether the verb applies to /user or /system, which only a path that names it
// and a pause do.
func (d *checkedVerb) guardians(x *host.Info) bool {
	return (d.Verb.Verb == VerbPause || d.Verb.Verb == VerbUnpause) && slices.ContainsFunc(d.Select.Paths, func(p string) bool {
		return !glob.HasMeta(p) && p == x.Ref.Path()
	})
}

// plan says what an order does to an actor in its state, or why it makes no sense.
func (o *Observer) plan(ctx context.Context, d checkedVerb, x *host.Info) (did, why string) {
	if x.State == host.StateStopping {
		return "", "it is stopping already"
	}
	switch d.Verb.Verb {
	case VerbStop:
		if ofHost(x) {
			return "", "a service runs as long as the bundle does; restart starts it again, pause lets its requests wait"
		}
		return "stops after its present turn", ""
	case VerbKill:
		if ofHost(x) {
			return planCrash(x)
		}
		return "stops at once", ""
	case VerbRestart:
		return planRestart(x)
	case VerbPause:
		switch {
		case x.Paused && !d.Subtree:
			return "was paused already", ""
		case d.Subtree:
			return "is paused with all below it", ""
		}
		return "is paused", ""
	case VerbUnpause:
		switch {
		case d.Subtree:
			return "unpaused with all below it", ""
		case !x.Paused:
			return "was not paused", ""
		}
		return "unpaused", ""
	case VerbCrash:
		return planCrash(x)
	case VerbDecide:
		return o.planDecide(ctx, d, x)
	}
	return "its failures are counted from the beginning", ""
}

// ofHost reports whether an actor is a service, or another child of /system: others have its ref, and rely on it
// until they have ended.
func ofHost(x *host.Info) bool { return x.Parent.Path() == "/system" }

func planRestart(x *host.Info) (did, why string) {
	switch {
	case x.Since == 0:
		return "", "it is about to begin its first incarnation"
	case x.State == host.StateDelayed:
		return "is restarted now instead of waiting for it", ""
	case x.Failed:
		return "is restarted instead of waiting for a decision", ""
	}
	return "is restarted", ""
}

func planCrash(x *host.Info) (did, why string) {
	switch {
	case x.State == host.StateStarting:
		return "", "it has not begun yet"
	case x.State == host.StateDelayed:
		return "", "it waits for its restart"
	case x.Failed:
		return "", "it has failed already"
	}
	return "fails after its present turn", ""
}

func (o *Observer) planDecide(ctx context.Context, d checkedVerb, x *host.Info) (did, why string) {
	if !x.Failed {
		return "", "it does not wait for a decision"
	}
	i, err := o.sys.View().Inspect(ctx, x.Ref)
	switch {
	case err != nil:
		return "", reason(err)
	case i.Record != nil && !i.Left:
		return "", "its supervisor decides about it"
	case i.Record == nil:
		return d.Directive + ", when its supervisor's turn has ended, if it leaves that to an operator", ""
	}
	return d.Directive, ""
}

// carryOut gives an order.
func (o *Observer) carryOut(d checkedVerb, x *host.Info) error {
	ref := x.Ref
	switch d.Verb.Verb {
	case VerbStop:
		o.sys.Stop(ref)
	case VerbKill:
		if ofHost(x) { // its supervisor starts it again, as it does after every end that is not the system's
			return o.sys.Operate().Crash(ref, abi.FailureKilled, "killed by an operator")
		}
		o.sys.StopNow(ref)
	case VerbRestart:
		return o.sys.Operate().Restart(ref)
	case VerbPause:
		return o.sys.Operate().Pause(ref, d.Subtree)
	case VerbUnpause:
		return o.sys.Operate().Unpause(ref, d.Subtree)
	case VerbCrash:
		return o.sys.Operate().Crash(ref, d.kind, d.Reason)
	case VerbDecide:
		return o.sys.Operate().Decide(ref, d.directive)
	case VerbResetBackoff:
		return o.sys.Operate().ResetBackoff(ref)
	}
	return nil
}
