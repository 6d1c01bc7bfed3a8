package host

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
)

// Flowed is a message that was sampled: its sender and its receiver. It is reported when the turn that has
// taken it ends. A message to no actor of the tree (an answer to the outside) is sampled when the
// turn that sends it ends.
type Flowed struct {
	From, To Ref // nobody if that is not known
	Kind     abi.Kind
	Size     int    // of the payload, in bytes
	OneIn    uint64 // turns: it stands for so many messages
	First    bool   // of its turn
}

// ErrSampling says that another sample is already running.
var ErrSampling = errors.New("host: the flow is being sampled already")

// flowSampler is the one that samples at present.
type flowSampler struct {
	f     func(*Flowed)
	most  int64
	taken atomic.Int64  // at the present rate
	oneIn atomic.Uint64 // turns
}

// SampleFlow calls f for the messages of some turns until stop is called: of every turn at
// first, and of half as many whenever most messages were sampled. So the sum of Flowed.OneIn
// is an unbiased estimate of how many messages there were. f is called by workers, also at
// the same time: it must be quick. Only one caller may sample at a time: ErrSampling.
func (s *System) SampleFlow(most int, f func(*Flowed)) (stop func(), err error) {
	x := &flowSampler{f: f, most: int64(max(most, 16))}
	x.oneIn.Store(1)
	if !s.sampler.CompareAndSwap(nil, x) {
		return nil, ErrSampling
	}
	s.looks.Or(lookFlow)
	return func() {
		if s.sampler.CompareAndSwap(x, nil) {
			s.looks.And(^lookFlow)
		}
	}, nil
}

// flow samples turns.
func (a *actor) flow(scr *scratch, c *observed) {
	x := a.sys.sampler.Load()
	if x == nil {
		return
	}
	for i := range max(len(c.mail), 1) {
		n := x.oneIn.Load()
		if scr.skip >= n*32 {
			scr.skip = 0 // left over from a lower rate
		}
		if scr.skip > 0 {
			scr.skip--
			continue
		}
		scr.skip = gap(n)
		if x.taken.Add(1) >= x.most && x.oneIn.CompareAndSwap(n, 2*n) {
			x.taken.Store(x.most / 2)
		}
		a.flowTurn(x, c, i, n)
	}
}

// gap is how many turns are skipped: each turn is taken with a probability of one in n, so that
// no rhythm of the turns biases the sample. At most 32 n.
func gap(n uint64) uint64 {
	if n == 1 {
		return 0
	}
	u := 1 - rand.Float64() // (0, 1]
	return min(uint64(math.Log(u)/math.Log1p(-1/float64(n))), 32*n-1)
}

func (a *actor) flowTurn(x *flowSampler, c *observed, turn int, n uint64) {
	first := true
	hand := func(from, to Ref, kind abi.Kind, size int) {
		x.f(&Flowed{From: from, To: to, Kind: kind, Size: size, OneIn: n, First: first})
		first = false
	}
	if turn < len(c.mail) {
		if e := c.mail[turn]; isMail(e) {
			hand(a.sys.sender(e), c.actor, e.Kind, e.Size())
		}
	}
	outside := func(to abi.Ref) bool { return to != 0 && a.sys.here(to) == nil }
	if c.commands != nil {
		for _, cmd := range c.commands(turn) {
			if cmd.Op == abi.OpSend && cmd.ToPath == nil && outside(cmd.ToRef) {
				hand(c.actor, newRef(cmd.ToRef, a.sys.temp), kindOf(&cmd), len(cmd.Payload)+len(cmd.Headers))
			}
		}
	}
	if turn == 0 {
		for i := range c.effects {
			if e := &c.effects[i]; e.IsMessage() && outside(e.To) {
				hand(c.actor, newRef(e.To, a.sys.temp), e.Env.Kind, e.Env.Size())
			}
		}
	}
}

// kindOf is the kind of message that a guest sends.
func kindOf(cmd *abi.Command) abi.Kind {
	switch {
	case cmd.Flags&abi.FlagReply != 0:
		return abi.KindReply
	case cmd.Flags&abi.FlagReplyError != 0:
		return abi.KindReplyError
	}
	return abi.KindMessage
}
