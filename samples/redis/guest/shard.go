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
	opSet    op = iota
	opSetNew    // only if there is none
	opSetOld    // only if there is one
	opAdd
	opExpire
	opGet
	opDel
	opExists
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

// items is how many values of CBOR a command is.
func (c *command) items() int {
	switch {
	case c.op <= opSetOld:
		return 4
	case c.op <= opExpire:
		return 3
	}
	return 2
}

// appendCommand appends the values of a command: what it does, the key, and of some the value and the number.
func appendCommand(dst []byte, c *command) []byte {
	dst = append(dst, byte(c.op))
	dst = append(abi.AppendBytesHead(dst, len(c.key)), c.key...)
	if c.op <= opSetOld {
		dst = append(abi.AppendBytesHead(dst, len(c.value)), c.value...)
	}
	switch {
	case c.op > opExpire:
	case c.n < 0:
		at := len(dst)
		dst = abi.AppendUint(dst, uint64(^c.n))
		dst[at] |= 0x20
	default:
		dst = abi.AppendUint(dst, uint64(c.n))
	}
	return dst
}

// read reads what appendCommand has written.
func (c *command) read(r *abi.Reader) {
	c.op, c.key, c.value, c.n = op(r.Uint()), r.ByteString(), nil, 0
	if c.op <= opSetOld {
		c.value = r.ByteString()
	}
	if c.op <= opExpire {
		c.n = r.Int()
	}
}

// entry is a value and when it ends, in ms since 1970; 0: never.
type entry struct {
	value []byte
	until int64
}

// shard has a part of the keys.
type shard struct {
	keys   map[string]*entry
	bytes  int
	out    []byte
	number [20]byte
	due    int64 // when the timer runs; 0: it does not
}

const (
	maxShard = 24 << 20 // bytes of keys and values
	perKey   = 100
	sweepKey = 1
)

func newShard() *shard { return &shard{keys: map[string]*entry{}} }

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
	s.out = s.out[:0]
	for n := r.Array(); n > 0 && r.OK(); {
		var c command
		c.read(r)
		n -= c.items()
		if s.do(&c, now); c.n > 0 && c.op != opAdd {
			s.wake(ctx, now)
		}
	}
	if err := r.Done(); err != nil {
		return err
	}
	return ctx.Reply(actor.Bytes(s.out))
}

// find is the entry of a key that has not ended, nil if there is none.
func (s *shard) find(key []byte, now int64) *entry {
	e := s.keys[string(key)]
	if e != nil && e.until != 0 && e.until <= now {
		s.drop(string(key), e)
		return nil
	}
	return e
}

func (s *shard) drop(key string, e *entry) {
	delete(s.keys, key)
	s.bytes -= len(key) + cap(e.value) + perKey
}

// put sets a value; old is the entry that the key has, if any.
func (s *shard) put(key []byte, old *entry, value []byte, until int64) bool {
	if old != nil && cap(old.value) >= len(value) && cap(old.value) <= 2*len(value)+64 {
		old.value, old.until = append(old.value[:0], value...), until
		return true
	}
	grows := len(value)
	if old == nil {
		grows += len(key) + perKey
	} else {
		grows -= cap(old.value)
	}
	if s.bytes+grows > maxShard {
		return false
	}
	if old == nil {
		old = &entry{}
		s.keys[string(key)] = old
	}
	old.value, old.until = append(make([]byte, 0, len(value)), value...), until
	s.bytes += grows
	return true
}

func (s *shard) do(c *command, now int64) {
	e := s.find(c.key, now)
	ok := e != nil
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
		if !s.put(c.key, e, c.value, until) {
			s.full()
			return
		}
		s.out = append(s.out, "+OK\r\n"...)
	case opAdd:
		s.add(c, e)
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

func (s *shard) add(c *command, e *entry) {
	n, until := int64(0), int64(0)
	if e != nil {
		until = e.until
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
	if !s.put(c.key, e, strconv.AppendInt(s.number[:0], n, 10), until) {
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
