package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/config"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// worker delivers one job at a time: so a crash concerns one. It reads the store, and cannot write it.
type worker struct {
	queue   actor.Ref
	timeout time.Duration // of a delivery
	last    uint64        // task
	busy    bool
}

// remind is after how long a worker without a task says again that it has none: a message may
// have found a full mailbox.
const remind = 5 * time.Second

// post is what a worker is started with.
type post struct {
	queue   actor.Ref
	timeout time.Duration
}

// MarshalCBOR implements actor.Encoder.
func (p post) MarshalCBOR(w *abi.Writer) {
	w.Array(2)
	w.Ref(p.queue)
	w.Int(int64(p.timeout))
}

func (k *worker) Started(ctx *actor.Context) error {
	r := ctx.Args()
	if r.Array() == 2 {
		k.queue, k.timeout = r.Ref(), time.Duration(r.Int())
	}
	if err := r.Done(); err != nil {
		return err
	}
	ctx.SetReceiveTimeout(remind)
	k.report(ctx, report{})
	return nil
}

func (k *worker) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Kind() {
	case actor.KindReceiveTimeout:
		if !k.busy {
			k.report(ctx, report{})
		}
		return nil
	case actor.KindMessage:
	default:
		return actor.ErrUnhandled
	}
	if msg.Sender() != k.queue {
		return actor.ErrUnhandled
	}
	var t task
	if err := msg.Decode(&t); err != nil {
		return err
	}
	if t.Epoch != ctx.Incarnation() || k.busy {
		return nil // the queue has given it to somebody since
	}
	k.last, k.busy = t.Number, true
	k.deliver(ctx, &t)
	return nil
}

func (k *worker) report(ctx *actor.Context, r report) {
	r.Epoch, r.Last = ctx.Incarnation(), k.last
	k.busy = false
	ctx.Tell(k.queue, &r)
}

// deliver asks where the job goes, then for its body, and sends it there.
func (k *worker) deliver(ctx *actor.Context, t *task) {
	config.String(ctx, "destination."+t.Source, func(ctx *actor.Context, url string, err error) error {
		if err != nil {
			return k.done(ctx, t, 0, "", noted("destination."+t.Source, err))
		}
		kv.Get(ctx, bodyKey(t.Job), func(ctx *actor.Context, e kv.Entry, err error) error {
			if err != nil {
				return k.done(ctx, t, 0, "", noted("its body", err))
			}
			k.send(ctx, t, url, e.Value)
			return nil
		})
		return nil
	})
}

func (k *worker) send(ctx *actor.Context, t *task, url string, body []byte) {
	q := httpx.Request{Method: "POST", URL: url, Body: body, Timeout: k.timeout, Redirects: httpx.Stay}
	if t.Kind != "" {
		q.Set("content-type", t.Kind)
	}
	// The same for each attempt, so that the destination can tell a job that it has had.
	q.Set("idempotency-key", t.Job)
	q.Set("webhook-id", t.Delivery)
	httpx.Do(ctx, &q, func(ctx *actor.Context, res *httpx.Response, err error) error {
		if err != nil {
			return k.done(ctx, t, 0, "", err)
		}
		res.Discard(ctx)
		return k.done(ctx, t, res.Status, res.Header("retry-after"), nil)
	})
}

func (k *worker) done(ctx *actor.Context, t *task, status int, retryAfter string, err error) error {
	r := judge(status, retryAfter, err)
	r.Job = t.Job
	k.report(ctx, r)
	return nil
}

// judge says what an answer of the destination, or none, means for a job.
func judge(status int, retryAfter string, err error) report {
	switch code := service.CodeOf(err); {
	case err != nil && (code.Retry() || code == service.Failed || code == service.Cancelled || code == service.Internal):
		return report{Outcome: again, Problem: short(err.Error())}
	case err != nil:
		return report{Outcome: refused, Problem: short(err.Error())}
	case status >= 200 && status < 300:
		return report{Outcome: delivered}
	}
	r := report{Outcome: refused, Problem: "status " + strconv.Itoa(status)}
	if status >= 500 || status == 408 || status == 425 || status == 429 {
		r.Outcome = again
		if s, bad := strconv.ParseInt(retryAfter, 10, 32); bad == nil && s > 0 {
			r.AfterMS = s * 1000
		}
	}
	return r
}

// noted is an error with what it was about; its code stays.
func noted(about string, err error) error {
	text := err.Error()
	if code := service.CodeOf(err); code != "" {
		text = strings.TrimPrefix(text, string(code)+": ")
	}
	return &service.Error{Code: service.CodeOf(err), Text: about + ": " + text}
}

// mostProblem is how many bytes of an error a job keeps.
const mostProblem = 200

func short(s string) string {
	if len(s) <= mostProblem {
		return s
	}
	at := mostProblem
	for at > 0 && s[at]&0xc0 == 0x80 { // not within a character
		at--
	}
	return s[:at]
}
