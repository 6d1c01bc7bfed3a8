package durable

import (
	"context"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/ref"
)

// A start that does not fit to the store is refused with what is to be done, before and after a checkpoint, and the store is as it was.
func TestStartsThatDoNotFit(t *testing.T) {
	image := puppetImage(t)
	child := host.Child{Name: "kid", Props: puppet(image)}
	props := Props{"a": puppet(image).WithChildren(child), "b": puppet(image)}
	w := mustOpen(t, t.TempDir(), props, eagerly)
	w.report("b")
	eventually(t, func() bool { return w.TellPath("/user/a/kid", add) == nil })
	if w.report("a/kid") != 1 {
		t.Fatal("kid")
	}
	for _, compacted := range []bool{false, true} {
		if compacted {
			w.checkpoint()
		}
		dir := w.killed()
		for what, c := range map[string]struct {
			name    string
			props   Props
			usual   string // an actor that is not durable
			advices []string
		}{
			"without b":        {"w", Props{"a": props["a"]}, "", []string{"/user/b", "is no durable actor now", "forget b"}},
			"b is not durable": {"w", Props{"a": props["a"]}, "b", []string{"/user/b", "is not durable now: make it durable again"}},
			"another system":   {"a-longer-name", props, "", []string{"wasm://w/user/", "keeps its name"}},
			"a longer system":  {strings.Repeat("w", 200), props, "", []string{"wasm://w/user/", "keeps its name"}},
		} {
			s, err := Open(Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			x, err := s.Prepare(host.NewConfig(c.name), c.props)
			if err != nil {
				t.Fatal(err)
			}
			if c.usual != "" {
				if _, err := x.System().Spawn(c.usual, host.Guest(image, "puppet")); err != nil {
					t.Fatal(err)
				}
			}
			_, err = x.Recover()
			for _, advice := range c.advices {
				if err == nil || !strings.Contains(err.Error(), advice) {
					t.Errorf("%s, compacted %v: %v, not %q", what, compacted, err, advice)
				}
			}
			x.Abandon()
			_ = x.System().Close(t.Context())
			_ = s.Close()
		}
		again := mustOpen(t, dir, props, eagerly)
		if n := again.report("a/kid"); n != 1 {
			t.Errorf("kid has counted %d", n)
		}
		again.close()
	}
	w.close()
}

// Only actors at the top are forgotten, by name or path: others are part of them. A store in which one of those was forgotten opens.
func TestOnlyTheTopIsForgotten(t *testing.T) {
	image := puppetImage(t)
	w := mustOpen(t, t.TempDir(), Props{"a": puppet(image).WithChildren(host.Child{Name: "kid", Props: puppet(image)})})
	eventually(t, func() bool { return w.TellPath("/user/a/kid", add) == nil })
	w.report("a/kid")
	dir := w.killed()
	w.close()
	for i, name := range []string{"a/kid", "/user/a/kid", "wasm://w/user/a/kid", "nobody", "", "a", "/user/a", "wasm://w/user/a"} {
		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Forget(context.Background(), "w", name)
		if refused := i < 5; (err != nil) != refused || i < 3 && !strings.Contains(err.Error(), "/user/a/kid is part of a") {
			t.Errorf("%q: %v", name, err)
		}
		if i == 0 { // as an earlier release has written it
			b, err := encode(tagForget, &forgotten{Path: ref.Scheme + "w/user/a/kid"})
			if err == nil {
				_, err = s.append(b)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		w := mustOpen(t, dir, w.props)
		if i < 5 {
			if n := w.report("a/kid"); n != 1 {
				t.Errorf("%q: kid has counted %d", name, n)
			}
		} else if n := w.report("a"); n != 0 {
			t.Errorf("%q: a has counted %d", name, n)
		} else {
			w.tell("a", add)
			w.report("a")
		}
		w.close()
	}
}
