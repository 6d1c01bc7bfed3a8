package testkit_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/testkit"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failing is a test that fails without failing this one.
type failing struct {
	testing.TB
	mu       sync.Mutex
	helpers  map[string]bool
	said     []string
	file     string // of the line at which a failure is reported
	line     int
	logs     []string
	cleanups []func()
}

func (f *failing) Helper() {
	pcs := make([]uintptr, 1)
	runtime.Callers(2, pcs)
	frame, _ := runtime.CallersFrames(pcs).Next()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.helpers[frame.Function] = true
}

func (f *failing) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

func (f *failing) Logf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs = append(f.logs, fmt.Sprintf(format, args...))
}

func (f *failing) Errorf(format string, args ...any) { f.say(fmt.Sprintf(format, args...)) }
func (f *failing) Fatal(args ...any)                 { f.say(fmt.Sprint(args...)); runtime.Goexit() }
func (f *failing) Fatalf(format string, args ...any) {
	f.say(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// say notes a failure at the first line, from within, that is of no helper: as package testing does.
func (f *failing) say(text string) {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, text)
	for {
		frame, more := frames.Next()
		if !f.helpers[frame.Function] || !more {
			f.file, f.line = filepath.Base(frame.File), frame.Line
			return
		}
	}
}

// fails runs f, which must fail its test once, with all of these texts, at a line of f itself.
func fails(t *testing.T, f func(testing.TB), wants ...string) *failing {
	t.Helper()
	_, file, line, _ := runtime.Caller(1)
	r := &failing{TB: t, helpers: map[string]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	if len(r.said) != 1 {
		t.Errorf("the test has said %q", r.said)
		return r
	}
	for _, want := range wants {
		if !strings.Contains(r.said[0], want) {
			t.Errorf("the test has said\n%s\nwithout %q", r.said[0], want)
		}
	}
	if r.file != filepath.Base(file) || r.line < line || r.line > line+30 {
		t.Errorf("the failure is at %s:%d, not in the test at line %d\n%s", r.file, r.line, line, r.said[0])
	}
	return r
}

// echo answers with what it is sent, but for the orders "fail", "panic" and "stop".
var echo = host.Func(func(ctx *host.Context, m host.Message) error {
	var text string
	if m.Kind != abi.KindMessage {
		return host.ErrUnhandled
	}
	_ = m.Decode(&text)
	switch text {
	case "fail":
		return errors.New("told to")
	case "panic":
		panic("told to")
	case "stop":
		ctx.Stop(ctx.Self())
		return nil
	case "odd":
		return host.ErrUnhandled
	}
	return ctx.Reply(host.Raw(m.Payload))
})

// tally counts messages, and answers with the number; "fail" fails.
type tally struct{ n int }

func (c *tally) Receive(ctx *host.Context, m host.Message) error {
	var text string
	_ = m.Decode(&text)
	c.n++
	switch text {
	case "fail":
		return errors.New("told to")
	case "panic":
		panic("told to")
	}
	return ctx.Reply(c.n)
}

// later sends text to an actor after a delay.
func later(k *testkit.Kit, to host.Ref, d time.Duration, texts ...string) {
	k.Spawn("", host.Native(func() host.Actor { return &clockwork{to, texts, d} }))
}

type clockwork struct {
	to    host.Ref
	texts []string
	every time.Duration
}

func (c *clockwork) Started(ctx *host.Context) error { return ctx.After(1, c.every, c.every, nil) }
func (c *clockwork) Receive(ctx *host.Context, m host.Message) error {
	if m.Kind != abi.KindTimer {
		return nil // an answer
	}
	if len(c.texts) == 0 {
		ctx.Cancel(1)
		return nil
	}
	text := c.texts[0]
	c.texts = c.texts[1:]
	return ctx.Tell(c.to, text)
}

func texts(ms []testkit.Received) string {
	var all []string
	for _, m := range ms {
		var s any
		_ = m.Decode(&s)
		all = append(all, fmt.Sprint(s))
	}
	return strings.Join(all, " ")
}
