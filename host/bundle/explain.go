package bundle

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Explain writes, for a person, which supervisor decides on the failures of an actor and what follows: the rules, the
// limits, the delays before restarts. path is /user/a/b or a/b.
func (m *Manifest) Explain(w io.Writer, path string) error {
	var chain []*Actor // from the top down to the actor
	var paths []string
	want := "/user/" + strings.TrimPrefix(strings.TrimPrefix(path, "/"), "user/")
	var names []string
	m.Walk(func(p string, a *Actor) {
		names = append(names, p)
		if p == want || strings.HasPrefix(want, p+"/") {
			chain, paths = append(chain, a), append(paths, p)
		}
	})
	if len(paths) == 0 || paths[len(paths)-1] != want {
		return fmt.Errorf("there is no actor %s%s", want, grammar.Suggest(want, names))
	}
	a := chain[len(chain)-1]
	e := explanation{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), s: m.Supervision, boss: "/user, the guardian of the bundle"}
	if len(chain) > 1 {
		boss := chain[len(chain)-2]
		e.s, e.boss = boss.Supervision, paths[len(paths)-2]+" ("+boss.Shown()+")"
	}
	if a.Resend != nil {
		return e.resend(want, a)
	}
	e.line("%s", want+" ("+a.Shown()+")")
	e.line("")
	if a.many() {
		each := "each routee"
		e.s, e.boss = a.Supervision, "its router"
		if a.Keyed != nil {
			each, e.s, e.boss = "the actor of each key", a.Keyed.Supervision, "its keeper"
		}
		e.line("%s", each)
		chain, paths = append(chain, a), append(paths, want)
	}
	e.line("decided by\t%s", e.boss)
	e.line("concerns\t%s", map[supervision.Kind]string{
		supervision.OneForOne: "the actor alone (one-for-one)", supervision.AllForOne: "all its siblings, too (all-for-one)",
		supervision.RestForOne: "the siblings started after it, too (rest-for-one)",
	}[e.s.Kind()])
	e.ends(a)
	e.failures(a)
	e.limits()
	e.delays()
	e.line("crashed message\t%s", a.Crashed)
	if !a.Mailbox.IsUsual() {
		e.line("mailbox\t%s", a.Mailbox)
	}
	if d := a.Dispatcher.String(); d != "" {
		e.line("dispatcher\t%s", d)
	}
	if len(chain) > 1 {
		e.line("escalation\t%s fails, and its own supervisor decides about both", paths[len(paths)-2])
	} else {
		e.line("escalation\tthe whole bundle ends, with exit code 1")
	}
	return e.w.Flush()
}

// resend explains an actor with a resender: the resender has the actor's name and path, keeps
// its messages, and starts another child whenever the actor ends.
func (e *explanation) resend(path string, a *Actor) error {
	r := a.Resend
	e.line("%s (%s/%s), behind a resender of that name", path, a.Module, a.Type)
	e.line("")
	e.line("decided by\tits resender: every failure is the end of this one, and another is started")
	e.line("waits\tbefore the next one, by the ends since all messages were confirmed")
	e.waits(r.Policy, shown)
	e.line("  count\tis reset when all that was kept is confirmed")
	e.line("messages\tare kept until they are confirmed, %d at most; then the oldest becomes a dead letter", cmp.Or(r.Keep, 1000))
	e.line("sent again\tone after the other, the oldest first; one that is not confirmed holds up the others for %v", cmp.Or(r.Patience, 5*time.Second))
	e.line("crashed message\tis sent again; after %d ends over it it becomes a dead letter", cmp.Or(r.Attempts, 10))
	if r.MaxCrashes > 0 {
		e.line("gives up\tafter more than %d ends the resender fails itself, and its supervisor decides:", r.MaxCrashes)
	} else {
		e.line("gives up\tnever; should the resender itself fail, its supervisor decides:")
	}
	e.line("  %v\tby %s", e.s.Decide("resender", &abi.Failure{Kind: abi.FailureGuestError}), e.boss)
	return e.w.Flush()
}

type explanation struct {
	w    *tabwriter.Writer
	s    supervision.Strategy // of the supervisor
	boss string
}

func (e *explanation) line(format string, args ...any) { fmt.Fprintf(e.w, format+"\n", args...) }

func (e *explanation) ends(a *Actor) {
	e.line("restarted\t%s", map[supervision.Lifetime]string{
		supervision.Transient: "when it fails (transient)", supervision.Permanent: "when it fails and when it stops itself (permanent)",
		supervision.Temporary: "never (temporary)",
	}[a.Lifetime])
	if a.Significant && e.s.Shutdown() != supervision.ShutdownNever {
		which := "the first"
		if e.s.Shutdown() == supervision.ShutdownAll {
			which = "the last"
		}
		e.line("significant\tits supervisor stops with %s significant child that ends", which)
	}
}

// failures says which kinds get which directive. Rules that depend on more than the kind are
// listed one by one.
func (e *explanation) failures(a *Actor) {
	e.line("")
	for _, r := range e.s.Rules() {
		if r.Reason == "" && r.Type == "" {
			continue
		}
		var when []string
		if len(r.Kinds) > 0 {
			when = append(when, kindNamesOf(r.Kinds))
		}
		if r.Reason != "" {
			when = append(when, fmt.Sprintf("reason like %q", r.Reason))
		}
		if r.Type != "" {
			when = append(when, fmt.Sprintf("type like %q", r.Type))
		}
		e.line("%v\t%s", r.Directive, strings.Join(when, ", "))
	}
	by := map[supervision.Directive][]abi.FailureKind{}
	for _, k := range abi.FailureKinds() {
		d := e.s.Decide(a.Type, &abi.Failure{Kind: k})
		by[d] = append(by[d], k)
	}
	for _, d := range supervision.Directives() {
		if len(by[d]) > 0 {
			e.line("%v\t%s", d, kindNamesOf(by[d]))
		}
	}
	e.line("")
}

func kindNamesOf(kinds []abi.FailureKind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
	}
	return strings.Join(names, ", ")
}

func (e *explanation) limits() {
	n, within := e.s.MaxRestarts()
	window := map[bool]string{false: "tumbling", true: "sliding"}[e.s.Sliding()]
	whose := "of the actor"
	if e.s.Shared() {
		whose = "of all children together"
	}
	switch {
	case n < 0 && within == 0:
		e.line("restarts\twithout limit")
	case within == 0:
		e.line("restarts\t%d in the life %s; one more failure: %v", n, whose, e.s.Exceeded())
	default:
		e.line("restarts\t%d within %v (%s) %s; one more failure: %v", max(n, 1), within, window, whose, e.s.Exceeded())
	}
}

// shown is how many delays are listed.
const shown = 10

func (e *explanation) delays() {
	b, ok := e.s.Backoff()
	if !ok {
		e.line("delays\tnone: restarts are at once")
		return
	}
	e.line("delays\t%s", map[supervision.Ends]string{
		0: "after failures and after its own stop", supervision.OnFailure: "after failures", supervision.OnStop: "after its own stop",
	}[b.On])
	rows := shown
	if b.MaxFailures > 0 {
		rows = min(rows, b.MaxFailures)
	}
	e.waits(b.Policy, rows)
	switch b.Reset {
	case supervision.ResetNever:
		e.line("  count\tis never reset")
	case supervision.ResetManual:
		e.line("  count\tis reset when the actor says so")
	default:
		if b.ResetAfter > 0 {
			e.line("  count\tis reset when it has lived for %v", b.ResetAfter)
		} else {
			e.line("  count\tis reset when it has lived as long as its last delay")
		}
	}
	if b.MaxFailures > 0 {
		e.line("  gives up\tafter %d failures: %s", b.MaxFailures, supervision.GiveUps()[b.GiveUp])
	}
	meanwhile := map[supervision.Meanwhile]string{
		supervision.MeanwhileKeep: "wait in the mailbox", supervision.MeanwhileDrop: "become dead letters", supervision.MeanwhileReply: "are answered with an error",
	}[b.Meanwhile]
	if b.Stash > 0 {
		meanwhile += fmt.Sprintf(", %d at most; then the oldest becomes a dead letter", b.Stash)
	}
	e.line("  messages\t%s", meanwhile)
	if b.Grace > 0 {
		e.line("  grace\t%v after a delayed restart before it gets what has waited", b.Grace)
	}
}

// waits lists the first delays of a policy, and their sum.
func (e *explanation) waits(p backoff.Policy, rows int) {
	var least, most time.Duration
	for n := range rows {
		lo, hi := p.Delay(n, extreme(0)), p.Delay(n, extreme(1))
		lo, hi = min(lo, hi), max(lo, hi)
		least, most = least+lo, most+hi
		e.line("  %d\t%s\tin all %s", n+1, between(lo, hi), between(least, most))
	}
}

func between(lo, hi time.Duration) string {
	round := func(d time.Duration) time.Duration {
		switch {
		case d >= time.Minute:
			return d.Round(time.Second)
		case d >= time.Second:
			return d.Round(time.Millisecond)
		}
		return d.Round(time.Microsecond)
	}
	if lo, hi = round(lo), round(hi); lo == hi {
		return lo.String()
	}
	return lo.String() + " to " + hi.String()
}

// extreme is a source of randomness that always draws the least (0) or nearly the most (1).
type extreme int

var _ backoff.Rand = extreme(0)

// Float64 implements backoff.Rand.
func (x extreme) Float64() float64 {
	if x == 0 {
		return 0
	}
	return 1 - 1e-9
}

// IntN implements backoff.Rand.
func (x extreme) IntN(n int) int {
	if x == 0 {
		return 0
	}
	return n - 1
}
