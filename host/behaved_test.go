package host

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/supervision"
)

// relay is a behaviour that tells another actor of each text that it gets.
type relay struct {
	to     Ref
	starts int
	most   int // messages that a call of Handle takes
}

func (r *relay) Start(ctx *Context, _ *abi.Failure) *abi.Failure {
	r.starts++
	_ = ctx.Tell(r.to, "start")
	return nil
}

func (r *relay) Handle(ctx *Context, n int) *abi.Failure {
	for range min(n, r.most) {
		m, ok := ctx.Head().Next()
		if !ok {
			return nil
		}
		var text string
		_ = m.Decode(&text)
		_ = ctx.Tell(r.to, text)
		switch {
		case strings.HasPrefix(text, "fail"):
			return &abi.Failure{Kind: abi.FailureGuestError, Reason: text}
		case strings.HasPrefix(text, "panic"):
			panic(text)
		}
	}
	return nil
}

func (r *relay) Decide(ctx *Context, _ Ref, _ *abi.Failure) (supervision.Directive, *abi.Failure) {
	_ = ctx.Tell(r.to, "decide")
	return supervision.Restart, nil
}
func (r *relay) CannotRewind() string    { return "" }
func (r *relay) Rewind(*Context) bool    { return true }
func (r *relay) End(ctx *Context, _ End) { _ = ctx.Tell(r.to, "end") }

// What a turn of a behaviour lets out leaves with its end, and not at all if it fails; the
// last turn's, too, however Handle returns.
func TestBehavioursTurnsAreAtomic(t *testing.T) {
	for name, r := range map[string]*relay{
		"one a call": {most: 1}, "all until none": {most: 100},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			s, _ := manual(t, nil)
			to := must(s.Spawn("to", Func(func(_ *Context, m Message) error {
				var text string
				err := m.Decode(&text)
				got = append(got, text)
				return err
			})))(t)
			r.to = to
			ref := must(s.Spawn("relay", Behave("relay", func() Behaviour { return r })))(t)
			for _, text := range []string{"a", "b", "fail", "c", "panic", "d"} {
				if err := s.Tell(ref, text); err != nil {
					t.Fatal(err)
				}
			}
			s.RunUntilIdle(1000)
			s.Stop(ref)
			s.RunUntilIdle(1000)
			want := []string{"start", "a", "b", "end", "start", "c", "end", "start", "d", "end"}
			if !slices.Equal(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}

// A panic of a behaviour is a failure of the actor, never one of the host; resume needs a
// behaviour that has not panicked.
func TestBehavioursPanicIsAFailure(t *testing.T) {
	s, _ := manual(t, func(c Config) Config {
		return c.WithGuardian(supervision.Default().WithOtherwise(supervision.Resume))
	})
	sub := s.Subscribe(100, func(e *Event) bool { return e.Kind == EventFailed })
	r := &relay{most: 1}
	ref := must(s.Spawn("relay", Behave("relay", func() Behaviour { return r })))(t)
	for _, text := range []string{"fail", "panic"} {
		if err := s.Tell(ref, text); err != nil {
			t.Fatal(err)
		}
		s.RunUntilIdle(1000)
	}
	e := <-sub.C()
	if e = <-sub.C(); e.Failure.Kind != abi.FailureNativePanic || e.Failure.Message != "panic" || !strings.Contains(e.Failure.GuestStack, "Handle") {
		t.Errorf("%+v", e.Failure)
	}
	if r.starts != 2 {
		t.Errorf("%d starts: it is resumed after the failure and restarted after the panic", r.starts)
	}
}

// A hook that cannot record a turn fails it, before anything of it is out.
func TestBehavioursTurnsAreRecorded(t *testing.T) {
	var got []string
	recorded := 0
	s, _ := manual(t, func(c Config) Config {
		partsOf(&c).Commit = func(t *turn.Turn) {
			if !strings.HasSuffix(t.Path, "/relay") || len(t.Mail) == 0 {
				t.Answer(nil)
				return
			}
			if recorded++; recorded == 2 {
				t.Answer(errors.New("the disk is full"))
				return
			}
			t.Answer(nil)
		}
		return c.WithGuardian(supervision.Default().WithRules(supervision.Rule{Directive: supervision.Restart}))
	})
	to := must(s.Spawn("to", Func(func(_ *Context, m Message) error {
		var text string
		err := m.Decode(&text)
		got = append(got, text)
		return err
	})))(t)
	ref := must(s.Spawn("relay", Behave("relay", func() Behaviour { return &relay{to: to, most: 100} })))(t)
	for _, text := range []string{"a", "b", "c"} {
		if err := s.Tell(ref, text); err != nil {
			t.Fatal(err)
		}
	}
	s.RunUntilIdle(1000)
	if want := []string{"start", "a", "end", "start", "c"}; !slices.Equal(got, want) || recorded != 3 {
		t.Errorf("got %q, recorded %d, want %q", got, recorded, want)
	}
}

func TestBehaveNeedsAFactory(t *testing.T) {
	s, _ := manual(t, nil)
	if _, err := s.Spawn("nothing", Behave("nothing", nil)); !errors.Is(err, ErrBadProps) {
		t.Error(err)
	}
}
