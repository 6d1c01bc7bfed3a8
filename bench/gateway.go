package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// HTTP at full load: a server in a process of its own, and connections that send the next
// request when the last one was answered. A part of the requests makes the handler crash.
// Every answer is checked: what crashed must be 502, with the id of a report that the
// server has made; all others must be right.

// served is what a server says at its end.
type served struct {
	Reports []string      // ids of crash reports; nil: it makes none
	CPU     time.Duration // since it was ready
}

// loaded is what a run has measured.
type loaded struct {
	Bench    string  `json:"bench"`
	Who      string  `json:"who"`
	Seconds  float64 `json:"seconds"`
	Conns    int     `json:"connections"`
	Requests int     `json:"requests"`
	Crashed  int     `json:"crashed"`
	PerSec   float64 `json:"requests_per_s"`
	CPU      float64 `json:"cpu_us"` // of the server, a request
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	Max      float64 `json:"max_us"`
	Wrong    int     `json:"wrong"`   // answers that are not what they must be
	Missing  int     `json:"missing"` // requests without an answer
	Strange  int     `json:"strange"` // 502 whose report nobody has made
	What     string  `json:"what,omitempty"`
}

// guestsFolder is a folder with the guests of the benchmarks that are about connections, until it is removed.
func guestsFolder() (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", "bench"); err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if err := gatewayGuests(dir); err != nil {
		remove()
		return "", nil, err
	}
	return dir, remove, nil
}

func gatewayLoad(args []string) error {
	flags := flag.NewFlagSet("gateway", flag.ExitOnError)
	quick := flags.Bool("quick", false, "3 s each")
	long := flags.Duration("time", time.Minute, "of each run")
	conns := flags.Int("conns", 64, "connections")
	crash := flags.Float64("crash", 0.01, "the part of the requests that crash")
	who := flags.String("who", "", "servers whose name matches")
	rounds := flags.Int("rounds", 1, "the servers take turns")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		*long = 3 * time.Second
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
	bad := 0
	for range *rounds {
		for _, s := range gatewayServers {
			if !match.MatchString(s.name) {
				continue
			}
			if why := s.lacks(); why != "" {
				fmt.Fprintf(os.Stderr, "%s: left out, %s\n", s.name, why)
				continue
			}
			r, err := load(dir, s.name, *conns, *long, *crash)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			b, err := json.Marshal(r)
			if err != nil {
				return err
			}
			fmt.Println(string(b))
			if s.ours {
				bad += r.Wrong + r.Missing + r.Strange
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d requests were not answered as they must be", bad)
	}
	return nil
}

// load runs one server under load.
func load(dir, name string, conns int, long time.Duration, crash float64) (*loaded, error) {
	server, err := startServer(dir, name)
	if err != nil {
		return nil, err
	}
	defer server.kill()
	address, of := server.address, aUser(crash)
	warm, err := drive(address, conns, min(long/4, time.Second), of) // so that all is warm
	if err != nil {
		return nil, err
	}
	r, err := drive(address, conns, long, of)
	if err != nil {
		return nil, err
	}
	s, err := server.end()
	if err != nil {
		return nil, err
	}
	res := r.result()
	res.Who = name
	res.CPU = float64(s.CPU.Microseconds()) / float64(len(r.took)+len(warm.took))
	if s.Reports != nil {
		known := make(map[string]bool, len(s.Reports))
		for _, id := range s.Reports {
			known[id] = true
		}
		for _, id := range r.reports {
			if !known[id] {
				res.Strange++
			}
		}
	}
	return res, nil
}

// server is a process that serves.
type server struct {
	cmd     *exec.Cmd
	in      io.Closer
	lines   *bufio.Reader
	address string
}

// startServer starts one of gatewayServers and waits until it listens.
func startServer(dir, name string, env ...string) (*server, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, "serve", name)
	cmd.Env = append(append(os.Environ(), guestsVariable+"="+dir), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, in: in, lines: bufio.NewReaderSize(out, 64<<20)}
	if s.address, err = s.lines.ReadString('\n'); err != nil {
		return nil, errors.Join(err, cmd.Wait())
	}
	s.address = strings.TrimSpace(s.address)
	return s, nil
}

// end makes it end, and is what it says then.
func (s *server) end() (x served, err error) {
	if err := s.in.Close(); err != nil {
		return x, err
	}
	if err := json.NewDecoder(s.lines).Decode(&x); err != nil {
		return x, err
	}
	return x, s.cmd.Wait()
}

func (s *server) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// asking appends the n-th request of a connection, and what its answer must be; boom says that it crashes.
type asking func(request, want []byte, n int, r *rand.Rand) (_, _ []byte, boom bool)

// aUser asks for a user, or crashes the handler.
func aUser(crash float64) asking {
	return func(request, want []byte, n int, r *rand.Rand) (_, _ []byte, boom bool) {
		request = append(request, "GET "...)
		if boom = r.Float64() < crash; boom {
			request = append(request, "/boom"...)
		} else {
			request = append(request, "/users/u"...)
			request = strconv.AppendInt(request, int64(n), 10)
			request = append(request, "?q=x"...)
			want = append(want, `{"id":"u`...)
			want = strconv.AppendInt(want, int64(n), 10)
			want = append(want, `","q":"x"}`...)
		}
		return append(request, " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"...), want, boom
	}
}

// drove is what the connections have seen.
type drove struct {
	took    []time.Duration
	reports []string
	wrong   int
	missing int
	what    string
	long    time.Duration
	conns   int
}

func (d *drove) result() *loaded {
	slices.Sort(d.took)
	at := func(q float64) float64 {
		if len(d.took) == 0 {
			return 0
		}
		return float64(d.took[min(int(q*float64(len(d.took))), len(d.took)-1)].Nanoseconds()) / 1e3
	}
	return &loaded{
		Bench: "gateway", Seconds: d.long.Seconds(), Conns: d.conns, Requests: len(d.took), Crashed: len(d.reports), PerSec: float64(len(d.took)) / d.long.Seconds(),
		P50: at(0.5), P99: at(0.99), Max: at(1), Wrong: d.wrong, Missing: d.missing, What: d.what,
	}
}

// drive sends requests for a time.
func drive(address string, conns int, long time.Duration, of asking) (*drove, error) {
	all := &drove{conns: conns}
	var mu sync.Mutex
	var wait sync.WaitGroup
	begun := time.Now()
	end := begun.Add(long)
	for i := range conns {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		wait.Go(func() {
			one := &drove{took: make([]time.Duration, 0, 1<<16)}
			one.converse(c, address, end, of, rand.New(rand.NewPCG(uint64(i), 1)))
			mu.Lock()
			defer mu.Unlock()
			all.took = append(all.took, one.took...)
			all.reports = append(all.reports, one.reports...)
			all.wrong += one.wrong
			all.missing += one.missing
			if all.what == "" {
				all.what = one.what
			}
		})
	}
	wait.Wait()
	all.long = time.Since(begun)
	return all, nil
}

// converse sends requests over one connection, and a new one if it is closed.
func (d *drove) converse(c net.Conn, address string, end time.Time, of asking, r *rand.Rand) {
	in := bufio.NewReaderSize(c, 16<<10)
	defer func() { c.Close() }()
	var request, want []byte
	for n := 0; ; n++ {
		now := time.Now()
		if !now.Before(end) {
			return
		}
		var boom bool
		request, want, boom = of(request[:0], want[:0], n, r)
		_ = c.SetDeadline(now.Add(30 * time.Second))
		_, err := c.Write(request)
		var a httpAnswer
		if err == nil {
			a, err = readAnswer(in)
		}
		if err != nil {
			d.missing++
			d.note("no answer: " + err.Error())
			c.Close()
			next, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			c, in = next, bufio.NewReaderSize(next, 16<<10)
			continue
		}
		d.took = append(d.took, time.Since(now))
		switch {
		case boom && a.status == 502:
			d.reports = append(d.reports, a.report)
		case boom || a.status != 200 || !bytes.Equal(a.body, want):
			d.wrong++
			d.note(fmt.Sprintf("%s: %d %.200q", request[:40], a.status, a.body))
		}
		if a.close {
			d.note("closed")
		}
	}
}

func (d *drove) note(what string) {
	if d.what == "" {
		d.what = what
	}
}

// httpAnswer is a response.
type httpAnswer struct {
	status int
	report string
	body   []byte // in the reader's buffer
	close  bool
}

// readAnswer reads a response with a length.
func readAnswer(in *bufio.Reader) (a httpAnswer, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	if len(line) < 12 {
		return a, fmt.Errorf("%q", line)
	}
	a.status, _ = strconv.Atoi(string(line[9:12]))
	length := -1
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return a, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		switch name, value, _ := bytes.Cut(line, []byte(": ")); string(name) {
		case "Content-Length":
			length, _ = strconv.Atoi(string(value))
		case "X-Crash-Report":
			a.report = string(value)
		case "Connection":
			a.close = string(value) == "close"
		}
	}
	if length < 0 {
		return a, errors.New("no Content-Length")
	}
	if a.body, err = in.Peek(length); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return a, err
	}
	_, err = in.Discard(length)
	return a, err
}
