package throttle

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// What waits and what does not count together, to the last message and byte; and what is put back goes before
// everything, also if something else was about to be taken.
func TestGateCountsBoth(t *testing.T) {
	timer := func(n int) *host.Envelope {
		e := &host.Envelope{Kind: abi.KindTimer, Correlation: uint64(n)}
		e.SetPayload(make([]byte, 10))
		return e
	}
	mail := func(n int) *host.Envelope {
		e := &host.Envelope{Kind: abi.KindMessage, Correlation: uint64(n)}
		e.SetPayload(make([]byte, 10))
		return e
	}
	size := int64(mail(0).Size())
	for _, limits := range []host.MailboxLimits{{Messages: 3, Bytes: 1 << 20}, {Messages: 100, Bytes: 3 * size}} {
		g := &gate{limits: limits}
		for i, e := range []*host.Envelope{mail(1), timer(2), mail(3)} {
			if err := g.Push(e); err != nil {
				t.Fatalf("%+v: %d: %v", limits, i, err)
			}
		}
		if g.Len() != 3 || g.Bytes() != 3*size {
			t.Errorf("%d messages, %d bytes, not 3 and %d", g.Len(), g.Bytes(), 3*size)
		}
		for _, e := range []*host.Envelope{mail(4), timer(4)} {
			if err := g.Push(e); !errors.Is(err, host.ErrMailboxFull) {
				t.Errorf("%+v: one too many: %v", limits, err)
			}
		}
		got := ""
		take := func() {
			if e := g.Pop(); e != nil {
				got += fmt.Sprint(e.Correlation, " ")
			}
		}
		take()
		if e := g.Peek(); e.Correlation != 1 {
			t.Errorf("%d is shown", e.Correlation)
		}
		g.PushFront(timer(5), mail(6))
		for range 4 {
			take()
		}
		if got != "2 5 6 1 3 " || !g.Empty() || g.Len() != 0 || g.Bytes() != 0 {
			t.Errorf("%q, %d are left", got, g.Len())
		}
	}
}
