package router_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/supervision"
	"go.uber.org/goleak"
)

// Every router under fire from several goroutines, while its routees fail and stop, come and
// go: each question ends, and nothing is handled twice.
func TestHammer(t *testing.T) {
	logics := map[string]router.Make{
		"round-robin": router.RoundRobin, "random": router.Random, "smallest-mailbox": router.SmallestMailbox, "broadcast": router.Broadcast,
		"consistent-hashing": router.ConsistentHashing(router.Hashing{Load: 1.5}), "balancing": router.Balancing,
		"scatter-gather": router.ScatterGather(time.Second), "tail-chopping": router.TailChopping(time.Second, time.Millisecond),
	}
	for name, logic := range logics {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			s := must(host.New(host.NewConfig("test").WithWorkers(4).WithGuardian(supervision.Default().WithSilence(true))))(t)
			var handled sync.Map // by question
			var twice atomic.Int64
			worker := host.Func(func(ctx *host.Context, m host.Message) error {
				var n int
				if m.Decode(&n) != nil || n < 0 {
					return errors.New("fails")
				}
				if _, was := handled.LoadOrStore(n, true); was && name != "broadcast" && name != "scatter-gather" && name != "tail-chopping" {
					twice.Add(1)
				}
				return ctx.Reply(n)
			})
			d := router.DefaultResizer()
			d.Upper, d.Every = 8, 50
			r := must(s.Spawn("router", router.Pool(4, worker, logic).WithResizer(d).
				WithSupervision(supervision.Default().WithOtherwise(supervision.Restart).WithSilence(true)).Props()))(t)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			var answered atomic.Int64
			const goroutines, each = 6, 300
			for g := range goroutines {
				wg.Go(func() {
					for i := range each {
						n := g*each + i
						switch {
						case i%40 == 7:
							_ = s.Tell(r, router.Keyed("x", -1)) // one fails
						case i%90 == 11:
							_ = router.Adjust(ctx, s, r, i%5-2)
						case i%120 == 13:
							if at, err := router.Routees(ctx, s, r); err == nil && len(at) > 2 {
								_ = router.Remove(ctx, s, r, at[0])
							}
						}
						got, err := host.AskAs[int](ctx, s, r, router.Keyed(strconv.Itoa(n%17), n))
						switch {
						case errors.Is(err, host.ErrTimeout):
							t.Errorf("question %d: %v", n, err)
							return
						case err == nil && got == n:
							answered.Add(1)
						case err == nil:
							t.Errorf("question %d is answered with %d", n, got)
						}
					}
				})
			}
			wg.Wait()
			if n := twice.Load(); n > 0 {
				t.Errorf("%d were handled twice", n)
			}
			if n := answered.Load(); n < goroutines*each*9/10 {
				t.Errorf("%d of %d were answered", n, goroutines*each)
			}
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
