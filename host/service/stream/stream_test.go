package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	runtime.CompileMain()
	code := m.Run()
	servicetest.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// world is a system whose streams a test uses in the place of a guest.
type world struct {
	t     tb
	sys   *host.System
	clock *host.VirtualClock
	box   *host.Inbox
	last  uint64
}

func newWorld(t tb) *world {
	t.Helper()
	clock := host.NewVirtualClock(time.Unix(1e9, 0))
	sys, err := host.New(host.NewConfig("test").WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, sys: sys, clock: clock, box: sys.Inbox(100_000)}
}

func (w *world) close() {
	w.box.Close()
	_ = w.sys.Close(context.Background())
}

func within(t testing.TB) *world {
	w := newWorld(t)
	t.Cleanup(w.close)
	return w
}

func (w *world) spawn(p host.Props) host.Ref {
	w.t.Helper()
	ref, err := w.sys.SpawnService("", p)
	if err != nil {
		w.t.Fatal(err)
	}
	return ref
}

func soon(t tb) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	if c, ok := t.(testing.TB); ok {
		c.Cleanup(stop)
	} else {
		context.AfterFunc(ctx, stop)
	}
	return ctx
}

// ask asks and waits.
func (w *world) ask(ref host.Ref, op string, args any) (host.Message, error) {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	return w.sys.Ask(ctx, ref, []any{op, args})
}

func (w *world) must(ref host.Ref, op string, args any) host.Message {
	w.t.Helper()
	m, err := w.ask(ref, op, args)
	if err != nil {
		w.t.Fatalf("%s: %v", op, err)
	}
	return m
}

// fails asks and wants this error.
func (w *world) fails(ref host.Ref, op string, args any, want string) {
	w.t.Helper()
	_, err := w.ask(ref, op, args)
	if err == nil || !strings.Contains(err.Error(), want) {
		w.t.Fatalf("%s: %v, want %q", op, err, want)
	}
}

// send asks without waiting; the answers come in receive.
func (w *world) send(ref host.Ref, op string, args any) uint64 {
	w.t.Helper()
	w.last++
	if err := w.box.Ask(ref, []any{op, args}, w.last); err != nil {
		w.t.Fatal(err)
	}
	return w.last
}

func (w *world) receive() host.Message {
	w.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	m, err := w.box.Receive(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func most(n any) map[string]any { return map[string]any{"max": n} }

func part(t tb, m host.Message) (b []byte, end bool) {
	t.Helper()
	r := abi.NewReader(m.Payload)
	if r.Null() {
		return nil, true
	}
	b = r.Bytes()
	if err := r.Done(); err != nil {
		t.Fatalf("%x: %v", m.Payload, err)
	}
	return b, false
}

// readAll reads a source to its end with so many reads ahead.
func (w *world) readAll(ref host.Ref, size, ahead int) []byte {
	w.t.Helper()
	var all []byte
	under := 0
	over, gone := false, false
	next := w.last + 1
	for {
		for ; under < ahead && !over && !gone; under++ {
			w.last++
			if err := w.box.Ask(ref, []any{"read", most(size)}, w.last); err != nil {
				gone = true // the end is on its way
				break
			}
		}
		if under == 0 {
			return all
		}
		m := w.receive()
		under--
		if over {
			continue
		}
		if m.Kind != abi.KindReply {
			w.t.Fatalf("%v: %v", m.Kind, m.Err())
		}
		if m.Correlation != next {
			w.t.Fatalf("answer %d, want %d", m.Correlation, next)
		}
		next++
		b, end := part(w.t, m)
		if len(b) > size {
			w.t.Fatalf("a part of %d, at most %d were asked for", len(b), size)
		}
		over = end
		all = append(all, b...)
	}
}

func TestSource(t *testing.T) {
	w := within(t)
	ended := make(chan error, 1)
	p, s := NewSource(Params{OnEnd: func(err error) { ended <- err }})
	ref := w.spawn(p)
	id := w.send(ref, "read", most(3))
	if n, err := s.Write([]byte("hello")); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	m := w.receive()
	if b, _ := part(t, m); m.Correlation != id || string(b) != "hel" {
		t.Fatalf("%q", b)
	}
	if b, _ := part(t, w.must(ref, "read", most(1<<40))); string(b) != "lo" {
		t.Fatalf("%q", b)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, end := part(t, w.must(ref, "read", nil)); !end {
		t.Fatal("no end")
	}
	if err := <-ended; err != nil || s.Err() != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if _, err := s.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Fatal(err)
	}
	w.fails(ref, "read", most(3), "host: ")
}

func TestSourceEndsWithAnError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("no such luck"), "failed: no such luck"},
		{service.Errorf(service.NotFound, "no file"), "not_found: no file"},
		{context.DeadlineExceeded, "timeout: "},
		{context.Canceled, "cancelled: "},
		{io.ErrUnexpectedEOF, "failed: unexpected EOF"},
		{errors.New(strings.Repeat("ä", 4000)), "failed: ää"},
		{errors.New("\xff"), "failed: \uFFFD"},
	} {
		w := within(t)
		p, s := NewSource(Params{})
		ref := w.spawn(p)
		_, _ = s.Write([]byte("ab"))
		s.CloseWithError(c.err)
		s.CloseWithError(errors.New("the second does not count"))
		if b, _ := part(t, w.must(ref, "read", nil)); string(b) != "ab" {
			t.Fatalf("what came before the error: %q", b)
		}
		w.fails(ref, "read", nil, c.want)
		<-s.Done()
		if s.Err() != c.err {
			t.Fatal(s.Err())
		}
	}
}

func TestSink(t *testing.T) {
	w := within(t)
	p, s := NewSink(Params{Window: 10})
	ref := w.spawn(p)
	if n, _ := w.must(ref, "write", []byte("abc")), 0; n.Payload[0] != 7 {
		t.Fatalf("%x", n.Payload)
	}
	id := w.send(ref, "write", []byte("defg")) // more than half: waits
	b := make([]byte, 1)
	if _, err := s.Read(b); err != nil || b[0] != 'a' {
		t.Fatal(err)
	}
	if m, ok := w.box.TryReceive(); ok {
		t.Fatalf("answered: %v", m)
	}
	_, _ = s.Read(b)
	if m := w.receive(); m.Correlation != id || m.Payload[0] != 5 {
		t.Fatalf("%x", m.Payload)
	}
	id = w.send(ref, "end", nil)
	rest, err := io.ReadAll(s)
	if string(rest) != "cdefg" || err != nil {
		t.Fatalf("%q %v", rest, err)
	}
	if err := s.Finish("thanks", nil); err != nil {
		t.Fatal(err)
	}
	var answer string
	if m := w.receive(); m.Correlation != id || m.Decode(&answer) != nil || answer != "thanks" {
		t.Fatalf("%x", m.Payload)
	}
	<-s.Done()
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
}

func TestSinkAborted(t *testing.T) {
	w := within(t)
	p, s := NewSink(Params{})
	ref := w.spawn(p)
	w.must(ref, "write", []byte("abc"))
	w.must(ref, "abort", "I changed my mind")
	_, err := io.ReadAll(s)
	var a *AbortError
	if !errors.As(err, &a) || a.Reason != "I changed my mind" || !errors.Is(err, ErrOver) {
		t.Fatal(err)
	}
}

func TestSinkWorldFails(t *testing.T) {
	w := within(t)
	p, s := NewSink(Params{Window: 10})
	ref := w.spawn(p)
	w.must(ref, "write", []byte("abcde"))
	id := w.send(ref, "write", []byte("f"))
	for s.waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.CloseWithError(service.Errorf(service.Quota, "the disk is full"))
	if m := w.receive(); m.Correlation != id || !strings.Contains(m.Err().Error(), "quota: the disk is full") {
		t.Fatal(m.Err())
	}
	<-s.Done()
	if _, err := s.Read(make([]byte, 1)); err != io.ErrClosedPipe {
		t.Fatal(err)
	}

	// Nobody waited: the next one is told.
	p, s = NewSink(Params{})
	ref = w.spawn(p)
	w.must(ref, "write", []byte("abcde"))
	s.CloseWithError(errors.New("broken"))
	w.fails(ref, "write", []byte("x"), "failed: broken")
	<-s.Done()

	// The world has its result before the guest has ended.
	p, s = NewSink(Params{})
	ref = w.spawn(p)
	_ = s.Finish(7, nil)
	if m := w.must(ref, "end", nil); m.Payload[0] != 7 {
		t.Fatalf("%x", m.Payload)
	}
	<-s.Done()
	// A result that cannot be encoded is an error, not silence.
	p, s = NewSink(Params{})
	ref = w.spawn(p)
	if s.Finish(make(chan int), nil) == nil {
		t.Fatal("no error")
	}
	w.fails(ref, "end", nil, "failed: ")
}

func (s *Sink) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.writes)
}

func (s *Source) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reads)
}

func (s *Source) buffered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.len()
}

func (h *half) isOver() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// TestEnds: whoever ends, both sides hear of it and the actor is gone.
func TestEnds(t *testing.T) {
	owner := func(w *world) host.Ref {
		ref, err := w.sys.Spawn("owner", host.Func(func(*host.Context, host.Message) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	type stream struct {
		*half
		w   *world
		ref host.Ref
		own host.Ref
		io  func() error
	}
	both := func(t *testing.T, p Params, f func(t *testing.T, s stream), want error) {
		for _, kind := range []string{"source", "sink"} {
			t.Run(kind, func(t *testing.T) {
				w := within(t)
				p := p
				p.Owner = owner(w)
				var s stream
				if kind == "source" {
					props, x := NewSource(p)
					s = stream{&x.half, w, w.spawn(props), p.Owner, func() error {
						_, err := x.Write(make([]byte, 1<<20))
						return err
					}}
				} else {
					props, x := NewSink(p)
					s = stream{&x.half, w, w.spawn(props), p.Owner, func() error {
						_, err := x.Read(make([]byte, 1))
						return err
					}}
				}
				ended, err := w.sys.Ended(s.ref)
				if err != nil {
					t.Fatal(err)
				}
				failed := make(chan error)
				go func() { failed <- s.io() }()
				if err := w.sys.Idle(soon(t)); err != nil {
					t.Fatal(err)
				}
				f(t, s)
				if err := <-failed; !errors.Is(err, want) {
					t.Fatalf("%v, want %v", err, want)
				}
				<-ended
				if !s.isOver() || !errors.Is(s.Err(), want) {
					t.Fatal(s.Err())
				}
			})
		}
	}
	t.Run("owner", func(t *testing.T) {
		both(t, Params{}, func(t *testing.T, s stream) { s.w.sys.Stop(s.own) }, ErrOwnerEnded)
	})
	t.Run("idle", func(t *testing.T) {
		both(t, Params{Idle: time.Second}, func(t *testing.T, s stream) {
			for !s.isOver() {
				s.w.clock.Advance(500 * time.Millisecond)
				time.Sleep(time.Millisecond)
			}
		}, ErrIdle)
	})
	t.Run("stopped", func(t *testing.T) {
		both(t, Params{}, func(t *testing.T, s stream) { s.w.sys.Stop(s.ref) }, ErrStopped)
	})
	t.Run("killed", func(t *testing.T) {
		both(t, Params{}, func(t *testing.T, s stream) { _ = s.w.sys.Operate().Kill(s.ref) }, ErrStopped)
	})
	t.Run("system", func(t *testing.T) {
		both(t, Params{}, func(t *testing.T, s stream) { s.w.close() }, ErrOver)
	})
}

// TestNotIdle: a guest that waits for the world is not idle, and has a whole time after it.
func TestNotIdle(t *testing.T) {
	w := within(t)
	p, s := NewSource(Params{Idle: time.Second})
	ref := w.spawn(p)
	w.send(ref, "read", most(1))
	for s.waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 20 {
		w.clock.Advance(700 * time.Millisecond)
		if err := w.sys.Idle(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	if s.isOver() {
		t.Fatal("over, though a read waits")
	}
	_, _ = s.Write([]byte("ab"))
	w.receive()
	w.clock.Advance(900 * time.Millisecond)
	if err := w.sys.Idle(soon(t)); err != nil {
		t.Fatal(err)
	}
	if s.isOver() {
		t.Fatal("over before its time")
	}
}

func TestDeadlines(t *testing.T) {
	w := within(t)
	clock := host.NewVirtualClock(time.Unix(0, 0))
	_, s := NewSource(Params{Clock: clock, Window: 4})
	_ = s.SetWriteDeadline(clock.Now().Add(time.Hour))
	failed := make(chan error)
	go func() {
		n, err := s.Write([]byte("abcdef"))
		if n != 4 {
			t.Errorf("wrote %d", n)
		}
		failed <- err
	}()
	for s.buffered() < 4 {
		time.Sleep(100 * time.Microsecond)
	}
	_ = s.SetWriteDeadline(clock.Now().Add(time.Second)) // while it waits
	clock.Advance(time.Second)
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a deadline that is over", err)
	}
	_ = s.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { _, err := s.WriteContext(ctx, []byte("x")); failed <- err }()
	why := errors.New("enough")
	cancel(why)
	if err := <-failed; err != why {
		t.Fatal(err)
	}
	p, r := NewSink(Params{Clock: clock})
	w.spawn(p)
	_ = r.SetReadDeadline(clock.Now().Add(-1))
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	r.Abandon()
	s.Abandon()
}

// TestNotSpawned: a stream whose actor never was ends all the same.
func TestNotSpawned(t *testing.T) {
	_, s := NewSource(Params{})
	s.Abandon()
	if _, err := s.Write([]byte("x")); !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	w := within(t)
	p, s := NewSource(Params{})
	s.Abandon()
	ended, err := w.sys.Ended(w.spawn(p))
	if err == nil {
		<-ended
	}
	// Its props are for one actor.
	p, s = NewSource(Params{})
	first := w.spawn(p)
	if err := w.sys.Idle(soon(t)); err != nil {
		t.Fatal(err)
	}
	second, err := w.sys.SpawnService("", p)
	if err == nil {
		if ended, err := w.sys.Ended(second); err == nil {
			<-ended
		}
	}
	_, _ = s.Write([]byte("x"))
	if b, _ := part(t, w.must(first, "read", nil)); string(b) != "x" || s.isOver() {
		t.Fatal("the first was harmed")
	}
}

// TestLostReadLosesNothing: an ask that was given up does not take its part along.
func TestLostReadLosesNothing(t *testing.T) {
	w := within(t)
	p, s := NewSource(Params{Ahead: 2})
	ref := w.spawn(p)
	for i := range 20 {
		ctx, stop := context.WithCancel(context.Background())
		failed := make(chan error)
		go func() {
			_, err := w.sys.Ask(ctx, ref, []any{"read", nil})
			failed <- err
		}()
		for s.waiting() == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		stop()
		<-failed
		if i%2 == 0 {
			_, _ = s.Write([]byte{byte(i)})
			if b, _ := part(t, w.must(ref, "read", nil)); len(b) != 1 || b[0] != byte(i) {
				t.Fatalf("%d: %x", i, b)
			}
		}
	}
}

// TestWhole: what goes in comes out, whole and in order, whatever the sizes.
func TestWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.close()
		data := make([]byte, rapid.IntRange(0, 5000).Draw(t, "size"))
		for i := range data {
			data[i] = byte(i * 7)
		}
		p := Params{Window: rapid.IntRange(1, 3000).Draw(t, "window"), Ahead: rapid.IntRange(1, 8).Draw(t, "ahead")}
		piece := rapid.IntRange(1, 3000).Draw(t, "piece")
		size := rapid.IntRange(1, 3000).Draw(t, "part")

		props, src := NewSource(p)
		ref := w.spawn(props)
		go func() {
			for from := 0; from < len(data); from += piece {
				if _, err := src.Write(data[from:min(from+piece, len(data))]); err != nil {
					src.CloseWithError(err)
				}
			}
			_ = src.Close()
		}()
		if got := w.readAll(ref, size, p.Ahead); !bytes.Equal(got, data) {
			t.Fatalf("source: %d of %d bytes", len(got), len(data))
		}

		props, sink := NewSink(p)
		ref = w.spawn(props)
		type read struct {
			b   []byte
			err error
		}
		reads := make(chan read, 1)
		go func() {
			var b bytes.Buffer
			_, err := io.CopyBuffer(struct{ io.Writer }{&b}, struct{ io.Reader }{sink}, make([]byte, piece))
			_ = sink.Finish(b.Len(), nil)
			reads <- read{b.Bytes(), err}
		}()
		room := p.Window
		for from := 0; from < len(data); {
			n := min(size, room, len(data)-from)
			m := w.must(ref, "write", data[from:from+n])
			from += n
			if err := m.Decode(&room); err != nil {
				t.Fatal(err)
			}
			if room == 0 && p.Window > 1 {
				t.Fatal("answered without room")
			}
		}
		var n int
		if err := w.must(ref, "end", nil).Decode(&n); err != nil || n != len(data) {
			t.Fatal(n, err)
		}
		if r := <-reads; r.err != nil || !bytes.Equal(r.b, data) {
			t.Fatalf("sink: %d of %d bytes, %v", len(r.b), len(data), r.err)
		}
	})
}

// TestStreamBounds: what a hostile guest can make the host keep.
func TestStreamBounds(t *testing.T) {
	t.Run("reads ahead", func(t *testing.T) {
		w := within(t)
		p, s := NewSource(Params{Ahead: 4})
		ref := w.spawn(p)
		many := 100_000
		if testing.Short() {
			many = 10_000
		}
		for i := range many {
			if err := w.box.Ask(ref, []any{"read", most(1)}, uint64(i)+1); err != nil && !errors.Is(err, host.ErrMailboxFull) {
				t.Fatal(err)
			}
		}
		if err := w.sys.Idle(soon(t)); err != nil {
			t.Fatal(err)
		}
		busy, full := 0, 0
		for m, ok := w.box.TryReceive(); ok; m, ok = w.box.TryReceive() {
			switch err := m.Err(); {
			case errors.Is(err, host.ErrMailboxFull):
				full++
			case err != nil && strings.Contains(err.Error(), "busy: "):
				busy++
			default:
				t.Fatalf("%v: %x", err, m.Payload)
			}
		}
		if busy+full != many-4 || busy == 0 || s.waiting() != 4 {
			t.Fatalf("%d busy, %d at a full mailbox, %d wait", busy, full, s.waiting())
		}
		_, _ = s.Write([]byte("abcd"))
		for i := range 4 {
			if b, _ := part(t, w.receive()); string(b) != "abcd"[i:i+1] {
				t.Fatalf("%q", b)
			}
		}
	})
	t.Run("writes without credit", func(t *testing.T) {
		// A flood of tells, and of asks, that nobody reads: the stream breaks, and what
		// was read before is a prefix.
		for _, tell := range []bool{true, false} {
			w := within(t)
			p, s := NewSink(Params{Window: 1000})
			ref := w.spawn(p)
			for i := range 10_000 {
				b := []byte{byte(i), byte(i >> 8)}
				if tell {
					_ = w.sys.Tell(ref, []any{"write", b})
				} else {
					_ = w.box.Ask(ref, []any{"write", b}, uint64(i)+1)
				}
				s.mu.Lock()
				if n := s.buf.len(); n > 1000 {
					t.Fatalf("%d bytes", n)
				}
				if n := len(s.writes); n > DefaultAhead {
					t.Fatalf("%d wait", n)
				}
				s.mu.Unlock()
			}
			got, err := io.ReadAll(s)
			if !errors.Is(err, ErrOverrun) {
				t.Fatal(err)
			}
			for i := 0; i < len(got); i += 2 {
				if j := i / 2; got[i] != byte(j) || got[i+1] != byte(j>>8) {
					t.Fatalf("byte %d is not what was written", i)
				}
			}
		}
	})
	t.Run("a part that is too large", func(t *testing.T) {
		w := within(t)
		p, s := NewSink(Params{Window: 1000})
		ref := w.spawn(p)
		w.fails(ref, "write", make([]byte, 1001), "too_large: ")
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrOverrun) {
			t.Fatal(err)
		}
		p, s = NewSink(Params{Window: 1 << 20})
		ref = w.spawn(p)
		w.must(ref, "write", make([]byte, MaxPart))
		w.fails(ref, "write", make([]byte, MaxPart+1), "too_large: ")
		s.Abandon()
	})
	t.Run("the window of a source", func(t *testing.T) {
		w := within(t)
		p, s := NewSource(Params{Window: 1000})
		w.spawn(p)
		ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer stop()
		if n, err := s.WriteContext(ctx, make([]byte, 5000)); n != 1000 || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(n, err)
		}
	})
}

func TestBadRequests(t *testing.T) {
	w := within(t)
	p, s := NewSource(Params{})
	source := w.spawn(p)
	q, sink := NewSink(Params{})
	into := w.spawn(q)
	for _, args := range []any{most(0), most(-1), most(int64(-1 << 63)), most("7"), most(1.5), most(nil), map[string]any{}, map[string]any{"max": 1, "x": 2}, map[string]any{"mux": 1}, 7, "x", []any{}} {
		w.fails(source, "read", args, "bad_request: ")
	}
	w.fails(source, "close", 7, "bad_request: ")
	w.fails(source, "write", []byte("x"), "bad_request: ")
	w.fails(source, strings.Repeat("x", 10_000), nil, "bad_request: ")
	w.fails(into, "read", nil, "bad_request: ")
	w.fails(into, "write", "a text", "bad_request: ")
	w.fails(into, "write", nil, "bad_request: ")
	w.fails(into, "end", 7, "bad_request: ")
	w.fails(into, "abort", nil, "bad_request: ")
	for _, raw := range [][]byte{{0xf6}, {0x80}, {0x81, 0x64, 'r', 'e', 'a', 'd'}, {0x83, 0x63, 'e', 'n', 'd', 0xf6, 0xf6}, {0x82, 0x01, 0x02}, {0x9f, 0xff}, {0x82}, {0xff}, {}, {0x82, 0x65, 'w', 'r', 'i', 't', 'e', 0x5b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		for _, ref := range []host.Ref{source, into} {
			if _, err := w.sys.Ask(soon(t), ref, host.Raw(raw)); err == nil || !strings.Contains(err.Error(), "bad_request: ") {
				t.Fatalf("%x: %v", raw, err)
			}
			_ = w.sys.Tell(ref, host.Raw(raw))
		}
	}
	// A read that nobody waits for takes nothing along.
	_, _ = s.Write([]byte("abc"))
	_ = w.sys.Tell(source, []any{"read", nil})
	if b, _ := part(t, w.must(source, "read", nil)); string(b) != "abc" {
		t.Fatalf("%q", b)
	}
	// Neither stream has suffered.
	w.must(into, "write", []byte("abc"))
	w.send(into, "end", nil)
	if b, err := io.ReadAll(sink); string(b) != "abc" || err != nil {
		t.Fatalf("%q %v", b, err)
	}
	w.fails(into, "write", []byte("after the end"), "bad_request: ")
	w.fails(into, "end", nil, "bad_request: ")
	w.fails(into, "abort", "x", "bad_request: ")
	_ = sink.Close()
	if m := w.receive(); m.Kind != abi.KindReply {
		t.Fatal(m.Err())
	}
	w.must(source, "close", nil)
	if _, err := s.Write([]byte("x")); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

func TestOwnerOnly(t *testing.T) {
	w := within(t)
	var ref host.Ref
	answers := make(chan host.Message, 1)
	owner, err := w.sys.Spawn("owner", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			answers <- m.Clone()
			return nil
		}
		return ctx.Ask(ref, []any{"read", nil}, 1, time.Minute)
	}))
	if err != nil {
		t.Fatal(err)
	}
	p, s := NewSource(Params{Access: OwnerOnly, Owner: owner})
	ref = w.spawn(p)
	_, _ = s.Write([]byte("secret"))
	w.fails(ref, "read", nil, "denied: ")
	w.fails(ref, "close", nil, "denied: ")
	if err := w.sys.Tell(owner, "go"); err != nil {
		t.Fatal(err)
	}
	if b, _ := part(t, <-answers); string(b) != "secret" {
		t.Fatalf("%q", b)
	}
}

// TestHammer: many streams at once, both sides in a hurry, some end early.
func TestHammer(t *testing.T) {
	sys, err := host.New(host.NewConfig("hammer"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	n, rounds := 16, 20
	if testing.Short() {
		n, rounds = 8, 5
	}
	data := bytes.Repeat([]byte("0123456789"), 2000)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for round := range rounds {
				early := (i+round)%4 == 0
				w := &world{t: t, sys: sys}
				owner := w.spawn(host.Func(func(*host.Context, host.Message) error { return nil }))
				p, src := NewSource(Params{Owner: owner, Window: 3000, Ahead: 3})
				q, sink := NewSink(Params{Owner: owner, Window: 3000, Ahead: 3})
				from, to := w.spawn(p), w.spawn(q)
				var inner sync.WaitGroup
				inner.Go(func() { _, err := src.Write(data); src.CloseWithError(err) })
				inner.Go(func() {
					got, err := io.ReadAll(sink)
					if !early && (err != nil || !bytes.Equal(got, data)) {
						t.Errorf("%d bytes, %v", len(got), err)
					}
					_ = sink.Finish(len(got), err)
				})
				for sent := 0; ; {
					m, err := w.ask(from, "read", most(700))
					if err != nil {
						t.Errorf("read: %v", err)
						break
					}
					b, end := part(t, m)
					if end {
						w.must(to, "end", nil)
						break
					}
					if _, err := w.ask(to, "write", b); err != nil {
						t.Errorf("write: %v", err)
						break
					}
					if sent += len(b); early && sent > 5000 {
						break
					}
				}
				sys.Stop(owner)
				inner.Wait()
				<-src.Done()
				<-sink.Done()
			}
		})
	}
	wg.Wait()
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte{0x82, 0x64, 'r', 'e', 'a', 'd', 0xa1, 0x63, 'm', 'a', 'x', 1}, false)
	f.Add([]byte{0x82, 0x65, 'w', 'r', 'i', 't', 'e', 0x41, 1}, true)
	w := newWorld(f)
	f.Cleanup(w.close)
	f.Fuzz(func(t *testing.T, b []byte, sink bool) {
		w := *w
		w.t = t
		var p host.Props
		var done func()
		if sink {
			q, s := NewSink(Params{Window: 100})
			p, done = q, s.Abandon
		} else {
			q, s := NewSource(Params{Window: 100})
			_, _ = s.Write([]byte("abc"))
			p, done = q, s.Abandon
		}
		ref := w.spawn(p)
		ended, err := w.sys.Ended(ref)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer stop()
		_, _ = w.sys.Ask(ctx, ref, host.Raw(b))
		done()
		<-ended
	})
}
