package main

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

// routes are those of the operators; the manifest says who they are.
func (q *queue) routes() {
	q.Handle("GET /jobs/{id}", q.showJob)
	q.Handle("GET /dead", q.showDead)
	q.Handle("POST /dead/{id}/retry", q.onLetter(202, (*queue).retry))
	q.Handle("DELETE /dead/{id}", q.onLetter(200, (*queue).discard))
}

// notYet answers while the store is being read.
func (q *queue) notYet(w *web.Response) bool {
	if !q.ready {
		unavailable(w)
	}
	return !q.ready
}

func (q *queue) showJob(ctx *actor.Context, r *web.Request, w *web.Response) error {
	id := r.PathValue("id")
	if q.notYet(w) {
		return nil
	}
	if j := q.jobs[id]; j != nil {
		w.JSON(string(appendRecord(nil, id, j.state.String(), &j.record)))
		return nil
	}
	if l := q.dead[id]; l != nil {
		w.JSON(string(appendRecord(nil, id, "dead", &l.record)))
		return nil
	}
	if !validID(id) {
		w.Error(404, "there is no such job")
		return nil
	}
	answer := w.Later()
	jobsIn.Get(ctx, seenKey(id), func(ctx *actor.Context, e kv.Entry, err error) error {
		rec, ok := parseRecord(id, e.Value)
		switch {
		case err != nil && !errors.Is(err, service.ErrNotFound):
			return unavailable(answer).Send(ctx)
		case err != nil || !ok: // or it is being written
			return answer.Error(404, "there is no such job").Send(ctx)
		}
		return answer.JSON(string(appendRecord(nil, id, settling.String(), &rec))).Send(ctx)
	})
	return nil
}

// pageOfDead is how many dead letters are shown at a time.
const pageOfDead = 100

// showDead lists dead letters by id, from behind ?after=ID on.
func (q *queue) showDead(_ *actor.Context, r *web.Request, w *web.Response) error {
	if q.notYet(w) {
		return nil
	}
	after := r.Query("after")
	var ids []string
	for id := range q.dead {
		if id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	more := len(ids) > pageOfDead
	ids = ids[:min(len(ids), pageOfDead)]
	b := append(strconv.AppendInt([]byte(`{"total":`), int64(len(q.dead)), 10), `,"dead":[`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRecord(b, id, "dead", &q.dead[id].record)
	}
	b = append(b, ']')
	if more {
		b = append(append(append(b, `,"next":"`...), ids[len(ids)-1]...), '"')
	}
	w.JSON(string(append(b, '}')))
	return nil
}

// onLetter is a handler of something that is done to a dead letter.
func (q *queue) onLetter(success int, do func(*queue, *actor.Context, string, *letter, func(*actor.Context, error) error)) web.Handler {
	return func(ctx *actor.Context, r *web.Request, w *web.Response) error {
		id := r.PathValue("id")
		l := q.dead[id]
		switch {
		case q.notYet(w):
			return nil
		case l == nil:
			w.Error(404, "there is no such dead letter")
			return nil
		case l.moving:
			w.Error(409, "something is being done about it")
			return nil
		}
		answer := w.Later()
		do(q, ctx, id, l, func(ctx *actor.Context, err error) error {
			if err != nil {
				return unavailable(answer).Send(ctx)
			}
			return answer.Status(success).JSON(`{"job":"` + id + `"}`).Send(ctx)
		})
		return nil
	}
}

// appendRecord appends a job as JSON.
func appendRecord(b []byte, id, state string, r *record) []byte {
	text := func(key, value string) {
		b = append(append(append(b, `,"`...), key...), `":`...)
		b = web.AppendJSON(b, value)
	}
	b = append(append(append(b, `{"job":"`...), id...), '"')
	text("state", state)
	text("source", r.Source)
	text("delivery", r.Delivery)
	text("received", moment(r.Received))
	if state == waiting.String() {
		text("due", moment(r.Due))
	}
	b = strconv.AppendInt(append(b, `,"attempts":`...), r.Attempts, 10)
	b = strconv.AppendInt(append(b, `,"round":`...), r.Round, 10)
	if r.Problem != "" {
		text("problem", r.Problem)
	}
	return append(b, '}')
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
