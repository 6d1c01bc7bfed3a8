package main

import (
	"crypto/sha256"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/blob"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
)

func init() {
	actor.Register("blob-keeper", func() actor.Actor { return keeper{} })
}

// keeper does [what, name, n]:
//
//	put, name, n:     n bytes 0 1 2 ... in one message: the size
//	stream, name, n:  n bytes 0 1 2 ... in parts: the size
//	break, name, n:   n bytes in parts, and then never more: the size so far
//	check, name, n:   how many bytes come from offset n on, and whether they and the hash are right
//	copy, name, 0:    to name + ".copy", through the guest: the size
//	list, prefix, 0:  how many there are
//	delete, name, 0:  1 if there was one
type keeper struct{}

const blobTimeout = 20 * time.Second

func counting(from, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(from + int64(i))
	}
	return b
}

func (keeper) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	r := msg.Reader()
	if r.Array() != 3 {
		return abi.ErrArity
	}
	what, name, n := r.Text(), r.Text(), r.Int()
	to, correlation := msg.Sender(), msg.Correlation()
	done := func(ctx *actor.Context, v int64, err error) error {
		if err != nil {
			return ctx.AnswerError(to, correlation, err.Error())
		}
		return ctx.Answer(to, correlation, actor.Func(func(w *abi.Writer) { w.Int(v) }))
	}
	published := func(ctx *actor.Context, o blob.Object, err error) error { return done(ctx, o.Size, err) }
	switch what {
	case "put":
		blob.Put(ctx, name, counting(0, n), blob.Options{Type: "test"}, blobTimeout, published)
	case "stream", "break":
		blob.Create(ctx, name, blob.Options{}, blobTimeout, func(ctx *actor.Context, sink actor.Ref, err error) error {
			if err != nil {
				return done(ctx, 0, err)
			}
			stream.WriteAll(ctx, sink, counting(0, n), blobTimeout, func(ctx *actor.Context, err error) error {
				if err != nil || what == "break" {
					return done(ctx, n, err)
				}
				blob.Finish(ctx, sink, blobTimeout, published)
				return nil
			})
			return nil
		})
	case "check":
		blob.Get(ctx, name, blob.Range{Offset: n, Verify: true}, blobTimeout, func(ctx *actor.Context, c blob.Content, err error) error {
			if err != nil {
				return done(ctx, 0, err)
			}
			hash, at := sha256.New(), n
			right := true
			take := func(ctx *actor.Context, part []byte) error {
				hash.Write(part)
				for _, b := range part {
					right = right && b == byte(at)
					at++
				}
				return nil
			}
			end := func(ctx *actor.Context, err error) error {
				if err == nil && (!right || n == 0 && [32]byte(hash.Sum(nil)) != c.SHA256) {
					return ctx.AnswerError(to, correlation, "not what was put")
				}
				return done(ctx, at-n, err)
			}
			if c.From == 0 {
				_ = take(ctx, c.Data)
				return end(ctx, nil)
			}
			stream.Each(ctx, c.From, blobTimeout, take, end)
			return nil
		})
	case "copy":
		blob.Get(ctx, name, blob.Range{}, blobTimeout, func(ctx *actor.Context, c blob.Content, err error) error {
			if err != nil {
				return done(ctx, 0, err)
			}
			size := c.Size
			blob.Create(ctx, name+".copy", blob.Options{SHA256: &c.SHA256}, blobTimeout, func(ctx *actor.Context, sink actor.Ref, err error) error {
				if err != nil {
					return done(ctx, 0, err)
				}
				stream.Pipe(ctx, c.From, sink, blobTimeout, func(ctx *actor.Context, copied int64, _ *actor.Message, err error) error {
					if err == nil && copied != size {
						return ctx.AnswerError(to, correlation, "another size")
					}
					return done(ctx, copied, err)
				})
				return nil
			})
			return nil
		})
	case "list":
		count := int64(0)
		var more func(ctx *actor.Context, objects []blob.Object, next string, err error) error
		more = func(ctx *actor.Context, objects []blob.Object, next string, err error) error {
			count += int64(len(objects))
			if err != nil || next == "" {
				return done(ctx, count, err)
			}
			blob.List(ctx, name, next, blobTimeout, more)
			return nil
		}
		blob.List(ctx, name, "", blobTimeout, more)
	case "delete":
		blob.Delete(ctx, name, nil, blobTimeout, func(ctx *actor.Context, existed bool, err error) error {
			n := int64(0)
			if existed {
				n = 1
			}
			return done(ctx, n, err)
		})
	default:
		return actor.ErrUnhandled
	}
	return nil
}
