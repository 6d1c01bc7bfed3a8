package main

import (
	"hash/fnv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
)

func init() {
	actor.Register("http-user", func() actor.Actor { return httpUser{} })
}

// httpUser does what [what, url, n] says and answers with what came of it:
//
//	get:    [status, header x-answer, body]
//	post:   the same, with n bytes sent
//	digest: [bytes, FNV-1a of them], however the body comes
//	all:    the body, of n bytes at most
//	upload: [status, header x-answer, body], with n bytes sent in parts
//	copy:   what is at the URL, uploaded to the URL with /copy behind it
//	many:   n requests in one turn; [answers of status 200, errors]
//	parent: the same as get, by a child that it spawns
type httpUser struct{}

const httpTimeout = 30 * time.Second

func (httpUser) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	r := msg.Reader()
	if r.Array() != 3 {
		return abi.ErrArity
	}
	what, url, n := r.Text(), r.Text(), int(r.Int())
	if err := r.Done(); err != nil {
		return err
	}
	to, correlation := msg.Sender(), msg.Correlation()
	failed := func(ctx *actor.Context, err error) error { return ctx.AnswerError(to, correlation, err.Error()) }
	pair := func(ctx *actor.Context, a, b uint64) error {
		return ctx.Answer(to, correlation, actor.Func(func(w *abi.Writer) {
			w.Array(2)
			w.Uint(a)
			w.Uint(b)
		}))
	}
	shown := func(ctx *actor.Context, res *httpx.Response, err error) error {
		if err != nil {
			return failed(ctx, err)
		}
		return ctx.Answer(to, correlation, actor.Func(func(w *abi.Writer) {
			w.Array(3)
			w.Int(int64(res.Status))
			w.Text(res.Header("X-Answer"))
			w.ByteString(res.Body)
		}))
	}
	switch what {
	case "get":
		httpx.Get(ctx, url, shown)
	case "post":
		httpx.Post(ctx, url, "application/octet-stream", make([]byte, n), shown)
	case "digest":
		httpx.Do(ctx, &httpx.Request{URL: url, Answer: httpx.Streamed}, func(ctx *actor.Context, res *httpx.Response, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			h, n := fnv.New64a(), 0
			stream.Each(ctx, res.Stream, httpTimeout, func(_ *actor.Context, part []byte) error {
				n += len(part)
				h.Write(part)
				return nil
			}, func(ctx *actor.Context, err error) error {
				if err != nil {
					return failed(ctx, err)
				}
				return pair(ctx, uint64(n), h.Sum64())
			})
			return nil
		})
	case "all":
		httpx.Get(ctx, url, func(ctx *actor.Context, res *httpx.Response, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			return res.ReadAll(ctx, n, httpTimeout, func(ctx *actor.Context, body []byte, err error) error {
				if err != nil {
					return failed(ctx, err)
				}
				return ctx.Answer(to, correlation, actor.Bytes(body))
			})
		})
	case "upload":
		httpx.Upload(ctx, &httpx.Request{URL: url}, int64(n), func(ctx *actor.Context, sink actor.Ref, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			stream.WriteAll(ctx, sink, make([]byte, n), httpTimeout, func(ctx *actor.Context, err error) error {
				if err != nil {
					return failed(ctx, err)
				}
				httpx.Finish(ctx, sink, httpTimeout, shown)
				return nil
			})
			return nil
		})
	case "copy":
		httpx.Do(ctx, &httpx.Request{URL: url, Answer: httpx.Streamed}, func(ctx *actor.Context, res *httpx.Response, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			from := res.Stream
			httpx.Upload(ctx, &httpx.Request{URL: url + "/copy"}, httpx.Unknown, func(ctx *actor.Context, sink actor.Ref, err error) error {
				if err != nil {
					return failed(ctx, err)
				}
				stream.Pipe(ctx, from, sink, httpTimeout, func(ctx *actor.Context, n int64, m *actor.Message, err error) error {
					if err != nil {
						return failed(ctx, err)
					}
					res, err := httpx.Parse(m)
					return shown(ctx, res, err)
				})
				return nil
			})
			return nil
		})
	case "many":
		var good, bad uint64
		for range n {
			httpx.Get(ctx, url, func(ctx *actor.Context, res *httpx.Response, err error) error {
				if err == nil && res.Status == 200 {
					good++
				} else {
					bad++
				}
				if good+bad == uint64(n) {
					return pair(ctx, good, bad)
				}
				return nil
			})
		}
	case "parent":
		child := ctx.Spawn("http-user", "", actor.Null)
		ctx.Ask(child, actor.Func(func(w *abi.Writer) {
			w.Array(3)
			w.Text("get")
			w.Text(url)
			w.Int(0)
		}), httpTimeout, func(ctx *actor.Context, m *actor.Message) error {
			if m.Kind() != actor.KindReply {
				return ctx.AnswerError(to, correlation, m.Text())
			}
			return ctx.Answer(to, correlation, actor.Raw(m.Payload()))
		})
	default:
		return actor.ErrUnhandled
	}
	return nil
}
