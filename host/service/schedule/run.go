package schedule

import (
	"errors"
	"math"
	"time"
)

// run is one run of an item, over all its attempts.
type run struct {
	item    *item
	planned int64 // ns since 1970
	missed  uint64
	attempt int
	again   interface{ Stop() bool } // the timer of the next attempt
}

// ID is the same at every attempt, and after a restart.
func (r *run) id() string { return runID(r.item.owner, r.item.Name, r.planned) }

// Backoff between the attempts of a run: it doubles from the first to the longest.
const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
)

func backoff(attempt int) time.Duration {
	return time.Duration(min(float64(longestBackoff), float64(firstBackoff)*math.Pow(2, float64(min(attempt-1, 30)))))
}

// carry carries out one attempt, in a new goroutine.
func (g *engine) carry(r *run) {
	defer g.active.Done()
	x := r.item
	g.mu.Lock()
	r.attempt++
	if r.attempt > 1 {
		x.stats.Retries++
	}
	var written *batch
	dropped := x.gone
	if late, bounded := x.late(); bounded && g.now()-r.planned > late && !dropped {
		dropped = true
		x.stats.Missed++
	}
	if !dropped && x.delivery() != Ask { // a recorded run is not begun again
		written = g.markDone(x, r.planned)
	}
	g.mu.Unlock()
	if dropped {
		g.over(r, false, nil)
		return
	}
	if err := written.wait(); err != nil {
		// It is not known whether the record survives a crash; so do not run it now: after a
		// restart it runs only if the record was lost.
		g.over(r, false, errors.Join(errors.New("the run could not be recorded"), err))
		return
	}
	retry, err := g.send(g.ctx, r)
	g.over(r, retry, err)
}

// over ends an attempt, and the run unless it is tried again.
func (g *engine) over(r *run, retry bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := r.item
	g.queues.leave(r)
	if err != nil {
		x.stats.Error = clip(err.Error())
	} else {
		x.stats.Error = ""
	}
	switch {
	case g.ctx.Err() != nil && retry: // interrupted by the end of the system: it runs again afterwards
	case retry && !x.gone:
		g.log.Debug("a run is tried again", "run", r.id(), "attempt", r.attempt, "error", err)
		r.again = g.clock.AfterFunc(backoff(r.attempt), func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if r.again = nil; !g.closed {
				g.queues.add(r)
				g.pump()
			}
		})
	default:
		delete(x.open, r.planned)
		x.stats.Runs++
		x.stats.LastRun = r.planned
		g.markDone(x, 0)
		if !g.closed {
			now := g.now()
			g.plan(x, now)
			for x.next != 0 && x.next <= now {
				g.begin(x, now)
			}
			g.arm(now)
		}
	}
	g.pump()
}

const mostError = 256

func clip(s string) string {
	if len(s) > mostError {
		return s[:mostError]
	}
	return s
}

// queues holds runs that wait for room: runs in progress are limited in all and per owner, so
// that one owner's long runs do not delay those of others.
type queues struct {
	inAll, perOwner int
	running         int
	of              map[string]*ownerQueue
	ring            []*ownerQueue // owners with waiting runs
}

type ownerQueue struct {
	owner   string
	running int
	ready   []*run
	listed  bool
}

func newQueues(inAll, perOwner int) queues {
	return queues{inAll: inAll, perOwner: perOwner, of: map[string]*ownerQueue{}}
}

func (q *queues) add(r *run) {
	o := q.of[r.item.target()]
	if o == nil {
		o = &ownerQueue{owner: r.item.target()}
		q.of[o.owner] = o
	}
	o.ready = append(o.ready, r)
	q.list(o)
}

func (q *queues) list(o *ownerQueue) {
	if !o.listed && len(o.ready) > 0 && o.running < q.perOwner {
		o.listed = true
		q.ring = append(q.ring, o)
	}
}

// take returns the next run, owners in turn; nil if there is no room, or no run.
func (q *queues) take() *run {
	if q.running >= q.inAll || len(q.ring) == 0 {
		return nil
	}
	o := q.ring[0]
	q.ring = q.ring[1:]
	o.listed = false
	r := o.ready[0]
	o.ready = o.ready[1:]
	o.running++
	q.running++
	q.list(o)
	return r
}

func (q *queues) leave(r *run) {
	o := q.of[r.item.target()]
	o.running--
	q.running--
	if o.running == 0 && len(o.ready) == 0 {
		delete(q.of, o.owner)
		return
	}
	q.list(o)
}
