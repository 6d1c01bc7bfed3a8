package supervisor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// kid is a child that does as it is told, one order at a time.
type kid struct {
	name        string
	life        supervision.Lifetime
	significant bool
	state       life.State
	held        bool // ended, and waits for Begin
	told        bool // its supervisor waits to hear of its beginning
	orders      uint64
	inbox       []Order
	given       []Order // all of them
	refuse      int     // starts that are to fail
	started     time.Time
	delay       time.Duration
	member      *member
	renewed     int // orders of an operator that are dealt with
}

func (k *kid) Name() string                   { return k.name }
func (k *kid) Type() string                   { return "kid" }
func (k *kid) Lifetime() supervision.Lifetime { return k.life }
func (k *kid) Significant() bool              { return k.significant }
func (k *kid) StartedAt() time.Time           { return k.started }

// tester is a test, rapid's included.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

type member = family.Member[*kid]

// parent is an actor with nothing but children.
type parent struct {
	t       tester
	s       Supervisor[*kid]
	state   life.State
	burden  int // suspensions
	now     time.Time
	asked   []string
	verdict supervision.Directive
	fault   *abi.Failure // of the turn that decides
	inbox   []func()
	trace   []string // what the children have done
	made    []string // decisions
	noted   []Verdict
	was     Verdict // what is repeated, if repeats
	repeats bool
	notes   []string // of each of them
	quit    string
	failed  *abi.Failure
	above   bool // the failure was escalated
	rnd     *rand.Rand
}

func newParent(t tester, s supervision.Strategy, names ...string) *parent {
	p := &parent{t: t, state: life.Running, now: time.Unix(1000, 0), rnd: rand.New(rand.NewPCG(1, 2))}
	p.s.Init(&s)
	for _, n := range names {
		p.adopt(n)
	}
	return p
}

func (p *parent) adopt(name string) *kid {
	m, no, err := p.s.Family.Adopt(name, 100, func(string) (*family.Member[*kid], error) {
		k := &kid{name: name, state: life.Running}
		k.member = &member{Child: k}
		return k.member, nil
	})
	if no != 0 || err != nil {
		p.t.Fatal(no, err)
	}
	return m.Child
}

func (p *parent) kid(name string) *kid {
	m := p.s.Family.Find(name)
	if m == nil {
		p.t.Fatalf("there is no %s", name)
	}
	return m.Child
}

func (p *parent) State() life.State  { return p.state }
func (p *parent) Suspended() int     { return p.burden }
func (p *parent) Now() time.Time     { return p.now }
func (p *parent) Rand() backoff.Rand { return p.rnd }
func (p *parent) Order(k *kid, o Order) {
	k.inbox = append(k.inbox, o)
	k.given = append(k.given, o)
}
func (p *parent) Renewed(k *kid, n int32) {
	if n < 1 {
		p.t.Fatalf("%d orders to %s are dealt with", n, k.name)
	}
	k.renewed += int(n)
}
func (p *parent) AskDecision(k *kid, _ *abi.Failure) (supervision.Directive, *abi.Failure) {
	p.asked = append(p.asked, k.name)
	return p.verdict, p.fault
}
func (p *parent) Fail(f *abi.Failure, escalated bool) {
	p.state, p.failed, p.above = life.Failed, f, escalated
}
func (p *parent) Quit(reason string) { p.state, p.quit = life.Stopping, reason }
func (p *parent) Decided(k *kid, _ *Report, o Outcome) {
	p.made = append(p.made, fmt.Sprintf("%s: %v", k.name, o.Directive))
	p.notes = append(p.notes, o.Note)
}
func (p *parent) Was(k *kid) (Verdict, bool) { return p.was, p.repeats }
func (p *parent) Note(k *kid, v Verdict)     { p.noted = append(p.noted, v) }
func (p *parent) Again(k *kid, r Report) {
	p.inbox = append(p.inbox, func() { p.s.Report(p, k.member, &r) })
}

var boom = &abi.Failure{Kind: abi.FailureTrap, Reason: "boom"}

// unstarted is a start that has failed.
var unstarted = &abi.Failure{Kind: abi.FailureInit, Reason: "told to"}

// fails has a child fail, and report it.
func (p *parent) fails(k *kid) { p.failsWith(k, boom) }

func (p *parent) failsWith(k *kid, f *abi.Failure) {
	k.state = life.Failed
	r := Report{Failure: f, Orders: k.orders}
	p.inbox = append(p.inbox, func() { p.s.Report(p, k.member, &r) })
}

// stopped has a child stop without an order of its supervisor's.
func (p *parent) stopped(k *kid, own bool) {
	if k.state == life.Stopped {
		return
	}
	k.state = life.Stopped
	p.trace = append(p.trace, "stop "+k.name)
	p.inbox = append(p.inbox, func() { p.s.Stopped(p, k.member, own) })
}

// next has a child carry out its next order.
func (p *parent) next(k *kid) {
	o := k.inbox[0]
	k.inbox = k.inbox[1:]
	if k.state == life.Stopped {
		return
	}
	k.orders++
	switch o.Kind {
	case Resume:
		if k.state == life.Failed {
			k.state = life.Running
		}
	case Restart:
		if k.state != life.Restarting {
			p.trace = append(p.trace, "end "+k.name)
		}
		held := o.Hold || o.Renewal != nil && k.held && k.state == life.Restarting // a renewal leaves one held that is
		k.state, k.delay = life.Restarting, o.Delay
		if k.held = held; !k.held {
			p.begin(k)
			return
		}
		k.told = true
		orders := k.orders
		p.inbox = append(p.inbox, func() { p.s.Halted(p, k.member, orders) })
	case Begin:
		if k.state == life.Restarting {
			k.held = false
			p.begin(k)
		}
	case Stop:
		p.stopped(k, o.ByItself)
	}
}

func (p *parent) begin(k *kid) {
	told := k.told
	k.told = false
	if k.refuse > 0 {
		k.refuse--
		p.trace = append(p.trace, "refuse "+k.name)
		p.failsWith(k, unstarted)
		return
	}
	k.state = life.Running
	p.trace = append(p.trace, "begin "+k.name)
	if told {
		orders := k.orders
		p.inbox = append(p.inbox, func() { p.s.Begun(p, k.member, orders) })
	}
}

// rest lets everything happen: the parent's messages first, then the children, the
// oldest first.
func (p *parent) rest() {
	p.t.Helper()
	p.until(func() bool { return false })
}

// until is rest that ends when something is so.
func (p *parent) until(so func() bool) {
	p.t.Helper()
	for range 10_000 {
		if so() {
			return
		}
		if len(p.inbox) > 0 {
			p.rest1()
			continue
		}
		if at := slices.IndexFunc(p.s.Family.Members(), func(m *member) bool { return len(m.Child.inbox) > 0 }); at >= 0 {
			p.next(p.s.Family.Members()[at].Child)
			continue
		}
		return
	}
	p.t.Fatal("it never comes to rest")
}

// atRest checks that nobody was forgotten.
func (p *parent) atRest() error {
	if p.s.sequence != nil {
		return fmt.Errorf("a restart is still under way: it waits for %+v, ends %d, begins %d", p.s.sequence.waits, len(p.s.sequence.ends), len(p.s.sequence.begin))
	}
	for _, m := range p.s.Family.Members() {
		if m.Child.state != life.Running {
			return fmt.Errorf("%s is %v", m.Child.name, m.Child.state)
		}
	}
	return nil
}

// tenSeconds is the policy of a constant delay.
func tenSeconds(t testing.TB) backoff.Policy {
	p, err := backoff.Spec{Curve: "constant", Min: 10 * time.Second, Max: 10 * time.Second, Jitter: "none"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
