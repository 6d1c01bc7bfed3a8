package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// bounded starts a bundle of one actor and its child, and collects what is refused.
func bounded(t *testing.T, top, limits string) (*host.System, *host.Subscription, error) {
	t.Helper()
	dir := needs(t, "fuel: 300M", "", "a: {type: needs, limits: {"+limits+"}, children: {b: {type: needs}}}")
	file := filepath.Join(dir, FileName)
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(string(text)+top+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	var events *host.Subscription
	sys, err := b.Start(nil, func(s *host.System) { events = s.Subscribe(10_000, nil) })
	if err == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := sys.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return sys, events, err
}

// advised waits for an event that names a key; quiet is what must have happened without one.
func advised(t *testing.T, events *host.Subscription, key string, quiet func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case e := <-events.C():
			if advice := Advice(&e); strings.Contains(advice, key) {
				if quiet != nil {
					t.Errorf("%s: %s", e.Kind, advice)
				}
				return
			}
		case <-deadline:
			t.Fatalf("nothing names %s", key)
		case <-time.After(5 * time.Millisecond):
			if quiet != nil && quiet() && len(events.C()) == 0 {
				return
			}
		}
	}
}

// Each bound of what the host holds bites when it is too small, names its key, and does
// not when it is not.
func TestBoundsOfWhatIsHeld(t *testing.T) {
	t.Run("limits.tree.actors", func(t *testing.T) {
		for limit, want := range map[string]bool{"1": false, "2": true} {
			sys, _, err := bounded(t, "", "tree: {actors: "+limit+"}")
			if err != nil {
				t.Fatal(err)
			}
			if eventually(func() bool { _, err := sys.Lookup("/user/a/b"); return err == nil }, want) != want {
				t.Errorf("tree: {actors: %s}: the child lives: %v", limit, !want)
			}
		}
	})
	t.Run("limits.tree.memory", func(t *testing.T) {
		var most int64 // that the two hold before the message
		for _, bites := range []bool{false, true} {
			limit := "64MiB"
			if bites {
				limit = strconv.FormatInt(most+100<<10, 10)
			}
			sys, events, err := bounded(t, "", "tree: {memory: "+limit+"}")
			if err != nil {
				t.Fatal(err)
			}
			eventually(func() bool { _, err := sys.Lookup("/user/a/b"); return err == nil && sys.View().Stats().Turns >= 2 }, true)
			a := must(sys.Lookup("/user/a"))(t)
			if !bites {
				most = must(sys.View().Held(a))(t).Total() + must(sys.View().Held(must(sys.Lookup("/user/a/b"))(t)))(t).Total()
			}
			if err := sys.Tell(a, 1); err != nil {
				t.Fatal(err)
			}
			var done func() bool
			if !bites {
				done = func() bool { return sys.View().Stats().Turns >= 3 }
			}
			advised(t, events, "limits.tree.memory", done)
		}
	})
	t.Run("limits.held", func(t *testing.T) {
		for limit, bites := range map[string]bool{"16KiB": true, "32MiB": false} {
			sys, events, err := bounded(t, "", "held: "+limit)
			if err != nil {
				t.Fatal(err)
			}
			a := must(sys.Lookup("/user/a"))(t)
			if err := sys.Tell(a, 4); err != nil { // it is busy for a while
				t.Fatal(err)
			}
			refused := false
			for range 1000 {
				if err := sys.Tell(a, 0); err != nil {
					if refused = errors.Is(err, host.ErrMailboxFull); !refused || !strings.Contains(err.Error(), "limits.held") {
						t.Fatal(err)
					}
				}
			}
			if refused != bites {
				t.Errorf("held: %s: refused: %v", limit, refused)
			}
			if bites {
				advised(t, events, "limits.held of the receiver", nil)
			}
		}
	})
	t.Run("system.actors", func(t *testing.T) {
		sys, _, err := bounded(t, "system: {actors: 1}", "")
		if err != nil {
			t.Fatal(err)
		}
		if eventually(func() bool { _, err := sys.Lookup("/user/a/b"); return err == nil }, false) {
			t.Error("there are two actors")
		}
		if _, err := sys.Spawn("c", host.Func(func(*host.Context, host.Message) error { return nil })); !errors.Is(err, host.ErrLimit) || !strings.Contains(err.Error(), "system.actors") {
			t.Error(err)
		}
	})
	t.Run("system.memory", func(t *testing.T) {
		sys, events, err := bounded(t, "system: {memory: 64KiB}", "")
		if err != nil {
			t.Fatal(err)
		}
		_ = sys
		deadline := time.After(30 * time.Second)
		for {
			select {
			case e := <-events.C():
				if e.Failure != nil && strings.Contains(e.Failure.Reason, "has reached its limit of") {
					return
				}
			case <-deadline:
				t.Fatal("it fits into 64 KiB")
			}
		}
	})
}

// eventually waits until something is as wanted; what is not wanted is waited for
// for a moment.
func eventually(so func() bool, want bool) bool {
	until := time.Now().Add(300 * time.Millisecond)
	if want {
		until = until.Add(30 * time.Second)
	}
	for !so() {
		if time.Now().After(until) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// A tree's bounds are no actor's default.
func TestTreeIsNotInherited(t *testing.T) {
	_, err := Load(needs(t, "tree: {actors: 3}", "", "a: {type: needs}"))
	if err == nil || !strings.Contains(err.Error(), "limits.tree is for one actor and all below it") || !strings.Contains(err.Error(), ":5:") {
		t.Error(err)
	}
	m, err := Load(needs(t, "held: 1MiB", "", "a: {type: needs, limits: {tree: {actors: 3, memory: 1MiB}}, children: {b: {type: needs}}}"))
	if err != nil {
		t.Fatal(err)
	}
	a := m.Actors[0]
	if a.Limits.Tree != (host.TreeLimits{Actors: 3, Memory: 1 << 20}) || a.Limits.Held != 1<<20 {
		t.Errorf("%+v", a.Limits)
	}
	if b := a.Children[0]; b.Limits.Tree != (host.TreeLimits{}) || b.Limits.Held != 1<<20 {
		t.Errorf("%+v", b.Limits)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
