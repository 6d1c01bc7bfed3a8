package httpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/stream"
)

// upload begins a request whose body comes in parts: it is answered with the ref of a sink, and
// the end of that with what do is answered with.
func (p *provider) upload(ctx context.Context, h *holder, r *service.Request[Grant]) (any, error) {
	q := request{Method: http.MethodPost}
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	switch {
	case len(q.Body) > 0:
		return nil, service.Errorf(service.BadRequest, "the body of an upload goes to its sink")
	case q.Size != nil && *q.Size > uint64(h.grant.MaxRequest):
		return nil, tooLarge(h)
	case !r.Wanted():
		return nil, service.Errorf(service.BadRequest, "an upload is asked for, not told")
	}
	x, err := p.plan(h, &q, r.Effect)
	if err != nil {
		return nil, err
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	release, err := r.Hold(stream.DefaultWindow)
	if err != nil {
		h.shut()
		return nil, err
	}
	end := sync.OnceFunc(func() {
		h.shut()
		release()
	})
	l := p.begin(ctx)
	// If the actor gives up the sink, or stops, the request ends, also while it waits for the answer.
	props, sink := stream.NewSink(stream.Params{Owner: r.Sender, Idle: x.grant.Idle, Clock: x.clock, OnEnd: func(why error) {
		end()
		if why != nil {
			l.cancel(&service.Error{Code: service.Cancelled, Text: "the upload was given up", Err: why})
		}
	}})
	ref, err := r.Spawn(props)
	if err != nil {
		end()
		l.end()
		return nil, err
	}
	if err := l.detach(p); err != nil {
		sink.Abandon()
		l.end()
		return nil, err
	}
	x.size = -1
	if q.Size != nil {
		x.size = int64(*q.Size)
	}
	body := newCounting(sink, int64(h.grant.MaxRequest), x.size, tooLarge(h))
	x.source = body
	p.tasks.Add(1)
	executor.Go(x.clock, func() {
		defer p.tasks.Done()
		whole := x.clock.AfterFunc(x.grant.Body, func() { l.cancel(errBodyTime) })
		defer whole.Stop()
		stop := executor.AfterDone(x.clock, l.ctx, func() { sink.CloseWithError(context.Cause(l.ctx)) })
		got, err := x.run(l.ctx, l.cancel)
		stop()
		var answer any
		if err != nil {
			l.end()
			if why := body.failed(); why != nil && !errors.Is(why, stream.ErrOver) {
				err = why
			}
		} else if answer, err = p.reply(l, x, r, &q, got); err == nil {
			// The server may have answered before it has had everything: the rest is discarded, but the guest is answered
			// only at its end.
			_ = sink.SetReadDeadline(x.clock.Now().Add(x.grant.Body))
			body.drain(x.clock)
			if why, ok := as[*service.Error](body.failed()); ok {
				answer, err = nil, why
			}
		}
		if err != nil {
			err = coded(err)
		}
		_ = sink.Finish(answer, err)
	})
	w := abi.NewWriter(nil)
	w.Map(1)
	w.Text("sink")
	w.Ref(ref.UID())
	return host.Raw(w.Bytes()), nil
}

// coded gives every error a code, for those that no frame answers with.
func coded(err error) error {
	if _, ok := as[*service.Error](err); ok {
		return err
	}
	if isTimeout(err) {
		return &service.Error{Code: service.Timeout, Text: "the request took too long", Err: err}
	}
	return &service.Error{Code: service.Cancelled, Text: "the request was ended", Err: err}
}

// counting is a body that fails when it has too much, or not what was said.
type counting struct {
	io.Reader
	most     int64
	size     int64 // that was said; -1: nothing
	tooLarge error
	read     int64
	closed   chan struct{} // by the transport, which does not read any more then
	close    func()

	mu      sync.Mutex
	failure error // that reading has ended with
}

func newCounting(r io.Reader, most, size int64, tooLarge error) *counting {
	c := &counting{Reader: r, most: most, size: size, tooLarge: tooLarge, closed: make(chan struct{})}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

// Close implements io.Closer.
func (c *counting) Close() error { c.close(); return nil }

// drain reads what the transport has left.
func (c *counting) drain(clock host.Clock) {
	executor.Take(clock, c.closed)
	_, _ = io.Copy(io.Discard, c)
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	switch {
	case c.read > c.most:
		err = c.tooLarge
	case c.size >= 0 && (c.read > c.size || err == io.EOF && c.read < c.size):
		err = service.Errorf(service.BadRequest, "the body does not have the %d bytes that were said", c.size)
	}
	if err != nil && err != io.EOF {
		c.mu.Lock()
		c.failure = err
		c.mu.Unlock()
		return 0, err
	}
	return n, err
}

// failed is what reading has ended with, nil while it has not failed.
func (c *counting) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}
