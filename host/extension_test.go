package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestK18_Extensions: one value for each system, made when it is first asked for or at the start, whoever
// asks; closed in the opposite order when all actors have ended.
func TestK18_Extensions(t *testing.T) {
	var said []string
	note := func(name string, after *Extension[string]) *Extension[string] {
		return NewExtension(name, func(s *System) (string, error) {
			if after != nil {
				if v, err := after.Get(s); err != nil || v != after.Name()+" of "+s.Name() {
					t.Errorf("%q, %v", v, err)
				}
			}
			said = append(said, "open "+name)
			return name + " of " + s.Name(), nil
		}, func(_ context.Context, v string) error { said = append(said, "close "+v); return nil })
	}
	lazy, base := note("lazy", nil), note("base", nil)
	first, second := note("first", base), note("second", nil)
	plain := NewExtension("plain", func(*System) (int, error) { return 7, nil }, nil)
	never := note("never", nil)
	s := must(New(NewConfig("a").WithManual().WithExtensions(first, second).WithExtensions(first, plain)))(t)
	stopped := Native(func() Actor { return &closing{func() { said = append(said, "actor ends") }} })
	must(s.Spawn("x", stopped))(t)
	s.RunUntilIdle(100)
	if v, err := lazy.Get(s); v != "lazy of a" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := plain.Get(s); v != 7 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	other := must(New(NewConfig("b").WithManual()))(t)
	if v, err := lazy.Get(other); v != "lazy of b" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	_, _ = lazy.Get(s)
	if want := []string{"open base", "open first", "open second", "open lazy", "open lazy"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	said = nil
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"actor ends", "close lazy of a", "close second of a", "close first of a", "close base of a"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	if _, err := never.Get(s); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	_ = other.Close(t.Context())
}

type closing struct{ f func() }

func (*closing) Receive(*Context, Message) error { return nil }
func (c *closing) Stopped(*Context)              { c.f() }

// A failure at the start is New's, names the extension, and closes what was there; one that comes later is
// the same for all who ask; one of closing is Close's, and the others are closed all the same.
func TestK18_ExtensionsThatFail(t *testing.T) {
	closed := 0
	good := NewExtension("good", func(*System) (int, error) { return 1, nil }, func(context.Context, int) error { closed++; return nil })
	tries := 0
	bad := NewExtension("bad", func(*System) (int, error) { tries++; return 0, errors.New("no disk") }, func(context.Context, int) error { t.Error("it is closed"); return nil })
	if _, err := New(NewConfig("a").WithExtensions(good, bad)); err == nil || !strings.Contains(err.Error(), "the extension bad: no disk") || closed != 1 {
		t.Errorf("%v, %d closed", err, closed)
	}
	s := must(New(NewConfig("a").WithExtensions(good)))(t)
	for range 3 {
		if _, err := bad.Get(s); err == nil || !strings.Contains(err.Error(), "the extension bad: no disk") {
			t.Errorf("%v", err)
		}
	}
	if tries != 2 {
		t.Errorf("it was tried %d times in two systems", tries)
	}
	wild := NewExtension("wild", func(*System) (int, error) { panic("x") }, nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a panic is swallowed")
			}
		}()
		_, _ = wild.Get(s)
	}()
	if _, err := wild.Get(s); err == nil || !strings.Contains(err.Error(), "wild") {
		t.Errorf("%v", err)
	}
	stuck := NewExtension("stuck", func(*System) (int, error) { return 1, nil }, func(context.Context, int) error { return errors.New("busy") })
	if _, err := stuck.Get(s); err != nil {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "the extension stuck was not closed in order: busy") || closed != 2 {
		t.Errorf("%v, %d closed", err, closed)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// Of many who ask at once one makes the value, while the system closes.
func TestExtensionsHammer(t *testing.T) {
	for range 50 {
		s := must(New(NewConfig("a")))(t)
		var opened, closed atomic.Int32
		var xs []*Extension[int32]
		for i := range 4 {
			xs = append(xs, NewExtension(fmt.Sprint(i), func(*System) (int32, error) { return opened.Add(1), nil }, func(context.Context, int32) error { closed.Add(1); return nil }))
		}
		var all sync.WaitGroup
		var seen [4]atomic.Int32
		for range 8 {
			all.Go(func() {
				for i, x := range xs {
					v, err := x.Get(s)
					if err != nil {
						if !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
						continue
					}
					if old := seen[i].Swap(v); old != 0 && old != v {
						t.Errorf("two values: %d, %d", old, v)
					}
				}
			})
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		all.Wait()
		if opened.Load() != closed.Load() || opened.Load() > 4 {
			t.Errorf("%d opened, %d closed", opened.Load(), closed.Load())
		}
	}
}

// A value may be nil if its type is an interface; one whose close panics keeps nothing else from being
// closed, neither other extensions nor the system.
func TestExtensionsThatAreOdd(t *testing.T) {
	var closed []string
	closes := func(name string) *Extension[int] {
		return NewExtension(name, func(*System) (int, error) { return 1, nil }, func(context.Context, int) error {
			if closed = append(closed, name); name == "panics" {
				panic("at the end")
			}
			return nil
		})
	}
	none := NewExtension("none", func(*System) (error, error) { return nil, nil }, nil)
	s, err := New(NewConfig("odd").WithExtensions(closes("first"), closes("panics"), closes("last")))
	if err != nil {
		t.Fatal(err)
	}
	events := s.Subscribe(1, func(*Event) bool { return false })
	for range 2 {
		if v, err := none.Get(s); v != nil || err != nil {
			t.Errorf("%v, %v", v, err)
		}
	}
	err = s.Close(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the extension panics was not closed in order: it has panicked: at the end") {
		t.Error(err)
	}
	if want := []string{"last", "panics", "first"}; !slices.Equal(closed, want) {
		t.Errorf("closed: %v", closed)
	}
	if _, open := <-events.C(); open {
		t.Error("the rest of the system was not closed")
	}
}
