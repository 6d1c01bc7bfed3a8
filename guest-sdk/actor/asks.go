package actor

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// asks are the questions that wait for an answer: a table whose length is a power of two. The low bits
// of a question's correlation are the index of its slot. Correlations are consecutive, so the next slot
// is nearly always free; one that is taken is skipped.
type asks struct {
	slots []asked
	open  int
	last  uint64 // correlation
	names []naming
}

type asked struct {
	correlation uint64 // 0: free
	then        func(*Context, *Message) error
}

// firstAsk is the number before an incarnation's first question. Incarnations number their questions apart: an answer to
// one of the incarnation before may still be on its way, and must not be taken for another's.
func firstAsk(incarnation uint64) uint64 { return incarnation << 20 }

// add notes a question and returns its correlation.
func (a *asks) add(then func(*Context, *Message) error) uint64 {
	if a.open*2 >= len(a.slots) {
		a.grow()
	}
	mask := uint64(len(a.slots) - 1)
	for {
		a.last++
		if s := &a.slots[a.last&mask]; s.correlation == 0 {
			s.correlation, s.then = a.last, then
			a.open++
			return a.last
		}
	}
}

// take removes a question and returns its function, or nil.
func (a *asks) take(correlation uint64) func(*Context, *Message) error {
	if correlation == 0 || len(a.slots) == 0 {
		return nil
	}
	s := &a.slots[correlation&uint64(len(a.slots)-1)]
	if s.correlation != correlation {
		return nil
	}
	then := s.then
	s.correlation, s.then = 0, nil
	a.open--
	return then
}

// grow doubles the table: correlations that differ in the low bits still do.
func (a *asks) grow() {
	old := a.slots
	a.slots = make([]asked, max(8, 2*len(old)))
	for _, s := range old {
		if s.correlation != 0 {
			a.slots[s.correlation&uint64(len(a.slots)-1)] = s
		}
	}
}

// Ask sends a message and calls then with the answer, in a later turn: a message
// of KindReply, KindReplyError or KindAskTimeout. Timeouts are 1 ms to 24 h.
// Pending asks are forgotten by a restart.
func (c *Context) Ask(to Ref, v Encoder, timeout time.Duration, then func(*Context, *Message) error) {
	if to == 0 {
		c.nobody("Ask")
		return
	}
	correlation := c.asks.add(then)
	p := room(usualHead)
	*(*uint16)(p) = 0x86 | uint16(abi.OpAsk)<<8
	at := putUint(p, 2, uint64(to))
	at = putUint(p, at, correlation)
	at = putUint(p, at, uint64(timeout))
	*byteAt(p, at) = 0xf6
	c.body(int(at+1), v)
}

// AskPath is Ask to a path; see TellPath.
func (c *Context) AskPath(path string, v Encoder, timeout time.Duration, then func(*Context, *Message) error) {
	if path == "" {
		c.nowhere("AskPath")
		return
	}
	correlation := c.asks.add(then)
	p := c.encoded(v)
	wrote(abi.AppendAsk(appendix(usualHead+len(path)+len(p)), 0, path, correlation, uint64(timeout), nil, p))
}

// AskWith is Ask with headers, as of [Context.TellWith], and returns the correlation for CancelAsk, 0 if to is 0.
func (c *Context) AskWith(to Ref, v Encoder, timeout time.Duration, then func(*Context, *Message) error, headers ...Header) uint64 {
	if to == 0 {
		c.nobody("Ask")
		return 0
	}
	return c.askWith(to, "", v, timeout, then, headers)
}

// AskPathWith is AskWith to a path; see TellPath.
func (c *Context) AskPathWith(path string, v Encoder, timeout time.Duration, then func(*Context, *Message) error, headers ...Header) uint64 {
	if path == "" {
		c.nowhere("AskPath")
		return 0
	}
	return c.askWith(0, path, v, timeout, then, headers)
}

func (c *Context) askWith(to Ref, path string, v Encoder, timeout time.Duration, then func(*Context, *Message) error, headers []Header) uint64 {
	p := c.encoded(v)
	c.head(headers)
	correlation := c.asks.add(then)
	wrote(abi.AppendAsk(appendix(usualHead+len(path)+len(c.heads)+len(p)), to, path, correlation, uint64(timeout), c.heads, p))
	return correlation
}

// CancelAsk gives up an ask: then is not called any more, and the actor that works on it is notified. If the ask is over,
// nothing happens. A module that calls it says Need(abi.FeatureAsks).
func (c *Context) CancelAsk(correlation uint64) {
	if c.asks.take(correlation) != nil {
		wrote(abi.AppendCancelAsk(appendix(usualHead), correlation))
	}
}

// waitKey is added to the correlations of waits: above it timers belong to the SDK.
const waitKey = 1 << 63

// Wait calls then in a later turn, when d has passed. It takes one of the actor's timers, with a
// key of 1<<63 or above; a restart forgets it.
func (c *Context) Wait(d time.Duration, then func(*Context, *Message) error) {
	c.timer(waitKey+c.asks.add(then), d, 0, nil)
}

// Poll is Wait for whoever looks again and again whether there is something to do: a run that ends when nothing is left to do
// (`run --input`, System.Idle) does not wait for it.
func (c *Context) Poll(d time.Duration, then func(*Context, *Message) error) {
	var key uint64
	key = waitKey + c.asks.add(func(ctx *Context, m *Message) error {
		ctx.Cancel(key)
		return then(ctx, m)
	})
	c.timer(key, d, d, nil) // a timer with a period is no work that is left
}
