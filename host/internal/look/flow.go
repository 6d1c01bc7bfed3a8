package look

import (
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Flowed is a message that was sampled: its sender and its receiver. It is reported when the turn that has
// taken it ends. A message to no actor of the tree (an answer to the outside) is sampled when the
// turn that sends it ends.
type Flowed struct {
	From, To ref.Ref // nobody if that is not known
	Kind     abi.Kind
	Size     int    // of the payload, in bytes
	OneIn    uint64 // turns: it stands for so many messages
	First    bool   // of its turn
}

// Sampler samples the flow of messages: every turn at first, and half as many whenever most messages were sampled.
type Sampler struct {
	f     func(*Flowed)
	most  int64
	taken atomic.Int64  // at the present rate
	oneIn atomic.Uint64 // turns
}

// NewSampler makes a sampler. f is called by workers, also at the same time.
func NewSampler(most int, f func(*Flowed)) *Sampler {
	x := &Sampler{f: f, most: int64(max(most, 16))}
	x.oneIn.Store(1)
	return x
}

// Take samples turns. skip counts those that a worker still skips.
func (x *Sampler) Take(d Directory, skip *uint64, c *Turns) {
	for i := range max(len(c.Mail), 1) {
		n := x.oneIn.Load()
		if *skip >= n*32 {
			*skip = 0 // left over from a lower rate
		}
		if *skip > 0 {
			*skip--
			continue
		}
		*skip = gap(n)
		if x.taken.Add(1) >= x.most && x.oneIn.CompareAndSwap(n, 2*n) {
			x.taken.Store(x.most / 2)
		}
		x.turn(d, c, i, n)
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

func (x *Sampler) turn(d Directory, c *Turns, turn int, n uint64) {
	first := true
	hand := func(from, to ref.Ref, kind abi.Kind, size int) {
		x.f(&Flowed{From: from, To: to, Kind: kind, Size: size, OneIn: n, First: first})
		first = false
	}
	if turn < len(c.Mail) {
		if e := c.Mail[turn]; mark.IsMail(e) {
			hand(sender(d, e), c.Actor, e.Kind, e.Size())
		}
	}
	outside := func(to abi.Ref) bool { return to != 0 && !d.Lives(to) }
	if c.Commands != nil {
		for _, cmd := range c.Commands(turn) {
			if cmd.Op == abi.OpSend && cmd.ToPath == nil && outside(cmd.ToRef) {
				hand(c.Actor, d.RefOf(cmd.ToRef), kindOf(&cmd), len(cmd.Payload)+len(cmd.Headers))
			}
		}
	}
	if turn == 0 {
		for i := range c.Effects {
			if e := &c.Effects[i]; e.IsMessage() && outside(e.To) {
				hand(c.Actor, d.RefOf(e.To), e.Env.Kind, e.Env.Size())
			}
		}
	}
}
