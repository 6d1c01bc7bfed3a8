package host

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// What is sent to an actor behind an order to restart it waits for the next incarnation: whatever strategy
// its supervisor has, whichever child has failed, and however far its supervisor has come with that.
func TestNothingGetsThroughBehindAnOrder(t *testing.T) {
	usual := supervision.Default().WithOtherwise(supervision.Restart)
	delay := supervision.Backoff{Policy: backoff.WithJitter(backoff.Constant(time.Second), backoff.NoJitter())}
	seeds := uint64(24)
	if race.Enabled {
		seeds = 5
	}
	names := []string{"a", "b", "c", "d"}
	for _, kind := range []supervision.Kind{supervision.OneForOne, supervision.AllForOne, supervision.RestForOne} {
		for what, strategy := range map[string]supervision.Strategy{"at once": usual.WithKind(kind), "delayed": usual.WithKind(kind).WithBackoff(delay), "keep": usual.WithKind(kind).WithKeepChildren(true)} {
			for _, failing := range names {
				for _, ordered := range names {
					for seed := range seeds {
						steps := int(seed) % 12
						s, clock := manual(t, func(c Config) Config { return c.WithShuffle(seed) })
						l := &lab{s, t, clock, s.Subscribe(1000, nil)}
						type handled struct {
							n           int
							incarnation uint64
						}
						got := map[string][]handled{}
						child := func(name string) Child {
							return Child{name, Func(func(ctx *Context, m Message) error {
								var n int
								if m.Decode(&n) != nil {
									return errors.New("boom")
								}
								got[name] = append(got[name], handled{n, ctx.Head().Incarnation()})
								return nil
							})}
						}
						l.spawn("top", newCounter().WithSupervision(strategy).WithChildren(child("a"), child("b"), child("c"), child("d")))
						l.breaks(failing)
						for range steps {
							l.Step()
						}
						ref := l.at("top/" + ordered)
						before := l.table.Get(ref.UID()).Incarnation()
						must(0, l.Operate().Restart(ref))(t)
						_ = l.Tell(ref, 7)
						for range 10 {
							l.run()
							l.clock.Advance(time.Second)
						}
						l.run()
						where := fmt.Sprintf("%v %s, %s fails, %s is ordered after %d steps, seed %d", kind, what, failing, ordered, steps, seed)
						if h := got[ordered]; len(h) != 1 || h[0].n != 7 || h[0].incarnation <= before {
							t.Errorf("%s: %v, the order came to incarnation %d", where, h, before)
						}
						for _, name := range names {
							if i := l.info(l.at("top/" + name)); i.State != StateRunning {
								t.Fatalf("%s: %s is %v", where, name, i.State)
							}
						}
					}
				}
			}
		}
	}
}

// breaks has a child of top fail, as far as nobody has noticed yet.
func (l *lab) breaks(failing string) {
	l.t.Helper()
	if err := l.Tell(l.at("top/"+failing), "fail"); err != nil {
		l.t.Fatal(err)
	}
}
