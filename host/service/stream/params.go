package stream

import (
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// Bounds of streams.
const (
	// MaxPart is the most that one part may have, in bytes. A guest is sent no more
	// than its inbox takes: with our SDK 64 KiB.
	MaxPart = 256 << 10
	// DefaultWindow is [Params.Window] if that is not set.
	DefaultWindow = 256 << 10
	// DefaultAhead is [Params.Ahead] if that is not set.
	DefaultAhead = 16
	// DefaultIdle is [Params.Idle] if that is not set.
	DefaultIdle = time.Minute
)

// Access says which actors may use a stream.
type Access uint8

const (
	// ByRef allows every actor with the ref: the owner may pass it on.
	ByRef Access = iota
	// OwnerOnly allows only the owner. Others get an error of code denied.
	OwnerOnly
)

// Params say how a stream is made. The zero value is usable.
type Params struct {
	// Owner is the actor that the stream is for: when it ends, so does the stream. With the zero Ref only the stop of the
	// actor above the stream ends it.
	Owner host.Ref
	// Access says which actors may use it.
	Access Access
	// Window is how many bytes the host keeps at most between the two sides; default
	// 256 KiB. No part can be larger.
	Window int
	// Ahead is how many asks of the guest may wait for their answer at once, 1 or more;
	// default 16.
	Ahead int
	// Idle is the time without a message from the guest, while it waits for
	// nothing, after which the stream ends; default a minute, negative: never.
	Idle time.Duration
	// Clock is the clock of deadlines; default the machine's. Idle uses the
	// system's.
	Clock host.Clock
	// OnEnd is called once, when the stream is over, with the reason: nil if the guest has read
	// everything (a source), or everything was read from the guest (a sink). It must be quick
	// and must not call the stream. Any goroutine may call it.
	OnEnd func(err error)
}

func (p Params) withDefaults() Params {
	if p.Window <= 0 {
		p.Window = DefaultWindow
	}
	if p.Ahead <= 0 {
		p.Ahead = DefaultAhead
	}
	if p.Idle == 0 {
		p.Idle = DefaultIdle
	}
	if p.Clock == nil {
		p.Clock = host.RealClock()
	}
	return p
}

// largest is the most that a part may have.
func (p *Params) largest() int { return min(p.Window, MaxPart) }
