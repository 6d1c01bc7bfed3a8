package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/tcp"
)

// An echo over TCP: servers in processes of their own, whose clients send the next message when the last one has come back, and
// then many clients that say nothing.

// echoServers listen on an address. The first one is the baseline.
var echoServers = []struct {
	name   string
	listen func(address string) error
}{
	{"goroutines", echoByGoroutines},
	{"actor", func(address string) error {
		return echoBy(address, func(*product) host.Props { return host.Func(echoActor()) })
	}},
	{"guest", func(address string) error {
		return echoBy(address, func(p *product) host.Props {
			return host.Guest(p.image, "echo").WithArgs(address)
		})
	}},
}

// echoed is what a server has achieved.
type echoed struct {
	Bench    string  `json:"bench"`
	Who      string  `json:"who"`
	Conns    int     `json:"connections"`
	Bytes    int     `json:"bytes"` // of a message
	PerSec   float64 `json:"echoes_per_s"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	CPU      float64 `json:"cpu_us"` // of the server, a message
	Rate     float64 `json:"ratio"`  // to the baseline of the round
	Idle     int     `json:"idle"`   // connections that say nothing
	Resident float64 `json:"resident_mb"`
	Each     float64 `json:"idle_kb"` // a connection
	Memory   float64 `json:"memory_ratio"`
	EachTo   float64 `json:"idle_ratio"`
}

func sockets(args []string) error {
	flags := flag.NewFlagSet("sockets", flag.ExitOnError)
	quick := flags.Bool("quick", false, "1 s each, 500 idle connections")
	long := flags.Duration("time", 10*time.Second, "of each run")
	conns := flags.Int("conns", 64, "connections")
	size := flags.Int("bytes", 64, "of a message")
	idle := flags.Int("idle", 10_000, "connections that say nothing; each takes two file descriptors")
	who := flags.String("who", "", "servers whose name matches, besides the baseline")
	rounds := flags.Int("rounds", 3, "the servers take turns")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		*long, *idle, *rounds = time.Second, 500, 1
	}
	match, err := regexp.Compile(*who)
	if err != nil {
		return err
	}
	dir, remove, err := guestsFolder()
	if err != nil {
		return err
	}
	defer remove()
	for range *rounds {
		if err := echoRound(dir, match, *conns, *size, *idle, *long); err != nil {
			return err
		}
	}
	return nil
}

// slice is how long a server has the machine before it is the next one's turn: what else runs there then slows all of them alike.
const slice = 250 * time.Millisecond

// echoRound measures the servers beside each other, in turns.
func echoRound(dir string, match *regexp.Regexp, conns, size, idle int, long time.Duration) (err error) {
	var all []*echoServer
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.close())
		}
	}()
	for i, s := range echoServers {
		if i > 0 && !match.MatchString(s.name) {
			continue
		}
		x, err := startEcho(dir, s.name)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, x)
		if err := x.dial(conns); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if _, err := x.talk(size, min(long/4, time.Second)); err != nil { // so that all is warm
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, s := range all {
		if s.before, _, err = s.look(); err != nil {
			return err
		}
	}
	turns := max(1, int(long/slice))
	for range turns {
		for _, s := range all {
			took, err := s.talk(size, long/time.Duration(turns))
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			s.took = append(s.took, took...)
		}
	}
	var base *echoed
	for _, s := range all {
		e, err := s.measured(conns, size, idle, long)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if base == nil {
			base = e
		}
		e.Rate, e.Memory, e.EachTo = e.PerSec/base.PerSec, e.Resident/base.Resident, e.Each/base.Each
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		fmt.Println(string(b))
	}
	return nil
}

// echoServer is a server in a process of its own, and its clients.
type echoServer struct {
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   *bufio.Reader
	address string
	conns   []net.Conn
	before  time.Duration // of the processor, before it is measured
	took    []time.Duration
}

func startEcho(dir, name string) (*echoServer, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &echoServer{name: name, cmd: exec.Command(exe, "echo", name)}
	s.cmd.Env = append(os.Environ(), guestsVariable+"="+dir)
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.lines = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if s.address, err = s.lines.ReadString('\n'); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.address = strings.TrimSpace(s.address)
	return s, nil
}

// close ends the server, and waits for it.
func (s *echoServer) close() error {
	for _, c := range s.conns {
		_ = c.Close()
	}
	_ = s.in.Close()
	return s.cmd.Wait()
}

// look is what the server has used.
func (s *echoServer) look() (cpu time.Duration, resident int64, err error) {
	if _, err = fmt.Fprintln(s.in); err == nil {
		_, err = fmt.Fscan(s.lines, &cpu, &resident)
	}
	return
}

func (s *echoServer) dial(n int) error {
	for range n {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			return err
		}
		s.conns = append(s.conns, c)
	}
	return nil
}

// talk has the clients each send a message and wait until it has come back, for a time.
func (s *echoServer) talk(size int, long time.Duration) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wait sync.WaitGroup
	end := time.Now().Add(long)
	for i, c := range s.conns {
		wait.Go(func() {
			message, back := bytes.Repeat([]byte{byte(i)}, size), make([]byte, size)
			var took []time.Duration
			var err error
			for now := time.Now(); now.Before(end) && err == nil; {
				err = say(c, message, back)
				then := time.Now()
				took = append(took, then.Sub(now))
				now = then
			}
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, took...), errors.Join(failed, err)
		})
	}
	wait.Wait()
	if len(all) == 0 {
		failed = errors.Join(failed, errors.New("nothing came back"))
	}
	return all, failed
}

// measured is what the server has achieved, once it has been asked for what many clients cost that say nothing.
func (s *echoServer) measured(conns, size, idle int, long time.Duration) (*echoed, error) {
	after, without, err := s.look()
	if err != nil {
		return nil, err
	}
	many := make([]net.Conn, idle)
	defer func() {
		for _, c := range many {
			if c != nil {
				_ = c.(*net.TCPConn).SetLinger(0) // no port waits
				_ = c.Close()
			}
		}
	}()
	for i := range many {
		if many[i], err = net.Dial("tcp", s.address); err != nil {
			return nil, err
		}
		if err := say(many[i], []byte("once"), make([]byte, 4)); err != nil { // each has been used
			return nil, err
		}
	}
	_, with, err := s.look()
	if err != nil {
		return nil, err
	}
	slices.Sort(s.took)
	at := func(q float64) float64 { return float64(s.took[int(q*float64(len(s.took)-1))].Nanoseconds()) / 1e3 }
	return &echoed{
		Bench: "sockets", Who: s.name, Conns: conns, Bytes: size, PerSec: float64(len(s.took)) / long.Seconds(), P50: at(0.5), P99: at(0.99),
		CPU: float64((after - s.before).Nanoseconds()) / 1e3 / float64(len(s.took)), Idle: idle, Resident: float64(with) / 1e6, Each: float64(with-without) / 1e3 / float64(max(idle, 1)),
	}, nil
}

func say(c net.Conn, message, back []byte) error {
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write(message); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, back); err != nil {
		return err
	}
	if !bytes.Equal(back, message) {
		return errors.New("something else came back")
	}
	return nil
}

// echoServe serves, and says for each line of its input what it has used.
func echoServe(args []string) error {
	for _, s := range echoServers {
		if len(args) != 1 || s.name != args[0] {
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
		if err != nil {
			return err
		}
		address := l.Addr().String()
		_ = l.Close()
		if err := s.listen(address); err != nil {
			return err
		}
		for {
			c, err := net.Dial("tcp", address)
			if err == nil {
				_ = c.Close()
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		stop, err := profileCPU()
		if err != nil {
			return err
		}
		defer stop()
		fmt.Println(address)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			cpu := processTime()
			debug.FreeOSMemory()
			resident, err := residentBytes()
			if err != nil {
				return err
			}
			fmt.Println(int64(cpu), resident)
		}
		return nil
	}
	return fmt.Errorf("no such server: %v", args)
}

// residentBytes is the memory that this process has, without what it shares.
func residentBytes() (int64, error) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(b), &size, &resident, &shared); err != nil {
		return 0, err
	}
	return resident * int64(os.Getpagesize()), nil
}

func echoByGoroutines(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 4096)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					if _, err := c.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return nil
}

// echoBy is a system with an actor that listens.
func echoBy(address string, props func(*product) host.Props) error {
	code, err := guestFile("go")
	if err != nil {
		return err
	}
	p, err := newProductWith(context.Background(), code, 0, nil)
	if err != nil {
		return err
	}
	if _, err := tcp.Service.Start(p.sys, &service.Env{}, nil); err != nil {
		return err
	}
	grant := tcp.Service.Grant(tcp.Grant{Listen: []string{"127.0.0.1:*"}, Connections: 20_000, Idle: time.Hour}, service.Bounds{})
	ref, err := p.sys.Spawn("echo", props(p).WithGrant(tcp.Name, grant).WithLimits(host.Limits{Mailbox: 40_000, MailboxBytes: 64 << 20}))
	if err != nil {
		return err
	}
	return p.sys.Tell(ref, address)
}

// echoActor returns what clients send. It is told where to listen.
func echoActor() func(*host.Context, host.Message) error {
	type conn struct{ handled uint64 }
	conns := map[abi.Ref]*conn{}
	null := func(op string) host.Raw {
		w := abi.NewWriter(nil)
		w.Array(2)
		w.Text(op)
		w.Null()
		return w.Bytes()
	}
	register := null("register")
	var w abi.Writer
	return func(ctx *host.Context, m host.Message) error {
		r := abi.NewReader(m.Payload)
		if r.Peek() == abi.TypeText {
			to, ok := ctx.Service(tcp.Name)
			if !ok {
				return errors.New("there is no service tcp")
			}
			return ctx.Ask(to, []any{"listen", map[string]any{"address": r.Text()}}, 1, time.Second)
		}
		if m.Kind != abi.KindMessage || r.Array() != 2 {
			return nil
		}
		c := conns[m.Sender.UID()]
		switch string(r.TextBytes()) {
		case tcp.Connected:
			conns[m.Sender.UID()] = &conn{}
			return ctx.Tell(m.Sender, register)
		case tcp.Data:
			b := r.ByteString()
			w.Reset(w.Bytes()[:0])
			w.Array(2)
			w.Text("write")
			w.ByteString(b)
			if err := ctx.Tell(m.Sender, host.Raw(w.Bytes())); err != nil || c == nil {
				return err
			}
			if c.handled += uint64(len(b)) + tcp.Overhead; c.handled >= tcp.DefaultWindow/2 {
				w.Reset(w.Bytes()[:0])
				w.Array(2)
				w.Text("more")
				w.Uint(c.handled)
				c.handled = 0
				return ctx.Tell(m.Sender, host.Raw(w.Bytes()))
			}
		case tcp.Closed:
			delete(conns, m.Sender.UID())
		}
		return nil
	}
}
