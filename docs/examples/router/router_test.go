package router

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// worker says its name and how many questions this incarnation has had.
type worker struct{ n int }

func (w *worker) Receive(ctx *host.Context, m host.Message) error {
	var text string
	if err := m.Decode(&text); err != nil {
		return err
	}
	switch w.n++; text {
	case "fail":
		return errors.New("failed")
	case "stop":
		ctx.Stop(ctx.Self())
	}
	return ctx.Reply(ctx.Self().Name() + " " + string(rune('0'+w.n)))
}

func start(t *testing.T, n int, worker host.Props) (*host.System, host.Ref) {
	t.Helper()
	s, err := host.New(host.NewConfig("app").WithManual().WithSeed(1).WithGuardian(supervision.Stopping()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	ref, err := s.Spawn("router", RoundRobin(n, worker))
	if err != nil {
		t.Fatal(err)
	}
	return s, ref
}

func ask(t *testing.T, s *host.System, ref host.Ref, text string) (answer string, err error) {
	t.Helper()
	p, err := s.Request(ref, text)
	if err != nil {
		t.Fatal(err)
	}
	s.RunUntilIdle(10_000)
	select {
	case m := <-p.Answer():
		if err := m.Err(); err != nil {
			return "", err
		}
		return answer, m.Decode(&answer)
	default:
		p.Cancel()
		return "", errors.New("no answer")
	}
}

func expect(t *testing.T, s *host.System, ref host.Ref, answers ...string) {
	t.Helper()
	for _, want := range answers {
		if got, err := ask(t, s, ref, "name"); err != nil || got != want {
			t.Errorf("%q, %v instead of %q", got, err, want)
		}
	}
}

func TestRoundRobin(t *testing.T) {
	s, ref := start(t, 3, host.Native(func() host.Actor { return &worker{} }))
	expect(t, s, ref, "worker-0 1", "worker-1 1", "worker-2 1", "worker-0 2")

	// A worker that fails is restarted, the others go on; who has asked hears of it.
	var failed *host.TurnError
	if _, err := ask(t, s, ref, "fail"); !errors.As(err, &failed) || failed.Ref.Name() != "worker-1" {
		t.Errorf("%v", err)
	}
	expect(t, s, ref, "worker-2 2", "worker-0 3", "worker-1 1", "worker-2 3")

	// One that has stopped gets nothing more.
	if got, err := ask(t, s, ref, "stop"); err != nil || got != "worker-0 4" {
		t.Errorf("%q, %v", got, err)
	}
	expect(t, s, ref, "worker-1 2", "worker-2 4", "worker-1 3")
	if n := s.View().Tree().Children[0]; len(n.Children) != 2 || n.Type != "round-robin" || n.Incarnation != 0 {
		t.Errorf("%+v", n)
	}
}

func TestNoWorkers(t *testing.T) {
	s, ref := start(t, 0, host.Native(func() host.Actor { return &worker{} }))
	var answer *host.ReplyError
	if _, err := ask(t, s, ref, "name"); !errors.As(err, &answer) || answer.Reason != "there are no workers" {
		t.Error(err)
	}
}

// A router whose workers cannot be made does not start.
func TestWorkersThatCannotBe(t *testing.T) {
	s, err := host.New(host.NewConfig("app").WithGuardian(supervision.Stopping()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	sub := s.Subscribe(10, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	if _, err := s.Spawn("router", RoundRobin(1, host.Props{})); err != nil {
		t.Fatal(err)
	}
	if e := <-sub.C(); e.Failure.Kind != abi.FailureInit {
		t.Errorf("%+v", e.Failure)
	}
}
