package lookup

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source answers when it is told to.
type source struct {
	asked   chan string
	answers chan string
	ended   chan error // of questions that were cancelled
	open    atomic.Int32
}

func newSource() *source {
	return &source{asked: make(chan string, 10), answers: make(chan string), ended: make(chan error, 10)}
}

func (s *source) Open() error  { s.open.Add(1); return nil }
func (s *source) Close() error { s.open.Add(-1); return nil }

func (s *source) Find(ctx context.Context, key string) (string, error) {
	s.asked <- key
	select {
	case v := <-s.answers:
		if v == "" {
			return "", errors.New("not found: " + key)
		}
		return v, nil
	case <-ctx.Done():
		s.ended <- ctx.Err()
		return "", ctx.Err()
	}
}

func start(t *testing.T, parallel int) (*host.System, *source, host.Ref) {
	t.Helper()
	s, err := host.New(host.NewConfig("app").WithWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	src := newSource()
	ref, err := Start(s, src, parallel)
	if err != nil {
		t.Fatal(err)
	}
	return s, src, ref
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestAnswers(t *testing.T) {
	s, src, ref := start(t, 10)
	if ref.Path() != Path {
		t.Error(ref)
	}
	for _, value := range []string{"42", ""} {
		p, err := s.Request(ref, "answer")
		if err != nil {
			t.Fatal(err)
		}
		<-src.asked
		src.answers <- value
		m := <-p.Answer()
		var failed *host.ReplyError
		switch err := m.Err(); {
		case value == "" && (!errors.As(err, &failed) || failed.Reason != "not found: answer"):
			t.Error(err)
		case value != "":
			var got string
			if err := m.Decode(&got); err != nil || got != value {
				t.Errorf("%q, %v", got, err)
			}
		}
	}
	if _, err := s.Ask(deadline(t), ref, 42); err == nil {
		t.Error("a number is not a key")
	}
}

// While one question is open the actor answers others, on the only worker there is; and
// beyond the bound at once.
func TestBounded(t *testing.T) {
	s, src, ref := start(t, 1)
	p, err := s.Request(ref, "slow")
	if err != nil {
		t.Fatal(err)
	}
	<-src.asked
	var busy *host.ReplyError
	if _, err := s.Ask(deadline(t), ref, "more"); !errors.As(err, &busy) || busy.Reason != "too many lookups at a time" {
		t.Error(err)
	}
	src.answers <- "done"
	if m := <-p.Answer(); m.Err() != nil {
		t.Error(m.Err())
	}
}

// Who asks and gives up ends the lookup.
func TestCancelled(t *testing.T) {
	s, src, ref := start(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Ask(ctx, ref, "slow")
		done <- err
	}()
	<-src.asked
	cancel()
	if err := <-done; !errors.Is(err, host.ErrTimeout) {
		t.Error(err)
	}
	if err := <-src.ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A system that ends cancels what is open and waits for it; the source is closed then.
func TestEndsAfterItsLookups(t *testing.T) {
	s, src, ref := start(t, 2)
	p, err := s.Request(ref, "slow")
	if err != nil {
		t.Fatal(err)
	}
	<-src.asked
	if err := s.Close(deadline(t)); err != nil {
		t.Error(err)
	}
	if n := src.open.Load(); n != 0 || len(src.ended) != 1 {
		t.Errorf("%d are open, %d were cancelled", n, len(src.ended))
	}
	p.Cancel()
}
