package mailbox

import "sync"

// cacheBatch is how many envelopes a cache exchanges with the pool at a time. A
// cache keeps at most twice as many, 64, so some 300 KiB in the worst case.
const cacheBatch = 32

// Cache is a stock of envelopes for one goroutine, a dispatcher's worker: it
// takes from and gives to the pool by the batch, which matters when one worker
// sends what another one frees. The zero value is ready; a nil Cache works, too,
// and goes to the pool for each envelope. Not safe for concurrent use.
type Cache struct {
	first *Envelope
	n     int
}

// batches holds chains of cacheBatch free envelopes. Like every sync.Pool it
// gives up what is not used to the garbage collector.
var batches sync.Pool

// New is like the function New.
func (c *Cache) New() *Envelope {
	if c == nil {
		return New()
	}
	e := c.first
	if e == nil {
		if e, _ = batches.Get().(*Envelope); e == nil {
			return New()
		}
		c.n = cacheBatch
	}
	c.first = e.next
	c.n--
	e.next = nil
	e.freed = false
	return e
}

// Free is like the envelope's method Free.
func (c *Cache) Free(e *Envelope) {
	if c == nil {
		e.Free()
		return
	}
	e.clear()
	if c.n == 2*cacheBatch {
		c.giveBatch()
	}
	e.next = c.first
	c.first = e
	c.n++
}

// giveBatch gives half of a full cache to the pool.
func (c *Cache) giveBatch() {
	first, last := c.first, c.first
	for range cacheBatch - 1 {
		last = last.next
	}
	c.first = last.next
	last.next = nil
	c.n -= cacheBatch
	batches.Put(first)
}
