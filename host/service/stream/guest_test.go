package stream

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// withGuest is a system with an actor stream-user.
func withGuest(t *testing.T) (*world, host.Ref) {
	t.Helper()
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, sys: sys}
	t.Cleanup(func() { _ = sys.Close(context.Background()) })
	guest, err := sys.Spawn("user", host.GuestOf(servicetest.Module(t), "stream-user"))
	if err != nil {
		t.Fatal(err)
	}
	return w, guest
}

func (w *world) do(guest host.Ref, what string, ref host.Ref, more any) (host.Message, error) {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	return w.sys.Ask(ctx, guest, []any{what, uint64(ref.UID()), more})
}

func counted(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// TestGuest: a guest in standard Go reads, writes and pipes more than it could be sent.
func TestGuest(t *testing.T) {
	w, guest := withGuest(t)
	data := counted(3<<20 + 17)

	p, src := NewSource(Params{Owner: guest})
	ref := w.spawn(p)
	go func() { _, err := io.Copy(src, bytes.NewReader(data)); src.CloseWithError(err) }()
	m, err := w.do(guest, "digest", ref, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := fnv.New64a()
	h.Write(data)
	var pair [2]uint64
	if err := m.Decode(&pair); err != nil || pair != [2]uint64{uint64(len(data)), h.Sum64()} {
		t.Fatal(pair, err)
	}

	p, sink := NewSink(Params{Owner: guest})
	ref = w.spawn(p)
	go func() {
		b, err := io.ReadAll(sink)
		if err == nil && !bytes.Equal(b, data[:1<<20]) {
			err = errors.New("not what was written")
		}
		_ = sink.Finish(len(b), err)
	}()
	if m, err = w.do(guest, "put", ref, 1<<20); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := m.Decode(&n); err != nil || n != 1<<20 {
		t.Fatal(n, err)
	}

	p, src = NewSource(Params{Owner: guest})
	from := w.spawn(p)
	p, sink = NewSink(Params{Owner: guest})
	to := w.spawn(p)
	go func() { _, err := io.Copy(src, bytes.NewReader(data)); src.CloseWithError(err) }()
	go func() {
		b, err := io.ReadAll(sink)
		if err == nil && !bytes.Equal(b, data) {
			err = errors.New("not what was written")
		}
		_ = sink.Finish(len(b), err)
	}()
	if m, err = w.do(guest, "pipe", from, uint64(to.UID())); err != nil {
		t.Fatal(err)
	}
	if err := m.Decode(&pair); err != nil || pair != [2]uint64{uint64(len(data)), uint64(len(data))} {
		t.Fatal(pair, err)
	}
}

// TestGuestErrors: what goes wrong in the world reaches the guest, and the other way round.
func TestGuestErrors(t *testing.T) {
	w, guest := withGuest(t)
	want := func(err error, code string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), code) {
			t.Fatalf("%v, want %s", err, code)
		}
	}
	p, src := NewSource(Params{Owner: guest})
	ref := w.spawn(p)
	_, _ = src.Write(make([]byte, 100))
	src.CloseWithError(errors.New("the wire was cut"))
	_, err := w.do(guest, "digest", ref, nil)
	want(err, "failed: the wire was cut")

	p, src = NewSource(Params{Owner: guest})
	ref = w.spawn(p)
	_, _ = src.Write(make([]byte, 100_000))
	_, err = w.do(guest, "all", ref, 50_000)
	want(err, "too_large: ")
	<-src.Done()
	if !errors.Is(src.Err(), ErrClosed) {
		t.Fatal(src.Err())
	}

	p, sink := NewSink(Params{Owner: guest})
	ref = w.spawn(p)
	sink.CloseWithError(errors.New("no room"))
	_, err = w.do(guest, "put", ref, 100_000)
	want(err, "failed: no room")

	p, src = NewSource(Params{Owner: guest})
	from := w.spawn(p)
	p, sink = NewSink(Params{Owner: guest})
	to := w.spawn(p)
	_, _ = src.Write(make([]byte, 100))
	src.CloseWithError(errors.New("the wire was cut"))
	_, err = w.do(guest, "pipe", from, uint64(to.UID()))
	want(err, "failed: the wire was cut")
	_, err = io.ReadAll(sink)
	want(err, "the wire was cut")

	// A stream that is none: the asker itself, and nobody.
	_, err = w.do(guest, "digest", host.Ref{}, nil)
	want(err, "names no actor")
	p, src = NewSource(Params{})
	ref = w.spawn(p)
	ended, err := w.sys.Ended(ref)
	if err != nil {
		t.Fatal(err)
	}
	src.Abandon()
	<-ended
	_, err = w.do(guest, "digest", ref, nil)
	want(err, "no such actor")
}
