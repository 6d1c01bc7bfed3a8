package stream

import (
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Write writes a part to an outgoing stream and calls then, in a later turn, when the next one
// may come; room is how many bytes the host takes before it has to wait. part is copied. Writing
// more than there is room for without waiting breaks the stream off, and so does a part
// that the host does not take: use at most DefaultPart bytes, or WriteAll.
func Write(ctx *actor.Context, to actor.Ref, part []byte, timeout time.Duration, then func(ctx *actor.Context, room int, err error) error) {
	service.AskRef(ctx, to, "write", actor.Bytes(part), timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		if err != nil {
			return then(ctx, 0, err)
		}
		room, ok := m.Int()
		if !ok {
			return then(ctx, 0, &service.Error{Code: service.Internal, Text: "the answer to a write is not a number"})
		}
		return then(ctx, int(min(room, 1<<30)), nil)
	})
}

// WriteAll writes data in parts of DefaultPart bytes and calls then when the host has all of it.
// data must stay as it is until then. After an error the stream is over.
func WriteAll(ctx *actor.Context, to actor.Ref, data []byte, timeout time.Duration, then Then) {
	var next func(ctx *actor.Context, room int, err error) error
	next = func(ctx *actor.Context, _ int, err error) error {
		if err != nil || len(data) == 0 {
			return then(ctx, err)
		}
		part := data[:min(len(data), DefaultPart)]
		data = data[len(part):]
		Write(ctx, to, part, timeout, next)
		return nil
	}
	part := data[:min(len(data), DefaultPart)]
	data = data[len(part):]
	Write(ctx, to, part, timeout, next)
}

// End says that everything is written, and calls then with the result of the receiving side in m, which
// is valid until then returns.
func End(ctx *actor.Context, to actor.Ref, timeout time.Duration, then service.Then) {
	service.AskRef(ctx, to, "end", nil, timeout, then)
}

// Abort says that what was written must not take effect, and why.
func Abort(ctx *actor.Context, to actor.Ref, reason string) {
	service.TellRef(ctx, to, "abort", actor.Text(reason))
}

// Pipe reads from one stream until its end, writes all of it to another, ends that and calls then
// with the number of bytes and the result. An error of either ends the other.
func Pipe(ctx *actor.Context, from, to actor.Ref, timeout time.Duration, then func(ctx *actor.Context, n int64, result *actor.Message, err error) error) {
	var n int64
	var got func(ctx *actor.Context, part []byte, end bool, err error) error
	wrote := func(ctx *actor.Context, _ int, err error) error {
		if err != nil {
			Close(ctx, from)
			return then(ctx, n, nil, err)
		}
		Read(ctx, from, DefaultPart, timeout, got)
		return nil
	}
	got = func(ctx *actor.Context, part []byte, end bool, err error) error {
		switch {
		case err != nil:
			Close(ctx, from)
			Abort(ctx, to, err.Error())
			return then(ctx, n, nil, err)
		case end:
			End(ctx, to, timeout, func(ctx *actor.Context, m *actor.Message, err error) error { return then(ctx, n, m, err) })
			return nil
		}
		n += int64(len(part))
		Write(ctx, to, part, timeout, wrote)
		return nil
	}
	Read(ctx, from, DefaultPart, timeout, got)
}
