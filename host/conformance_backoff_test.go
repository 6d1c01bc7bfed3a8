package host

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Supervision with delays, carried out: semantics 1.4, 1.5, 3.5 and D14.

const ms = time.Millisecond

// lister keeps what it is told, and can fail at its start for a while.
type lister struct {
	got  *[]string
	sick *int // starts that are still to fail
}

func (a *lister) Started(*Context) error {
	if a.sick != nil && *a.sick > 0 {
		*a.sick--
		return errors.New("sick")
	}
	return nil
}

func (a *lister) Receive(ctx *Context, m Message) error {
	var text string
	if err := m.Decode(&text); err != nil {
		return err
	}
	switch text {
	case "crash":
		return errors.New("crashed")
	case "quit":
		ctx.Stop(ctx.Self())
		return nil
	case "healthy":
		ctx.Head().ResetBackoff()
		return nil
	}
	*a.got = append(*a.got, text)
	return nil
}

func newLister(got *[]string, sick *int) Props {
	return Native(func() Actor { return &lister{got: got, sick: sick} })
}

// Which ends are delayed: failure, stop, or any; and what the others come to.
func TestC_1_4_TriggerOn(t *testing.T) {
	for _, c := range []struct {
		name        string
		on          supervision.Ends
		life        supervision.Lifetime
		crash, quit string // the state right after
	}{
		{"any", supervision.OnAny, supervision.Permanent, "restarting", "restarting"},
		{"failure", supervision.OnFailure, supervision.Transient, "restarting", "gone"},
		{"Akka's onStop", supervision.OnStop, supervision.Permanent, "running", "restarting"},
		{"failure, but always there", supervision.OnFailure, supervision.Permanent, "restarting", "running"},
		{"temporary", supervision.OnAny, supervision.Temporary, "gone", "gone"},
	} {
		var got []string
		l := newLab(t, delayed(t, supervision.Backoff{On: c.on}))
		p := newLister(&got, nil).WithLifetime(c.life)
		l.tell(l.spawn("crash", p), "crash")
		l.tell(l.spawn("quit", p), "quit")
		if a, b := l.state("crash"), l.state("quit"); a != c.crash || b != c.quit {
			t.Errorf("%s: %s and %s, want %s and %s", c.name, a, b, c.crash, c.quit)
		}
		// Who is not delayed begins again at once; who is, when the delay is over and not before.
		for path, was := range map[string]string{"crash": c.crash, "quit": c.quit} {
			if was != "gone" {
				if n := l.table.Get(l.at(path).UID()).Incarnation(); n != map[string]uint64{"running": 1, "restarting": 0}[was] {
					t.Errorf("%s: %s is incarnation %d", c.name, path, n)
				}
			}
		}
		for _, e := range l.seen(EventFailed) {
			if was := map[string]string{"crash": c.crash, "quit": c.quit}[e.Ref.Name()]; (e.Delay == 200*ms) != (was == "restarting") || e.Delay != 0 && e.Delay != 200*ms {
				t.Errorf("%s: %s is delayed %v", c.name, e.Ref.Name(), e.Delay)
			}
		}
		l.pass(200*ms - 1)
		if a, b := l.state("crash"), l.state("quit"); a != c.crash || b != c.quit {
			t.Errorf("%s: %s and %s before the delay is over", c.name, a, b)
		}
		l.pass(1)
		for path, was := range map[string]string{"crash": c.crash, "quit": c.quit} {
			if was != "gone" {
				if n := l.table.Get(l.at(path).UID()).Incarnation(); n != 1 {
					t.Errorf("%s: %s is incarnation %d after the delay", c.name, path, n)
				}
			}
			if was == "restarting" {
				was = "running"
			}
			if now := l.state(path); now != was {
				t.Errorf("%s: %s after the delay: %s", c.name, path, now)
			}
		}
	}
	// 'stop': a clean stop is answered with another start, a crash ends the supervisor.
	var got []string
	l := newLab(t, supervision.Stopping())
	s := delayed(t, supervision.Backoff{On: supervision.OnStop}).WithOtherwise(supervision.Escalate)
	l.spawn("top", parentOf(s, Child{"kid", newLister(&got, nil).WithLifetime(supervision.Permanent)}))
	l.tell(l.at("top/kid"), "quit")
	if l.state("top/kid") != "restarting" {
		t.Error(l.View().Tree())
	}
	l.pass(200 * ms)
	l.tell(l.at("top/kid"), "crash")
	if l.state("top") != "gone" {
		t.Error(l.View().Tree())
	}
}

// A poison pill is the actor's own stop, System.Stop is an order.
func TestC_1_4_OrdersAreNoEnds(t *testing.T) {
	var got []string
	l := newLab(t, delayed(t, supervision.Backoff{}))
	p := newLister(&got, nil).WithLifetime(supervision.Permanent)
	a, b := l.spawn("a", p), l.spawn("b", p)
	l.PoisonPill(a)
	l.Stop(b)
	l.run()
	if l.state("a") != "restarting" || l.state("b") != "gone" {
		t.Error(l.View().Tree())
	}
}

// Messages meanwhile: kept, with a bound beyond which the oldest go; dropped; or
// answered at once.
func TestC_1_5_MessagesMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name    string
		b       supervision.Backoff
		got     []string
		letters []DeadReason
	}{
		{"keep", supervision.Backoff{}, []string{"1", "2", "3", "4", "5"}, nil},
		{"keep 2", supervision.Backoff{Stash: 2}, []string{"4", "5"}, []DeadReason{DeadEvicted, DeadEvicted, DeadEvicted}},
		{"drop", supervision.Backoff{Meanwhile: supervision.MeanwhileDrop}, []string{"1", "2"}, []DeadReason{DeadRestarting, DeadRestarting, DeadRestarting}},
		{"reply", supervision.Backoff{Meanwhile: supervision.MeanwhileReply}, []string{"1", "2"}, []DeadReason{DeadRestarting, DeadRestarting, DeadRestarting}},
	} {
		var got []string
		l := newLab(t, delayed(t, c.b))
		ref := l.spawn("a", newLister(&got, nil))
		for _, m := range []string{"crash", "1", "2"} { // 1 and 2 wait in the mailbox already
			l.Tell(ref, m)
		}
		l.run()
		for _, m := range []string{"3", "4", "5"} {
			err := l.Tell(ref, m)
			if dropped := errors.Is(err, ErrRestarting); dropped != (c.b.Meanwhile != supervision.MeanwhileKeep) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		l.run()
		l.pass(200 * ms)
		if !slices.Equal(got, c.got) || !slices.Equal(l.letters(), c.letters) {
			t.Errorf("%s: %v, dead letters %v", c.name, got, l.letters())
		}
		l.tell(ref, "6")
		if got[len(got)-1] != "6" {
			t.Errorf("%s: after the restart: %v", c.name, got)
		}
	}
}

// A bounded stash never evicts what the host itself has put into the mailbox.
func TestC_1_4_StashKeepsNewsOfTheHost(t *testing.T) {
	var got []string
	l := newLab(t, delayed(t, supervision.Backoff{Stash: 1}))
	other := l.spawn("other", newCounter())
	ref := l.spawn("a", Native(func() Actor { return &watcher{lister{got: &got}, other} }))
	l.tell(ref, "crash")
	l.Stop(other)
	l.tell(ref, "1", "2", "3")
	l.pass(200 * ms)
	if !slices.Equal(got, []string{"3", "terminated"}) {
		t.Errorf("%v, dead letters %v", got, l.letters())
	}
}

type watcher struct {
	lister
	other Ref
}

func (w *watcher) Started(ctx *Context) error {
	if ctx.Head().Incarnation() == 0 {
		return ctx.Watch(w.other)
	}
	return nil
}

func (w *watcher) Receive(ctx *Context, m Message) error {
	if m.Kind == abi.KindTerminated {
		*w.got = append(*w.got, "terminated")
		return nil
	}
	return w.lister.Receive(ctx, m)
}

// Reply while stopped: whoever can be answered is, and that is not a dead letter.
func TestC_3_5_ReplyWhileStopped(t *testing.T) {
	for reply, want := range map[string]string{"": "the actor is about to be restarted", "come back later": "come back later"} {
		l := newLab(t, delayed(t, supervision.Backoff{Meanwhile: supervision.MeanwhileReply, Reply: reply}))
		ref := l.spawn("a", newCounter())
		l.tell(ref, "crash")
		var e *ReplyError
		if err := l.ask(ref, "get").Err(); !errors.As(err, &e) || e.Reason != want {
			t.Errorf("%v", err)
		}
		if _, err := l.Ask(context.Background(), ref, "get"); !errors.As(err, &e) || e.Reason != want {
			t.Errorf("Ask: %v", err)
		}
		if n := len(l.letters()); n != 0 {
			t.Errorf("%d dead letters", n)
		}
		l.pass(200 * ms)
		if l.get(ref) != 0 {
			t.Error("after the delay")
		}
	}
}

// Two that wait for their restarts do not answer each other's answers for ever.
func TestC_3_5_RepliesAreNotReplied(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{Meanwhile: supervision.MeanwhileReply}))
	a, b := l.spawn("a", newCounter()), l.spawn("b", newCounter())
	l.tell(a, "crash")
	l.tell(b, "crash")
	if err := l.TellFrom(a, b, 1); err != nil {
		t.Error(err)
	}
	l.run()
	if got := l.letters(); !slices.Equal(got, []DeadReason{DeadRestarting}) { // b's answer to a
		t.Errorf("%v", got)
	}
}

// Drain grace: a child that dies again takes down nothing of what waits; forwarding
// during the grace lets new messages overtake.
func TestC_1_4_DrainGrace(t *testing.T) {
	for _, c := range []struct {
		overtake bool
		during   []string // what has arrived within the grace
		after    []string
	}{{false, nil, []string{"old", "new"}}, {true, []string{"new"}, []string{"new", "old"}}} {
		var got []string
		sick := 0
		l := newLab(t, delayed(t, supervision.Backoff{Grace: 50 * ms, Overtake: c.overtake, Reset: supervision.ResetNever}))
		ref := l.spawn("a", newLister(&got, &sick))
		sick = 0
		l.tell(ref, "crash", "old")
		l.pass(200 * ms)
		l.tell(ref, "new")
		if !slices.Equal(got, c.during) {
			t.Errorf("overtake %v: %v during the grace", c.overtake, got)
		}
		l.pass(49 * ms)
		if !slices.Equal(got, c.during) {
			t.Errorf("overtake %v: %v before its end", c.overtake, got)
		}
		l.pass(ms)
		if !slices.Equal(got, c.after) {
			t.Errorf("overtake %v: %v after it", c.overtake, got)
		}
	}
}

func TestC_1_4_DyingInTheGraceKeepsTheStash(t *testing.T) {
	for _, overtake := range []bool{false, true} {
		var got []string
		l := newLab(t, delayed(t, supervision.Backoff{Grace: 50 * ms, Overtake: overtake, Reset: supervision.ResetNever}))
		ref := l.spawn("a", newLister(&got, nil))
		l.tell(ref, "crash", "1", "2")
		l.pass(200 * ms)
		if overtake {
			l.tell(ref, "crash") // comes in before 1 and 2
		} else {
			l.fails("a")
			l.run()
		}
		if l.state("a") != "restarting" || len(got) != 0 {
			t.Fatalf("%s, %v", l.state("a"), got)
		}
		l.pass(400 * ms)
		l.tell(ref, "3")
		l.pass(50 * ms)
		want := []string{"1", "2", "3"}
		if overtake {
			want = []string{"3", "1", "2"}
		}
		if !slices.Equal(got, want) || len(l.letters()) != 0 {
			t.Errorf("overtake %v: %v, %v", overtake, got, l.letters())
		}
	}
	// Stopping in the grace makes dead letters of what waits; actor-ts drops it silently.
	var got []string
	l := newLab(t, delayed(t, supervision.Backoff{Grace: 50 * ms, Overtake: true}))
	ref := l.spawn("a", newLister(&got, nil))
	l.tell(ref, "crash", "1", "2")
	l.pass(200 * ms)
	l.Stop(ref)
	l.run()
	if !slices.Equal(l.letters(), []DeadReason{DeadStopped, DeadStopped}) || l.clock.Pending() != 0 {
		t.Errorf("%v, %d timers", l.letters(), l.clock.Pending())
	}
}

// Giving up after n failures: stop, escalate or suspend.
func TestC_1_4_GivesUp(t *testing.T) {
	for up, want := range map[supervision.GiveUp]string{supervision.GiveUpStop: "gone", supervision.GiveUpEscalate: "gone", supervision.GiveUpSuspend: "failed"} {
		var got []string
		l := newLab(t, supervision.Stopping())
		l.spawn("top", parentOf(delayed(t, supervision.Backoff{MaxFailures: 2, GiveUp: up}), Child{"kid", newLister(&got, nil)}))
		kid := l.at("top/kid")
		for i := range 3 {
			l.tell(kid, "crash", "waits")
			if i < 2 {
				l.pass(400 * ms)
			}
		}
		top := "running"
		if up == supervision.GiveUpEscalate {
			top = "gone"
		}
		if l.state("top/kid") != want || l.state("top") != top {
			t.Errorf("%v: %s and %s", up, l.state("top/kid"), l.state("top"))
		}
		if up != supervision.GiveUpSuspend {
			continue
		}
		if err := l.Operate().Decide(kid, supervision.Restart); err != nil {
			t.Error(err)
		}
		l.run()
		if l.state("top/kid") != "running" || len(got) != 3 {
			t.Errorf("restarted by hand: %s, %v", l.state("top/kid"), got)
		}
	}
}

// The count starts again after a stable life, never, or by hand, from within or
// without. A start that succeeds resets nothing.
func TestC_1_4_ResetOfTheCount(t *testing.T) {
	crash := func(l *lab, ref Ref, after, want time.Duration) {
		t.Helper()
		l.pass(after)
		l.seen()
		l.tell(ref, "crash")
		e := l.next(EventFailed)
		if e.Delay != want {
			t.Errorf("%v, want %v", e.Delay, want)
		}
		l.pass(e.Delay)
	}
	var got []string
	stable := newLab(t, delayed(t, supervision.Backoff{ResetAfter: time.Second}))
	ref := stable.spawn("a", newLister(&got, nil))
	crash(stable, ref, 0, 200*ms)
	crash(stable, ref, 999*ms, 400*ms)
	crash(stable, ref, 1000*ms, 200*ms)

	never := newLab(t, delayed(t, supervision.Backoff{Reset: supervision.ResetNever}))
	ref = never.spawn("a", newLister(&got, nil))
	crash(never, ref, 0, 200*ms)
	crash(never, ref, 24*time.Hour, 400*ms)

	manual := newLab(t, delayed(t, supervision.Backoff{Reset: supervision.ResetManual}))
	ref = manual.spawn("a", newLister(&got, nil))
	crash(manual, ref, 0, 200*ms)
	crash(manual, ref, 24*time.Hour, 400*ms)
	if err := manual.Operate().ResetBackoff(ref); err != nil {
		t.Error(err)
	}
	crash(manual, ref, 0, 200*ms)
	crash(manual, ref, 0, 400*ms)
	manual.tell(ref, "healthy") // Head.ResetBackoff
	crash(manual, ref, 0, 200*ms)
	if err := manual.Operate().ResetBackoff(newRef(7, "")); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// The guest's command reset_backoff.
func TestC_3_5_GuestResetsTheBackoff(t *testing.T) { awakeOrNot(t, rowC_3_5_GuestResetsTheBackoff) }

func rowC_3_5_GuestResetsTheBackoff(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{Reset: supervision.ResetManual}))
	ref := l.spawn("a", familyGuest(t, "worker"))
	for _, want := range []time.Duration{200 * ms, 400 * ms} {
		l.tell(ref, "panic x")
		if d := l.next(EventFailed).Delay; d != want {
			t.Errorf("%v, want %v", d, want)
		}
		l.pass(want)
	}
	l.tell(ref, "reset", "panic x")
	if d := l.next(EventFailed).Delay; d != 200*ms {
		t.Errorf("%v after the reset", d)
	}
}

// A pending delay is cancelled by stop, of the actor or of who is above it, and by a
// restart of that; then no timer is left.
func TestD14_DelaysAreCancelled(t *testing.T) {
	for name, end := range map[string]func(l *lab){
		"stop":         func(l *lab) { l.Stop(l.at("top/kid")) },
		"stop above":   func(l *lab) { l.Stop(l.at("top")) },
		"restart":      func(l *lab) { l.tell(l.at("top"), "crash") },
		"end of all":   func(l *lab) { l.Close(context.Background()) },
		"by a failure": func(l *lab) { l.fails("top") },
	} {
		l := newLab(t, supervision.Default())
		l.spawn("top", newCounter().WithSupervision(delayed(t, supervision.Backoff{})).WithChildren(Child{"kid", newCounter()}))
		old := l.at("top/kid")
		l.tell(old, "crash")
		if l.state("top/kid") != "restarting" || l.clock.Pending() != 1 {
			t.Fatal(l.View().Tree())
		}
		end(l)
		l.run()
		if l.clock.Pending() != 0 || l.table.Get(old.UID()) != nil {
			t.Errorf("%s: %d timers\n%v", name, l.clock.Pending(), l.View().Tree())
		}
		l.pass(time.Hour)
	}
}

// A delay occupies no worker: with one worker, thousands wait and the others work on.
func TestD14_DelaysOccupyNoWorker(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{}))
	var refs []Ref
	for range 2000 {
		refs = append(refs, must(l.Spawn("", newCounter()))(t))
	}
	for _, r := range refs {
		l.Tell(r, "crash")
	}
	other := l.spawn("other", newCounter())
	for n := 1; n <= 100; n++ {
		l.tell(other, 1)
	}
	if l.get(other) != 100 || l.clock.Pending() != 2000 || l.Step() {
		t.Errorf("%d timers", l.clock.Pending())
	}
	l.pass(200 * ms)
	for _, r := range refs {
		if l.get(r) != 0 {
			t.Fatal("lost")
		}
	}
}

// The jitter comes from the system's seed: one seed, one run.
func TestD14_DelaysAreSeeded(t *testing.T) {
	p, _ := backoff.Spec{Min: 3 * time.Second, Max: 30 * time.Second, Jitter: "additive", Spread: 0.2}.Policy()
	run := func(seed uint64) (ds []time.Duration) {
		s, clock := manual(t, func(c Config) Config {
			return c.WithSeed(seed).WithGuardian(supervision.Default().WithBackoff(supervision.Backoff{Policy: p, Reset: supervision.ResetNever}))
		})
		l := &lab{s, t, clock, s.Subscribe(100, nil)}
		ref := l.spawn("a", newCounter())
		for n, base := range []time.Duration{3, 6, 12, 24, 30, 30} { // Akka's sample
			l.tell(ref, "crash")
			d := l.next(EventFailed).Delay
			if base *= time.Second; d < base || d >= base*6/5 {
				t.Errorf("n = %d: %v", n, d)
			}
			ds = append(ds, d)
			l.pass(d)
		}
		return ds
	}
	a, b, c := run(1), run(1), run(2)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("%v\n%v\n%v", a, b, c)
	}
}

// A child that keeps failing at its start backs off under a rule that restarts it; by
// default a failing start stops.
func TestC_3_5_FailingStartsBackOff(t *testing.T) {
	var got []string
	sick := 4
	l := newLab(t, delayed(t, supervision.Backoff{}).WithOtherwise(supervision.Restart))
	ref := l.spawn("a", newLister(&got, &sick))
	l.tell(ref, "1")
	for _, d := range []time.Duration{200, 400, 800, 1600} {
		if e := l.next(EventFailed); e.Delay != d*ms || e.Failure.Kind != abi.FailureInit {
			t.Errorf("%v, %v", e.Delay, e.Failure)
		}
		l.pass(d * ms)
	}
	if !slices.Equal(got, []string{"1"}) { // nothing was taken down
		t.Errorf("%v", got)
	}
}

// The ref stays the same over restarts, also delayed ones; Akka's changes.
func TestC_3_5_TheRefStays(t *testing.T) {
	l := newLab(t, delayed(t, supervision.Backoff{}))
	ref := l.spawn("a", newCounter())
	l.tell(ref, "crash", 4)
	l.pass(200 * ms)
	if l.at("a") != ref || l.get(ref) != 4 {
		t.Error("another ref")
	}
}
