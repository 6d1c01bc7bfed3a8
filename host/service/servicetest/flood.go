package servicetest

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// Floods are how many requests Flood makes.
func Floods() int {
	if testing.Short() {
		return 10_000
	}
	return 100_000
}

// mostHeap is how many bytes may be in use during a flood: the asks of the flooding actor, and what waits.
const mostHeap = 256 << 20

// looks are how often a flood counts them.
const looks = 8

// Flood has an actor with a grant make [Floods] requests at once, without waiting for an answer. Each
// must be answered: with what was asked for, or because too much is under way, or because it comes
// too often. Then it makes one more, which must succeed.
func Flood(t testing.TB, sys *host.System, running *service.Running, grant any, op string, args func(i int) any) {
	t.Helper()
	n := Floods()
	var done, refused, other, peak atomic.Int64
	all, last := make(chan struct{}), make(chan error, 1)
	ref, err := sys.Spawn("flood", host.Native(func() host.Actor {
		left, answered := n, 0
		ask := func(ctx *host.Context, id int) error {
			return ctx.Ask(running.Ref(), []any{op, args(id)}, uint64(id)+1, time.Hour)
		}
		return receiver(func(ctx *host.Context, m host.Message) error {
			if m.Kind == abi.KindReply || m.Kind == abi.KindReplyError {
				if answered == n {
					last <- m.Err()
					return nil
				}
				switch text := ""; {
				case m.Err() == nil:
					done.Add(1)
				default:
					text = m.Err().Error()
					if strings.Contains(text, "busy: ") || strings.Contains(text, "rate_limited: ") || strings.Contains(text, "the mailbox is full") {
						refused.Add(1)
					} else if other.Add(1) < 4 {
						t.Log(text)
					}
				}
				if answered++; answered%(n/looks) == 1 {
					peak.Store(max(peak.Load(), LiveHeap()))
				}
				if answered == n {
					close(all)
				}
				return nil
			}
			if answered == n {
				return ask(ctx, n)
			}
			for range min(left, 1000) {
				if err := ask(ctx, n-left); err != nil {
					return err
				}
				left--
			}
			if left > 0 {
				return ctx.Tell(ctx.Self(), "go on")
			}
			return nil
		})
	}).WithLimits(host.Limits{Asks: n + 1, Mailbox: 2*n + 1, MailboxBytes: 1 << 30}).WithGrant(running.Name(), grant))
	if err != nil {
		t.Fatal(err)
	}
	before := LiveHeap()
	wait := func(what string, c <-chan struct{}) {
		if err := sys.Tell(ref, "begin"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: %d done, %d refused, %d other of %d", what, done.Load(), refused.Load(), other.Load(), n)
		}
	}
	wait("not all are answered", all)
	took := peak.Load() - before
	t.Logf("%d requests at once: %d done, %d refused; %d MiB in use", n, done.Load(), refused.Load(), took>>20)
	if done.Load() == 0 || other.Load() != 0 || done.Load()+refused.Load() != int64(n) || took > mostHeap {
		t.Errorf("%d done, %d refused, %d other of %d; %d bytes in use", done.Load(), refused.Load(), other.Load(), n, took)
	}
	if err := sys.Tell(ref, "once more"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-last:
		if err != nil {
			t.Errorf("the next one: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the next one is not answered")
	}
	sys.Stop(ref)
}

// LiveHeap is how many bytes of the heap are in use. It collects garbage first: how much of that
// there is depends on when the collector last came.
func LiveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

type receiver func(*host.Context, host.Message) error

func (r receiver) Receive(ctx *host.Context, m host.Message) error { return r(ctx, m) }
