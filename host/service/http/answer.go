package httpclient

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/stream"
)

// MaxAnswerHeaders is how many headers an answer may have.
const MaxAnswerHeaders = 200

// life is the context of an exchange: it ends with its request until it is detached, then with
// the service.
type life struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   func() bool
	clock  host.Clock
}

func (p *provider) begin(ctx context.Context) *life {
	l := &life{clock: p.env.Clock}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	l.stop = executor.AfterDone(l.clock, ctx, func() { l.cancel(context.Cause(ctx)) })
	return l
}

// detach binds the life to the service. It fails if the life has ended.
func (l *life) detach(p *provider) error {
	if !l.stop() {
		return context.Cause(l.ctx)
	}
	l.stop = executor.AfterDone(l.clock, p.ctx, func() { l.cancel(errClosing) })
	return context.Cause(l.ctx)
}

func (l *life) end() {
	l.stop()
	l.cancel(nil)
}

// do carries out the operation do.
func (p *provider) do(ctx context.Context, h *holder, r *service.Request[Grant]) (any, error) {
	var q request
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	switch {
	case q.Size != nil:
		return nil, service.Errorf(service.BadRequest, "size is for upload")
	case int64(len(q.Body)) > int64(h.grant.MaxRequest):
		return nil, tooLarge(h)
	}
	x, err := p.plan(h, &q, r.Effect)
	if err != nil {
		return nil, err
	}
	x.body = q.Body
	l := p.begin(ctx)
	got, err := x.run(l.ctx, l.cancel)
	if err != nil {
		l.end()
		return nil, err
	}
	return p.reply(l, x, r, &q, got)
}

func tooLarge(h *holder) error {
	return service.Errorf(service.TooLarge, "the request's body has more than %d bytes; max-request of the grant raises it", h.grant.MaxRequest)
}

// reply turns the server's answer into the guest's. It ends the life, at once or when the stream is
// over.
func (p *provider) reply(l *life, x *exchange, r *service.Request[Grant], q *request, got *http.Response) (any, error) {
	kept := false
	defer func() {
		if !kept {
			got.Body.Close()
			l.end()
		}
	}()
	most, inline := limit(q.Max, x.grant.MaxResponse), limit(q.Inline, x.grant.Inline)
	body := io.Reader(&patient{Reader: got.Body, clock: x.clock, idle: x.grant.Idle, cancel: l.cancel})
	if q.Decode {
		body = unpack(got, body)
	}
	a := &answer{status: got.StatusCode, headers: answered(got.Header), length: got.ContentLength}
	if len(a.headers) > MaxAnswerHeaders {
		return nil, service.Errorf(service.TooLarge, "the answer has %d headers, at most %d", len(a.headers), MaxAnswerHeaders)
	}
	if x.hops > 0 {
		a.url = x.to.url.String()
	}
	if x.method == http.MethodHead {
		return a.encode()
	}
	if got.ContentLength > most {
		return nil, tooMuch(most)
	}
	if !r.Wanted() {
		_, _ = io.CopyN(io.Discard, body, min(most, 64<<10))
		return nil, nil
	}
	var first []byte
	if !q.Stream {
		take := min(inline, most) + 1
		if got.ContentLength >= 0 {
			take = min(take, got.ContentLength)
		}
		release, err := r.Hold(take)
		if err != nil {
			return nil, err
		}
		defer release()
		first, err = readUpTo(body, take, got.ContentLength)
		if err != nil && err != io.EOF {
			return nil, x.afterHops(explain(l.ctx, x.to, err))
		}
		if int64(len(first)) > most {
			return nil, tooMuch(most)
		}
		if int64(len(first)) <= inline && (err == io.EOF || int64(len(first)) == got.ContentLength) {
			a.body = first
			return a.encode()
		}
	}
	if err := p.pour(l, x, r, got, body, first, most, a); err != nil {
		return nil, err
	}
	kept = true
	return a.encode()
}

func tooMuch(most int64) error {
	return service.Errorf(service.TooLarge, "the answer's body has more than %d bytes; max-response of the grant, or max of the request, raises it", most)
}

// readUpTo reads at most n bytes; it returns io.EOF with the rest if there are no more.
func readUpTo(r io.Reader, n, known int64) ([]byte, error) {
	at := int64(8 << 10)
	if known >= 0 {
		at = known
	}
	b := make([]byte, 0, min(n, at))
	for int64(len(b)) < n {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		m, err := r.Read(b[len(b):min(int64(cap(b)), n)])
		b = b[:len(b)+m]
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// pour sends a body as a stream, beginning with the part that was read already.
func (p *provider) pour(l *life, x *exchange, r *service.Request[Grant], got *http.Response, body io.Reader, first []byte, most int64, a *answer) error {
	if err := x.open(); err != nil {
		return err
	}
	release, err := r.Hold(stream.DefaultWindow)
	if err != nil {
		x.shut()
		return err
	}
	end := sync.OnceFunc(func() {
		x.shut()
		release()
	})
	props, source := stream.NewSource(stream.Params{Owner: r.Sender, Idle: x.grant.Idle, Clock: x.clock, OnEnd: func(error) { end() }})
	ref, err := r.Spawn(props)
	if err != nil {
		end()
		return err
	}
	if err := l.detach(p); err != nil {
		source.Abandon()
		return err
	}
	a.stream = ref
	p.tasks.Add(1)
	whole := x.clock.AfterFunc(x.grant.Body, func() { l.cancel(errBodyTime) })
	executor.Go(x.clock, func() {
		defer p.tasks.Done()
		defer l.end()
		defer whole.Stop()
		defer got.Body.Close()
		stop := executor.AfterDone(x.clock, l.ctx, func() { source.CloseWithError(context.Cause(l.ctx)) })
		defer stop()
		gone := make(chan struct{})
		defer close(gone)
		executor.Go(x.clock, func() { // a reader that stops ends the exchange
			if _, which := executor.Take(x.clock, source.Done(), gone); which != 1 {
				l.cancel(nil)
			}
		})
		source.CloseWithError(copyBody(l.ctx, x, source, body, first, most))
	})
	return nil
}

// copyBody writes a body to a stream; nil at its end.
func copyBody(ctx context.Context, x *exchange, to *stream.Source, body io.Reader, first []byte, most int64) error {
	if _, err := to.WriteContext(ctx, first); err != nil {
		return err
	}
	left := most - int64(len(first))
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if int64(n) > left {
			return tooMuch(most)
		}
		left -= int64(n)
		if n > 0 {
			if _, err := to.WriteContext(ctx, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return explain(ctx, x.to, err)
		}
	}
}
