package actor

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// rate is a timer of AtRate. Before each of its messages is handled, the next one is set.
type rate struct {
	key     uint64
	due     int64 // of the next message, ns since 1970
	period  int64
	payload []byte
}

// AtRate is Every at the times of a grid: the messages are due one period after now, two, three and
// so on, however long turns take. What comes due while one waits, or its turn runs, is left out:
// there is never more than one, and no burst. A period of 0 or less is After without a delay.
func (c *Context) AtRate(key uint64, period time.Duration, v Encoder) {
	if period <= 0 {
		c.After(key, 0, v)
		return
	}
	c.timer(key, period, 0, v)
	now := c.Now().UnixNano()
	if due := now + int64(period); due > now { // else it is beyond what can be counted
		c.rates = append(c.rates, rate{key, due, int64(period), append([]byte(nil), c.encoded(v)...)})
	}
}

// dropRate forgets that a timer is one of AtRate.
func (c *Context) dropRate(key uint64) {
	for i := range c.rates {
		if c.rates[i].key == key {
			c.rates = append(c.rates[:i], c.rates[i+1:]...)
			return
		}
	}
}

// beat sets the next message of a timer of AtRate, whose message is about to be handled. One that
// was stashed comes again, before the next is due.
func (c *Context) beat(m *Message) {
	now := c.Now().UnixNano()
	for i := range c.rates {
		r := &c.rates[i]
		if r.key != m.correlation || now < r.due {
			continue
		}
		missed := (now - r.due) / r.period
		r.due += (missed + 1) * r.period
		wrote(abi.AppendTimer(appendix(usualHead+len(r.payload)), r.key, uint64(r.due-now), 0, r.payload))
		return
	}
}
