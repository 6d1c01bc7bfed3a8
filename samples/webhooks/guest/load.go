package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
)

// load reads what the store has, and opens the queue. Until then senders are told to come again.
func (q *queue) load(ctx *actor.Context) {
	inVain := func(ctx *actor.Context, err error) error {
		ctx.Warn("the store cannot be read: " + err.Error())
		ctx.After(timerLoad, trouble, nil)
		return nil
	}
	clear(q.jobs)
	clear(q.dead)
	// An incarnation before may have written what is visible and not on the disk yet. When this is, all before it is,
	// so that a duplicate can be told so.
	jobsIn.Add(ctx, starts, 1, kv.Write{}, func(ctx *actor.Context, n int64, err error) error {
		if err != nil {
			return inVain(ctx, err)
		}
		all := kv.Query{Prefix: jobPrefix, Values: true, Limit: kv.MaxPage}
		jobsIn.Each(ctx, all, func(ctx *actor.Context, e kv.Entry) error {
			if id, rec, ok := parseEntry(ctx, e); ok {
				q.jobs[id] = &job{id: id, record: rec}
			}
			return nil
		}, func(ctx *actor.Context, err error) error {
			if err != nil {
				return inVain(ctx, err)
			}
			deadIn.Each(ctx, all, func(ctx *actor.Context, e kv.Entry) error {
				if id, rec, ok := parseEntry(ctx, e); ok {
					q.dead[id] = &letter{record: rec}
				}
				return nil
			}, func(ctx *actor.Context, err error) error {
				if err != nil {
					return inVain(ctx, err)
				}
				q.repair(ctx, q.begun(), func(ctx *actor.Context, err error) error {
					if err != nil {
						return inVain(ctx, err)
					}
					q.open(ctx, n)
					return nil
				})
				return nil
			})
			return nil
		})
		return nil
	})
}

func parseEntry(ctx *actor.Context, e kv.Entry) (id string, rec record, ok bool) {
	id = strings.TrimPrefix(e.Key, jobPrefix)
	if rec, ok = parseRecord(id, e.Value); !ok {
		ctx.Error("what stands under " + e.Key + " is no job: it is left alone")
	}
	return id, rec, ok
}

// begun are those that are in both namespaces, as an incarnation has ended while it moved them, in order.
func (q *queue) begun() (ids []string) {
	for id := range q.dead {
		if q.jobs[id] != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// repair completes moves. A job of a later round than its dead letter was taken back; of the same, it was buried.
func (q *queue) repair(ctx *actor.Context, ids []string, then func(ctx *actor.Context, err error) error) {
	if len(ids) == 0 {
		ctx.Fail(then(ctx, nil))
		return
	}
	id, rest, store := ids[0], ids[1:], jobsIn
	if q.jobs[id].Round > q.dead[id].Round {
		store = deadIn
	}
	store.Batch(ctx, both(id), func(ctx *actor.Context, _ []kv.Result, err error) error {
		if err != nil {
			return then(ctx, err)
		}
		if store == deadIn {
			delete(q.dead, id)
		} else {
			delete(q.jobs, id)
		}
		q.repair(ctx, rest, then)
		return nil
	})
}

// open begins the work.
func (q *queue) open(ctx *actor.Context, start int64) {
	ids := make([]string, 0, len(q.jobs))
	for id := range q.jobs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	latest := ctx.Now().Add(q.policy.longest).UnixMilli()
	for _, id := range ids {
		j := q.jobs[id]
		j.Due = min(j.Due, latest) // the clock may have been wrong
		q.agenda.add(j)
	}
	q.ready = true
	ctx.Info("start " + strconv.FormatInt(start, 10) + ": " + strconv.Itoa(len(q.jobs)) + " jobs are open, " + strconv.Itoa(len(q.dead)) + " dead letters are kept")
	q.dispatch(ctx)
}
