package main

import (
	"encoding/binary"
	"errors"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

const referee = "/user/referee"

// window is how many messages are sent before an acknowledgement is needed.
const window = 64

var errTold = errors.New("as it was told")

// bench is the actor of the scenarios in world.go: the first byte of a byte string
// says what to do, the next four are a number.
type bench struct {
	left, outstanding, received uint32
	next                        actor.Ref
	answer                      [64]byte
}

func (a *bench) Receive(ctx *actor.Context, msg *actor.Message) error {
	b := msg.Payload()
	if len(b) > 0 && b[0]>>5 == 5 {
		return a.record(ctx, msg)
	}
	at := 0
	if len(b) >= 8 {
		switch b[0] {
		case 0x58:
			at = 2
		case 0x59:
			at = 3
		case 0x5a:
			at = 5
		}
	}
	if at == 0 {
		return errNumber
	}
	n := binary.BigEndian.Uint32(b[at+1:])
	switch b[at] {
	case 'p':
		if n == 0 {
			a.report(ctx)
			break
		}
		ctx.Tell(ctx.Sender(), a.with(b, at, 'p', n-1))
	case 'f':
		a.received++
	case 'l':
		a.received++
		ctx.Tell(ctx.Sender(), a.with(b, at, 'a', 0))
	case 'a':
		if a.left > 0 {
			a.left--
			a.fill(ctx, b, at)
			break
		}
		if a.outstanding--; a.outstanding == 0 {
			a.report(ctx)
		}
	case 's':
		first := min(2, n)
		a.left += n - first
		a.outstanding += first
		for range first {
			a.fill(ctx, b, at)
		}
	case 'n':
		a.next = ctx.Sender()
	case 'r':
		if n == 0 {
			a.report(ctx)
			break
		}
		ctx.Tell(a.next, a.with(b, at, 'r', n-1))
	case 'h':
		a.report(ctx)
	case 'q':
		return ctx.Reply(a.with(b, at, 'q', a.received))
	case 'x':
		panic("crash")
	case 'e':
		return errTold
	default:
		return errNumber
	}
	return nil
}

// with is the payload with another op and number. Small ones are copied into the actor;
// large ones are changed where they are, as they are not needed any more.
func (a *bench) with(b []byte, at int, op byte, n uint32) actor.Raw {
	if len(b) <= len(a.answer) {
		copy(a.answer[:], b)
		b = a.answer[:len(b)]
	}
	b[at] = op
	binary.BigEndian.PutUint32(b[at+1:], n)
	return actor.Raw(b)
}

func (a *bench) fill(ctx *actor.Context, b []byte, at int) {
	fill := a.with(b, at, 'f', 0)
	for range window - 1 {
		ctx.Tell(ctx.Sender(), fill)
	}
	ctx.Tell(ctx.Sender(), a.with(b, at, 'l', 0))
}

func (a *bench) report(ctx *actor.Context) { ctx.TellPath(referee, actor.Uint(0)) }

// record is the ping-pong of a struct.
func (a *bench) record(ctx *actor.Context, msg *actor.Message) error {
	var s six
	if err := msg.Decode(&s); err != nil {
		return err
	}
	if s.ID == 0 {
		a.report(ctx)
		return nil
	}
	s.ID--
	ctx.Tell(ctx.Sender(), &s)
	return nil
}

func init() {
	actor.Register("bench", func() actor.Actor { return &bench{} })
	actor.Register("skynet", func() actor.Actor { return &skynet{} })
}
