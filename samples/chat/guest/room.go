package main

import (
	"bytes"
	"strconv"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/web"
)

// room is its people and what they have said. A crash takes both: the people are still connected
// and come in again by themselves, what they have said is in the history.
type room struct {
	people  web.Sockets
	history history
}

func newRoom() *room {
	r := &room{}
	r.people = web.Sockets{Open: r.enter, Text: r.said, Close: r.left}
	return r
}

func (r *room) Started(ctx *actor.Context) error {
	r.history = newHistory(ctx)
	return nil
}

func (r *room) Receive(ctx *actor.Context, msg *actor.Message) error {
	return r.people.Receive(ctx, msg)
}

// enter lets somebody in whose name the address has: /rooms/NAME?name=ann.
func (r *room) enter(ctx *actor.Context, q *web.Request, c *web.Conn) error {
	if c.Resumed() {
		name := c.State().Text()
		c.Data = name
		web.SendText(ctx, c.Ref(), notice("the room is back"))
		return nil
	}
	name := q.Query("name")
	switch {
	case !validName(name):
		c.Refuse(400, "a name has 1 to 24 letters, digits, - or _")
		return nil
	case r.find(name) != nil:
		c.Refuse(409, "somebody of that name is here")
		return nil
	}
	c.Data = name
	c.SetState(ctx, actor.Text(name))
	to, here := c.Ref(), strconv.Itoa(r.people.Len()+1)
	r.history.recall(ctx, func(ctx *actor.Context, lines []string) error {
		for _, l := range lines {
			web.SendText(ctx, to, l)
		}
		web.SendText(ctx, to, notice("welcome, "+name+"; "+here+" are here"))
		return nil
	})
	r.tell(ctx, notice(name+" has come"))
	return nil
}

func (r *room) said(ctx *actor.Context, c *web.Conn, text []byte) error {
	name, line := c.Data.(string), oneLine(text)
	switch {
	case line == "":
	case line == "/crash":
		panic("somebody has said /crash")
	case line == "/who":
		var names []string
		r.people.Each(func(c *web.Conn) { names = append(names, c.Data.(string)) })
		web.SendText(ctx, c.Ref(), notice("here: "+join(names, ", ")))
	case line == "/quit":
		web.CloseSocket(ctx, c.Ref(), 1000, "goodbye")
	case line[0] == '/':
		web.SendText(ctx, c.Ref(), notice("there are /who, /quit and /crash"))
	default:
		said := speech(name, line)
		r.history.keep(ctx, said, func(ctx *actor.Context) { r.tell(ctx, said) })
	}
	return nil
}

func (r *room) left(ctx *actor.Context, c *web.Conn, _ int, _ string) error {
	name, _ := c.Data.(string)
	r.tell(ctx, notice(name+" has gone"))
	return nil
}

// tell tells all. Who does not read what is sent is cut off by the host, and the others do not
// wait.
func (r *room) tell(ctx *actor.Context, line string) {
	r.people.Each(func(c *web.Conn) { web.SendText(ctx, c.Ref(), line) })
}

func (r *room) find(name string) (found *web.Conn) {
	r.people.Each(func(c *web.Conn) {
		if c.Data == any(name) {
			found = c
		}
	})
	return found
}

// oneLine is a text as one line: with breaks in it somebody could say what looks like lines of others.
func oneLine(text []byte) string {
	return string(bytes.TrimSpace(bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)))
}

func validName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return s != "" && len(s) <= 24
}

// speech and notice are what is sent: a line of somebody's, or of the room's.
func speech(name, text string) string { return name + ": " + text }
func notice(text string) string       { return "* " + text }
