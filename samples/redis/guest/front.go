package main

import (
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/tcp"
)

const (
	patience = 5 * time.Second
	mostOpen = 1024    // commands of a client that are not answered, beyond which it is not read from
	mostHeld = 8 << 20 // bytes that wait for shards, beyond which nobody is read from
)

// front has the connections.
type front struct {
	conns   tcp.Conns
	links   [shards]link
	held    int // bytes of commands that wait for shards
	args    [][]byte
	out     []byte
	touched []*session // whose answers have come in this turn
	paused  []*session // that are not read from, and perhaps some that are again
}

func newFront() *front {
	f := &front{}
	for i := range f.links {
		f.links[i].init(f, i)
	}
	f.conns.OnOpen = func(ctx *actor.Context, c *tcp.Conn) error {
		c.Data = &session{conn: c}
		if c.Resumed() {
			c.Abort(ctx) // what it was about to be answered is not known any more
		}
		return nil
	}
	f.conns.OnData = f.data
	f.conns.OnRefused = func(ctx *actor.Context, c *tcp.Conn, _ int, _ error) error {
		c.Abort(ctx) // it asks for more than it reads
		return nil
	}
	f.conns.OnClose = func(_ *actor.Context, c *tcp.Conn, _ tcp.How, _ error) error {
		c.Data.(*session).gone = true
		return nil
	}
	return f
}

// Started implements actor.Starter.
func (f *front) Started(ctx *actor.Context) error {
	if ctx.Incarnation() > 0 {
		return nil // the listener is still there
	}
	address := ""
	r := ctx.Args()
	for n := r.Map(); n > 0 && r.OK(); n-- {
		if r.Text() == "address" {
			address = r.Text()
		} else {
			r.Skip()
		}
	}
	tcp.Listen(ctx, address, tcp.Options{}, patience, func(ctx *actor.Context, l *tcp.Listener, err error) error {
		if err != nil {
			ctx.Error("it does not listen: " + err.Error())
			return err
		}
		ctx.Info("listening on " + l.Address())
		return nil
	})
	return nil
}

// Receive implements actor.Actor.
func (f *front) Receive(ctx *actor.Context, msg *actor.Message) error {
	return f.conns.Receive(ctx, msg)
}

// data reads the commands of a client, and asks the shards that are free.
func (f *front) data(ctx *actor.Context, c *tcp.Conn, data []byte) error {
	s := c.Data.(*session)
	if s.closing {
		return nil
	}
	b := data
	if len(s.buf) > 0 {
		s.buf = append(s.buf, data...)
		b = s.buf
	}
	for len(b) > 0 && !s.closing {
		args, used, err := parse(b, f.args[:0])
		f.args = args[:0]
		if err != nil {
			s.answer(appendError(nil, err.Error()))
			s.closing = true
			break
		}
		if used == 0 {
			break
		}
		if b = b[used:]; len(args) > 0 {
			f.command(s, args)
		}
	}
	if s.buf = append(s.buf[:0], b...); len(b) == 0 && cap(s.buf) > maxBytes {
		s.buf = nil
	}
	for i := range f.links {
		f.links[i].ask(ctx)
	}
	f.flush(ctx, s)
	return nil
}

// flush writes the answers of a client that are complete, in order, and reads on if it has few that are open. As long as some
// of a short pipeline are missing it waits: they go together.
func (f *front) flush(ctx *actor.Context, s *session) {
	s.touched = false
	switch {
	case s.gone:
		return
	case s.missing > 0 && len(s.slots) < together:
		f.pause(ctx, s)
		return
	}
	out, n := f.out[:0], 0
	for ; n < len(s.slots) && s.slots[n].left == 0; n++ {
		if x := &s.slots[n]; x.summed {
			out = appendInt(out, x.sum)
		} else {
			out = append(out, s.replies[x.from:x.to]...)
		}
		if len(out) > maxBytes {
			s.conn.Write(ctx, out)
			out = out[:0]
		}
	}
	s.done(n)
	if f.out = out; len(out) > 0 {
		s.conn.Write(ctx, out)
	}
	if s.closing && len(s.slots) == 0 {
		s.conn.Close(ctx)
	}
	f.pause(ctx, s)
}

// pause stops reading from a client that has too much open, as long as it has. All wait while too much is held for shards.
func (f *front) pause(ctx *actor.Context, s *session) {
	switch full := len(s.slots) > mostOpen || f.held > mostHeld; {
	case full && !s.paused:
		s.paused = true
		s.conn.Suspend(ctx)
		f.paused = append(f.paused, s)
	case !full && s.paused:
		s.paused = false
		s.conn.Resume(ctx)
	}
}

// landed writes what has become complete in this turn.
func (f *front) landed(ctx *actor.Context) {
	for _, s := range f.touched {
		f.flush(ctx, s)
	}
	f.touched = f.touched[:0]
	if f.held > mostHeld || len(f.paused) == 0 {
		return
	}
	all := f.paused
	f.paused = nil
	for _, s := range all {
		if s.gone {
			continue
		}
		if f.pause(ctx, s); s.paused {
			f.paused = append(f.paused, s)
		}
	}
}
