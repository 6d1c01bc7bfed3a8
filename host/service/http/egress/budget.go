package egress

import (
	"context"
	"net"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Budget bounds how many connections there are at a time, of everybody together. Idle ones
// of the pools above count too: where none is left Reclaim is asked to close them.
type Budget struct {
	sem     *semaphore.Weighted
	reclaim func()
}

// NewBudget allows for n connections. Reclaim closes connections that nobody uses, which
// may take effect later; it may be nil.
func NewBudget(n int, reclaim func()) *Budget {
	return &Budget{sem: semaphore.NewWeighted(int64(n)), reclaim: reclaim}
}

// take waits for a connection to be free, in the order of those who wait.
func (b *Budget) take(ctx context.Context) error {
	if b == nil || b.sem.TryAcquire(1) {
		return nil
	}
	if b.reclaim != nil {
		b.reclaim()
	}
	return b.sem.Acquire(ctx, 1)
}

func (b *Budget) give() {
	if b != nil {
		b.sem.Release(1)
	}
}

// counted gives its place back when it is closed.
type counted struct {
	net.Conn
	once   sync.Once
	budget *Budget
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.budget.give)
	return err
}
