package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// TestHostileGuests sends one message to each guest of testdata/hostile, all of
// them on one host with the compiled engine. Each must fail as its file says and
// be restarted, or stopped, as its supervisor says, or be refused at load; a
// neighbour is asked all the while and must answer.
func TestHostileGuests(t *testing.T) {
	files, err := filepath.Glob("testdata/hostile/*.wat")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d guests, %v", len(files), err)
	}
	ctx := context.Background()
	engine := newEngine(t)
	sys := newSystem(t, NewConfig("hostile").WithGuardian(supervision.Default()))
	neighbour := must(sys.Spawn("neighbour", echo(t, engine)))(t)

	stop := make(chan struct{})
	var answered atomic.Int64
	asked := make(chan error, 1)
	go func() {
		defer close(asked)
		for {
			select {
			case <-stop:
				return
			default:
			}
			actx, cancel := context.WithTimeout(ctx, 30*time.Second)
			_, err := sys.Ask(actx, neighbour, "are you there?")
			cancel()
			if err != nil {
				asked <- err
				return
			}
			answered.Add(1)
		}
	}()

	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".wat")
		t.Run(name, func(t *testing.T) {
			before := answered.Load()
			hostile(t, engine, sys, path, name)
			// The neighbour has answered since, or answers now.
			waitFor(t, "the neighbour", func() bool { return answered.Load() > before })
		})
	}
	close(stop)
	if err := <-asked; err != nil {
		t.Errorf("the neighbour: %v", err)
	}
	if sys.Cause() != nil {
		t.Errorf("the system has failed: %v", sys.Cause())
	}
	t.Logf("the neighbour has answered %d times", answered.Load())
}

func hostile(t *testing.T, engine *sandbox.Engine, sys *System, path, name string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, want, ok := strings.Cut(string(text), ";; fails as: ")
	if !ok {
		t.Fatal("the file does not say how it fails")
	}
	want, _, _ = strings.Cut(want, "\n")
	code, err := os.ReadFile(strings.TrimSuffix(path, ".wat") + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	image, err := engine.Load(context.Background(), code, sandbox.ImageConfig{
		Name: name, MemoryLimit: 4 << 20, TableLimit: 10_000, InitFuel: 10_000_000, InitDeadline: 10 * time.Second,
	})
	if want == "refused" {
		if err == nil {
			image.Close()
			t.Fatal("it was loaded")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	limits := Limits{Fuel: 50_000_000, Outbox: 1 << 20, Children: 10}

	// Once under a supervisor that restarts, once under one that stops.
	for _, directive := range []supervision.Directive{supervision.Restart, supervision.Stop} {
		parent := must(sys.Spawn("", Func(func(*Context, Message) error { return nil }).
			WithSupervision(supervision.Default().WithOtherwise(directive)).
			WithChildren(Child{"guest", Guest(image, "hostile").WithLimits(limits)})))(t)
		guest := lookup(t, sys, parent.Path()+"/guest")
		events := sys.Subscribe(100, func(e *Event) bool {
			return e.Ref == guest && (e.Kind == EventFailed || e.Kind == EventRestarted || e.Kind == EventStopped)
		})
		ended := must(sys.Ended(guest))(t)
		if err := sys.Tell(guest, 1); err != nil {
			t.Fatal(err)
		}
		if want == "nothing" {
			waitFor(t, "its turn", func() bool { return turns(sys, guest) >= 2 })
		} else {
			failed := next(t, events)
			if failed.Kind != EventFailed || failed.Failure.Kind.String() != want || failed.Directive != directive {
				t.Errorf("%v %v, %v; want %s, %v", failed.Kind, failed.Failure, failed.Directive, want, directive)
			}
			after := next(t, events)
			if directive == supervision.Restart && after.Kind != EventRestarted || directive == supervision.Stop && after.Kind != EventStopped {
				t.Errorf("then %v, though %v was decided", after.Kind, directive)
			}
		}
		sys.Stop(parent)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("it does not stop")
		}
		events.Close()
	}
}

func next(t *testing.T, s *Subscription) Event {
	t.Helper()
	select {
	case e := <-s.C():
		return e
	case <-time.After(60 * time.Second):
		t.Fatal("nothing has happened")
		return Event{}
	}
}

func turns(sys *System, ref Ref) uint64 {
	c := sys.table.Get(ref.UID())
	if c == nil {
		return 0
	}
	return c.tally.Turns.Load()
}

// waitFor polls until it is so.
func waitFor(t testing.TB, what string, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !so() {
		if time.Now().After(deadline) {
			t.Fatalf("waiting for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func lookup(t testing.TB, sys *System, path string) Ref {
	t.Helper()
	var ref Ref
	waitFor(t, path, func() bool {
		var err error
		ref, err = sys.Lookup(path)
		return err == nil
	})
	return ref
}

func newEngine(t testing.TB) *sandbox.Engine {
	t.Helper()
	ctx := context.Background()
	e, err := sandbox.New(ctx, sandbox.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return e
}

func newSystem(t testing.TB, cfg Config) *System {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func load(t testing.TB, e *sandbox.Engine, file string) *sandbox.Image {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	image, err := e.Load(context.Background(), code, sandbox.ImageConfig{Name: filepath.Base(file)})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// echo is the guest that answers with what it is sent.
func echo(t testing.TB, e *sandbox.Engine) Props {
	return Guest(load(t, e, "testdata/echo.wasm"), "echo")
}
