package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
)

// Op is the first element of the message that a request becomes; GoneOp that of the message
// that its client has gone, which a route may ask for.
const (
	Op     = "http"
	GoneOp = "http.gone"
)

// requestHead is the common beginning of all messages of a route: its pattern, encoded.
func requestHead(pattern string) []byte {
	w := abi.NewWriter(nil)
	w.Text(pattern)
	return w.Bytes()
}

// serve answers a request of a route.
func (x *exchange) serve(rt *route) {
	x.route, x.entry = rt, true
	x.under = rt.under.Add(1)
	rt.handler.ServeHTTP(&x.w, x.r)
}

// exchangeOf is the exchange of a request that middleware passes on.
func exchangeOf(w http.ResponseWriter) *exchange { return w.(*recorder).x }

// chain is what stands in front of an actor or of files: the rules for other origins, the share of the
// client's address, authentication, the share of the identity.
func (r *route) chain(auth func(http.Handler) http.Handler, files http.Handler) http.Handler {
	h := admitted((*clients).byIdentity, files)
	if auth != nil {
		h = auth(h)
	}
	h = admitted((*clients).byAddress, h)
	if r.CORS != nil {
		h = r.CORS.Handler(h)
	}
	return h
}

// admitted takes a request's share of what its client may have; nil: the actor is next.
func admitted(by func(*clients) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(w)
		x.who = middleware.IdentityOf(r.Context())
		if p := x.admit(by); p.status != 0 {
			x.refuse(p)
		} else if next != nil {
			next.ServeHTTP(w, r)
		} else {
			x.actor()
		}
	})
}

// actor has the actor answer.
func (x *exchange) actor() {
	if x.upgrade() {
		return
	}
	a := answers.Get().(*answer)
	if p := x.relay(a); p.status != 0 {
		x.refuse(x.bodyProblem(p))
	}
	answers.Put(a)
}

// admit takes a request's share of the route and of what its client may have.
func (x *exchange) admit(by func(*clients) bool) problem {
	rt := x.route
	tooMany := problem{status: http.StatusTooManyRequests, text: "too many requests", retry: time.Second}
	if rt.Limits.AtOnce > 0 && x.under > int64(rt.Limits.AtOnce) {
		tooMany.text = "too many requests of this route are in progress"
		return tooMany
	}
	if by(x.g.clients) {
		if ok, retry := x.g.clients.enter(x, &x.busy); !ok {
			tooMany.retry = retry
			return tooMany
		}
	}
	if by(rt.clients) {
		if ok, retry := rt.clients.enter(x, &x.share); !ok {
			tooMany.retry = retry
			return tooMany
		}
	}
	return problem{}
}

// buffers are reused for messages that are being made; host copies what it sends.
var (
	answers = sync.Pool{New: func() any { return new(answer) }}
	buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}
)

const maxKept = 64 << 10

// relay asks the actor and writes its answer.
func (x *exchange) relay(a *answer) problem {
	buf := buffers.Get().(*[]byte)
	defer giveBack(buf)
	done, p := x.encode(buf)
	if done != nil {
		defer done()
	}
	if p.status != 0 {
		return p
	}
	m, p := x.ask(host.Raw(*buf))
	if p.status != 0 {
		return p
	}
	return x.write(a, m)
}

func giveBack(buf *[]byte) {
	if cap(*buf) <= maxKept {
		buffers.Put(buf)
	}
}

// encode writes the message of a request: ["http", [method, path, route, values, query,
// headers, body, stream, length, remote, id, who]], where null stands for what is missing.
// It is an array because reading keys would take a guest longer than everything else, and headers
// are a byte string, so that a guest can skip them. Elements are only ever added at the
// end. done must be called when the request was answered.
func (x *exchange) encode(buf *[]byte) (done func(), p problem) {
	r, rt := x.r, x.route
	var ref host.Ref
	var inline []byte
	if r.Body != nil && r.ContentLength != 0 {
		read := buffers.Get().(*[]byte)
		defer giveBack(read)
		if inline, p = x.body(read); p.status != 0 {
			return nil, p
		}
		if x.rest != nil {
			if ref, done, p = x.streamRequest(append([]byte(nil), inline...), x.rest); p.status != 0 {
				return done, p
			}
			inline = nil
		}
	}
	w := abi.NewWriter((*buf)[:0])
	w.Array(2)
	w.Text(Op)
	w.Array(12)
	w.Text(r.Method)
	w.Text(r.URL.Path)
	w.Raw(rt.head)
	if len(rt.wild) > 0 {
		w.Array(len(rt.wild))
		for _, v := range rt.wild {
			w.Text(r.PathValue(v.name))
		}
	} else {
		w.Null()
	}
	if r.URL.RawQuery != "" {
		w.Text(r.URL.RawQuery)
	} else {
		w.Null()
	}
	x.encodeHeaders(w)
	if len(inline) > 0 {
		w.ByteString(inline)
	} else {
		w.Null()
	}
	if ref.IsZero() {
		w.Null()
		w.Null()
	} else {
		w.Ref(ref.UID())
		w.Int(r.ContentLength)
	}
	w.Text(x.remoteText())
	w.Text(x.id)
	if x.who == nil {
		w.Null()
	} else if p := encodeIdentity(w, x.who); p.status != 0 {
		return done, p
	}
	*buf = w.Bytes()
	return done, problem{}
}

func encodeIdentity(w *abi.Writer, i *middleware.Identity) problem {
	n := 2
	if len(i.Claims) > 0 {
		n++
	}
	w.Map(n)
	w.Text("kind")
	w.Text(i.Kind)
	w.Text("name")
	w.Text(i.Name)
	if n > 2 {
		claims, err := host.Encode(i.Claims)
		if err != nil {
			return problem{status: http.StatusInternalServerError, text: "internal error", cause: err}
		}
		w.Text("claims")
		w.Raw(claims)
	}
	return problem{}
}

// encodeHeaders writes headers as a byte string of texts: names and values in turn, sorted by
// name, in lower case.
func (x *exchange) encodeHeaders(w *abi.Writer) {
	r, rt := x.r, x.route
	var room [32]string
	names := room[:0]
	named := r.Header["Connection"]
	for name := range r.Header {
		if middleware.HopByHop[name] || rt.pass != nil && !rt.pass[name] || name == "Authorization" && rt.Auth != nil {
			continue
		}
		if named != nil && middleware.InList(named, name) {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	h := abi.NewWriter(x.headers[:0])
	if rt.pass == nil || rt.pass["Host"] {
		h.Text("host")
		h.Text(r.Host)
	}
	var lower [64]byte
	for _, name := range names {
		small := lower[:0]
		for i := 0; i < len(name); i++ {
			c := name[i]
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			small = append(small, c)
		}
		for _, v := range r.Header[name] {
			h.Text(string(small))
			h.Text(v)
		}
	}
	w.ByteString(h.Bytes())
}

// body reads the body into the front of buf, up to what a message may have. The rest is
// left in x.rest.
func (x *exchange) body(buf *[]byte) ([]byte, problem) {
	r, rt := x.r, x.route
	tooLarge := problem{status: http.StatusRequestEntityTooLarge, text: "the body is too large"}
	most, inline := rt.Limits.Body, int64(x.g.cfg.Limits.Inline)
	if r.ContentLength > most {
		x.hangUp()
		return nil, tooLarge
	}
	control := http.NewResponseController(x.w.ResponseWriter)
	timed := control.SetReadDeadline(x.g.clock.Now().Add(rt.Body)) == nil
	read := http.MaxBytesReader(x.w.ResponseWriter, r.Body, most)
	if r.ContentLength > inline && canStream {
		x.rest = read
		return nil, problem{}
	}
	b, limit := (*buf)[:0], int(min(inline, most))+1
	var err error
	for err == nil && len(b) < limit {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		var n int
		n, err = read.Read(b[len(b):min(cap(b), limit)])
		b = b[:len(b)+n]
	}
	*buf = b
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		if timed {
			_ = control.SetReadDeadline(time.Time{}) // else the connection would be taken for one that has gone
		}
		if int64(len(b)) > inline && !canStream {
			return nil, tooLarge
		}
		return b, problem{}
	case errors.As(err, &large), int64(len(b)) > most:
		return nil, tooLarge
	case err == nil && canStream:
		x.rest = read
		return b, problem{}
	case err == nil:
		x.hangUp()
		return nil, tooLarge
	case isTimeout(err):
		x.hangUp()
		return nil, problem{status: http.StatusRequestTimeout, text: "the body did not come in time"}
	case r.Context().Err() != nil:
		return nil, problem{status: statusGone, text: "the client has disconnected"}
	}
	x.hangUp()
	return nil, problem{status: http.StatusBadRequest, text: "the body cannot be read", cause: err}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// tries is how often a request is sent that was not delivered because an actor had just ended.
const tries = 4

// ask chooses an actor, asks it and waits for the answer.
func (x *exchange) ask(v host.Raw) (host.Message, problem) {
	g := x.g
	expired := make(chan struct{})
	timer := g.clock.AfterFunc(x.route.Handler, func() { close(expired) })
	defer timer.Stop()
	var last problem
	for try := range tries {
		to, p := x.choose()
		if p.status != 0 {
			return host.Message{}, p
		}
		m, err := x.askOnce(to, v, expired)
		if err == nil {
			return m, problem{}
		}
		last = g.problemOf(err, g.there(to))
		if !errors.Is(err, host.ErrUnknown) && !errors.Is(err, host.ErrStopped) || errors.Is(err, host.ErrEnded) {
			if err == errGone {
				last = problem{status: statusGone, text: "the client has disconnected"}
			}
			return m, last
		}
		x.lease.forget(try)
		x.lease.release()
	}
	return host.Message{}, last
}

var errGone = errors.New("gateway: the client has disconnected")

// askOnce asks an actor.
func (x *exchange) askOnce(to host.Address, v host.Raw, expired <-chan struct{}) (host.Message, error) {
	ctx := x.r.Context()
	q, err := x.g.sys.TryRequest(to.To, host.Bound{Value: host.Traced(ctx, to.Message(v))})
	if err != nil {
		return host.Message{}, err
	}
	m, which := executor.Take(x.g.clock, q.Answer(), ctx.Done(), expired)
	switch which {
	case 0:
		return m, m.Err()
	case 1:
		q.Cancel()
		x.gone(to)
		return host.Message{}, errGone
	default:
		q.Cancel()
		x.gone(to)
		return host.Message{}, context.DeadlineExceeded
	}
}

// there is the actor of an address, or the zero Ref if it does not exist.
func (g *Gateway) there(to host.Address) host.Ref {
	ref, _ := g.sys.Find(to)
	return ref
}

// gone notifies the actor that the client has gone, if the route asks for that. No actor is started for it.
func (x *exchange) gone(at host.Address) {
	to := x.g.there(at)
	if !x.route.Cancel || to.IsZero() {
		return
	}
	w := abi.NewWriter(nil)
	w.Array(2)
	w.Text(GoneOp)
	w.Text(x.id)
	_ = x.g.sys.TryTell(to, host.Raw(w.Bytes()))
}
