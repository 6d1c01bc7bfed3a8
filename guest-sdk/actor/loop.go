package actor

import (
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

var (
	control     [abi.ControlSize / 4]uint32
	description []byte
)

// initialize makes the rings, fills the control block and returns its address.
func initialize() uint32 {
	makeMemory()
	d := abi.Description{ABI: abi.Version, SDK: SDK, Needs: needs}
	for i := range registry {
		d.Types = append(d.Types, registry[i].name)
		if silent(registry[i].factory) {
			d.Silent = append(d.Silent, registry[i].name)
		}
		if registry[i].state != nil {
			d.Saves = append(d.Saves, registry[i].name)
		}
	}
	d.Diagrams = diagrams
	if description = abi.AppendDescription(nil, &d); len(description) > abi.MaxDescription {
		d.Silent = nil // which only saves work
		description = abi.AppendDescription(nil, &d)
	}
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

// silent reports whether the actors of a factory hear nothing of their end, so that the host need not wake one that
// sleeps to tell it. It makes one to see. Where that panics nothing is known, and with TinyGo, which would not survive it.
func silent(factory func() Actor) (is bool) {
	if !recovers {
		return false
	}
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	a := factory()
	for {
		x, ok := a.(*intercepted)
		if !ok {
			break
		}
		a = x.inner
	}
	if a == nil || plain(a) {
		return a != nil
	}
	_, stops := a.(Stopper)
	_, restarts := a.(PreRestarter)
	return !stops && !restarts
}

// turn handles the envelopes of one entry and returns the outbox's length. It is exported
// itself, and asks for a next envelope only where there is one: each call counts here.
//
//go:wasmexport wasmactors_turn
func turn(inboxLen uint32) uint32 {
	mem.ctx.written = 0
	panics := true
	if recovers {
		defer func() {
			if panics { // else there is nothing to recover from, and asking has its price
				tell(recover())
			}
		}()
	}
	for at, end := 0, int(inboxLen); at < end && bridge.Next(mem.ctx.written); {
		at = mem.ctx.msg.read(at, end)
		mem.ctx.marks = 0
		var err error
		if mem.ctx.msg.kind == abi.KindMessage {
			err = mem.ctx.current.Receive(&mem.ctx, &mem.ctx.msg)
		} else {
			err = news(&mem.ctx.msg)
		}
		if err != nil || mem.ctx.marks&misused != 0 {
			failed(err)
		}
		if mem.ctx.written >= OutboxSize {
			flush()
		}
		*byteAt(unsafe.Pointer(unsafe.SliceData(outbox)), uintptr(mem.ctx.written)) = 0xf6 // the end marker
		mem.ctx.written++
		if mem.ctx.marks&ended != 0 {
			break
		}
	}
	panics = false
	return uint32(mem.ctx.written)
}

// news handles what the host itself has to say.
func news(m *Message) error {
	switch m.kind {
	case abi.KindStart:
		return begin(m.Payload())
	case abi.KindStop:
		mem.ctx.marks |= ended
		if mem.ctx.plain {
			return nil
		}
		if s, ok := mem.ctx.current.(Stopper); ok {
			s.Stopped(&mem.ctx)
		}
		return nil
	case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
		if then := mem.ctx.asks.take(m.correlation); then != nil {
			return settled(then(&mem.ctx, m))
		}
		if then := mem.ctx.asks.takeName(m.correlation); then != nil {
			who, err := identified(m)
			return settled(then(&mem.ctx, who, err))
		}
	case abi.KindTimer:
		if len(mem.ctx.rates) > 0 {
			mem.ctx.beat(m)
		}
		if m.correlation >= waitKey {
			if then := mem.ctx.asks.take(m.correlation - waitKey); then != nil {
				return settled(then(&mem.ctx, m))
			}
		}
	case abi.KindPreRestart:
		mem.ctx.marks |= ended
		if mem.ctx.plain {
			return nil
		}
		if s, ok := mem.ctx.current.(PreRestarter); ok {
			s.PreRestart(&mem.ctx, m.Text())
		}
		return nil
	case abi.KindChildFailed:
		return decide(m)
	case abi.KindSave:
		if r := lookup(mem.ctx.start.Type); r.state != nil {
			return r.state.save()
		}
	}
	return mem.ctx.current.Receive(&mem.ctx, m)
}

// begin makes the actor.
func begin(payload []byte) error {
	mem.ctx.asks = asks{slots: mem.ctx.asks.slots}
	clear(mem.ctx.asks.slots)
	mem.ctx.rates, mem.ctx.settle = nil, nil
	if err := abi.DecodeStartInPlace(&mem.ctx.start, mem.ctx.keep(payload)); err != nil {
		return err
	}
	if mem.ctx.start.State != nil { // it is read in this turn, and not kept
		if err := abi.DecodeStart(&mem.ctx.start, payload); err != nil {
			return err
		}
		mem.ctx.start.Args = append([]byte(nil), mem.ctx.start.Args...)
	}
	mem.ctx.rand.Seed(mem.ctx.start.Seed)
	mem.ctx.asks.last = firstAsk(mem.ctx.start.Incarnation)
	r := lookup(mem.ctx.start.Type)
	if r == nil {
		panic("actor: the type " + mem.ctx.start.Type + " is not registered")
	}
	mem.ctx.current = r.factory()
	mem.ctx.plain = plain(mem.ctx.current)
	if mem.ctx.start.State != nil {
		return takeOver(r)
	}
	if mem.ctx.plain {
		return nil
	}
	if s, ok := mem.ctx.current.(Starter); ok {
		return s.Started(&mem.ctx)
	}
	return nil
}

// keep copies what the actor is started with into memory of its own.
func (c *Context) keep(payload []byte) []byte {
	room := c.room
	c.room = nil // what is there is the actor's, also if it is started once more
	if len(payload) > cap(room) {
		return append([]byte(nil), payload...)
	}
	return append(room, payload...)
}

// failed ends a turn with what went wrong.
func failed(err error) {
	switch {
	case mem.ctx.marks&misused != 0:
		fail(mem.ctx.misuse)
	case err == ErrUnhandled:
		wrote(abi.AppendUnhandled(appendix(usualHead)))
	default:
		fail(err.Error())
	}
}

// fail ends the turn as a failure; nothing else that it asked for takes effect.
func fail(reason string) {
	if mem.ctx.marks&hasSpawned != 0 {
		mem.ctx.start.Spawned = mem.ctx.before // it has spawned nothing
	}
	if len(reason) > abi.MaxReason {
		reason = reason[:abi.MaxReason]
	}
	wrote(abi.AppendFail(appendix(usualHead+len(reason)), reason))
	mem.ctx.marks |= ended
}
