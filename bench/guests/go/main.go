// The Go guest of the benchmarks: sends a number back less one, tells the referee
// at zero, panics on true and fails on anything else. As in ping.wat, a number is always five
// bytes: 0x1a and 32 bits.
package main

import (
	"encoding/binary"
	"errors"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

var errNumber = errors.New("not a number")

type ping struct{ answer [5]byte }

func (p *ping) Receive(ctx *actor.Context, msg *actor.Message) error {
	b := msg.Payload()
	switch {
	case len(b) == 5 && b[0] == 0x1a:
	case len(b) == 1 && b[0] == 0xf5:
		panic("true")
	default:
		return errNumber
	}
	n := binary.BigEndian.Uint32(b[1:])
	p.answer[0] = 0x1a
	if n == 0 {
		ctx.TellPath("/user/referee", actor.Raw(p.answer[:]))
		return nil
	}
	binary.BigEndian.PutUint32(p.answer[1:], n-1)
	ctx.Tell(msg.Sender(), actor.Raw(p.answer[:]))
	return nil
}

func init() { actor.Register("ping", func() actor.Actor { return &ping{} }) }

func main() {}
