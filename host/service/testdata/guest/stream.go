package main

import (
	"hash/fnv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
)

func init() {
	actor.Register("stream-user", func() actor.Actor { return streamUser{} })
}

// streamUser does what [what, ref, more] says and answers with what came of it:
//
//	digest, source, null: [bytes, FNV-1a of them]
//	all, source, limit:   the bytes
//	put, sink, n:         the result, of n bytes 0 1 2 ...
//	pipe, source, sink:   [bytes, the result]
type streamUser struct{}

const streamTimeout = 30 * time.Second

func (streamUser) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	r := msg.Reader()
	if r.Array() != 3 {
		return abi.ErrArity
	}
	what, ref := r.Text(), r.Ref()
	more := uint64(0)
	if r.Peek() == abi.TypeUint {
		more = r.Uint()
	}
	to, correlation := msg.Sender(), msg.Correlation()
	failed := func(ctx *actor.Context, err error) error { return ctx.AnswerError(to, correlation, err.Error()) }
	pair := func(ctx *actor.Context, a uint64, b actor.Encoder) error {
		return ctx.Answer(to, correlation, actor.Func(func(w *abi.Writer) {
			w.Array(2)
			w.Uint(a)
			b.MarshalCBOR(w)
		}))
	}
	switch what {
	case "digest":
		h, n := fnv.New64a(), 0
		stream.Each(ctx, ref, streamTimeout, func(_ *actor.Context, part []byte) error {
			n += len(part)
			h.Write(part)
			return nil
		}, func(ctx *actor.Context, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			return pair(ctx, uint64(n), actor.Uint(h.Sum64()))
		})
	case "all":
		stream.ReadAll(ctx, ref, int(more), streamTimeout, func(ctx *actor.Context, all []byte, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			return ctx.Answer(to, correlation, actor.Bytes(all))
		})
	case "put":
		data := make([]byte, more)
		for i := range data {
			data[i] = byte(i)
		}
		stream.WriteAll(ctx, ref, data, streamTimeout, func(ctx *actor.Context, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			stream.End(ctx, ref, streamTimeout, func(ctx *actor.Context, m *actor.Message, err error) error {
				if err != nil {
					return failed(ctx, err)
				}
				return ctx.Answer(to, correlation, actor.Raw(m.Payload()))
			})
			return nil
		})
	case "pipe":
		stream.Pipe(ctx, ref, actor.Ref(more), streamTimeout, func(ctx *actor.Context, n int64, m *actor.Message, err error) error {
			if err != nil {
				return failed(ctx, err)
			}
			return pair(ctx, uint64(n), actor.Raw(m.Payload()))
		})
	default:
		return actor.ErrUnhandled
	}
	return nil
}
