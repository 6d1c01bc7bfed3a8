package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

// skynet builds a tree whose leaves sum up to the root.
type skynet struct {
	parent   actor.Ref
	expected int
	sum      uint64
}

func (s *skynet) Receive(ctx *actor.Context, msg *actor.Message) error {
	var m tree
	if err := msg.Decode(&m); err != nil {
		return err
	}
	switch {
	case m.Leaves > 1:
		s.parent = ctx.Sender()
		s.expected = 10
		for i := range uint64(10) {
			child := ctx.Spawn("skynet", "", actor.Null)
			ctx.Tell(child, &tree{Leaves: m.Leaves / 10, Sum: m.Sum + i*(m.Leaves/10)})
		}
		return nil
	case m.Leaves == 1:
		s.parent, s.sum = ctx.Sender(), m.Sum
	default:
		s.sum += m.Sum
		if s.expected--; s.expected > 0 {
			return nil
		}
	}
	if s.parent == 0 {
		ctx.TellPath(referee, &tree{Sum: s.sum})
	} else {
		ctx.Tell(s.parent, &tree{Sum: s.sum})
	}
	ctx.StopSelf()
	return nil
}
