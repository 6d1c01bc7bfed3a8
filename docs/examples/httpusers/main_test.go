package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runtime.CompileMain() // as main does
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// guest builds the user's actor for the sandbox.
func guest(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	file := filepath.Join(t.TempDir(), "user.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", file, ".")
	cmd.Dir = "guest"
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// both runs a test with actors in Go and with guests.
func both(t *testing.T, f func(t *testing.T, o options)) {
	o := options{idle: time.Minute, timeout: 30 * time.Second, grace: 30 * time.Second}
	t.Run("native", func(t *testing.T) { f(t, o) })
	t.Run("guest", func(t *testing.T) {
		o.guest = guest(t)
		f(t, o)
	})
}

// request returns the status and the body.
func request(t *testing.T, url, note string) (code int, body string) {
	t.Helper()
	var r *http.Response
	var err error
	if note == "" {
		r, err = http.Get(url)
	} else {
		r, err = http.Post(url, "text/plain", strings.NewReader(note))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, strings.TrimSuffix(string(b), "\n")
}

func expect(t *testing.T, url, note string, code int, body string) {
	t.Helper()
	if c, b := request(t, url, note); c != code || b != body {
		t.Errorf("%q: %d %q instead of %d %q", clip(note), c, b, code, body)
	}
}

func clip(s string) string { return s[:min(len(s), 20)] }

// serve starts a server whose clock is the test's.
func serve(t *testing.T, p host.Props, timeout time.Duration) (*host.System, *host.VirtualClock, string) {
	t.Helper()
	clock := host.NewVirtualClock(time.Unix(0, 0))
	sys, err := host.New(host.NewConfig("notes").WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer((&server{sys: sys, user: p, timeout: timeout}).handler())
	t.Cleanup(func() {
		web.Close()
		_ = sys.Close(context.Background())
	})
	return sys, clock, web.URL
}

func TestNotes(t *testing.T) {
	both(t, func(t *testing.T, o options) {
		p, closeEngine, err := userProps(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(closeEngine)
		sys, clock, url := serve(t, p, o.timeout)
		ann, bob := url+"/users/ann/notes", url+"/users/bob/notes"
		expect(t, ann, "", 200, "")
		expect(t, ann, "buy milk", 200, "buy milk")
		expect(t, bob, "sleep", 200, "sleep")
		expect(t, ann, "sell milk", 200, "buy milk\nsell milk")
		expect(t, ann, strings.Repeat("x", 1001), 422, "a note has at most 1000 bytes")
		expect(t, url+"/users/"+strings.Repeat("x", 300)+"/notes", "", 404, "not a user's name")

		// A failure costs this user's state, and nobody else's.
		expect(t, ann, "a\x00b", 502, "the request has failed")
		expect(t, ann, "", 200, "")
		expect(t, bob, "", 200, "sleep")

		// Who is idle ends; the next request finds a new actor.
		var ends []<-chan struct{}
		for _, name := range []string{"ann", "bob"} {
			ref, err := sys.Lookup("/user/" + name)
			if err != nil {
				t.Fatal(err)
			}
			end, err := sys.Ended(ref)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		clock.Advance(o.idle + time.Second)
		for _, end := range ends {
			<-end
		}
		expect(t, bob, "", 200, "")
	})
}

// What a server says when an actor does not answer, and when it has too much to do.
func TestOverload(t *testing.T) {
	release := make(chan struct{})
	began := make(chan struct{}, 10)
	p := host.Func(func(ctx *host.Context, m host.Message) error {
		ctx.Block()
		began <- struct{}{}
		<-release
		return ctx.Reply("done")
	}).WithLimits(host.Limits{Mailbox: 1})
	_, _, url := serve(t, p, 30*time.Second)
	url += "/users/ann/notes"

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	impatient, giveUp := context.WithCancel(ctx)
	var open sync.WaitGroup
	for _, c := range []context.Context{ctx, impatient} {
		open.Go(func() {
			r, err := http.NewRequestWithContext(c, "GET", url, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if a, err := http.DefaultClient.Do(r); err == nil {
				a.Body.Close()
			} else if c == ctx {
				t.Error(err)
			}
		})
		if c == ctx {
			<-began
		}
	}
	// The first is handled and the second waits: what comes now is too much.
	for ctx.Err() == nil {
		code := 0
		c, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		if r, err := http.NewRequestWithContext(c, "GET", url, nil); err != nil {
			t.Error(err)
		} else if a, err := http.DefaultClient.Do(r); err == nil {
			code = a.StatusCode
			if a.Header.Get("Retry-After") == "" {
				t.Error("when to try again is not said")
			}
			a.Body.Close()
		}
		stop()
		if code == http.StatusTooManyRequests {
			break
		}
	}
	if ctx.Err() != nil {
		t.Error("nothing was refused")
	}
	giveUp()
	close(release)
	open.Wait()
}

func TestTimeout(t *testing.T) {
	_, _, url := serve(t, host.Func(func(*host.Context, host.Message) error { return nil }), 20*time.Millisecond)
	expect(t, url+"/users/ann/notes", "", 504, "no answer in time")
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{fmt.Errorf("%w: %w", host.ErrTimeout, context.DeadlineExceeded), 504},
		{context.DeadlineExceeded, 504}, // while a name was waited for
		{host.ErrMailboxFull, 429}, {host.ErrTooManyChildren, 503}, {host.ErrClosed, 503}, {host.ErrStopped, 503},
		{host.ErrRestarting, 503}, {&host.ReplyError{}, 422}, {&host.TurnError{}, 502}, {host.ErrBadName, 404}, {io.EOF, 500},
	} {
		if code, text := status(c.err); code != c.code || text == "" && code != 422 {
			t.Errorf("%v: %d %q instead of %d", c.err, code, text, c.code)
		}
	}
}

// The whole program: it serves, it logs, and at its end it answers what is open.
func TestRun(t *testing.T) {
	both(t, func(t *testing.T, o options) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var log lockedBuffer
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, l, o, slog.New(slog.NewTextHandler(&log, nil))) }()
		url := "http://" + l.Addr().String() + "/users/ann/notes"
		expect(t, url, "buy milk", 200, "buy milk")
		expect(t, url, "a\x00b", 502, "the request has failed")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if s := log.String(); !strings.Contains(s, "a note with a zero byte") || !strings.Contains(s, "actor=/user/ann") {
			t.Errorf("the log has nothing of the failure:\n%s", s)
		}
		if _, err := http.Get(url); err == nil {
			t.Error("it goes on")
		}
	})
}

func TestGuestThatIsNone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), l, options{guest: "main.go"}, slog.Default()); err == nil {
		t.Error("a module of Go source")
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
