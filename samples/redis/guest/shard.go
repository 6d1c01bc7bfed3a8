package main

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// op is what a shard does with a key.
type op uint8

const (
	opGet op = iota
	opSet
	opSetNew // only if there is none
	opSetOld // only if there is one
	opAdd
	opDel
	opExists
	opExpire
	opTTL
	opCrash
)

// command is one for a shard.
type command struct {
	op    op
	key   []byte
	value []byte // of opSet and its like
	n     int64  // of opAdd; ms of opSet and opExpire, 0 for ever
}

// commands are what the front asks a shard for: it does all of them or, if its turn fails, none.
type commands []command

// MarshalCBOR implements actor.Encoder.
func (c commands) MarshalCBOR(w *abi.Writer) {
	w.Array(4 * len(c))
	for i := range c {
		w.Uint(uint64(c[i].op))
		w.ByteString(c[i].key)
		w.ByteString(c[i].value)
		w.Int(c[i].n)
	}
}

// entry is a value and when it ends, in ms since 1970; 0: never.
type entry struct {
	value []byte
	until int64
}

// shard has a part of the keys.
type shard struct {
	keys  map[string]entry
	bytes int
	out   []byte
	due   int64 // when the timer runs; 0: it does not
}

const (
	maxShard = 24 << 20 // bytes of keys and values
	perKey   = 100
	sweepKey = 1
)

func newShard() *shard { return &shard{keys: map[string]entry{}} }

// Receive implements actor.Actor.
func (s *shard) Receive(ctx *actor.Context, msg *actor.Message) error {
	now := ctx.Now().UnixMilli()
	switch msg.Kind() {
	case actor.KindTimer:
		s.sweep(ctx, now)
		return nil
	case actor.KindMessage:
	default:
		return actor.ErrUnhandled
	}
	r := msg.Reader()
	n := r.Array() / 4
	s.out = s.out[:0]
	for ; n > 0 && r.OK(); n-- {
		c := command{op: op(r.Uint()), key: r.ByteString(), value: r.ByteString(), n: r.Int()}
		s.do(&c, now)
		if c.n > 0 && c.op != opAdd {
			s.wake(ctx, now)
		}
	}
	if err := r.Done(); err != nil {
		return err
	}
	return ctx.Reply(actor.Bytes(s.out))
}

// find is the entry of a key that has not ended.
func (s *shard) find(key []byte, now int64) (entry, bool) {
	e, ok := s.keys[string(key)]
	if ok && e.until != 0 && e.until <= now {
		s.drop(string(key), e)
		return entry{}, false
	}
	return e, ok
}

func (s *shard) drop(key string, e entry) {
	delete(s.keys, key)
	s.bytes -= len(key) + cap(e.value) + perKey
}

func (s *shard) put(key []byte, old entry, had bool, value []byte, until int64) bool {
	if had && cap(old.value) >= len(value) && cap(old.value) <= 2*len(value)+64 {
		s.keys[string(key)] = entry{append(old.value[:0], value...), until}
		return true
	}
	grows := len(key) + len(value) + perKey
	if had {
		grows -= len(key) + cap(old.value) + perKey
	}
	if s.bytes+grows > maxShard {
		return false
	}
	e := entry{append(make([]byte, 0, len(value)), value...), until}
	s.bytes += grows + cap(e.value) - len(value)
	s.keys[string(key)] = e
	return true
}

func (s *shard) do(c *command, now int64) {
	e, ok := s.find(c.key, now)
	switch c.op {
	case opGet:
		if !ok {
			s.out = append(s.out, "$-1\r\n"...)
			return
		}
		s.out = appendBulk(s.out, e.value)
	case opSet, opSetNew, opSetOld:
		if c.op == opSetNew && ok || c.op == opSetOld && !ok {
			s.out = append(s.out, "$-1\r\n"...)
			return
		}
		until := int64(0)
		if c.n > 0 {
			until = now + c.n
		}
		if !s.put(c.key, e, ok, c.value, until) {
			s.full()
			return
		}
		s.out = append(s.out, "+OK\r\n"...)
	case opAdd:
		s.add(c, e, ok)
	case opDel:
		if ok {
			s.drop(string(c.key), e)
		}
		s.truth(ok)
	case opExists:
		s.truth(ok)
	case opExpire:
		switch {
		case ok && c.n <= 0:
			s.drop(string(c.key), e)
		case ok:
			e.until = now + c.n
			s.keys[string(c.key)] = e
		}
		s.truth(ok)
	case opTTL:
		switch {
		case !ok:
			s.out = appendInt(s.out, -2)
		case e.until == 0:
			s.out = appendInt(s.out, -1)
		default:
			s.out = appendInt(s.out, (e.until-now+500)/1000)
		}
	case opCrash:
		panic("a client has said DEBUG SEGFAULT")
	}
}

func (s *shard) add(c *command, e entry, ok bool) {
	n := int64(0)
	if ok {
		var err error
		if n, err = strconv.ParseInt(string(e.value), 10, 64); err != nil {
			s.out = appendError(s.out, "value is not an integer or out of range")
			return
		}
	}
	if sum := n + c.n; (sum > n) != (c.n > 0) && c.n != 0 {
		s.out = appendError(s.out, "increment or decrement would overflow")
		return
	}
	n += c.n
	if !s.put(c.key, e, ok, strconv.AppendInt(nil, n, 10), e.until) {
		s.full()
		return
	}
	s.out = appendInt(s.out, n)
}

func (s *shard) truth(ok bool) {
	if ok {
		s.out = append(s.out, ":1\r\n"...)
	} else {
		s.out = append(s.out, ":0\r\n"...)
	}
}

func (s *shard) full() {
	s.out = append(s.out, "-OOM command not allowed when used memory > 'maxmemory'.\r\n"...)
}

// wake sets the timer that drops what has ended, unless it runs.
func (s *shard) wake(ctx *actor.Context, now int64) {
	if s.due == 0 {
		s.due = now + 1000
		ctx.After(sweepKey, time.Second, nil)
	}
}

// sweep drops what has ended, and goes on as long as there is anything that will.
func (s *shard) sweep(ctx *actor.Context, now int64) {
	s.due = 0
	more := false
	for key, e := range s.keys {
		switch {
		case e.until == 0:
		case e.until <= now:
			s.drop(key, e)
		default:
			more = true
		}
	}
	if more {
		s.wake(ctx, now)
	}
}
