package main

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

// queue keeps what was accepted until it is delivered. All that it knows is in the store, too: what
// it holds in memory is an index, which a new incarnation reads again.
type queue struct {
	*web.Mux
	args    queueArgs
	policy  policy
	ready   bool // the store was read
	jobs    map[string]*job
	dead    map[string]*letter
	graves  int64               // jobs that are becoming dead letters
	writing map[string]*arrival // accepted as soon as they are written
	doubts  []string            // of writing: nobody knows whether they were written
	agenda  agenda
	workers []*station
	number  uint64 // of the last task
}

// arrival is a hook that is being written.
type arrival struct {
	record
	doubtful bool
	askers   []asker // the first has brought it, the others the same once more
}

// asker is who waits for a verdict.
type asker struct {
	ref         actor.Ref
	correlation uint64
}

// Keys of timers.
const (
	timerDue uint64 = iota + 1
	timerLease
	timerDoubt
	timerLoad
)

// trouble is how long to wait before the store is asked once more.
const trouble = time.Second

func newQueue() *queue {
	q := &queue{Mux: web.NewMux(), jobs: map[string]*job{}, dead: map[string]*letter{}, writing: map[string]*arrival{}}
	q.routes()
	return q
}

func (q *queue) Started(ctx *actor.Context) error {
	if err := ctx.DecodeArgs(&q.args); err != nil {
		return err
	}
	if err := q.args.check(); err != nil {
		return err
	}
	q.policy = policy{q.args.Attempts, q.args.First, q.args.Longest}
	ctx.Every(timerLease, time.Second, nil)
	q.load(ctx)
	return nil
}

func (q *queue) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Kind() {
	case actor.KindTimer:
		switch msg.Correlation() {
		case timerDue:
			q.dispatch(ctx)
		case timerLease:
			q.expire(ctx)
		case timerDoubt:
			q.resolve(ctx)
		case timerLoad:
			q.load(ctx)
		}
		return nil
	case actor.KindTerminated:
		q.gone(ctx, msg.Sender())
		return nil
	case actor.KindMessage:
	default:
		return actor.ErrUnhandled
	}
	if err := q.Mux.Receive(ctx, msg); !errors.Is(err, actor.ErrUnhandled) {
		return err
	}
	if msg.Correlation() == 0 {
		var r report
		if err := msg.Decode(&r); err != nil {
			return actor.ErrUnhandled
		}
		q.report(ctx, msg.Sender(), &r)
		return nil
	}
	var h hook
	if err := msg.Decode(&h); err != nil {
		return ctx.ReplyError(err.Error())
	}
	if !validSource(h.Source) || !validDelivery(h.Delivery) || len(h.Kind) > mostKind {
		return ctx.ReplyError("no intake sends such a hook")
	}
	q.accept(ctx, &h, asker{msg.Sender(), msg.Correlation()})
	return nil
}

// accept writes a hook, and says so when it is on the disk.
func (q *queue) accept(ctx *actor.Context, h *hook, from asker) {
	id := jobID(h.Source, h.Delivery)
	a := q.writing[id]
	switch {
	case !q.ready || a != nil && a.doubtful:
		from.tell(ctx, id, later)
		return
	case a != nil:
		a.askers = append(a.askers, from)
		return
	case q.jobs[id] != nil || q.dead[id] != nil:
		from.tell(ctx, id, duplicate)
		return
	case !q.room():
		from.tell(ctx, id, full)
		return
	}
	a = &arrival{
		record: record{Source: h.Source, Delivery: h.Delivery, Kind: h.Kind, Received: ctx.Now().UnixMilli(), Due: ctx.Now().UnixMilli()},
		askers: []asker{from},
	}
	q.writing[id] = a
	jobsIn.Batch(ctx, []kv.Op{
		kv.PutOp(seenKey(id), nil, kv.Write{IfAbsent: true, TTL: q.args.Remember}),
		kv.PutOp(jobKey(id), kv.Encode(&a.record), kv.Write{IfAbsent: true}),
		kv.PutOp(bodyKey(id), h.Body, kv.Write{}),
	}, func(ctx *actor.Context, _ []kv.Result, err error) error {
		switch {
		case err == nil:
			q.keep(ctx, id, a)
			return nil
		case errors.Is(err, service.ErrExists): // it is neither open nor dead: it was delivered before
			q.answer(ctx, id, a, duplicate)
		case unwritten(err):
			ctx.Warn("a hook was not kept: " + err.Error())
			q.answer(ctx, id, a, full)
		default:
			ctx.Warn("whether a hook was kept is not known: " + err.Error())
			q.answer(ctx, id, a, later)
			a.doubtful = true
			q.doubts = append(q.doubts, id)
			ctx.After(timerDoubt, trouble, nil)
			return nil
		}
		delete(q.writing, id)
		return nil
	})
}

// room reports whether there may be another job.
func (q *queue) room() bool { return int64(len(q.jobs)+len(q.writing)) < q.args.Open }

// keep makes a hook that was written a job.
func (q *queue) keep(ctx *actor.Context, id string, a *arrival) {
	delete(q.writing, id)
	q.answer(ctx, id, a, accepted)
	j := &job{id: id, record: a.record}
	q.jobs[id] = j
	q.wait(ctx, j, 0)
}

// answer tells all who wait for a verdict. Only one of them can have it accepted.
func (q *queue) answer(ctx *actor.Context, id string, a *arrival, outcome string) {
	for i, from := range a.askers {
		if i > 0 && outcome == accepted {
			outcome = duplicate
		}
		from.tell(ctx, id, outcome)
	}
	a.askers = nil
}

func (a asker) tell(ctx *actor.Context, id, outcome string) {
	_ = ctx.Answer(a.ref, a.correlation, &verdict{Job: id, Outcome: outcome})
}

// resolve looks whether doubtful hooks are there. Requests of an actor take effect in their order: what is not there now
// will not be.
func (q *queue) resolve(ctx *actor.Context) {
	doubts := q.doubts
	q.doubts = nil
	for _, id := range doubts {
		a := q.writing[id]
		inVain := func() {
			q.doubts = append(q.doubts, id)
			ctx.After(timerDoubt, trouble, nil)
		}
		jobsIn.Get(ctx, jobKey(id), func(ctx *actor.Context, e kv.Entry, err error) error {
			switch {
			case errors.Is(err, service.ErrNotFound):
				delete(q.writing, id)
				return nil
			case err != nil:
				inVain()
				return nil
			}
			// It may be seen and not be on the disk: it is written again, and then it is.
			jobsIn.Put(ctx, jobKey(id), kv.Encode(&a.record), kv.Write{IfVersion: e.Version}, func(ctx *actor.Context, _ uint64, err error) error {
				if err != nil {
					inVain()
					return nil
				}
				q.keep(ctx, id, a)
				return nil
			})
			return nil
		})
	}
}

// wait puts a job into the agenda.
func (q *queue) wait(ctx *actor.Context, j *job, pause time.Duration) {
	j.Due = ctx.Now().Add(pause).UnixMilli()
	q.agenda.add(j)
	q.dispatch(ctx)
}

// dispatch gives jobs that are due to workers that are idle.
func (q *queue) dispatch(ctx *actor.Context) {
	for q.ready {
		j := q.agenda.first()
		if j == nil {
			return
		}
		if rest := j.Due - ctx.Now().UnixMilli(); rest > 0 {
			ctx.After(timerDue, time.Duration(rest)*time.Millisecond, nil)
			return
		}
		if j.state == settling {
			q.agenda.take()
			q.done(ctx, j)
			continue
		}
		w := q.idle()
		if w == nil {
			return // whoever is done comes back to this
		}
		q.agenda.take()
		q.number++
		j.state = taken
		w.idle, w.job, w.number, w.until = false, j, q.number, ctx.Now().Add(q.args.Lease)
		ctx.Tell(w.ref, &task{Number: w.number, Epoch: w.epoch, Job: j.id, Source: j.Source, Delivery: j.Delivery, Kind: j.Kind})
	}
}
