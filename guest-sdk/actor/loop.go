package actor

import (
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

var (
	control     [abi.ControlSize / 4]uint32
	description []byte

	ctx     Context
	current Actor
)

// initialize makes the rings, fills the control block and returns its address.
func initialize() uint32 {
	makeRings()
	d := abi.Description{ABI: abi.Version, SDK: SDK, Needs: needs}
	for i := range registry {
		d.Types = append(d.Types, registry[i].name)
	}
	d.Diagrams = diagrams
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

func makeRings() {
	inbox, outbox = make([]byte, InboxSize+spare), make([]byte, OutboxSize+spare)
}

// turn handles the envelopes of one entry and returns the outbox's length. It is exported
// itself, and asks for a next envelope only where there is one: each call counts here.
//
//go:wasmexport wasmactors_turn
func turn(inboxLen uint32) uint32 {
	written = 0
	panics := true
	if recovers {
		defer func() {
			if panics { // else there is nothing to recover from, and asking has its price
				tell(recover())
			}
		}()
	}
	for at, end := 0, int(inboxLen); at < end && bridge.Next(written); {
		at = ctx.msg.read(at, end)
		ctx.marks = 0
		var err error
		if ctx.msg.kind == abi.KindMessage {
			err = current.Receive(&ctx, &ctx.msg)
		} else {
			err = news(&ctx.msg)
		}
		if err != nil || ctx.marks&misused != 0 {
			failed(err)
		}
		if written >= OutboxSize {
			flush(0)
		}
		*byteAt(unsafe.Pointer(unsafe.SliceData(outbox)), uintptr(written)) = 0xf6 // the end marker
		written++
		if ctx.marks&ended != 0 {
			break
		}
	}
	panics = false
	return uint32(written)
}

// news handles what the host itself has to say.
func news(m *Message) error {
	switch m.kind {
	case abi.KindStart:
		return begin(m.Payload())
	case abi.KindStop:
		ctx.marks |= ended
		if s, ok := current.(Stopper); ok {
			s.Stopped(&ctx)
		}
		return nil
	case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
		if then := ctx.asks.take(m.correlation); then != nil {
			return then(&ctx, m)
		}
		if then := ctx.asks.takeName(m.correlation); then != nil {
			who, err := identified(m)
			return then(&ctx, who, err)
		}
	case abi.KindTimer:
		if len(ctx.rates) > 0 {
			ctx.beat(m)
		}
		if m.correlation >= waitKey {
			if then := ctx.asks.take(m.correlation - waitKey); then != nil {
				return then(&ctx, m)
			}
		}
	case abi.KindPreRestart:
		ctx.marks |= ended
		if s, ok := current.(PreRestarter); ok {
			s.PreRestart(&ctx, m.Text())
		}
		return nil
	case abi.KindChildFailed:
		return decide(m)
	}
	return current.Receive(&ctx, m)
}

// begin makes the actor.
func begin(payload []byte) error {
	ctx.asks = asks{slots: ctx.asks.slots}
	clear(ctx.asks.slots)
	ctx.rates = nil
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
		return s.Started(&ctx)
	}
	return nil
}

// failed ends a turn with what went wrong.
func failed(err error) {
	switch {
	case ctx.marks&misused != 0:
		fail(ctx.misuse)
	case err == ErrUnhandled:
		wrote(abi.AppendUnhandled(appendix(usualHead)))
	default:
		fail(err.Error())
	}
}

// fail ends the turn as a failure; nothing else that it asked for takes effect.
func fail(reason string) {
	if ctx.marks&hasSpawned != 0 {
		ctx.start.Spawned = ctx.before // it has spawned nothing
	}
	if len(reason) > abi.MaxReason {
		reason = reason[:abi.MaxReason]
	}
	wrote(abi.AppendFail(appendix(usualHead+len(reason)), reason))
	ctx.marks |= ended
}
