// Package stream reads and writes what does not fit into a message: the body of a request, a
// blob, the rows of a query. A service provides its ref; each part is a question and its
// answer, so nothing comes that was not asked for.
//
//	stream.Each(ctx, body, time.Minute, func(ctx *actor.Context, part []byte) error {
//		hash.Write(part)
//		return nil
//	}, func(ctx *actor.Context, err error) error {
//		return ctx.Answer(to, correlation, actor.Bytes(hash.Sum(nil)))
//	})
//
// A stream is read or written by one actor at a time, once: it cannot be rewound. A
// restart of the actor forgets it, and the host ends it when it was idle for a minute.
package stream

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Sizes of parts, in bytes.
const (
	// MaxPart is the most that fits into the inbox.
	MaxPart = actor.InboxSize - 1<<10
	// DefaultPart is what is read and written at once if nothing else is said.
	DefaultPart = 32 << 10
)

// Then ends something that has no result. err is a *service.Error.
type Then = func(ctx *actor.Context, err error) error

// Read asks an incoming stream for its next part, of at most max bytes: 1 to MaxPart, 0 for
// DefaultPart. then is called with it in a later turn; part is valid until then returns. At the
// end there is no part and end is true. After an error, including a timeout, nothing more can be
// read. Several reads may be under way, 16 with most services; they are answered in order.
func Read(ctx *actor.Context, from actor.Ref, max int, timeout time.Duration, then func(ctx *actor.Context, part []byte, end bool, err error) error) {
	if max <= 0 {
		max = DefaultPart
	}
	service.AskRef(ctx, from, "read", most(min(max, MaxPart)), timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, nil, false, err)
		}
		r := m.Reader()
		if r.Peek() == abi.TypeNull {
			return then(ctx, nil, true, nil)
		}
		part := r.ByteString()
		if r.Done() != nil {
			return then(ctx, nil, false, &service.Error{Code: service.Internal, Text: "the answer to a read is not a byte string"})
		}
		return then(ctx, part, false, nil)
	})
}

type most int

// MarshalCBOR implements actor.Encoder.
func (n most) MarshalCBOR(w *abi.Writer) {
	w.Map(1)
	w.Text("max")
	w.Int(int64(n))
}

// Close says that no more of an incoming stream is wanted. It need not be called at the stream's end.
func Close(ctx *actor.Context, from actor.Ref) { service.TellRef(ctx, from, "close", nil) }

// Each reads an incoming stream to its end, one part after the other. part is valid until the
// function returns; an error that it returns fails the turn, as usual. After an error of the stream
// the stream is closed.
func Each(ctx *actor.Context, from actor.Ref, timeout time.Duration, each func(ctx *actor.Context, part []byte) error, then Then) {
	var next func(ctx *actor.Context, part []byte, end bool, err error) error
	next = func(ctx *actor.Context, part []byte, end bool, err error) error {
		switch {
		case err != nil:
			Close(ctx, from)
			return then(ctx, err)
		case end:
			return then(ctx, nil)
		}
		if err := each(ctx, part); err != nil {
			return err
		}
		Read(ctx, from, DefaultPart, timeout, next)
		return nil
	}
	Read(ctx, from, DefaultPart, timeout, next)
}

// ReadAll reads an incoming stream to its end. If it has more than limit bytes it is closed, and the
// error is service.ErrTooLarge.
func ReadAll(ctx *actor.Context, from actor.Ref, limit int, timeout time.Duration, then func(ctx *actor.Context, all []byte, err error) error) {
	var all []byte
	var next func(ctx *actor.Context, part []byte, end bool, err error) error
	next = func(ctx *actor.Context, part []byte, end bool, err error) error {
		if err == nil && len(part) > limit-len(all) {
			err = &service.Error{Code: service.TooLarge, Text: "there is more than was to be read"}
		}
		switch {
		case err != nil:
			Close(ctx, from)
			return then(ctx, nil, err)
		case end:
			return then(ctx, all, nil)
		}
		all = append(all, part...)
		Read(ctx, from, DefaultPart, timeout, next)
		return nil
	}
	Read(ctx, from, DefaultPart, timeout, next)
}
