package main

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

const (
	shards = 16
	tries  = 3
)

// link is the way to a shard. One batch is under way at a time, and what comes meanwhile goes with the next one: the busier the
// shard, the more commands share a message.
type link struct {
	f       *front
	path    string
	waiting []*batch // the last one is filled
	busy    bool
	spare   *batch
}

// batch is what a shard is asked at once.
type batch struct {
	commands []byte // as appendCommand writes them
	items    int
	places   []place // of the answers, one for each command
	try      int
}

// place is where an answer belongs.
type place struct {
	s  *session
	at uint64
}

// most is how many bytes of commands go together; a single one may have more.
const most = 24 << 10

func (l *link) init(f *front, i int) { l.f, l.path = f, "/user/shards/"+strconv.Itoa(i) }

// to puts a command into the batch of its shard.
func (f *front) to(s *session, at uint64, c *command) {
	l := &f.links[shardOf(c.key)]
	var x *batch
	if n := len(l.waiting); n > 0 && l.waiting[n-1].try == 0 && len(l.waiting[n-1].commands) < most {
		x = l.waiting[n-1]
	} else {
		if x, l.spare = l.spare, nil; x == nil {
			x = &batch{}
		}
		l.waiting = append(l.waiting, x)
	}
	was := len(x.commands)
	x.commands = appendCommand(x.commands, c)
	x.items += c.items()
	x.places = append(x.places, place{s, at})
	f.held += len(x.commands) - was
}

// shardOf is the shard of a key: the same one in each life of the front.
func shardOf(key []byte) uint64 {
	h := uint64(len(key))
	for len(key) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(key)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
		key = key[8:]
	}
	for _, b := range key {
		h = (h ^ uint64(b)) * 0x9e3779b97f4a7c15
	}
	return (h ^ h>>32) * 0x9e3779b97f4a7c15 >> 60 // of 16 shards
}

// ask asks a shard that is not asked, if something waits for it.
func (l *link) ask(ctx *actor.Context) {
	if l.busy || len(l.waiting) == 0 {
		return
	}
	l.busy = true
	x := l.waiting[0]
	l.waiting = l.waiting[:copy(l.waiting, l.waiting[1:])]
	x.try++
	ctx.AskPath(l.path, x, patience, func(ctx *actor.Context, m *actor.Message) error {
		l.busy = false
		switch {
		case m.Kind() == actor.KindReply:
			r := m.Reader()
			b := r.ByteString()
			if r.Done() != nil {
				return abi.ErrArity
			}
			l.answered(x, b)
		case m.Kind() == actor.KindReplyError && x.try < tries:
			l.again(x)
		default:
			for i := range x.places {
				l.fill(&x.places[i], []byte("-ERR the shard has failed: nothing was done\r\n"))
			}
			l.drop(x)
		}
		l.ask(ctx)
		l.f.landed(ctx)
		return nil
	})
}

// MarshalCBOR implements actor.Encoder.
func (x *batch) MarshalCBOR(w *abi.Writer) {
	w.Array(x.items)
	w.Raw(x.commands)
}

// again asks for each command of a batch alone. A turn that has failed has done nothing, so only what the shard cannot do
// fails. What came later waits for it.
func (l *link) again(x *batch) {
	r := abi.NewReader(x.commands)
	single := make([]*batch, 0, len(x.places)+len(l.waiting))
	for i := range x.places {
		var c command
		from := r.Offset()
		c.read(r)
		single = append(single, &batch{commands: x.commands[from:r.Offset()], items: c.items(), places: x.places[i : i+1], try: x.try})
	}
	l.waiting = append(single, l.waiting...)
}

// answered takes the answers of a batch apart.
func (l *link) answered(x *batch, b []byte) {
	for i := range x.places {
		n := replySize(b)
		l.fill(&x.places[i], b[:n])
		b = b[n:]
	}
	l.drop(x)
}

func (l *link) fill(p *place, reply []byte) {
	p.s.fill(p.at, reply)
	if !p.s.touched {
		p.s.touched = true
		l.f.touched = append(l.f.touched, p.s)
	}
}

// drop forgets a batch that is answered, and keeps its room for the next one.
func (l *link) drop(x *batch) {
	l.f.held -= len(x.commands)
	if x.try > 1 || cap(x.commands) > 2*most { // its room is that of others
		return
	}
	clear(x.places)
	x.commands, x.items, x.places, x.try = x.commands[:0], 0, x.places[:0], 0
	l.spare = x
}

// replySize is how many bytes the first answer has: a line, or a string after its length.
func replySize(b []byte) int {
	line := bytes.IndexByte(b, '\n') + 1
	if line < 3 || b[0] != '$' || b[1] == '-' {
		return line
	}
	n, _, err := number(b[1:], maxBytes)
	if err != nil {
		return line
	}
	return min(line+n+2, len(b))
}
