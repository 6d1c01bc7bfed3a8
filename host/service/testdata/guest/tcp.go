package main

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/tcp"
	"github.com/wasmactors/wasmactors/guest-sdk/udp"
)

func init() {
	actor.Register("tcp-echo", func() actor.Actor { return newEcho() })
	actor.Register("tcp-lines", func() actor.Actor { return newLines() })
	actor.Register("udp-echo", func() actor.Actor { return newDatagrams() })
}

// echo returns what its clients send. A client that says crash sees it crash, and is still connected.
type echo struct {
	conns   tcp.Conns
	address string
}

func newEcho() *echo {
	e := &echo{}
	e.conns.OnData = e.said
	return e
}

func (e *echo) Started(ctx *actor.Context) error {
	if ctx.Incarnation() > 0 {
		return nil // its listener, and its connections, are still there
	}
	tcp.Listen(ctx, "127.0.0.1:0", tcp.Options{}, time.Second, func(_ *actor.Context, l *tcp.Listener, err error) error {
		if err == nil {
			e.address = l.Address()
		}
		return err
	})
	return nil
}

func (e *echo) said(ctx *actor.Context, c *tcp.Conn, data []byte) error {
	if string(data) == "crash\n" {
		panic("a client has said crash")
	}
	c.Write(ctx, data)
	return nil
}

func (e *echo) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Is("address") {
		return ctx.Reply(actor.Text(e.address))
	}
	return e.conns.Receive(ctx, msg)
}

// lines asks a server for lines: told [address, line], it connects, sends the line, and answers with the one that comes.
type lines struct {
	conns   tcp.Conns
	waiting map[actor.Ref]question
}

type question struct {
	to          actor.Ref
	correlation uint64
}

func newLines() *lines {
	l := &lines{waiting: map[actor.Ref]question{}}
	l.conns.OnData = func(ctx *actor.Context, c *tcp.Conn, line []byte) error {
		q := l.waiting[c.Ref()]
		c.Close(ctx)
		return ctx.Answer(q.to, q.correlation, actor.Text(string(line)))
	}
	l.conns.OnClose = func(ctx *actor.Context, c *tcp.Conn, _ tcp.How, err error) error {
		delete(l.waiting, c.Ref())
		return nil
	}
	return l
}

func (l *lines) Receive(ctx *actor.Context, msg *actor.Message) error {
	if err := l.conns.Receive(ctx, msg); err != actor.ErrUnhandled {
		return err
	}
	r := msg.Reader()
	if msg.Kind() != actor.KindMessage || r.Peek() != abi.TypeArray || r.Array() != 2 {
		return actor.ErrUnhandled
	}
	address, line := r.Text(), r.Text()
	q := question{msg.Sender(), msg.Correlation()}
	tcp.Dial(ctx, &l.conns, address, tcp.Options{Framing: tcp.Lines("", 1024)}, 5*time.Second, func(ctx *actor.Context, c *tcp.Conn, err error) error {
		if err != nil {
			return ctx.AnswerError(q.to, q.correlation, err.Error())
		}
		l.waiting[c.Ref()] = q
		c.Write(ctx, []byte(line))
		return nil
	})
	return nil
}

// datagrams returns what it receives.
type datagrams struct {
	sockets udp.Sockets
	address string
}

func newDatagrams() *datagrams {
	d := &datagrams{}
	d.sockets.OnReceived = func(ctx *actor.Context, s *udp.Socket, from string, data []byte) error {
		s.Send(ctx, from, data)
		return nil
	}
	return d
}

func (d *datagrams) Started(ctx *actor.Context) error {
	udp.Bind(ctx, &d.sockets, "127.0.0.1:0", 0, time.Second, func(_ *actor.Context, s *udp.Socket, err error) error {
		if err == nil {
			d.address = s.Address()
		}
		return err
	})
	return nil
}

func (d *datagrams) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Is("address") {
		return ctx.Reply(actor.Text(d.address))
	}
	return d.sockets.Receive(ctx, msg)
}
