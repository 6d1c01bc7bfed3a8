package main

import (
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/guest-sdk/tcp"
)

// session is a client: what it has sent, and the answers that it will get, in order.
type session struct {
	conn    *tcp.Conn
	buf     []byte // the beginning of a command
	slots   []slot // the first one is number first
	first   uint64
	missing int    // slots without their answer
	replies []byte // of the slots
	touched bool
	paused  bool
	closing bool
	gone    bool
}

// slot is the place of an answer.
type slot struct {
	left     int32 // parts that are missing
	summed   bool  // the answer is the sum of its parts
	from, to int   // in replies
	sum      int64
}

// together is how many answers wait for each other at most.
const together = 64

// answer puts an answer that is known into the next place.
func (s *session) answer(reply []byte) {
	from := len(s.replies)
	s.replies = append(s.replies, reply...)
	s.slots = append(s.slots, slot{from: from, to: len(s.replies)})
}

// wait takes the next place for an answer that has so many parts.
func (s *session) wait(parts int, summed bool) (at uint64) {
	s.slots = append(s.slots, slot{left: int32(parts), summed: summed})
	s.missing++
	return s.first + uint64(len(s.slots)) - 1
}

// fill is a part of the answer at a place. An error of one part is the answer of all.
func (s *session) fill(at uint64, reply []byte) {
	x := &s.slots[at-s.first]
	if x.left--; x.left == 0 {
		s.missing--
	}
	if x.summed && len(reply) > 1 && reply[0] == ':' {
		x.sum += int64(reply[1] - '0')
		return
	}
	x.summed = false
	x.from = len(s.replies)
	s.replies = append(s.replies, reply...)
	x.to = len(s.replies)
}

// done drops the first n slots, whose answers are written.
func (s *session) done(n int) {
	s.first += uint64(n)
	s.slots = s.slots[:copy(s.slots, s.slots[n:])]
	switch {
	case len(s.slots) == 0:
		if s.replies = s.replies[:0]; cap(s.replies) > maxBytes {
			s.replies = nil
		}
		if cap(s.slots) > 2*together {
			s.slots = nil
		}
	case len(s.replies) > 2*maxBytes: // most of it is written
		kept := make([]byte, 0, maxBytes)
		for i := range s.slots {
			x := &s.slots[i]
			from := len(kept)
			kept = append(kept, s.replies[x.from:x.to]...)
			x.from, x.to = from, len(kept)
		}
		s.replies = kept
	}
}

// word is the name of a command in capitals, in dst.
func word(dst *[16]byte, b []byte) []byte {
	n := min(len(b), len(dst))
	for i, c := range b[:n] {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		dst[i] = c
	}
	return dst[:n]
}

// command does a command, or begins to.
func (f *front) command(s *session, args [][]byte) {
	var buf [16]byte
	name, n := word(&buf, args[0]), len(args)
	one := func(c command) {
		c.key = args[1]
		f.to(s, s.wait(1, false), &c)
	}
	switch string(name) {
	case "GET":
		if n == 2 {
			one(command{op: opGet})
			return
		}
	case "SET":
		if n >= 3 {
			if c, ok := setOf(args); ok {
				one(c)
			} else {
				s.answer(appendError(nil, "syntax error"))
			}
			return
		}
	case "INCR":
		if n == 2 {
			one(command{op: opAdd, n: 1})
			return
		}
	case "DECR":
		if n == 2 {
			one(command{op: opAdd, n: -1})
			return
		}
	case "TTL":
		if n == 2 {
			one(command{op: opTTL})
			return
		}
	case "INCRBY", "EXPIRE", "PEXPIRE":
		if n == 3 {
			f.number(s, args, string(name))
			return
		}
	case "DEL", "EXISTS":
		if n >= 2 {
			c := command{op: opDel}
			if len(name) > 3 {
				c.op = opExists
			}
			at := s.wait(n-1, true)
			for _, c.key = range args[1:] {
				f.to(s, at, &c)
			}
			return
		}
	case "PING", "ECHO":
		if n == 2 {
			s.answer(appendBulk(nil, args[1]))
			return
		}
		if n == 1 && name[0] == 'P' {
			s.answer([]byte("+PONG\r\n"))
			return
		}
	case "DEBUG":
		if n == 3 && strings.EqualFold(string(args[1]), "SEGFAULT") {
			args = args[1:]
			one(command{op: opCrash})
			return
		}
	case "QUIT":
		s.answer([]byte("+OK\r\n"))
		s.closing = true
		return
	case "SELECT":
		if n == 2 && string(args[1]) == "0" {
			s.answer([]byte("+OK\r\n"))
			return
		}
	case "CONFIG", "COMMAND":
		s.answer([]byte("*0\r\n"))
		return
	default:
		s.answer(appendError(nil, "unknown command '"+clean(args[0])+"'"))
		return
	}
	s.answer(appendError(nil, "wrong number of arguments for '"+strings.ToLower(clean(args[0]))+"' command"))
}

// number does a command whose last argument is a number.
func (f *front) number(s *session, args [][]byte, name string) {
	v, err := strconv.ParseInt(string(args[2]), 10, 64)
	if err != nil || v > 1<<50 && name != "INCRBY" {
		s.answer(appendError(nil, "value is not an integer or out of range"))
		return
	}
	c := command{op: opExpire, key: args[1], n: v}
	switch name {
	case "INCRBY":
		c.op = opAdd
	case "EXPIRE":
		c.n = 1000 * max(v, -1)
	}
	f.to(s, s.wait(1, false), &c)
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
