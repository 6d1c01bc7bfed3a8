package main

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// done ends a job that was delivered. Until the store knows it a crash has it delivered once more.
func (q *queue) done(ctx *actor.Context, j *job) {
	j.state, j.Problem = settling, ""
	notesIn.Batch(ctx, []kv.Op{
		kv.DeleteOp(jobKey(j.id), kv.Write{}),
		kv.DeleteOp(bodyKey(j.id), kv.Write{}),
		kv.PutOp(seenKey(j.id), kv.Encode(&j.record), kv.Write{TTL: q.args.Remember}),
	}, func(ctx *actor.Context, _ []kv.Result, err error) error {
		if err != nil {
			ctx.Warn("the store does not take that " + j.id + " is delivered: " + err.Error())
			q.wait(ctx, j, trouble)
			return nil
		}
		delete(q.jobs, j.id)
		return nil
	})
}

// failed has a job tried again later, or makes it a dead letter.
func (q *queue) failed(ctx *actor.Context, j *job, problem string, after time.Duration) {
	j.Attempts++
	j.Problem = short(problem)
	if j.Attempts >= q.policy.attempts {
		q.bury(ctx, j)
		return
	}
	q.postpone(ctx, j, max(after, q.policy.pause(j.Attempts, ctx.Rand().Float64())))
}

// postpone notes a job's next attempt.
func (q *queue) postpone(ctx *actor.Context, j *job, pause time.Duration) {
	j.state = waiting
	q.wait(ctx, j, pause)
	notesIn.Put(ctx, jobKey(j.id), kv.Encode(&j.record), kv.Write{}, nil) // if it fails an attempt is forgotten
}

// bury moves a job to the dead letters. These have a namespace, and so a quota, of their own; what needs two writes
// is completed by the next incarnation if this one ends in between: see repair.
func (q *queue) bury(ctx *actor.Context, j *job) {
	if int64(len(q.dead))+q.graves >= q.args.Dead {
		ctx.Error("there is no room for another dead letter: " + j.id + " is tried on")
		q.postpone(ctx, j, q.policy.longest)
		return
	}
	j.state = moving
	q.graves++
	inVain := func(ctx *actor.Context, err error) error {
		q.graves--
		ctx.Error(j.id + " cannot be made a dead letter, and is tried on: " + err.Error())
		q.postpone(ctx, j, q.policy.longest)
		return nil
	}
	jobsIn.Get(ctx, bodyKey(j.id), func(ctx *actor.Context, e kv.Entry, err error) error {
		if err != nil && !errors.Is(err, service.ErrNotFound) {
			return inVain(ctx, err)
		}
		deadIn.Batch(ctx, whole(j.id, &j.record, e, err == nil), func(ctx *actor.Context, _ []kv.Result, err error) error {
			switch {
			case unwritten(err):
				return inVain(ctx, err)
			case err != nil:
				return err
			}
			q.graves--
			delete(q.jobs, j.id)
			q.dead[j.id] = &letter{record: j.record}
			ctx.Warn(j.id + " of " + j.Source + " is a dead letter: " + j.Problem)
			jobsIn.Batch(ctx, both(j.id), crashUnlessDone)
			return nil
		})
		return nil
	})
}

// retry moves a dead letter back, and calls then when it is on the disk. It may be tried as often as at first.
func (q *queue) retry(ctx *actor.Context, id string, l *letter, then func(ctx *actor.Context, err error) error) {
	l.moving = true
	inVain := func(ctx *actor.Context, err error) error {
		l.moving = false
		return then(ctx, err)
	}
	deadIn.Get(ctx, bodyKey(id), func(ctx *actor.Context, e kv.Entry, err error) error {
		if err != nil && !errors.Is(err, service.ErrNotFound) {
			return inVain(ctx, err)
		}
		if !q.room() {
			return inVain(ctx, service.ErrBusy)
		}
		back := l.record
		back.Round, back.Attempts, back.Due = back.Round+1, 0, ctx.Now().UnixMilli()
		j := &job{id: id, record: back, state: moving}
		q.jobs[id] = j // has its place
		ops := append(whole(id, &back, e, err == nil), kv.PutOp(seenKey(id), nil, kv.Write{TTL: q.args.Remember}))
		jobsIn.Batch(ctx, ops, func(ctx *actor.Context, _ []kv.Result, err error) error {
			switch {
			case unwritten(err):
				delete(q.jobs, id)
				return inVain(ctx, err)
			case err != nil:
				return err // whether it is there the next incarnation will see
			}
			// Not before it is not a dead letter any more: else one could be left of a job that was delivered.
			deadIn.Batch(ctx, both(id), func(ctx *actor.Context, r []kv.Result, err error) error {
				if err := crashUnlessDone(ctx, r, err); err != nil {
					return err
				}
				delete(q.dead, id)
				j.state = waiting
				q.wait(ctx, j, 0)
				return then(ctx, nil)
			})
			return nil
		})
		return nil
	})
}

// discard removes a dead letter for good.
func (q *queue) discard(ctx *actor.Context, id string, l *letter, then func(ctx *actor.Context, err error) error) {
	l.moving = true
	deadIn.Batch(ctx, both(id), func(ctx *actor.Context, _ []kv.Result, err error) error {
		switch {
		case unwritten(err):
			l.moving = false
		case err != nil:
			return err
		default:
			delete(q.dead, id)
		}
		return then(ctx, err)
	})
}

// unwritten reports whether an error says that nothing was written. After others that is not known.
func unwritten(err error) bool {
	switch service.CodeOf(err) {
	case service.Quota, service.Busy, service.RateLimited, service.TooLarge, service.Denied, service.ReadOnly, service.BadRequest:
		return true
	}
	return false
}

// crashUnlessDone fails the turn of a write that something depends on: the next incarnation reads how things
// are, and completes what was begun.
func crashUnlessDone(_ *actor.Context, _ []kv.Result, err error) error { return err }

// whole writes a job, both removes it.
func whole(id string, r *record, body kv.Entry, has bool) []kv.Op {
	ops := []kv.Op{kv.PutOp(jobKey(id), kv.Encode(r), kv.Write{})}
	if has {
		ops = append(ops, kv.PutOp(bodyKey(id), body.Value, kv.Write{}))
	}
	return ops
}

func both(id string) []kv.Op {
	return []kv.Op{kv.DeleteOp(jobKey(id), kv.Write{}), kv.DeleteOp(bodyKey(id), kv.Write{})}
}
