package actor

import (
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// Sizes of the rings, in bytes: the largest message that an actor can receive or
// send is a little smaller.
const (
	InboxSize  = 64 << 10
	OutboxSize = 64 << 10
)

var (
	inbox  [InboxSize]byte
	outbox [OutboxSize]byte
	out    []byte // what the turns of this entry have written since the last flush

	control     [abi.ControlSize / 4]uint32
	description []byte

	ctx     Context
	current Actor
)

// room makes sure that n bytes and an end-of-turn marker fit the outbox.
func room(n int) {
	if len(out)+n+1 <= OutboxSize {
		return
	}
	bridge.Flush(out)
	out = out[:0]
	if n+1 > OutboxSize {
		panic("actor: the message is larger than the outbox")
	}
}

// initialize fills the control block and returns its address.
func initialize() uint32 {
	d := abi.Description{ABI: abi.Version, SDK: SDK}
	for i := range registry {
		d.Types = append(d.Types, registry[i].name)
	}
	description = abi.AppendDescription(nil, &d)
	warm()
	control = [...]uint32{
		abi.Version,
		bridge.Address(unsafe.Pointer(&inbox[0])), InboxSize,
		bridge.Address(unsafe.Pointer(&outbox[0])), OutboxSize,
		bridge.Address(unsafe.Pointer(&description[0])), uint32(len(description)),
		0,
	}
	return bridge.Address(unsafe.Pointer(&control[0]))
}

// turn handles the envelopes of one entry and returns the outbox's length.
func turn(inboxLen uint32) uint32 {
	out = outbox[:0]
	defer report()
	for at := 0; bridge.Next(len(out)); {
		n, err := abi.DecodeEnvelope(&ctx.msg.env, inbox[at:inboxLen])
		if err != nil {
			panic(err)
		}
		at += n
		ctx.ended = false
		handle()
		room(0)
		out = abi.AppendEnd(out)
		if ctx.ended {
			break
		}
	}
	return uint32(len(out))
}

// handle runs one turn.
func handle() {
	var err error
	spawned := ctx.start.Spawned
	switch m := &ctx.msg; m.env.Kind {
	case abi.KindStart:
		err = begin(m.env.Payload)
	case abi.KindStop:
		if s, ok := current.(Stopper); ok {
			s.Stop(&ctx)
		}
		ctx.ended = true
	case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
		if then := ctx.asks[m.env.Correlation]; then != nil {
			delete(ctx.asks, m.env.Correlation)
			err = then(&ctx, m)
			break
		}
		err = current.Receive(&ctx, m)
	case abi.KindPreRestart:
		if s, ok := current.(PreRestarter); ok {
			s.PreRestart(&ctx, m.Text())
		}
		ctx.ended = true
	case abi.KindChildFailed:
		err = childFailed(m)
	default:
		err = current.Receive(&ctx, m)
	}
	switch {
	case err == nil:
	case err == ErrUnhandled:
		room(4)
		out = abi.AppendUnhandled(out)
	default:
		ctx.start.Spawned = spawned // the turn has spawned nothing
		fail(err.Error())
	}
}

// begin makes the actor.
func begin(payload []byte) error {
	ctx.asks, ctx.asked = nil, 0
	if err := abi.DecodeStart(&ctx.start, payload); err != nil {
		return err
	}
	ctx.start.Args = append([]byte(nil), ctx.start.Args...)
	ctx.rand.Seed(ctx.start.Seed)
	factory := lookup(ctx.start.Type)
	if factory == nil {
		panic("actor: the type " + ctx.start.Type + " is not registered")
	}
	current = factory()
	if s, ok := current.(Starter); ok {
		return s.Start(&ctx)
	}
	return nil
}

// fail ends the turn as a failure; nothing else that it asked for takes effect.
func fail(reason string) {
	if len(reason) > abi.MaxReason {
		reason = reason[:abi.MaxReason]
	}
	room(len(reason) + 8)
	out = abi.AppendFail(out, reason)
	ctx.ended = true
}
