package host

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/outside"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/supervision"
)

// witness is a receiver that watches an actor, and notes whether its parent has been told of the end before.
type witness struct {
	outside.Deaf
	parent *actor
	heard  []bool
}

func (w *witness) Ended(abi.Ref, string) bool {
	w.heard = append(w.heard, w.parent.sysq.Waiting())
	return true
}

// B30: of the end of a child its parent is told before those who watch it, so that who hears of it finds the
// bookkeeping done.
func TestB30_TheParentHearsFirst(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart))
	l.spawn("p", parentOf(supervision.Default(), Child{"kid", newCounter()}))
	w := &witness{parent: l.table.Get(l.at("p").UID())}
	uid := l.outside.NewRef()
	l.outside.Put(uid, w)
	kid := l.table.Get(l.at("p/kid").UID())
	kid.post(nil, sysmail.Msg{Kind: sysmail.Signal, Signal: &signal.Signal{Kind: signal.Watch, From: uid}})
	l.run()
	l.Stop(l.at("p/kid"))
	l.run()
	if !slices.Equal(w.heard, []bool{true}) {
		t.Errorf("the parent was told before: %v", w.heard)
	}
}

// What has been posted to an actor when it ends is not lost: who watches is told, and who looks goes on.
func TestNewsThatComeTooLate(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart))
	told := 0
	a := l.spawn("a", newCounter())
	w := l.spawn("w", Func(func(ctx *Context, m Message) error {
		if m.Kind == abi.KindTerminated {
			told++
			return nil
		}
		ctx.System().Stop(a) // and behind it in the same queue:
		return ctx.Watch(a)
	}))
	l.tell(w, "go")
	if told != 1 {
		t.Errorf("told %d times of the end", told)
	}
	b := l.table.Get(l.spawn("b", newCounter()).UID())
	late := look.NewLook(func() { t.Error("it has ended, and is read") })
	b.post(nil, sysmail.Msg{Kind: sysmail.Stop})
	b.post(nil, sysmail.Msg{Kind: sysmail.Look, Own: sysmail.Own{Look: late}})
	l.run()
	select {
	case <-late.Answered():
	default:
		t.Error("who looks waits for ever")
	}
	lateNews(t, l)
}

// lateNews posts to an actor while it ends, when its system messages are not taken any more.
func lateNews(t *testing.T, l *lab) {
	w := &witness{}
	uid := l.outside.NewRef()
	l.outside.Put(uid, w)
	late := look.NewLook(func() { t.Error("it has ended, and is read") })
	c := l.spawn("c", Native(func() Actor {
		return &parting{do: func(ctx *Context) {
			a := l.table.Get(ctx.Self().UID())
			w.parent = a.parent
			a.post(nil, sysmail.Msg{Kind: sysmail.Signal, Signal: &signal.Signal{Kind: signal.Watch, From: uid}})
			a.post(nil, sysmail.Msg{Kind: sysmail.Look, Own: sysmail.Own{Look: late}})
		}}
	}))
	l.Stop(c)
	l.run()
	if len(w.heard) != 1 {
		t.Errorf("who watches was told %d times of the end", len(w.heard))
	}
	select {
	case <-late.Answered():
	default:
		t.Error("who looks at the end waits for ever")
	}
}

// passing is a behaviour that fails at every message, and notes how its incarnations begin and end.
type passing struct {
	causes []string
	ends   []End
}

func (b *passing) Start(_ *Context, cause *abi.Failure) *abi.Failure {
	why := ""
	if cause != nil {
		why = cause.Reason
	}
	b.causes = append(b.causes, why)
	return nil
}

func (b *passing) Handle(ctx *Context, _ int) *abi.Failure {
	m, ok := ctx.Head().Next()
	if !ok {
		return nil
	}
	var why string
	_ = m.Decode(&why)
	return &abi.Failure{Kind: abi.FailureGuestError, Reason: why}
}

func (b *passing) Decide(*Context, Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}
func (b *passing) CannotRewind() string  { return "never" }
func (b *passing) Rewind(*Context) bool  { return false }
func (b *passing) End(_ *Context, e End) { b.ends = append(b.ends, e) }

// End.Delayed says whether the next incarnation waits, so that what is not needed meanwhile can be given back: a
// guest gives its instance back.
func TestEndsSayWhetherTheyAreDelayed(t *testing.T) {
	for name, c := range map[string]struct {
		s    supervision.Strategy
		want bool
	}{"at once": {otherwise(supervision.Restart), false}, "after a delay": {delayed(t, supervision.Backoff{}), true}} {
		b := &passing{}
		l := newLab(t, c.s)
		a := l.spawn("a", Behave("frail", func() Behaviour { return b }))
		l.tell(a, "x")
		if len(b.ends) != 1 || b.ends[0].Delayed != c.want || b.ends[0].Last || !b.ends[0].Begun {
			t.Errorf("%s: %+v", name, b.ends)
		}
		l.pass(time.Hour)
		l.Stop(a)
		l.run()
		if n := len(b.ends); n != 2 || b.ends[1].Delayed || !b.ends[1].Last {
			t.Errorf("%s: %+v", name, b.ends)
		}
		g := l.spawn("g", puppet(t))
		l.tell(g, script(trap()))
		x := l.table.Get(g.UID()).behaviour.(*guest)
		if x.inst.Awake() == c.want {
			t.Errorf("%s: whether the guest has an instance meanwhile: %v", name, x.inst.Awake())
		}
		l.pass(time.Hour)
		if !x.inst.Awake() {
			t.Errorf("%s: it has no instance afterwards", name)
		}
	}
}

// B07: an incarnation is told why there was a restart: the failure of a sibling, its own, also when an operator
// decides about it or restarts it, and that of the operator only if it has not failed.
func TestB07_TheCauseOfARestart(t *testing.T) {
	l := newLab(t, otherwise(supervision.Restart).WithKind(supervision.AllForOne))
	a, b := &passing{}, &passing{}
	of := func(m *passing) Props { return Behave("frail", func() Behaviour { return m }) }
	l.spawn("a", of(a))
	at := l.spawn("b", of(b))
	l.tell(at, "the sibling's")
	if want := []string{"", "the sibling's"}; !slices.Equal(a.causes, want) || !slices.Equal(b.causes, want) {
		t.Errorf("%q and %q", a.causes, b.causes)
	}
	for name, act := range map[string]func(*lab, Ref) error{
		"decides":  func(l *lab, r Ref) error { return l.Operate().Decide(r, supervision.Restart) },
		"restarts": func(l *lab, r Ref) error { return l.Operate().Restart(r) },
	} {
		l, m := newLab(t, otherwise(supervision.Suspend)), &passing{}
		r := l.spawn("m", of(m))
		l.tell(r, "its own")
		if err := act(l, r); err != nil {
			t.Fatal(err)
		}
		l.run()
		if want := []string{"", "its own"}; !slices.Equal(m.causes, want) {
			t.Errorf("an operator %s: %q", name, m.causes)
		}
		if err := l.Operate().Restart(r); err != nil {
			t.Fatal(err)
		}
		l.run()
		if len(m.causes) != 3 || m.causes[2] == "its own" {
			t.Errorf("restarted without a failure: %q", m.causes)
		}
	}
}

var errCrash = errors.New("crash")

// announcer notes its starts, and fails at every message.
type announcer struct{ starts *[]string }

func (a *announcer) Started(ctx *Context) error {
	*a.starts = append(*a.starts, ctx.Self().Name())
	return nil
}
func (a *announcer) Receive(*Context, Message) error { return errCrash }

// D07: under rest-for-one a group begins again in the order in which it was started, each when the one before it has
// begun.
func TestD07_GroupsRestartInTheirOrder(t *testing.T) {
	for _, failing := range []string{"b", "c"} {
		l := newLab(t, otherwise(supervision.Restart))
		var begun []string
		kid := func() Props {
			return Native(func() Actor {
				return &announcer{&begun}
			})
		}
		l.spawn("p", parentOf(otherwise(supervision.Restart).WithKind(supervision.RestForOne), Child{"b", kid()}, Child{"c", kid()}, Child{"a", kid()}))
		begun = nil
		l.tell(l.at("p/"+failing), "crash")
		if want := map[string][]string{"b": {"b", "c", "a"}, "c": {"c", "a"}}[failing]; !slices.Equal(begun, want) {
			t.Errorf("%s fails: %q, want %q", failing, begun, want)
		}
	}
}

// What an incarnation has put on its account with Hold is taken off when it ends, whatever comes after it.
func TestWhatIsHeldEndsWithTheIncarnation(t *testing.T) {
	for name, s := range map[string]supervision.Strategy{"at once": otherwise(supervision.Restart), "after a delay": delayed(t, supervision.Backoff{})} {
		l := newLab(t, s)
		a := l.spawn("a", Func(func(ctx *Context, m Message) error {
			var n int64
			if err := m.Decode(&n); err != nil || n == 0 {
				return errCrash
			}
			return ctx.Head().Hold(n)
		}))
		before := must(l.View().Held(a))(t).Total()
		l.tell(a, 12345)
		if h := must(l.View().Held(a))(t).Total(); h < before+12345 {
			t.Errorf("%s: %d are held, %d before", name, h, before)
		}
		l.tell(a, 0)
		if h := must(l.View().Held(a))(t); h.Stash != 0 {
			t.Errorf("%s: %d bytes are held for an incarnation that has ended", name, h.Stash)
		}
	}
}

// A resender counts the ends of its child until all that was unconfirmed at the last one is confirmed: one of
// several confirmations does not start the count anew, and all of them do.
func TestC_1_1_TheCountEndsWithTheLastConfirmation(t *testing.T) {
	child := Func(func(ctx *Context, m Message) error {
		var text string
		_ = m.Decode(&text)
		switch {
		case text == "crash":
			return errCrash
		case len(text) == 1:
			return ctx.Head().Confirm(uint64(text[0] - '0'))
		}
		return nil
	})
	for _, c := range []struct {
		confirmed []string
		alive     bool
	}{{nil, false}, {[]string{"1"}, false}, {[]string{"1", "2"}, true}} {
		l := newLab(t, otherwise(supervision.Stop))
		r := l.spawn("r", Resender(child, Resend{MaxCrashes: 2, Patience: time.Hour}))
		crash := func() {
			l.tell(l.at("r/child"), "crash")
			l.pass(time.Minute)
		}
		l.tell(r, "keep", "keep")
		crash()
		for _, id := range c.confirmed {
			l.tell(l.at("r/child"), id)
		}
		crash()
		if l.state("r") == "gone" {
			t.Errorf("%q confirmed: it gives up after two", c.confirmed)
			continue
		}
		crash()
		if (l.state("r") != "gone") != c.alive {
			t.Errorf("%q confirmed: after three it is %s", c.confirmed, l.state("r"))
		}
	}
}
