package observe

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a manual system on a virtual clock, observed without sharing.
type stage struct {
	*host.System
	*Observer
	t     testing.TB
	clock *host.VirtualClock
}

func newStage(t testing.TB, change func(host.Config) host.Config) *stage {
	t.Helper()
	clock := host.NewVirtualClock(time.Unix(1_000_000, 0))
	cfg := host.NewConfig("test").WithManual().WithClock(clock).WithSeed(1)
	if change != nil {
		cfg = change(cfg)
	}
	s, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	o := New(s, Options{}.WithSharing(-1).WithBundle("test-bundle", "/dir"))
	x := &stage{s, o, t, clock}
	t.Cleanup(x.close)
	return x
}

// close may be called again.
func (s *stage) close() {
	s.Observer.Close()
	_ = s.System.Close(context.Background())
}

func (s *stage) run() { s.RunUntilIdle(1_000_000) }

func (s *stage) spawn(name string, p host.Props) host.Ref {
	s.t.Helper()
	ref, err := s.Spawn(name, p)
	if err != nil {
		s.t.Fatal(err)
	}
	return ref
}

func quietActor() host.Props {
	return host.Func(func(*host.Context, host.Message) error { return nil })
}

func TestSystemAndLists(t *testing.T) {
	s := newStage(t, nil)
	s.spawn("b", quietActor())
	s.spawn("a", quietActor().WithChildren(host.Child{Name: "kid", Props: quietActor()}))
	if x := s.Observer.System(); x.Actors != 2 || x.Ready || x.States[Starting] != 2 {
		t.Errorf("before they begin: %+v", x)
	}
	s.run()
	x := s.Observer.System()
	if x.Actors != 3 || !x.Ready || x.States[Running] != 3 || x.Bundle != "test-bundle" || len(x.Types) != 1 {
		t.Errorf("%+v", x)
	}
	p, err := s.Actors(Query{Limit: 2})
	if err != nil || p.Total != 3 || len(p.Actors) != 2 || p.Actors[0].Path != "/user/a" || p.Actors[1].Path != "/user/a/kid" {
		t.Errorf("%v %+v", err, p)
	}
	tree, err := s.Observer.Tree(TreeQuery{})
	if err != nil || tree.Below.Actors != 4 || len(tree.Nodes) != 2 || tree.Nodes[0].Nodes[0].Path != "/user/a/kid" {
		t.Errorf("%v %+v", err, tree)
	}
}

// Texts of guests are safe to show on a terminal, wherever they appear.
func TestTextsAreSafeToShow(t *testing.T) {
	const hostile = "\x1b[2Jclear\u202eright\u0007\u009b31m"
	s := newStage(t, nil)
	f := &abi.Failure{Kind: abi.FailureGuestPanic, Reason: hostile, Message: hostile, GuestStack: hostile, Stack: []string{hostile}}
	s.below(suspending, host.Func(func(*host.Context, host.Message) error { return f }))
	x := trace(t, s, subject, TraceOptions{})
	s.tell(subject, hostile)
	s.run()
	d, err := s.Actor(subject)
	if err != nil {
		t.Fatal(err)
	}
	records := all(x)
	if len(records) != 1 || d.LastFailure == nil || len(d.LastFailure.Stack) != 1 {
		t.Fatalf("%+v, %+v", records, d.LastFailure)
	}
	texts := []string{
		d.Failure, d.LastFailure.Reason, d.LastFailure.Message, d.LastFailure.GuestStack, d.LastFailure.Stack[0], records[0].Failed, string(records[0].Payload),
		function(hostile), noActor(hostile).Error(),
	}
	_, err = s.Do(Verb{Verb: hostile, Select: Select{Paths: []string{"/**"}}})
	for i, text := range append(texts, err.Error()) {
		if strings.IndexFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Bidi_Control) }) >= 0 || !strings.Contains(text, "clear") {
			t.Errorf("%d: %q", i, text)
		}
	}
}
