package mailbox

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// ledger counts what is given up; any goroutine.
type ledger struct{ dropped, held atomic.Int64 }

func (l *ledger) Dropped(*host.Envelope, host.DeadReason) { l.dropped.Add(1) }
func (l *ledger) Reserve(bytes int64, must bool) error {
	if held := l.held.Add(bytes); held > 8<<10 && !must && bytes > 0 {
		l.held.Add(-bytes)
		return errors.New("no room")
	}
	return nil
}

// Many push, and some wait, while one consumes, puts back and closes in the middle: what was
// accepted comes out or is given up, exactly once, and each level of each sender in order.
func TestHammer(t *testing.T) {
	for k := range table {
		for full := Bounded; full <= Block; full++ {
			c := New(Kind(k))
			if c.kind <= Block {
				if full != Bounded {
					continue
				}
			} else {
				c = c.WithFull(full)
			}
			t.Run(c.kind.String()+"/"+c.full.String(), func(t *testing.T) { hammer(t, c) })
		}
	}
}

func hammer(t *testing.T, c Config) {
	const senders, each = 4, 1500
	limits := host.MailboxLimits{Messages: 40, Bytes: 900}
	b := c.Make(limits).(host.HostedMailbox)
	l := &ledger{}
	b.Hosted(l)
	var accepted, refused atomic.Int64
	header := c.Header()
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for n := 1; n <= each; {
				e := &host.Envelope{Kind: abi.KindMessage, Sender: abi.Ref(s + 1), SenderPath: "wasm://s/user/x", Origin: uint64(n), Payload: make([]byte, n%20)}
				if header != "" {
					e.Headers = abi.AppendHeader(nil, header, strconv.Itoa(n%3))
				}
				var err error
				if w, ok := b.(host.WaitingMailbox); ok && s%2 == 0 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(n%3+1)*time.Millisecond)
					err = w.PushWait(ctx, e)
					cancel()
				} else if s == 1 && n%10 == 0 {
					e.Kind = abi.KindTimer
					if !b.Force(e) {
						err = host.ErrStopped
					}
				} else {
					err = b.Push(e)
				}
				switch {
				case err == nil:
					accepted.Add(1)
					n++
				case errors.Is(err, host.ErrStopped):
					return
				default:
					refused.Add(1)
					runtime.Gosched()
				}
			}
		})
	}
	type line struct {
		sender abi.Ref
		level  int
		mail   bool
	}
	last := map[line]uint64{}
	got := int64(0)
	r := c.Make(limits)
	if w, ok := r.(waitingBox); ok {
		r = w.box
	}
	ranks := &r.(*box).ranker
	out := func(e *host.Envelope) {
		got++
		at := line{e.Sender, ranks.levelOf(e), host.IsMail(e)}
		if e.Origin <= last[at] && c.kind != Deduplicating { // there a retry may come in after a drop
			t.Errorf("sender %d, level %d: %d after %d", e.Sender, at.level, e.Origin, last[at])
		}
		last[at] = e.Origin
	}
	all := make(chan struct{})
	go func() { wg.Wait(); close(all) }()
	for i := 0; ; i++ {
		e := b.Pop()
		if e == nil {
			b.EndRun()
			select {
			case <-all:
			default:
				runtime.Gosched()
				continue
			}
			if b.Empty() {
				break
			}
			continue
		}
		if i%7 == 0 {
			if second := b.Pop(); second != nil {
				b.PushFront(e, second)
			} else {
				b.PushFront(e)
			}
			continue
		}
		if i%11 == 0 {
			b.Failed(e)
		}
		out(e)
		if accepted.Load() > senders*each*3/4 {
			break
		}
	}
	b.Close(out)
	<-all
	b.Close(func(*host.Envelope) { t.Error("something was left") })
	if sum := got + l.dropped.Load(); sum != accepted.Load() {
		t.Errorf("%d were accepted, %d came out and %d were given up", accepted.Load(), got, l.dropped.Load())
	}
	if b.Len() != 0 || b.Bytes() != 0 || l.held.Load() != 0 {
		t.Errorf("left: %d messages, %d bytes, %d on the account", b.Len(), b.Bytes(), l.held.Load())
	}
}

// The bounds hold while many push: what waits is never more, but for what the consumer has put
// back or the host has forced in.
func TestBoundsUnderFire(t *testing.T) {
	for k := range table {
		c := New(Kind(k))
		b := c.Make(host.MailboxLimits{Messages: 20, Bytes: 300})
		var stop atomic.Bool
		var wg sync.WaitGroup
		for s := range 3 {
			wg.Go(func() {
				for n := 0; !stop.Load(); n++ {
					e := &host.Envelope{Kind: abi.KindMessage, Sender: abi.Ref(s + 1), Payload: make([]byte, n%60)}
					if h := c.Header(); h != "" {
						e.Headers = abi.AppendHeader(nil, h, strconv.Itoa(n))
					}
					_ = b.Push(e)
				}
			})
		}
		for range 3000 {
			if n, size := b.Len(), b.Bytes(); n > 20 || size > 300 {
				t.Errorf("%s: %d messages of %d bytes", c.kind, n, size)
			}
			b.Pop()
		}
		stop.Store(true)
		wg.Wait()
	}
}
