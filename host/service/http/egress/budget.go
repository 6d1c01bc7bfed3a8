package egress

import (
	"context"
	"net"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Budget bounds the number of connections of all users together. Idle ones in pools count too: if
// none is left, Reclaim is called to close them.
type Budget struct {
	sem     *semaphore.Weighted
	reclaim func()
}

// NewBudget allows n connections. Reclaim closes idle connections, possibly later; it may be nil.
func NewBudget(n int, reclaim func()) *Budget {
	return &Budget{sem: semaphore.NewWeighted(int64(n)), reclaim: reclaim}
}

// take waits for a free connection, first come, first served.
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

// counted frees its place when it is closed.
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
