package host

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// The bucket: so many at once, and then so many a second.
func TestStraysOfATree(t *testing.T) {
	var b guesses
	now := int64(1e18)
	pass := func() (n int) {
		for b.count(now) {
			n++
		}
		return n
	}
	if n := pass(); n != strayBurst {
		t.Errorf("%d at once", n)
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {time.Second / strayRate, 0}, {time.Second, strayRate - 1}, {time.Second, strayRate - 1}, {10 * time.Second, 10*strayRate - 1}, {24 * time.Hour, strayBurst}} {
		now += int64(c.after)
		if n := pass(); n < c.want || n > c.want+1 {
			t.Errorf("after %v: %d, want %d", c.after, n, c.want)
		}
	}
	// At the rate nobody is refused, however long it lasts.
	var steady guesses
	for range 5 * strayBurst {
		now += int64(time.Second / strayRate)
		if !steady.count(now) {
			t.Fatal("refused at the rate")
		}
	}
}

// Refs that somebody had lately are remembered, the last ones at least; older ones are not
// for ever.
func TestRecents(t *testing.T) {
	var r recents
	for i := range abi.Ref(3 * recentRefs) {
		r.add(i+1, strings.Repeat("x", int(i%(recentPath+2))))
		if path, ok := r.find(i + 1); !ok || len(path) != int(i%(recentPath+2))%(recentPath+1) {
			t.Fatal(i, path)
		}
	}
	for i := range abi.Ref(recentRefs) {
		if _, ok := r.find(3*recentRefs - i); !ok {
			t.Fatalf("the last but %d is forgotten", i)
		}
	}
	if _, ok := r.find(1); ok || len(r.now)+len(r.old) > 2*recentRefs {
		t.Errorf("%d are remembered", len(r.now)+len(r.old))
	}
}

// stray makes an actor that sends to refs that nobody has.
func straying(to *[]Ref) Props {
	return Func(func(ctx *Context, _ Message) error {
		for _, r := range *to {
			if err := ctx.Tell(r, "guess"); err != nil {
				return err
			}
		}
		return nil
	})
}

// Who guesses fails, and all below one actor of /user share what is allowed; a neighbour is
// not failed. Refs of those that have just stopped do not count, nor does nobody.
func TestWhoGuessesRefsFails(t *testing.T) {
	l := newLab(t, otherwise(supervision.Stop))
	var to []Ref
	kid := straying(&to)
	l.spawn("top", parentOf(otherwise(supervision.Stop), Child{"a", kid}, Child{"b", kid}))
	l.spawn("neighbour", kid)
	bucket := l.table.Get(l.at("top").UID()).tree.guesses
	if l.table.Get(l.at("top/a").UID()).tree.guesses != bucket || l.table.Get(l.at("neighbour").UID()).tree.guesses == bucket {
		t.Fatal("whose bucket?")
	}
	gone := l.spawn("gone", newCounter())
	l.Stop(gone)
	l.run()
	bucket.n = strayBurst - 4

	to = []Ref{gone, gone, gone, gone, gone, gone}
	l.tell(l.at("top/a"), 1)
	if l.state("top/a") != "running" || bucket.n != strayBurst-4 {
		t.Errorf("those that have stopped count: %v", bucket.n)
	}
	to = []Ref{newRef(12345, ""), newRef(12346, "")}
	l.tell(l.at("top/a"), 1)
	l.tell(l.at("top/b"), 1)
	if l.state("top/a") != "running" || l.state("top/b") != "running" {
		t.Errorf("too early: %v", bucket.n)
	}
	l.tell(l.at("neighbour"), 1)
	l.tell(l.at("top/b"), 1)
	if l.state("top/a") != "running" || l.state("top/b") != "gone" || l.state("neighbour") != "running" {
		t.Error(l.Tree())
	}
	e := l.next(EventFailed)
	if e.Failure.Kind != abi.FailureABIViolation || !strings.Contains(e.Failure.Reason, "refs that name no actor") {
		t.Errorf("%+v", e.Failure)
	}
	l.pass(time.Second)
	l.tell(l.at("top/a"), 1)
	if l.state("top/a") != "running" {
		t.Error("a second later it is still refused")
	}
}

// A guest that guesses fails, too, whether it sends or stops.
func TestGuestsThatGuess(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		for name, cmd := range map[string][]byte{"send": abi.AppendSend(nil, 777, "", 0, 0, nil, encoded(1)), "stop": abi.AppendStop(nil, 777, "")} {
			l := newStage(t, nil)
			g := l.spawn("g", puppet(t))
			l.table.Get(g.UID()).tree.guesses.n = strayBurst - 1
			l.say(g, script(now(cmd)))
			if n := len(l.raw(EventFailed)); n != 0 {
				t.Errorf("%s: too early", name)
			}
			l.say(g, script(now(cmd)))
			if n := len(l.raw(EventFailed)); n != 1 {
				t.Errorf("%s: %d failures", name, n)
			}
		}
	})
}
