package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// Every ref that a system makes has its node; numbers that do not fit are refused.
func TestNodeNumbers(t *testing.T) {
	for _, node := range []uint16{0, 1, abi.MaxNode} {
		s, _ := manual(t, func(c Config) Config { return c.WithNode(node) })
		in := s.Inbox(1)
		uids := []abi.Ref{s.user.uid, s.services.uid, in.Ref().UID(), must(s.Spawn("a", newCounter()))(t).UID()}
		in.Close()
		if slices.ContainsFunc(uids, func(r abi.Ref) bool { return r.Node() != node }) {
			t.Errorf("node %d: %x", node, uids)
		}
	}
	if s, err := New(NewConfig("a").WithNode(abi.MaxNode + 1)); err == nil {
		t.Error("a node beyond the range is taken", s.Close(context.Background()))
	}
}

// No ask of a later life has the ref of one of an earlier life, so no late answer to that one is taken for an answer to it.
// Lives of a seed are alike.
func TestAsksOfAnotherLifeHaveOtherRefs(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	first := func(name string, with func(Config) Config) (abi.Ref, Secret) {
		t.Helper()
		s := must(New(with(NewConfig(name).WithManual().WithClock(NewVirtualClock(at)))))(t)
		in := s.Inbox(1)
		defer func() {
			in.Close()
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		return in.Ref().UID(), s.Secret()
	}
	before, secret := first("a", func(c Config) Config { return c.WithSeed(1) })
	if again, _ := first("a", func(c Config) Config { return c.WithSeed(1) }); again != before {
		t.Errorf("of one seed: %x, %x", before, again)
	}
	saved := func(c Config) Config { return c.WithSecret(secret) }
	seen := map[abi.Ref]string{before: "the first"}
	for _, life := range []struct {
		name string
		with func(Config) Config
	}{
		{"the second", saved},
		{"one that is later", func(c Config) Config { return saved(c).WithClock(NewVirtualClock(at.Add(1))) }},
		{"epoch 1", func(c Config) Config { return saved(c).WithEpoch(1) }},
		{"epoch 2", func(c Config) Config { return saved(c).WithEpoch(2) }},
		{"another node's", func(c Config) Config { return saved(c).WithEpoch(2).WithNode(1) }},
	} {
		ref, _ := first("a", life.with)
		if other, taken := seen[ref]; taken {
			t.Errorf("%s has the ref of %s", life.name, other)
		}
		seen[ref] = life.name
	}
}

// Refs are equal if their numbers are: a path may be that of a receiver of which nothing else is known.
func TestRefsAreEqualByTheirNumbers(t *testing.T) {
	l := newLab(t, otherwise(0))
	a := l.spawn("a", newCounter())
	unknown := newRef(a.UID(), l.temp)
	if !a.Equal(unknown) || !unknown.Equal(a) || a == unknown {
		t.Errorf("%v, %v", a, unknown)
	}
	if a.Equal(newRef(a.UID()+1, a.URI())) || !(Ref{}).Equal(Ref{}) {
		t.Error("other numbers are equal")
	}
}

// Errors are the same on another node, as far as callers tell them apart.
func TestErrorsTravel(t *testing.T) {
	l, _ := manual(t, func(c Config) Config { return c.WithNode(1) })
	p := must(network.Join(l, deaf{}))(t)
	silent := must(l.Spawn("silent", Func(func(*Context, Message) error { return nil })))(t)
	there := func(err error) error {
		pending := must(l.Request(silent, "hi"))(t)
		defer pending.Cancel()
		m := signal.Signal{Kind: signal.Unanswered, From: silent.UID(), Correlation: 1}
		m.Code, m.Reason = network.CodeAndText(err)
		if err := p.Arrive(l.outside.RefOf(pending), network.AppendSignal(nil, &m)); err != nil {
			t.Fatal(err)
		}
		return (<-pending.Answer()).Err()
	}
	for _, is := range []error{ErrEnded, ErrStopped, ErrUnknown, ErrMailboxFull, ErrRestarting, ErrTooLarge, ErrTimeout, ErrDenied, ErrDropped, ErrDuplicate, ErrLimit, ErrNodeLost} {
		for _, err := range []error{is, fmt.Errorf("%w: more", is)} {
			if got := there(err); !errors.Is(got, is) || got.Error() != err.Error() {
				t.Errorf("%v is %v", err, got)
			}
		}
	}
	if got := there(ErrStopped); errors.Is(got, ErrEnded) {
		t.Error("a stop is more than that")
	}
	var failed *TurnError
	got := there(&TurnError{Failure: &abi.Failure{Kind: abi.FailureFuel, Reason: "spent"}})
	if !errors.As(got, &failed) || failed.Failure.Kind != abi.FailureFuel || failed.Failure.Reason != "spent" || failed.Ref.UID() != silent.UID() {
		t.Errorf("%v", got)
	}
	if got := there(errors.New("else")); got.Error() != "else" {
		t.Error(got)
	}
	if got := network.ErrorOf(signal.Failed-1, "of a newer host"); got.Error() != "of a newer host" {
		t.Error(got)
	}
}

// farRecorder is a carrier that keeps what it carries.
type farRecorder struct {
	to     []abi.Ref
	frames []network.Message
}

func (r *farRecorder) Carry(to abi.Ref, m *network.Message, _ *signal.Signal) error {
	if m == nil {
		return nil
	}
	m, _, err := network.Decode(network.AppendMessage(nil, m))
	if err == nil {
		r.to, r.frames = append(r.to, to), append(r.frames, *m)
	}
	return err
}

// A guest sends to, asks and identifies by paths of other nodes what it may here; what it may not does not leave, nor do
// patterns.
func TestGuestsReachPathsOfOtherNodes(t *testing.T) {
	l := newStage(t, func(c Config) Config { return c.WithNode(1) })
	r := &farRecorder{}
	must(network.Join(l.System, r))(t)
	g := l.spawn("g", puppet(t).WithCapabilities(Capabilities{Send: []string{"/user/a"}}))
	path := func(of string) string { return "wasm://other@2" + of }
	l.say(g, script(now(sendPath(path("/user/a"), 1), sendPath(path("/user/b"), 2), sendPath(path("/user/?"), 3), abi.AppendAsk(nil, 0, path("/user/a"), 5, uint64(time.Second), nil, encoded(4)), who(6, path("/user/a")), who(7, path("/user/b")))))
	if len(r.frames) != 3 {
		t.Fatalf("%+v", r.frames)
	}
	for i, m := range r.frames {
		if r.to[i] != network.Root(2) || m.Below != "user/a" || m.Sender != g.UID() || m.Correlation != []uint64{0, 5, 6}[i] || (m.Marks&network.Identify != 0) != (i == 2) {
			t.Errorf("%d: %+v", i, m)
		}
	}
}

type deaf struct{}

func (deaf) Carry(abi.Ref, *network.Message, *signal.Signal) error { return errors.New("no") }

// A system without a number of its own cannot be joined to others, and one has one carrier.
func TestWhoCanBeJoined(t *testing.T) {
	alone, _ := manual(t, func(c Config) Config { return c })
	if _, err := network.Join(alone, deaf{}); err == nil {
		t.Error("a system that is alone was joined")
	}
	s, _ := manual(t, func(c Config) Config { return c.WithNode(1) })
	if p, err := network.Join(s, deaf{}); err != nil || p.Node() != 1 {
		t.Error(err)
	}
	if _, err := network.Join(s, deaf{}); err == nil {
		t.Error("joined twice")
	}
	in := s.Inbox(0)
	defer in.Close()
	far := newRef(abi.Ref(2)<<54|1, "")
	in.Watch(far) // the carrier does not take it: nobody is there
	if m, ok := in.TryReceive(); !ok || m.Kind != abi.KindTerminated {
		t.Errorf("%+v", m)
	}
	if err := s.Tell(far, 1); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// An error of an actor on another node has the path by which the actor was asked, if it is that one.
func TestFailuresElsewhereHaveAPath(t *testing.T) {
	asked := newRef(3<<54|7, "wasm://shop@3/user/carts")
	for uid, want := range map[abi.Ref]string{asked.UID(): "host: /user/carts has failed: guest_error: no", 3<<54 | 8: "host: the actor that was asked has failed: guest_error: no"} {
		err := errs.FailedAt(&TurnError{Ref: newRef(uid, "the actor that was asked"), Failure: &abi.Failure{Kind: abi.FailureGuestError, Reason: "no"}}, asked)
		if err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
