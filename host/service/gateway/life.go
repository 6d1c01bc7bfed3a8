package gateway

import "sync"

// open counts what goes on after requests were answered: connections that were taken over.
type open struct {
	mu     sync.Mutex
	n      int
	ending chan struct{} // closed when they must end
	empty  chan struct{} // closed when none is left; nil: nobody waits
}

// keep counts something that goes on until the returned function is called; ending is
// closed when the gateway drains.
func (x *exchange) keep() (done func(), ending <-chan struct{}) {
	o := &x.g.open
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
	x.g.under.Add(1)
	var once sync.Once
	return func() { once.Do(func() { x.g.under.Add(-1); o.leave() }) }, o.end()
}

// count is how many there are.
func (o *open) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// end is the channel; the caller holds the lock.
func (o *open) end() chan struct{} {
	if o.ending == nil {
		o.ending = make(chan struct{})
	}
	return o.ending
}

func (o *open) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n--; o.n == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}

// drain tells all of them to end, and returns a channel that is closed when they have.
func (o *open) drain() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.end(); !closing(c) {
		close(c)
	}
	done := make(chan struct{})
	if o.n == 0 {
		close(done)
		return done
	}
	if o.empty == nil {
		o.empty = done
	}
	return o.empty
}

func closing(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// draining is closed when requests that go on for long are to end.
func (g *Gateway) draining() <-chan struct{} {
	g.open.mu.Lock()
	defer g.open.mu.Unlock()
	return g.open.end()
}
