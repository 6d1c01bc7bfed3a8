// Package pulling balances work by having workers pull it: a master holds the work, bounded, and gives a piece
// to a worker that has asked for one. No worker has more than one piece, so a slow one holds up nothing. What a
// worker had when it ended goes to another one; a piece that makes a worker fail is given up with the turn.
package pulling

import (
	"errors"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Want is what a worker says when it has nothing to do, Done when it has done its piece.
const (
	Want = "want"
	Done = "done"
)

// Master is the props of a master of at most so many pieces that wait. Work is any message to it that is no
// text of the above; who asks for it to be done is told that it was taken, or that there is too much.
func Master(most int) host.Props {
	return host.Native(func() host.Actor { return &master{most: most, has: map[abi.Ref][]byte{}} })
}

type master struct {
	most  int
	work  [][]byte
	idle  []host.Ref         // workers that want a piece, the first one first
	has   map[abi.Ref][]byte // by worker
	known []host.Ref
}

// Receive implements host.Actor.
func (m *master) Receive(ctx *host.Context, msg host.Message) error {
	var text string
	switch _ = msg.Decode(&text); {
	case msg.Kind == abi.KindTerminated:
		m.ended(msg.Sender)
	case msg.Kind != abi.KindMessage:
		return host.ErrUnhandled
	case text == Want, text == Done:
		if err := m.wants(ctx, msg.Sender); err != nil {
			return err
		}
	case len(m.work) >= m.most:
		return ctx.ReplyError("pulling: there is too much work already")
	default:
		m.work = append(m.work, slices.Clone(msg.Payload))
		if msg.Correlation != 0 {
			_ = ctx.Reply("taken")
		}
	}
	return m.give(ctx)
}

func (m *master) wants(ctx *host.Context, worker host.Ref) error {
	if worker.IsZero() {
		return errors.New("pulling: nobody wants work")
	}
	if !slices.Contains(m.known, worker) {
		m.known = append(m.known, worker)
		if err := ctx.Watch(worker); err != nil {
			return err
		}
	}
	delete(m.has, worker.UID())
	if !slices.Contains(m.idle, worker) {
		m.idle = append(m.idle, worker)
	}
	return nil
}

// ended gives the piece of a worker back, before all others.
func (m *master) ended(worker host.Ref) {
	same := func(r host.Ref) bool { return r.UID() == worker.UID() }
	m.known, m.idle = slices.DeleteFunc(m.known, same), slices.DeleteFunc(m.idle, same)
	if piece := m.has[worker.UID()]; piece != nil {
		m.work = slices.Insert(m.work, 0, piece)
		delete(m.has, worker.UID())
	}
}

// give gives work to those who want it.
func (m *master) give(ctx *host.Context) error {
	for len(m.work) > 0 && len(m.idle) > 0 {
		piece, worker := m.work[0], m.idle[0]
		m.work, m.idle = m.work[1:], m.idle[1:]
		m.has[worker.UID()] = piece
		if err := ctx.Tell(worker, host.Raw(piece)); err != nil {
			return err
		}
	}
	return nil
}

// Worker is the props of a worker that does a piece of work in each turn.
func Worker(master host.Ref, do func(ctx *host.Context, m host.Message) error) host.Props {
	return host.Native(func() host.Actor { return &worker{master, do} })
}

type worker struct {
	master host.Ref
	do     func(ctx *host.Context, m host.Message) error
}

// Started implements host.Starter: also after a restart it wants work.
func (w *worker) Started(ctx *host.Context) error { return ctx.Tell(w.master, Want) }

// Receive implements host.Actor.
func (w *worker) Receive(ctx *host.Context, m host.Message) error {
	if err := w.do(ctx, m); err != nil {
		return err
	}
	return ctx.Tell(w.master, Done)
}
