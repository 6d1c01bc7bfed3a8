package main

import (
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// station is a worker as the queue knows it.
type station struct {
	ref    actor.Ref
	epoch  uint64    // its incarnation
	number uint64    // of the task that it was given last
	job    *job      // that it has; nil: none, or it was taken back
	until  time.Time // then it is taken back
	idle   bool
}

// idle is the worker that has had nothing to do for longest, nil if there is none.
func (q *queue) idle() (found *station) {
	for _, w := range q.workers {
		if w.idle && (found == nil || w.number < found.number) {
			found = w
		}
	}
	return found
}

// report is what a worker says: that it has nothing to do, and what has become of its task.
func (q *queue) report(ctx *actor.Context, from actor.Ref, r *report) {
	w := q.station(from)
	switch {
	case w == nil && (r.Last != 0 || len(q.workers) >= mostWorkers):
		return // it was the worker of a queue before this one
	case w == nil:
		w = &station{ref: from, epoch: r.Epoch}
		q.workers = append(q.workers, w)
		ctx.Watch(from)
	case r.Epoch < w.epoch:
		return
	case r.Epoch > w.epoch: // it has crashed
		q.lost(ctx, w, "the worker has crashed")
		w.epoch, w.number = r.Epoch, 0
	case r.Last != w.number:
		return // it has crossed a task
	}
	j := w.job
	w.job, w.idle = nil, true
	switch {
	case j == nil:
	case r.Job != j.id:
		q.failed(ctx, j, "the worker has lost it", 0)
	case r.Outcome == delivered:
		q.done(ctx, j)
	case r.Outcome == refused:
		j.Attempts, j.Problem = j.Attempts+1, short(r.Problem)
		q.bury(ctx, j)
	default:
		q.failed(ctx, j, r.Problem, time.Duration(min(max(r.AfterMS, 0), q.policy.longest.Milliseconds()))*time.Millisecond)
	}
	q.dispatch(ctx)
}

func (q *queue) station(ref actor.Ref) *station {
	for _, w := range q.workers {
		if w.ref == ref {
			return w
		}
	}
	return nil
}

// gone is a worker that has ended for good.
func (q *queue) gone(ctx *actor.Context, ref actor.Ref) {
	for i, w := range q.workers {
		if w.ref == ref {
			q.workers = append(q.workers[:i], q.workers[i+1:]...)
			q.lost(ctx, w, "the worker has ended")
			return
		}
	}
}

// expire takes jobs from workers that have had them for too long.
func (q *queue) expire(ctx *actor.Context) {
	for _, w := range q.workers {
		if w.job != nil && !ctx.Now().Before(w.until) {
			q.lost(ctx, w, "the worker has said nothing for "+q.args.Lease.String())
		}
	}
}

// lost takes the job of a worker back. It counts as an attempt: it may be the job that the worker fails with.
func (q *queue) lost(ctx *actor.Context, w *station, why string) {
	j := w.job
	if w.job = nil; j != nil {
		q.failed(ctx, j, why, 0)
	}
}
