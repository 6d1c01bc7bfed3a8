package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
	"pgregory.net/rapid"
)

func restForOne() supervision.Strategy {
	return supervision.Default().WithKind(supervision.RestForOne).WithOtherwise(supervision.Restart)
}

// Rest-for-one ends in the reverse order of the start, each when the one before it has
// ended, and begins in order, each when the one before it has begun.
func TestRestForOneInOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(p *parent)
		want string
	}{
		{"the first", func(p *parent) { p.fails(p.kid("a")) }, "end d, end c, end b, end a, begin a, begin b, begin c, begin d"},
		{"in the middle", func(p *parent) { p.fails(p.kid("c")) }, "end d, end c, begin c, begin d"},
		{"the last alone", func(p *parent) { p.fails(p.kid("d")) }, "end d, begin d"},
		{"two at once, the older first", func(p *parent) { p.fails(p.kid("b")); p.fails(p.kid("d")) },
			"end d, end c, end b, begin b, begin c, begin d"},
		{"two at once, the younger first", func(p *parent) { p.fails(p.kid("c")); p.fails(p.kid("b")) },
			"end d, end c, end b, begin b, begin c, begin d"},
		{"a start that fails", func(p *parent) { p.kid("c").refuse = 1; p.fails(p.kid("b")) },
			"end d, end c, end b, begin b, refuse c, end c, begin c, begin d"},
		{"a start that fails twice", func(p *parent) { p.kid("b").refuse = 2; p.fails(p.kid("b")) },
			"end d, end c, end b, refuse b, end b, refuse b, end b, begin b, begin c, begin d"},
		{"one is stopped before its turn", func(p *parent) { p.fails(p.kid("b")); p.stopped(p.kid("c"), false) },
			"stop c, end d, end b, begin b, begin d"},
		{"the one that is waited for is stopped", func(p *parent) {
			p.fails(p.kid("b"))
			p.inbox[0]() // d was told to end
			p.inbox = p.inbox[1:]
			p.stopped(p.kid("d"), false)
		}, "stop d, end c, end b, begin b, begin c"},
		{"the one that has failed is stopped", func(p *parent) { p.fails(p.kid("b")); p.rest1(); p.stopped(p.kid("b"), false) },
			"stop b, end d, end c, begin c, begin d"},
		{"one that has ended is stopped before it begins", func(p *parent) {
			p.fails(p.kid("b"))
			p.until(func() bool { return p.kid("d").held })
			p.stopped(p.kid("d"), false)
		}, "end d, stop d, end c, end b, begin b, begin c"},
		{"one that is new fails before all are back", func(p *parent) {
			p.fails(p.kid("c"))
			p.until(func() bool { return p.kid("d").held })
			p.adopt("e")
			p.adopt("f")
			p.fails(p.kid("e"))
		}, "end d, end c, begin c, begin d, end e, begin e, end f, begin f"},
		{"a temporary one in the group", func(p *parent) { p.kid("c").life = supervision.Temporary; p.fails(p.kid("b")) },
			"end d, stop c, end b, begin b, begin d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newParent(t, restForOne(), "a", "b", "c", "d")
			c.do(p)
			p.rest()
			if got := strings.Join(p.trace, ", "); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if err := p.atRest(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A start that is left suspended holds up who comes after it, until an operator decides.
func TestRestForOneWaitsForAnOperator(t *testing.T) {
	s := restForOne().WithRules(supervision.Rule{Kinds: []abi.FailureKind{abi.FailureInit}, Directive: supervision.Suspend})
	for d, want := range map[supervision.Directive]string{
		supervision.Restart: "end c, end b, refuse b, end b, begin b, begin c",
		supervision.Stop:    "end c, end b, refuse b, stop b, begin c",
	} {
		p := newParent(t, s, "a", "b", "c")
		b := p.kid("b")
		b.refuse = 1
		p.fails(b)
		p.rest()
		if p.kid("c").state != life.Restarting || b.state != life.Failed {
			t.Errorf("%v", p.trace)
		}
		p.s.Decide(p, p.kid("a").member, d) // is not left suspended
		p.s.Decide(p, b.member, d)
		p.rest()
		if got := strings.Join(p.trace, ", "); got != want {
			t.Errorf("%v: %s\nwant %s", d, got, want)
		}
		if err := p.atRest(); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// What a child has said before it knew of the last order means nothing: else it is told to
// begin once more, and a failure that crosses this order is lost.
func TestRestForOneWithCrossedNews(t *testing.T) {
	p := newParent(t, restForOne(), "a", "b")
	a, b := p.kid("a"), p.kid("b")
	p.fails(a)
	p.rest1() // b is told to end
	first := p.s.Family.Find("b").Orders
	p.s.Halted(p, b.member, first)
	p.s.Halted(p, a.member, 0) // it has not been told
	if got := orders(b); !slices.Equal(got, []OrderKind{Restart}) || len(orders(a)) != 1 {
		t.Fatal(got, orders(a))
	}
	p.s.Halted(p, a.member, 1) // a is told to begin
	p.s.Halted(p, a.member, 1) // the same once more
	p.s.Begun(p, a.member, 1)
	if got := orders(a); !slices.Equal(got, []OrderKind{Restart, Begin}) || len(orders(b)) != 1 {
		t.Fatal(got, orders(b))
	}
	p.s.Begun(p, a.member, 2)
	if got := orders(b); !slices.Equal(got, []OrderKind{Restart, Begin}) {
		t.Fatal(got)
	}
}

// A start that fails when all the others have been stopped is no end of the restart.
func TestRestForOneOfTheLastThatIsLeft(t *testing.T) {
	p := newParent(t, restForOne(), "a", "b")
	p.kid("a").refuse = 1
	p.fails(p.kid("a"))
	p.stopped(p.kid("b"), false)
	p.rest()
	if err := p.atRest(); err != nil {
		t.Error(err)
	}
}

// A child that is restarted by itself is not held back.
func TestRestForOneOfTheLastAlone(t *testing.T) {
	p := newParent(t, restForOne(), "a", "b")
	p.fails(p.kid("b"))
	p.rest()
	if got := p.kid("b").given; len(got) != 1 || got[0].Kind != Restart || got[0].Hold {
		t.Errorf("%+v", got)
	}
}

// rest1 handles one message of the parent's.
func (p *parent) rest1() {
	f := p.inbox[0]
	p.inbox = p.inbox[1:]
	f()
}

// All-for-one restarts side by side: nobody is held back.
func TestAllForOneSideBySide(t *testing.T) {
	p := newParent(t, supervision.Default().WithKind(supervision.AllForOne).WithOtherwise(supervision.Restart), "a", "b", "c")
	p.fails(p.kid("b"))
	p.rest()
	for _, m := range p.s.Family.Members() {
		if len(m.Child.given) != 1 || m.Child.given[0].Hold || m.Child.given[0].Kind != Restart {
			t.Errorf("%s: %+v", m.Child.name, m.Child.given)
		}
	}
}

// The end of a temporary child leaves its group alone; a temporary one that is
// restarted with its group stops, and its end is not its own.
func TestTemporaryChildren(t *testing.T) {
	for _, kind := range []supervision.Kind{supervision.AllForOne, supervision.RestForOne} {
		p := newParent(t, supervision.Default().WithKind(kind).WithOtherwise(supervision.Restart), "a", "b", "c")
		p.kid("a").life = supervision.Temporary
		p.fails(p.kid("a"))
		p.rest()
		if got := strings.Join(p.trace, ", "); got != "stop a" {
			t.Errorf("%v: %s", kind, got)
		}
		c := p.kid("c")
		c.life = supervision.Temporary
		p.fails(p.kid("b"))
		p.rest()
		if o := c.given[len(c.given)-1]; o.Kind != Stop || o.ByItself {
			t.Errorf("%v: %+v", kind, o)
		}
	}
}

// The delay of a group is that of the child that has failed; one that was to wait
// longer by an earlier decision still does.
func TestDelaysInOrder(t *testing.T) {
	s := restForOne().WithBackoff(supervision.Backoff{Policy: tenSeconds(t)})
	p := newParent(t, s, "a", "b", "c")
	p.fails(p.kid("b"))
	p.rest1()
	if d := p.s.Owed(p.s.Family.Find("b")); d != 10*time.Second {
		t.Errorf("b is owed %v", d)
	}
	if d := p.s.Owed(p.s.Family.Find("a")); d != 0 {
		t.Errorf("a is owed %v", d)
	}
	p.rest()
	if a, b, c := p.kid("a").delay, p.kid("b").delay, p.kid("c").delay; a != 0 || b != 10*time.Second || c != 10*time.Second {
		t.Errorf("%v %v %v", a, b, c)
	}
}

// A decision that overtakes another one of a longer delay does not shorten it.
func TestLongerDelaysOfOvertakenDecisions(t *testing.T) {
	policy := backoff.WithJitter(backoff.Table(time.Second, 20*time.Second), backoff.NoJitter())
	p := newParent(t, restForOne().WithBackoff(supervision.Backoff{Policy: policy, Reset: supervision.ResetNever}), "a", "b", "c")
	p.fails(p.kid("b"))
	p.rest()
	p.fails(p.kid("b"))
	p.rest1() // c is told to wait 20 s, and b will be
	p.fails(p.kid("a"))
	p.rest1()
	for name, want := range map[string]time.Duration{"a": time.Second, "b": 20 * time.Second} {
		if d := p.s.Owed(p.s.Family.Find(name)); d != want {
			t.Errorf("%s is owed %v, want %v", name, d, want)
		}
	}
	p.rest()
	if a, b := p.kid("a").delay, p.kid("b").delay; a != time.Second || b != 20*time.Second {
		t.Errorf("a waits %v, b %v", a, b)
	}
	if err := p.atRest(); err != nil {
		t.Error(err)
	}
}

// Children are kept over a restart if the strategy says so, in order or not.
func TestKeepChildrenInOrder(t *testing.T) {
	for _, keep := range []bool{true, false} {
		p := newParent(t, restForOne().WithKeepChildren(keep), "a", "b")
		p.fails(p.kid("a"))
		p.rest()
		for _, m := range p.s.Family.Members() {
			if o := m.Child.given[0]; o.Kind != Restart || o.Keep != keep || !o.Hold {
				t.Errorf("%v: %s: %+v", keep, m.Child.name, o)
			}
		}
	}
}

// Whatever happens meanwhile: nobody is forgotten, nobody begins while one after it
// that was there at the failure still runs its old incarnation, and only who was ordered to
// ends.
func TestRestForOneWhatever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "children")]
		p := newParent(t, restForOne(), names...)
		for _, n := range names {
			p.kid(n).life = []supervision.Lifetime{supervision.Transient, supervision.Permanent, supervision.Temporary}[rapid.IntRange(0, 9).Draw(t, "life")%4%3]
			p.kid(n).refuse = rapid.IntRange(0, 2).Draw(t, "refuses")
		}
		budget := rapid.IntRange(1, 6).Draw(t, "disturbances")
		fresh := 0
		for step := 0; ; step++ {
			if step > 5000 {
				t.Fatal("it never comes to rest")
			}
			var can []func()
			var what []string
			add := func(s string, f func()) { what, can = append(what, s), append(can, f) }
			if len(p.inbox) > 0 {
				add("parent", p.rest1)
			}
			for _, m := range p.s.Family.Members() {
				k := m.Child
				if len(k.inbox) > 0 {
					add("next "+k.name, func() { p.next(k) })
				}
				if budget > 0 && k.state == life.Running {
					add("fail "+k.name, func() { budget--; p.fails(k) })
				}
				if budget > 0 && k.state != life.Stopped {
					add("stop "+k.name, func() { budget--; p.stopped(k, false) })
				}
			}
			if budget > 0 {
				add("adopt", func() { budget--; fresh++; p.adopt(fmt.Sprint("new", fresh)) })
			}
			if len(can) == 0 {
				break
			}
			i := rapid.IntRange(0, len(can)-1).Draw(t, "choice")
			can[i]()
			if names := p.unknown(); len(names) > 0 {
				t.Fatalf("a state names %v, who are no children any more\n%s", names, strings.Join(p.trace, ", "))
			}
		}
		if err := p.atRest(); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(p.trace, ", "))
		}
	})
}

// unknown are those in a state of a restart in order who are no children any more: after a start it would be another one. The cause may be one.
func (p *parent) unknown() (names []string) {
	of := map[abi.Ref]*kid{}
	ref := func(k *kid) abi.Ref {
		r := abi.Ref(len(of) + 1)
		of[r] = k
		return r
	}
	if x := p.s.Save(ref).Sequence; x != nil {
		for _, o := range x.Owed {
			x.Ends = append(x.Ends, o.Ref)
		}
		for _, r := range append(append(x.Ends, x.Begin...), x.Waits) {
			if k := of[r]; k != nil && !slices.ContainsFunc(p.s.Family.Members(), func(m *family.Member[*kid]) bool { return m.Child == k }) {
				names = append(names, k.name)
			}
		}
	}
	return names
}

// One failure, and nothing else: whatever the order in which things happen, the trace
// is the same.
func TestRestForOneHasOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f"}[:rapid.IntRange(1, 6).Draw(t, "children")]
		p := newParent(t, restForOne(), names...)
		first := rapid.IntRange(0, len(names)-1).Draw(t, "which")
		p.fails(p.kid(names[first]))
		for {
			var can []func()
			if len(p.inbox) > 0 {
				can = append(can, p.rest1)
			}
			for _, m := range p.s.Family.Members() {
				if k := m.Child; len(k.inbox) > 0 {
					can = append(can, func() { p.next(k) })
				}
			}
			if len(can) == 0 {
				break
			}
			can[rapid.IntRange(0, len(can)-1).Draw(t, "choice")]()
		}
		var want []string
		for _, n := range names[first:] {
			want = append(want, "begin "+n)
		}
		for _, n := range names[first:] {
			want = slices.Insert(want, 0, "end "+n)
		}
		if !slices.Equal(p.trace, want) {
			t.Fatalf("%v, want %v", p.trace, want)
		}
	})
}
