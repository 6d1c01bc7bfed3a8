//go:build !wasip1

package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// server is a front with its shards, and a service tcp that the test plays.
type server struct {
	t   testing.TB
	w   *actortest.World
	tcp *actortest.Fake
	at  *actortest.Actor
}

func newServer(t testing.TB) *server {
	w := actortest.NewWorld(t)
	w.Supervise(func(*actortest.Actor, *abi.Failure) actor.Directive { return actor.Resume })
	s := &server{t: t, w: w}
	s.tcp = w.Serve("tcp", func(c *actortest.Call) {
		c.Answer(actor.Func(func(w *abi.Writer) {
			w.Map(2)
			w.Text("listener")
			w.Ref(9)
			w.Text("address")
			w.Text("here")
		}))
	})
	for i := range shards {
		w.Spawn("shard", actortest.Named("shards"), actortest.Key(strconv.Itoa(i)))
	}
	s.at = w.Spawn("front")
	return s
}

// client is a connection to a server: out is what was written to it.
type client struct {
	s      *server
	conn   *actortest.Fake
	out    []byte
	writes int
	ops    []string // others than writes and credit
}

func (s *server) connect() *client {
	c := &client{s: s}
	c.conn = s.tcp.Open(func(call *actortest.Call) {
		switch call.Op {
		case "write":
			c.out = append(c.out, call.Reader().ByteString()...)
			c.writes++
		case "more":
		case "close":
			c.ops = append(c.ops, "close "+call.Text())
		default:
			c.ops = append(c.ops, call.Op)
		}
	})
	c.told("tcp.connected", func(w *abi.Writer) {
		w.Map(2)
		w.Text("conn")
		w.Ref(c.conn.Ref())
		w.Text("window")
		w.Uint(1 << 16)
	})
	return c
}

func (c *client) told(word string, body func(*abi.Writer)) {
	c.conn.Tell(c.s.at.Ref(), actor.Func(func(w *abi.Writer) {
		w.Array(2)
		w.Text(word)
		body(w)
	}))
}

func (c *client) send(data string) {
	c.told("tcp.data", func(w *abi.Writer) { w.ByteString([]byte(data)) })
}

// says sends commands and checks the answers, in which a space stands for the end of a line.
func (c *client) says(commands, want string) {
	c.s.t.Helper()
	c.out = nil
	c.send(commands)
	if got := strings.TrimSpace(strings.ReplaceAll(string(c.out), "\r\n", " ")); got != want {
		c.s.t.Errorf("%.200q is answered by %.200q, want %.200q", commands, got, want)
	}
}

func TestCommands(t *testing.T) {
	c := newServer(t).connect()
	for _, x := range []struct{ commands, want string }{
		{"PING\r\nping hi\nECHO x\n", "+PONG $2 hi $1 x"},
		{"GET a\n", "$-1"},
		{"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n1\r\n2\r\n", "+OK"},
		{"GET a\n", "$4 1 2"},
		{"INCR a\n", "-ERR value is not an integer or out of range"},
		{"SET n 5\nINCR n\nDECR n\nINCRBY n -7\nGET n\n", "+OK :6 :5 :-2 $2 -2"},
		{"SET n 9223372036854775807\nINCR n\nINCRBY n x\n", "+OK -ERR increment or decrement would overflow -ERR value is not an integer or out of range"},
		{"SET n 1 NX\nSET m 1 XX\nSET m 2 NX\nSET m 3 XX\nGET m\n", "$-1 $-1 +OK +OK $1 3"},
		{"SET a 1 EX\nSET a 1 EX 0\nSET a 1 YY\nSET a 1 EX 5 PX 5\n", "-ERR syntax error -ERR syntax error -ERR syntax error -ERR syntax error"},
		{"TTL a\nTTL none\nEXPIRE n 100\nTTL n\nEXPIRE none 5\n", ":-1 :-2 :1 :100 :0"},
		{"INCRBY e 5\nEXPIRE e 50\nINCR e\nTTL e\nEXPIRE e -1\nEXISTS e\n", ":5 :1 :6 :50 :1 :0"},
		{"EXISTS a n m none\nDEL a n m none\nEXISTS a n m none\n", ":3 :3 :0"},
		{"GET\nSET a\nEXPIRE a\nDEL\nfoo\nFOO\x01\n", "-ERR wrong number of arguments for 'get' command -ERR wrong number of arguments for 'set' command " +
			"-ERR wrong number of arguments for 'expire' command -ERR wrong number of arguments for 'del' command -ERR unknown command 'foo' -ERR unknown command 'FOO?'"},
		{"SELECT 0\nCONFIG GET save\n", "+OK *0"},
	} {
		c.says(x.commands, x.want)
	}
	if c.says("QUIT\nPING\n", "+OK"); !slices.Equal(c.ops, []string{"register", "close flush"}) {
		t.Error(c.ops)
	}
}

func TestKeysEnd(t *testing.T) {
	s := newServer(t)
	c := s.connect()
	c.says("SET a 1 PX 1500\nSET b 2\nSET c 3 EX 3\n", "+OK +OK +OK")
	s.w.Advance(1499 * time.Millisecond)
	c.says("GET a\n", "$1 1")
	s.w.Advance(time.Millisecond)
	c.says("GET a\nTTL c\n", "$-1 :2") // 1.5 s are left, which counts as 2
	s.w.Advance(time.Minute)
	c.says("EXISTS a b c\n", ":1")
	for i := range shards { // what nobody asks for is dropped, too
		x := s.w.Find("/user/shards/" + strconv.Itoa(i)).Actor().(*shard)
		bytes := 0
		for key, e := range x.keys {
			if key != "b" {
				t.Error(key)
			}
			bytes += len(key) + cap(e.value) + perKey
		}
		if x.bytes != bytes || x.due != 0 {
			t.Errorf("%d bytes are counted, and there are %d; the timer: %d", x.bytes, bytes, x.due)
		}
	}
}

// A pipeline is answered in its order, whatever the pieces it comes in, and with few writes.
func TestPipeline(t *testing.T) {
	s := newServer(t)
	var in strings.Builder
	want := ""
	for i := range 30 {
		fmt.Fprintf(&in, "*3\r\n$3\r\nSET\r\n$2\r\n%02d\r\n$1\r\nx\r\nGET %02d\r\n", i, i)
		want += "+OK\r\n$1\r\nx\r\n"
	}
	for _, size := range []int{1, 7, 100, in.Len()} {
		c := s.connect()
		for text := in.String(); text != ""; {
			n := min(size, len(text))
			c.send(text[:n])
			text = text[n:]
		}
		if string(c.out) != want {
			t.Errorf("pieces of %d bytes: %q", size, c.out)
		}
		if size == in.Len() && c.writes != 1 {
			t.Errorf("%d writes", c.writes)
		}
	}
}

// While a shard is busy its commands are gathered: they share its next message.
func TestCommandsAreGathered(t *testing.T) {
	s := newServer(t)
	delay := s.w.Fault("/user/shards/*").Nth(1).Delay(time.Second)
	c := s.connect()
	for range 60 {
		c.send("INCR a\n")
	}
	if len(c.out) > 0 {
		t.Fatalf("%q", c.out)
	}
	s.w.Advance(time.Second)
	if n := strings.Count(string(c.out), ":"); n != 60 || !strings.HasSuffix(string(c.out), ":60\r\n") || delay.Hits() != 1 {
		t.Errorf("%d answers, %d delays: %q", n, delay.Hits(), c.out)
	}
	if c.writes > 2 { // the first one was alone
		t.Errorf("%d writes", c.writes)
	}
}

// A turn that fails has done nothing: its commands are done one by one, and only those that cannot be are answered with an error.
func TestCrashes(t *testing.T) {
	s := newServer(t)
	c := s.connect()
	c.says("INCR a\nDEBUG SEGFAULT a\nINCR a\nGET a\n", ":2 -ERR the shard has failed: nothing was done :3 $1 3")

	// What another client says meanwhile comes later.
	s.w.Fault("/user/shards/*").Nth(1).Delay(time.Second)
	d := s.connect()
	c.out = nil
	c.send("SET a 10\nDEBUG SEGFAULT a\nINCR a\n")
	d.send("SET a 20\n")
	s.w.Advance(time.Second)
	if got := string(c.out) + string(d.out); got != "+OK\r\n-ERR the shard has failed: nothing was done\r\n:11\r\n+OK\r\n" {
		t.Errorf("%q", got)
	}
	d.says("GET a\n", "$2 20")
}

func TestManyOpenCommands(t *testing.T) {
	s := newServer(t)
	s.w.Fault("/user/shards/*").Nth(1).Delay(time.Second)
	c := s.connect()
	for range 2 {
		c.send(strings.Repeat("INCR a\n", 600))
	}
	if !slices.Equal(c.ops, []string{"register", "suspend"}) {
		t.Fatal(c.ops)
	}
	s.w.Advance(time.Second)
	if !slices.Equal(c.ops, []string{"register", "suspend", "resume"}) || !bytes.HasSuffix(c.out, []byte(":1200\r\n")) {
		t.Error(c.ops, len(c.out))
	}
	f := s.at.Actor().(*front)
	if f.held != 0 {
		t.Errorf("%d bytes are still held", f.held)
	}
}

// What is written makes room, and what waits behind a slow shard stays.
func TestSlowShardWithinAPipeline(t *testing.T) {
	s := newServer(t)
	c := s.connect()
	value := strings.Repeat("v", 10_000)
	slow := "b"
	for shardOf([]byte(slow)) == shardOf([]byte("a")) {
		slow += "b"
	}
	c.says("SET "+"a x\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$10000\r\n"+value+"\r\nSET "+slow+" 1\n", "+OK +OK +OK")
	s.w.Fault("/user/shards/*").Matching(func(m actortest.Sent) bool { return bytes.Contains(m.Payload, []byte(slow)) }).Delay(time.Second)
	c.out = nil
	c.send(strings.Repeat("GET a\n", 70) + "INCR " + slow + "\n" + strings.Repeat("GET a\n", 3))
	one := "$10000\r\n" + value + "\r\n"
	if string(c.out) != strings.Repeat(one, 70) {
		t.Fatalf("%d bytes", len(c.out))
	}
	if x := s.at.Actor().(*front).conns.Find(c.conn.Ref()).Data.(*session); len(x.replies) > 2*maxBytes {
		t.Errorf("%d bytes of answers are kept", len(x.replies))
	}
	c.out = nil
	if s.w.Advance(time.Second); string(c.out) != ":2\r\n"+strings.Repeat(one, 3) {
		t.Errorf("%.30q, %d bytes", c.out, len(c.out))
	}
}

// A client that is gone is written nothing, and what it has sent is done all the same.
func TestClientsGo(t *testing.T) {
	s := newServer(t)
	s.w.Fault("/user/shards/*").Nth(1).Delay(time.Second)
	c := s.connect()
	c.send("SET a 1\n")
	c.told("tcp.closed", func(w *abi.Writer) {
		w.Map(1)
		w.Text("how")
		w.Text("peer")
	})
	s.w.Advance(time.Second)
	if len(c.out) > 0 {
		t.Errorf("%q", c.out)
	}
	s.connect().says("GET a\n", "$1 1")
}

func TestBrokenCommands(t *testing.T) {
	s := newServer(t)
	for _, in := range []string{
		"*x\r\n", "*1\r\nx", "*1\r\n$x\r\n", "*1\r\n$1\r\nab\r\n", "*65\r\n", "*1\r\n$16385\r\n", "*1\r\n$9999999999\r\n",
		"*3\r\n$16384\r\n" + strings.Repeat("x", 16384) + "\r\n$16384\r\n" + strings.Repeat("x", 16384) + "\r\n$1\r\n",
		strings.Repeat("x", maxLine+1), strings.Repeat("x ", maxArgs+1) + "\n", "*-1\r\n", "*1\n",
	} {
		c := s.connect()
		if c.says("PING\n"+in, "+PONG -ERR Protocol error"); !slices.Equal(c.ops, []string{"register", "close flush"}) {
			t.Errorf("%.20q: %v", in, c.ops)
		}
	}
}

// FuzzParse: a command is found where it ends, and pieces of it never lead to another one.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", "GET a\r\n", "*1\r\n$", "*0\r\n", "\r\n", "*1\r\n$0\r\n\r\nx"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		args, used, err := parse(b, nil)
		if used < 0 || used > len(b) || err != nil && used != 0 || used == 0 && err == nil && len(b) > 2*maxBytes+maxArgs*32 {
			t.Fatalf("%d of %d bytes, %v", used, len(b), err)
		}
		total := 0
		for _, a := range args {
			total += len(a)
		}
		if used > 0 && (total > maxBytes || len(args) > maxArgs) {
			t.Fatalf("%d bytes, %d arguments", total, len(args))
		}
		for i := range min(len(b), 300) {
			part, n, partErr := parse(b[:i], nil)
			switch {
			case n > 0 && (n != used || len(part) != len(args)):
				t.Fatalf("the first %d bytes are a command of %d, and all of them one of %d", i, n, used)
			case n == 0 && partErr == nil && i >= used && used > 0:
				t.Fatalf("the command of %d bytes is not found in %d", used, i)
			case partErr != nil && used > 0:
				t.Fatalf("%v in the first %d bytes of a good command", partErr, i)
			}
		}
		if used == 0 {
			return
		}
		// Written as an array it is the same.
		out := []byte(fmt.Sprintf("*%d\r\n", len(args)))
		for _, a := range args {
			out = appendBulk(out, a)
		}
		again, n, err := parse(out, nil)
		if err != nil || n != len(out) || !slices.EqualFunc(again, args, bytes.Equal) {
			t.Fatalf("%q: %q %v", out, again, err)
		}
	})
}
