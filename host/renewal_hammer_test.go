package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Orders of every kind from several goroutines, to children, to their parents and to theirs: when it is quiet
// again nobody waits for a supervisor that has nothing more to say, and who is there answers.
func TestNobodyWaitsForARenewalForEver(t *testing.T) {
	orders := 4000
	if testing.Short() {
		orders = 400
	}
	delays := must(backoff.Spec{Curve: "constant", Min: time.Millisecond, Max: time.Millisecond, Jitter: "none"}.Policy())(t)
	usual := supervision.Default().WithOtherwise(supervision.Restart)
	strategies := map[string]supervision.Strategy{
		"one":     usual,
		"all":     usual.WithKind(supervision.AllForOne),
		"rest":    usual.WithKind(supervision.RestForOne),
		"keep":    usual.WithKeepChildren(true),
		"delayed": usual.WithBackoff(supervision.Backoff{Policy: delays}),
	}
	s := newSystem(t, NewConfig("test").WithGuardian(usual))
	module := NewModule(load(t, newEngine(t), "testdata/puppet.wasm"))
	native := Func(func(ctx *Context, m Message) error {
		if m.Correlation == 0 {
			return errors.New("boom")
		}
		return ctx.Reply("here")
	})
	guest := counting(t, module)
	var mu sync.Mutex
	var all []Ref
	for name, strategy := range strategies {
		family := native.WithSupervision(strategy)
		inner := family.WithChildren(Child{"a", native}, Child{"b", guest}, Child{"c", native})
		top := must(s.Spawn(name, family.WithChildren(Child{"x", inner}, Child{"y", inner}, Child{"z", native})))(t)
		all = append(all, top)
	}
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	someone := func(r *rand.Rand) Ref {
		mu.Lock()
		defer mu.Unlock()
		paths := []string{"", "/x", "/x/a", "/x/b", "/x/c", "/y", "/y/b", "/z"}
		ref, err := s.Lookup(all[r.IntN(len(all))].Path() + paths[r.IntN(len(paths))])
		if err != nil {
			return all[0]
		}
		return ref
	}
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 1))
			for range orders / 4 {
				ref := someone(r)
				switch r.IntN(12) {
				case 0, 1, 2, 3:
					_ = s.Operate().Restart(ref)
				case 4:
					_ = s.Operate().Renew(ref, guest)
				case 5:
					s.Operate().RenewModule(module)
				case 6:
					_ = s.Operate().Crash(ref, 0, "")
				case 7:
					_ = s.Tell(ref, 1)
				case 8:
					_ = s.Operate().Pause(ref, true)
					_ = s.Operate().Restart(ref)
					_ = s.Operate().Unpause(ref, true) // pauses of others may have ended by it
				case 9:
					_ = s.Operate().Decide(ref, supervision.Restart)
				case 10:
					if len(ref.Path()) > len("/user/delayed/x") { // from the props of its parent it comes back
						s.Stop(ref)
					}
				case 11:
					_ = s.Operate().Kill(ref)
				}
			}
		})
	}
	wg.Wait()
	s.table.Each(func(a *actor) { _ = s.Operate().Unpause(a.ref(), false) })
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := s.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	n := 0
	s.table.Each(func(a *actor) {
		if a.parent == nil || a.parent.parent == nil && a.parent != s.user {
			return
		}
		n++
		if a.life.Held(life.Renewed) || a.sysq.Waiting() {
			t.Errorf("%s waits: %b", a.path, a.life.State())
		}
	})
	if n < len(strategies) {
		t.Errorf("%d actors are left", n)
	}
	for _, top := range all {
		for _, path := range []string{"", "/z", "/x", "/x/a", "/x/b"} {
			ref, err := s.Lookup(top.Path() + path)
			if err != nil {
				continue
			}
			question := any("where")
			if path == "/x/b" {
				question = script(rec(recReport, 0, nil))
			}
			if _, err := s.Ask(ctx, ref, question); err != nil {
				t.Errorf("%s: %v", ref.Path(), err)
			}
		}
	}
}
