package main

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/tcp"
)

const (
	shards   = 16
	patience = 5 * time.Second
	tries    = 3
	mostOpen = 1024 // commands of a client that are not answered, beyond which it is not read from
)

var paths = func() (p [shards]string) {
	for i := range p {
		p[i] = "/user/shards/" + strconv.Itoa(i)
	}
	return p
}()

// front has the connections.
type front struct {
	conns tcp.Conns
	args  [][]byte
}

func newFront() *front {
	f := &front{}
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

// session is a client: what it has sent, and the answers that it will get, in order.
type session struct {
	conn    *tcp.Conn
	buf     []byte
	slots   []slot // from first on
	first   uint64
	paused  bool
	closing bool
	out     []byte
}

// slot is the place of an answer.
type slot struct {
	left   int // parts that are missing
	sum    int64
	summed bool // the answer is the sum of its parts
	reply  []byte
}

// batch is what goes to one shard.
type batch struct {
	commands commands
	slots    []uint64 // one for each
	try      int
}

func (f *front) data(ctx *actor.Context, c *tcp.Conn, data []byte) error {
	s := c.Data.(*session)
	if s.closing {
		return nil
	}
	// Of its own: what a shard is asked is kept until it is answered.
	b := append(append(make([]byte, 0, len(s.buf)+len(data)), s.buf...), data...)
	var batches [shards]*batch
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
			s.command(args, &batches)
		}
	}
	for i, x := range batches {
		if x != nil {
			s.ask(ctx, i, x)
		}
	}
	s.buf = append(s.buf[:0], b...)
	s.flush(ctx)
	return nil
}

// answer puts an answer that is known into the next place.
func (s *session) answer(reply []byte) { s.slots = append(s.slots, slot{reply: reply}) }

// to puts a command for a shard into a batch, and its answer into the last place.
func (s *session) to(batches *[shards]*batch, c command) {
	h := fnv.New32a()
	_, _ = h.Write(c.key)
	i := h.Sum32() % shards
	if batches[i] == nil {
		batches[i] = &batch{}
	}
	x := batches[i]
	x.commands = append(x.commands, c)
	x.slots = append(x.slots, s.first+uint64(len(s.slots))-1)
	s.slots[len(s.slots)-1].left++
}

// command does a command, or begins to.
func (s *session) command(args [][]byte, batches *[shards]*batch) {
	word := strings.ToUpper(string(args[0]))
	n := len(args)
	one := func(c command) {
		s.slots = append(s.slots, slot{})
		c.key = args[1]
		s.to(batches, c)
	}
	wrong := func() {
		s.answer(appendError(nil, "wrong number of arguments for '"+strings.ToLower(clean(args[0]))+"' command"))
	}
	switch {
	case word == "PING" && n == 1:
		s.answer([]byte("+PONG\r\n"))
	case (word == "PING" || word == "ECHO") && n == 2:
		s.answer(appendBulk(nil, args[1]))
	case word == "GET" && n == 2:
		one(command{op: opGet})
	case word == "SET" && n >= 3:
		c, ok := setOf(args)
		if !ok {
			s.answer(appendError(nil, "syntax error"))
			return
		}
		one(c)
	case word == "INCR" && n == 2:
		one(command{op: opAdd, n: 1})
	case word == "DECR" && n == 2:
		one(command{op: opAdd, n: -1})
	case word == "TTL" && n == 2:
		one(command{op: opTTL})
	case (word == "INCRBY" || word == "EXPIRE" || word == "PEXPIRE") && n == 3:
		v, err := strconv.ParseInt(string(args[2]), 10, 64)
		if err != nil || v > 1<<50 && word != "INCRBY" {
			s.answer(appendError(nil, "value is not an integer or out of range"))
			return
		}
		switch word {
		case "INCRBY":
			one(command{op: opAdd, n: v})
		case "EXPIRE":
			one(command{op: opExpire, n: 1000 * max(v, -1)})
		default:
			one(command{op: opExpire, n: v})
		}
	case (word == "DEL" || word == "EXISTS") && n >= 2:
		c := command{op: opDel}
		if word == "EXISTS" {
			c.op = opExists
		}
		s.slots = append(s.slots, slot{summed: true})
		for _, key := range args[1:] {
			c.key = key
			s.to(batches, c)
		}
	case word == "DEBUG" && n == 3 && strings.EqualFold(string(args[1]), "SEGFAULT"):
		args = args[1:]
		one(command{op: opCrash})
	case word == "QUIT":
		s.answer([]byte("+OK\r\n"))
		s.closing = true
	case word == "SELECT" && n == 2 && string(args[1]) == "0":
		s.answer([]byte("+OK\r\n"))
	case word == "CONFIG" && n == 3 && strings.EqualFold(string(args[1]), "GET"), word == "COMMAND":
		s.answer([]byte("*0\r\n"))
	default:
		switch word {
		case "GET", "SET", "INCR", "DECR", "INCRBY", "EXPIRE", "PEXPIRE", "TTL", "DEL", "EXISTS", "PING", "ECHO":
			wrong()
		default:
			s.answer(appendError(nil, "unknown command '"+clean(args[0])+"'"))
		}
	}
}

// setOf reads SET key value [EX s | PX ms] [NX | XX].
func setOf(args [][]byte) (c command, ok bool) {
	c = command{op: opSet, value: args[2]}
	for i := 3; i < len(args); i++ {
		switch strings.ToUpper(string(args[i])) {
		case "NX":
			c.op = opSetNew
		case "XX":
			c.op = opSetOld
		case "EX", "PX":
			if i+1 == len(args) || c.n != 0 {
				return c, false
			}
			v, err := strconv.ParseInt(string(args[i+1]), 10, 64)
			if err != nil || v <= 0 || v > 1<<40 {
				return c, false
			}
			if c.n = v; args[i][0]|0x20 == 'e' {
				c.n *= 1000
			}
			i++
		default:
			return c, false
		}
	}
	return c, true
}

// clean makes a word of a client fit for an answer.
func clean(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(b[:min(len(b), 32)]))
}

// ask asks a shard. A turn that has failed has done nothing, so what it was asked is asked again, each command alone: only the
// one that the shard cannot do fails.
func (s *session) ask(ctx *actor.Context, i int, x *batch) {
	x.try++
	ctx.AskPath(paths[i], x.commands, patience, func(ctx *actor.Context, m *actor.Message) error {
		switch {
		case m.Kind() == actor.KindReply:
			r := m.Reader()
			s.answered(x, r.ByteString())
			if r.Done() != nil {
				return abi.ErrArity
			}
		case m.Kind() == actor.KindReplyError && x.try < tries:
			for j := range x.commands {
				s.ask(ctx, i, &batch{commands: x.commands[j : j+1], slots: x.slots[j : j+1], try: x.try})
			}
		default:
			for _, at := range x.slots {
				s.fill(at, appendError(nil, "the shard has failed: nothing was done"))
			}
		}
		s.flush(ctx)
		return nil
	})
}

// answered takes the answers of a batch apart.
func (s *session) answered(x *batch, b []byte) {
	for _, at := range x.slots {
		n := replySize(b)
		s.fill(at, b[:n])
		b = b[n:]
	}
}

// replySize is how many bytes the first answer has: a line, or a string after its length.
func replySize(b []byte) int {
	line := 0
	for line < len(b) && b[line] != '\n' {
		line++
	}
	line = min(line+1, len(b))
	if len(b) == 0 || b[0] != '$' || b[1] == '-' {
		return line
	}
	n, _, err := number(b[1:], maxBytes)
	if err != nil {
		return line
	}
	return min(line+n+2, len(b))
}

// fill is a part of the answer at a place.
func (s *session) fill(at uint64, reply []byte) {
	if at < s.first {
		return
	}
	x := &s.slots[at-s.first]
	x.left--
	if x.summed && len(reply) > 1 && reply[0] == ':' {
		x.sum += int64(reply[1] - '0')
		return
	}
	x.summed = false
	x.reply = append(x.reply[:0], reply...)
}

// flush sends the answers that are complete, in order.
func (s *session) flush(ctx *actor.Context) {
	s.out = s.out[:0]
	n := 0
	for ; n < len(s.slots) && s.slots[n].left == 0; n++ {
		if x := &s.slots[n]; x.summed {
			s.out = appendInt(s.out, x.sum)
		} else {
			s.out = append(s.out, x.reply...)
		}
		if len(s.out) > maxBytes {
			s.conn.Write(ctx, s.out)
			s.out = s.out[:0]
		}
	}
	s.first += uint64(n)
	s.slots = s.slots[:copy(s.slots, s.slots[n:])]
	if len(s.out) > 0 {
		s.conn.Write(ctx, s.out)
	}
	switch {
	case s.closing && len(s.slots) == 0:
		s.conn.Close(ctx)
	case s.paused != (len(s.slots) > mostOpen):
		if s.paused = !s.paused; s.paused {
			s.conn.Suspend(ctx)
		} else {
			s.conn.Resume(ctx)
		}
	}
}
