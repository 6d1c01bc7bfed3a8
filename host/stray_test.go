package host

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/stray"
	"github.com/wasmactors/wasmactors/supervision"
)

// The bucket: so many at once, and then so many a second.
func TestStraysOfATree(t *testing.T) {
	var b stray.Guesses
	now := int64(1e18)
	pass := func() (n int) {
		for b.Count(now) {
			n++
		}
		return n
	}
	if n := pass(); n != stray.Burst {
		t.Errorf("%d at once", n)
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {time.Second / stray.Rate, 0}, {time.Second, stray.Rate - 1}, {time.Second, stray.Rate - 1}, {10 * time.Second, 10*stray.Rate - 1}, {24 * time.Hour, stray.Burst}} {
		now += int64(c.after)
		if n := pass(); n < c.want || n > c.want+1 {
			t.Errorf("after %v: %d, want %d", c.after, n, c.want)
		}
	}
	// At the rate nobody is refused, however long it lasts.
	var steady stray.Guesses
	for range 5 * stray.Burst {
		now += int64(time.Second / stray.Rate)
		if !steady.Count(now) {
			t.Fatal("refused at the rate")
		}
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
	bucket.N = stray.Burst - 4

	to = []Ref{gone, gone, gone, gone, gone, gone}
	l.tell(l.at("top/a"), 1)
	if l.state("top/a") != "running" || bucket.N != stray.Burst-4 {
		t.Errorf("those that have stopped count: %v", bucket.N)
	}
	to = []Ref{newRef(12345, ""), newRef(12346, "")}
	l.tell(l.at("top/a"), 1)
	l.tell(l.at("top/b"), 1)
	if l.state("top/a") != "running" || l.state("top/b") != "running" {
		t.Errorf("too early: %v", bucket.N)
	}
	l.tell(l.at("neighbour"), 1)
	l.tell(l.at("top/b"), 1)
	if l.state("top/a") != "running" || l.state("top/b") != "gone" || l.state("neighbour") != "running" {
		t.Error(l.View().Tree())
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
			l.table.Get(g.UID()).tree.guesses.Leave(1, l.time.Now())
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
