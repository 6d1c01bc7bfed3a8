package bundle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/rerun"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// recordings is how many runs TestRecordingsOfSamples records; RECORDINGS has another number, see make recordings.
func recordings(t *testing.T) int {
	text := os.Getenv("RECORDINGS")
	if text == "" {
		return thorough.Of(thorough.SlowOf(1, len(recordedSamples)), 10*len(recordedSamples))
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("RECORDINGS=%q is no number", text)
	}
	return n
}

// recordedSample is a sample, and what it is sent.
type recordedSample struct {
	name string
	vars map[string]string
	// load sends messages until it returns, from several goroutines. before, if set, prepares what is outside.
	before func(t *testing.T, vars map[string]string)
	load   func(x *recordedRun)
}

// The samples whose actors are recorded: accounts has durable ones, which are not.
var recordedSamples = []recordedSample{
	{name: "hello", load: func(x *recordedRun) {
		x.from(4, 200, func(r *rand.Rand) {
			x.send("greeter", []any{"Ada", "Grace", "Barbara", "Ada", "Grace", 42}[r.IntN(6)])
		})
	}},
	{name: "ledger", load: func(x *recordedRun) {
		names := []string{"alice", "bob", "carol", "dave", "erin", "frank", "grace"}
		x.from(4, 200, func(r *rand.Rand) {
			x.send("gateway", map[string]any{"id": r.IntN(1 << 30), "from": names[r.IntN(7)], "to": names[r.IntN(7)], "amount": r.IntN(200)})
		})
	}},
	{name: "flaky", load: func(x *recordedRun) {
		trouble := []string{"busy", "garbage", "crash", "busy", "silent"}
		x.from(3, 20, func(r *rand.Rand) {
			some := []string{}
			for range r.IntN(4) {
				some = append(some, trouble[r.IntN(len(trouble))])
			}
			to := []string{"xebia", "rxjava", "zaqar-linear", "zaqar-geometric", "actor-ts"}[r.IntN(5)]
			x.send(to, map[string]any{"id": r.IntN(1000), "trouble": some})
		})
	}},
	{name: "chat", vars: map[string]string{"LISTEN": "127.0.0.1:0"}, load: func(x *recordedRun) {
		open := func(c host.Ref, name string, n int) {
			request := []any{"http", []any{"GET", "/rooms/lobby", "GET /rooms/lobby", nil, "name=" + name, []byte{}, nil, nil, 0, "", strconv.Itoa(n), nil}}
			x.sendFrom(c, "lobby", []any{"ws.open", map[string]any{"conn": c.UID(), "protocols": []string{}, "request": request}})
		}
		var all []host.Ref
		for n := range 4 {
			c := x.outside(fmt.Sprint("conn", n))
			all = append(all, c)
			open(c, fmt.Sprint("guest", n), n)
		}
		x.from(4, 60, func(r *rand.Rand) {
			c := all[r.IntN(len(all))]
			switch r.IntN(20) {
			case 0:
				x.sendFrom(c, "lobby", []any{"ws.text", "/crash"})
			case 1:
				x.sendFrom(c, "lobby", []any{"ws.close", map[string]any{"code": 1006, "reason": ""}})
			case 2:
				open(c, fmt.Sprint("again", r.IntN(9)), r.IntN(100))
			default:
				x.sendFrom(c, "lobby", []any{"ws.text", []string{"hello", "  how are\n you ", "", "a longer line of text"}[r.IntN(4)]})
			}
		})
	}},
	{name: "crawler", before: func(t *testing.T, vars map[string]string) {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			for n := range 4 {
				fmt.Fprintf(w, "<title>Page</title><a href=\"/%d%s\">more</a>", n, r.URL.Path[:min(len(r.URL.Path), 3)])
			}
		}))
		t.Cleanup(site.Close)
		vars["site"] = site.URL
	}, load: func(x *recordedRun) {
		x.send("frontier", map[string]any{"seeds": []string{x.vars["site"] + "/"}, "pause_ms": 1})
		x.from(2, 30, func(r *rand.Rand) { x.send("index", []string{"page", "more"}[r.IntN(2)]) })
	}},
	{name: "webhooks", vars: map[string]string{"WEBHOOK_SECRET_SHOP": "whsec_c2VjcmV0LW9mLXRoZS1zaG9w", "WEBHOOK_SECRET_BANK": "whsec_c2VjcmV0LW9mLXRoZS1iYW5r", "FIRST_PAUSE": "5ms", "LONGEST_PAUSE": "20ms", "HTTP": "127.0.0.1:0", "LISTEN": "127.0.0.1:0"},
		before: func(t *testing.T, vars map[string]string) {
			n := 0
			var mu sync.Mutex
			to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if n++; n%3 == 0 {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}))
			t.Cleanup(to.Close)
			vars["DESTINATION"] = to.URL
			vars["OPERATORS"] = filepath.Join(t.TempDir(), "operators")
			operator := "operator:$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy\n" // of a password that is not needed
			if err := os.WriteFile(vars["OPERATORS"], []byte(operator), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		load: func(x *recordedRun) {
			giver := x.outside("giver") // which the queue watches
			x.from(3, 30, func(r *rand.Rand) {
				x.sendFrom(giver, "queue", map[string]any{"source": []string{"shop", "bank"}[r.IntN(2)], "delivery": fmt.Sprint("d-", r.IntN(60)), "kind": "application/json", "body": []byte(`{"id":1}`)})
			})
		}},
	{name: "redis", before: func(t *testing.T, vars map[string]string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		vars["LISTEN"] = l.Addr().String()
		_ = l.Close()
	}, load: func(x *recordedRun) {
		commands := []string{"SET k%d 7\r\n", "INCR k%d\r\n", "GET k%d\r\n", "DEL k%d m\r\n", "PING\r\n", "nonsense %d\r\n", "SET k%d v EX 10\r\n"}
		x.from(4, 1, func(r *rand.Rand) {
			c := x.dial()
			if c == nil {
				return
			}
			defer c.Close()
			for range 150 {
				text := commands[r.IntN(len(commands))]
				if text != "PING\r\n" {
					text = fmt.Sprintf(text, r.IntN(20))
				}
				if _, err := c.Write([]byte(text)); err != nil {
					return // it is ended after nonsense
				}
			}
			_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			_, _ = c.Read(make([]byte, 64<<10))
		})
	}},
}

// recordedRun is a run of a sample.
type recordedRun struct {
	t    *testing.T
	sys  *host.System
	seed uint64
	vars map[string]string
}

// from calls f so many times on each of some goroutines.
func (x *recordedRun) from(goroutines, times int, f func(*rand.Rand)) {
	var some sync.WaitGroup
	for g := range goroutines {
		some.Go(func() {
			r := rand.New(rand.NewPCG(x.seed, uint64(g)))
			for range times {
				f(r)
			}
		})
	}
	some.Wait()
}

func (x *recordedRun) send(to string, v any) { x.sendFrom(host.Ref{}, to, v) }

func (x *recordedRun) sendFrom(from host.Ref, to string, v any) {
	b, err := cbor.Marshal(v)
	if err != nil {
		x.t.Error(err)
		return
	}
	ref, err := x.sys.Lookup("/user/" + to)
	if err != nil {
		return // it may have ended
	}
	if err := x.sys.TellFrom(from, ref, host.Raw(b)); err != nil && !errors.Is(err, host.ErrMailboxFull) && !errors.Is(err, host.ErrStopped) && !errors.Is(err, host.ErrRestarting) {
		x.t.Error(err)
	}
}

// dial is a connection to a server that may not listen yet; nil: there is none, and the test has failed.
func (x *recordedRun) dial() net.Conn {
	for end := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("tcp", x.vars["LISTEN"])
		if err == nil {
			return c
		}
		if time.Now().After(end) {
			x.t.Error(err)
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}

// outside is an actor in Go that is told things.
func (x *recordedRun) outside(name string) host.Ref {
	ref, err := x.sys.Spawn(name, host.Func(func(*host.Context, host.Message) error { return nil }))
	if err != nil {
		x.t.Fatal(err)
	}
	return ref
}

// Runs of the samples under load, on all workers and by the machine's clock, come out equal on one worker, turn by turn. What a
// guest can notice, and a recording does not have, would show here.
func TestRecordingsOfSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the samples")
	}
	if guesttest.Compiler() != "go" {
		t.Skip("the samples are for Go")
	}
	total, turns, failures, bytes := recordings(t), 0, 0, int64(0)
	for n := range recordedSamples {
		s := &recordedSamples[n]
		t.Run(s.name, func(t *testing.T) {
			b := openSample(t, s)
			for seed := n; seed < total; seed += len(recordedSamples) {
				r, size := b.record(t, uint64(seed))
				turns += r.Turns
				failures += r.Failed
				bytes += size
				t.Logf("seed %d: %d turns of %d incarnations, %d failures, %d bytes, not recorded: %v", seed, r.Turns, r.Lives, r.Failed, size, r.NotRecorded)
			}
		})
	}
	t.Logf("%d recordings, %d turns, %d failures, %d bytes", total, turns, failures, bytes)
}

// openedSample is a sample that is started several times.
type openedSample struct {
	*recordedSample
	*Bundle
	now   map[string]string
	state string // folder of its services
}

func openSample(t *testing.T, s *recordedSample) *openedSample {
	x := &openedSample{recordedSample: s, now: map[string]string{}, state: t.TempDir()}
	for k, v := range s.vars {
		x.now[k] = v
		if len(k) > 8 && k[:8] == "WEBHOOK_" {
			t.Setenv(k, v)
		}
	}
	if s.before != nil {
		s.before(t, x.now)
	}
	m, err := LoadWith(filepath.Join("../../samples", s.name), func(name string) (string, bool) { v, ok := x.now[name]; return v, ok }, all.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Allow: func([]Reach) error { return nil }, CacheDir: servicetest.CacheDir(), Compiler: "go", NoStore: true}
	o.StateDir = func(*Manifest) (string, error) { return x.state, nil }
	if x.Bundle, err = Open(t.Context(), m, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return x
}

// record records a run, and repeats it.
func (s *openedSample) record(t *testing.T, seed uint64) (*rerun.Report, int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.wrec")
	tape, err := recorder.Open(recorder.Config{Path: path, Ended: func(err error) { t.Errorf("the recording has ended: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	sys, err := s.Start(func(c host.Config) host.Config {
		return c.WithWorkers(max(4, goruntime.NumCPU())).WithRecording(tape)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := &recordedRun{t: t, sys: sys, seed: seed, vars: s.now}
	s.load(run)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = sys.Idle(ctx) // timers may keep it busy
	if err := errors.Join(sys.Close(context.Background()), tape.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	of, err := recorder.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	r, err := rerun.Run(t.Context(), s.engine, of, rerun.Options{})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if r.Difference != nil || of.Missing != nil {
		keep := filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d.wrec", s.name, seed))
		_ = os.WriteFile(keep, b, 0o600)
		t.Errorf("seed %d, after %d turns: %v, %v; the recording is in %s", seed, r.Turns, r.Difference, of.Missing, keep)
	}
	if r.Turns < 5 {
		t.Errorf("seed %d: only %d turns were recorded: %v", seed, r.Turns, r.NotRecorded)
	}
	return r, int64(len(b))
}
