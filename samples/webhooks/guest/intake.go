package main

import (
	"bytes"
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/config"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

// intake answers the senders. It is the one that strangers talk to, and has nothing but the secrets.
type intake struct {
	*web.Mux
	args intakeArgs
	keys map[string]signing // by source; of those that exist, so there are few
}

// signing is a source's key, which is asked for again from time to time.
type signing struct {
	key   []byte
	until time.Time
}

const (
	keepKey   = 10 * time.Second
	patience  = 10 * time.Second // for the queue
	comeAgain = "1"              // seconds
	mostKind  = 128              // bytes of a content type
)

func newIntake() *intake {
	i := &intake{Mux: web.NewMux(), keys: map[string]signing{}}
	i.Handle("POST /hooks/{source}", i.hook)
	return i
}

func (i *intake) Started(ctx *actor.Context) error {
	if err := ctx.DecodeArgs(&i.args); err != nil {
		return err
	}
	return i.args.check()
}

// hook checks a hook and brings it to the queue.
func (i *intake) hook(ctx *actor.Context, q *web.Request, w *web.Response) error {
	source := q.PathValue("source")
	if !validSource(source) {
		w.Error(404, "there is no such source")
		return nil
	}
	if from, _ := q.Stream(); from != 0 {
		w.Error(413, "the body is too large")
		return nil
	}
	s, err := parseSigned(q.Header("webhook-id"), q.Header("webhook-timestamp"), q.Header("webhook-signature"))
	kind := q.Header("content-type")
	switch {
	case err != nil:
		w.Error(400, err.Error())
		return nil
	case len(kind) > mostKind:
		w.Error(400, "content-type: it is too long")
		return nil
	case !s.fresh(ctx.Now(), i.args.Tolerance):
		w.Error(401, "webhook-timestamp: it is too far from now")
		return nil
	}
	h := &hook{Source: source, Delivery: s.delivery, Kind: kind, Body: bytes.Clone(q.Body())}
	answer := w.Later()
	i.key(ctx, source, func(ctx *actor.Context, key []byte, err error) error {
		switch {
		case errors.Is(err, service.ErrNotFound):
			return answer.Error(404, "there is no such source").Send(ctx)
		case err != nil:
			ctx.Error("the secret signing." + source + " cannot be used: " + err.Error())
			return unavailable(answer).Send(ctx)
		case !s.by(key, h.Body):
			return answer.Error(401, "webhook-signature: it is not right").Send(ctx)
		}
		i.bring(ctx, h, answer)
		return nil
	})
	return nil
}

// bring asks the queue to keep a hook, and answers the sender when it does.
func (i *intake) bring(ctx *actor.Context, h *hook, answer *web.Response) {
	ctx.AskPath("/user/queue", h, patience, func(ctx *actor.Context, m *actor.Message) error {
		var v verdict
		if m.Kind() != actor.KindReply || m.Decode(&v) != nil {
			v.Outcome = later // it is not there, or was too slow
		}
		switch v.Outcome {
		case accepted:
			answer.Status(202)
		case duplicate:
			answer.Status(200)
		default:
			return unavailable(answer).Send(ctx)
		}
		return answer.JSON(`{"job":"` + v.Job + `","outcome":"` + v.Outcome + `"}`).Send(ctx)
	})
}

// key is a source's key. A secret that was replaced counts a moment later.
func (i *intake) key(ctx *actor.Context, source string, then func(ctx *actor.Context, key []byte, err error) error) {
	if s, ok := i.keys[source]; ok && ctx.Now().Before(s.until) {
		ctx.Fail(then(ctx, s.key, nil))
		return
	}
	config.Secret(ctx, "signing."+source, func(ctx *actor.Context, secret []byte, err error) error {
		if err != nil {
			return then(ctx, nil, err)
		}
		key, err := signingKey(secret)
		if err == nil {
			i.keys[source] = signing{key, ctx.Now().Add(keepKey)}
		}
		return then(ctx, key, err)
	})
}

// unavailable asks the sender to come again. It is given what it was given before: a delivery is kept once.
func unavailable(w *web.Response) *web.Response {
	return w.Header("Retry-After", comeAgain).Error(503, "not now: send it again")
}

func validSource(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' && i > 0) {
			return false
		}
	}
	return s != "" && len(s) <= 32
}
