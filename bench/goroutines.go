package main

import "runtime"

// Goroutines and channels: an actor is a goroutine that reads a channel.

type channelMail struct {
	from addr
	m    any
}

type channelWorld struct{}

// channelBuffer is the capacity of an actor's channel.
const channelBuffer = 64

func openChannels(*env) (world, error) { return channelWorld{}, nil }

type channelTurn struct {
	c     chan channelMail
	from  addr
	ended bool
}

func (t *channelTurn) keep() addr             { return t.sender() }
func (t *channelTurn) self() addr             { return t.c }
func (t *channelTurn) sender() addr           { return t.from }
func (t *channelTurn) send(to addr, m any)    { to.(chan channelMail) <- channelMail{t.c, m} }
func (t *channelTurn) respond(m any)          { t.from.(chan channelMail) <- channelMail{t.c, m} }
func (t *channelTurn) spawn(b behaviour) addr { return channelWorld{}.spawn(b) }
func (t *channelTurn) stop()                  { t.ended = true }

func (channelWorld) spawn(b behaviour) addr {
	t := &channelTurn{c: make(chan channelMail, channelBuffer)}
	go func() {
		for !t.ended {
			x := <-t.c
			t.from = x.from
			b.receive(t, x.m)
		}
	}()
	return t.c
}

func (channelWorld) tell(from, to addr, m any) { to.(chan channelMail) <- channelMail{from, m} }

func (channelWorld) ask(to addr, m any) error {
	answer := make(chan channelMail, 1)
	to.(chan channelMail) <- channelMail{answer, m}
	<-answer
	return nil
}

func (channelWorld) crasher(make_ func() behaviour) addr {
	t := &channelTurn{c: make(chan channelMail, channelBuffer)}
	live := func() {
		defer func() { _ = recover() }()
		for b := make_(); ; {
			x := <-t.c
			t.from = x.from
			b.receive(t, x.m)
		}
	}
	go func() {
		for {
			live()
		}
	}()
	return t.c
}

func (channelWorld) close() error { return nil }

var goroutines = &contestant{
	name: "goroutines", title: "goroutines, channels", version: runtime.Version,
	opens: openWorld(openChannels),
}
