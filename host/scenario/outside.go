package scenario

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"
	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Requests from outside go through the bundle's own gateway, which listens nowhere: the scenario hands them to
// it. A WebSocket is a pipe in memory.

// outside reports whether a step is a request to the routes of the bundle.
func (s *step) outside() bool {
	return s.verb.name == "websocket" || s.verb.name == "http" && s.verb.of.Kind == grammar.Text
}

// outside reports whether a step of the scenario is.
func (s *Scenario) outside() bool {
	return slices.ContainsFunc(s.steps, func(x step) bool { return x.outside() })
}

// outside checks a step that is.
func (c *checker) outside(n *yaml.Node, v *verb) {
	switch {
	case v.name == "websocket":
		if len(n.Content) == 2 {
			c.At(n, "websocket needs at least one of open, say, answer, match, close, closed")
		}
		if open := grammar.At(n, "open"); open == nil {
			for _, key := range []string{"headers", "status"} {
				if x := grammar.At(n, key); x != nil {
					c.At(x, "%s needs open", key)
				}
			}
		} else if _, err := target(open.Value); err != nil {
			c.At(open, "open: %v", err)
		}
		if x := grammar.At(n, "close"); x != nil && x.Value == "false" {
			c.At(x, "close is true, or left out")
		}
	case v.name == "http" && v.of.Kind == grammar.Text:
		if _, _, err := requestLine(grammar.At(n, "http").Value); err != nil {
			c.At(grammar.At(n, "http"), "http: %v", err)
		}
		if x := grammar.At(n, "json"); x != nil && grammar.At(n, "body") != nil {
			c.At(x, "json and body cannot be combined")
		}
	}
}

// requestLine reads METHOD /path?query.
func requestLine(text string) (method string, at *url.URL, err error) {
	method, path, ok := strings.Cut(text, " ")
	if !ok || method == "" || strings.ToUpper(method) != method {
		return "", nil, fmt.Errorf("%q is not a request such as GET /users/ann", text)
	}
	at, err = target(path)
	return method, at, err
}

func target(path string) (*url.URL, error) {
	u, err := url.Parse("http://localhost" + path)
	if err != nil || !strings.HasPrefix(path, "/") || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the path of a request such as /users/ann?all=1", path)
	}
	return u, nil
}

// mostAnswer bounds the body of an answer, in bytes.
const mostAnswer = 16 << 20

// client makes one request and takes its answer.
type client struct {
	name   string
	exec   *executor.Sim
	cancel context.CancelFunc

	mu     sync.Mutex
	header http.Header
	status int // 0: no answer yet
	body   bytes.Buffer
	done   bool
	theirs net.Conn // of a WebSocket

	ws    *websocket.Conn
	heard [][]byte
	err   error // why there will be no more messages
}

// start begins a goroutine of the client, for which a step waits as for those of services.
func (c *client) start(f func()) { executor.Go(c.exec, f) }

// Header implements http.ResponseWriter.
func (c *client) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *client) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		c.status = status
	}
}

// Write implements http.ResponseWriter.
func (c *client) Write(b []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.body.Len()+len(b) > mostAnswer {
		return 0, errors.New("the answer is too large for a scenario")
	}
	return c.body.Write(b)
}

// Flush implements http.Flusher.
func (c *client) Flush() { c.WriteHeader(http.StatusOK) }

// Hijack implements http.Hijacker, for WebSockets.
func (c *client) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	ours, theirs := newPipe(c.exec)
	c.mu.Lock()
	c.theirs = theirs
	c.mu.Unlock()
	return ours, bufio.NewReadWriter(bufio.NewReader(ours), bufio.NewWriter(ours)), nil
}

// serve has the gateway answer.
func (c *client) serve(h http.Handler, r *http.Request) {
	defer func() {
		v := recover() // a client that has gone: http.ErrAbortHandler
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done = true
		if v != nil && c.status == 0 {
			c.status = http.StatusInternalServerError
		}
	}()
	h.ServeHTTP(c, r)
}

// ended reports whether the request is over, or has become a WebSocket.
func (c *client) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done || c.theirs != nil
}

// listen takes the messages of a WebSocket.
func (c *client) listen(ctx context.Context, hold func(int)) {
	for {
		_, b, err := c.ws.Read(ctx)
		c.mu.Lock()
		if err != nil {
			c.err = err
			c.mu.Unlock()
			return
		}
		c.heard = append(c.heard, b)
		c.mu.Unlock()
		hold(len(b))
	}
}

// end closes a WebSocket without ceremony.
func (c *client) end() {
	c.cancel()
	if c.ws != nil {
		_ = c.ws.CloseNow()
	}
}

// newRequest is a request of a client.
func (w *world) newRequest(s *step, method string, to *url.URL, body []byte) (*client, *http.Request) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &http.Request{
		Method: method, URL: &url.URL{Path: to.Path, RawPath: to.RawPath, RawQuery: to.RawQuery}, Host: "localhost", Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RequestURI: to.RequestURI(), RemoteAddr: "192.0.2.1:1234", // of the network for documentation
		Body: http.NoBody, ContentLength: int64(len(body)),
	}
	if len(body) > 0 {
		r.Body = readCloser{bytes.NewReader(body)}
	}
	for key, value := range s.texts("headers") {
		if strings.EqualFold(key, "host") {
			r.Host = value
			continue
		}
		r.Header.Set(key, value)
	}
	return &client{exec: w.exec, cancel: cancel, header: http.Header{}}, r.WithContext(ctx)
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// request carries out a step http.
func (w *world) request(s *step) error {
	if w.gateway == nil {
		return noRoutes(s)
	}
	method, to, err := requestLine(s.object())
	if err != nil {
		return err
	}
	body := []byte(s.text("body"))
	if n := grammar.At(s.n, "json"); n != nil {
		if body, err = w.asJSON(n); err != nil {
			return err
		}
	}
	c, r := w.newRequest(s, method, to, body)
	if s.has("json") && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	defer c.cancel()
	w.note("%s", s.object())
	c.start(func() { c.serve(w.gateway, r) })
	within := s.span("within", DefaultWithin)
	if err := w.runUntilIdle(); err != nil {
		return err
	}
	got, err := w.until(within, c.ended)
	if err != nil {
		return err
	}
	if !got {
		return &stepError{what: fmt.Sprintf("%s was not answered within %v", s.object(), within)}
	}
	if err := w.statusOf(s, c); err != nil {
		return err
	}
	if d := hasHeaders(s.texts("answer-headers"), func(key string) (string, bool) {
		v := c.header.Get(key)
		return v, v != ""
	}); d != "" {
		return &stepError{what: d}
	}
	return w.compareText(s, c.body.Bytes(), "answer", "its body")
}

func noRoutes(s *step) error {
	return &stepError{what: fmt.Sprintf("%s is for the routes of the bundle, and its manifest has no http", s.verb.name)}
}

// statusOf compares the status of an answer with what a step expects.
func (w *world) statusOf(s *step, c *client) error {
	want := s.whole("status", 0)
	if c.status == want || want == 0 && c.status/100 == 2 {
		return nil
	}
	text := fmt.Sprint(want)
	if want == 0 {
		text = "any from 200 to 299"
	}
	return &stepError{what: "it has another status", want: text, got: strings.TrimSpace(fmt.Sprintf("%d %s", c.status, show(c.body.String())))}
}

// asJSON is a value of a file as JSON.
func (w *world) asJSON(n *yaml.Node) ([]byte, error) {
	v, err := valueOf(n, w.number)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// websocket carries out a step websocket.
func (w *world) websocket(s *step) error {
	name := s.object()
	if s.has("open") {
		if err := w.open(s, name); err != nil || s.has("status") {
			return err
		}
	}
	c := w.clients[name]
	if c == nil {
		return &stepError{what: fmt.Sprintf("there is no WebSocket %s", name), hint: "open makes one"}
	}
	if n := grammar.At(s.n, "say"); n != nil {
		v, err := valueOf(n, w.number)
		if err != nil {
			return err
		}
		kind, data := websocket.MessageText, []byte(nil)
		switch v := v.(type) {
		case string:
			data = []byte(v)
		case []byte:
			kind, data = websocket.MessageBinary, v
		default:
			if data, err = json.Marshal(v); err != nil {
				return err
			}
		}
		w.note("%s says %s", name, source(n))
		c.start(func() { c.say(w.ctx, kind, data) })
		if err := w.runUntilIdle(); err != nil {
			return err
		}
	}
	if s.has("answer") || s.has("match") {
		if err := w.hear(s, c); err != nil {
			return err
		}
	}
	if s.has("close") {
		w.note("%s closes", name)
		c.start(c.close)
		if err := w.runUntilIdle(); err != nil {
			return err
		}
	}
	if want := s.whole("closed", 0); want != 0 {
		within := s.span("within", DefaultWithin)
		is := 0
		got, err := w.until(within, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			is = int(websocket.CloseStatus(c.err))
			return c.err != nil
		})
		switch {
		case err != nil:
			return err
		case !got:
			return &stepError{what: fmt.Sprintf("%s was not closed within %v", name, within), want: fmt.Sprint(want)}
		case is != want:
			return &stepError{what: fmt.Sprintf("%s was closed otherwise", name), want: fmt.Sprint(want), got: fmt.Sprint(is)}
		}
	}
	return nil
}

// say sends a message; close says that it is over.
func (c *client) say(ctx context.Context, kind websocket.MessageType, data []byte) {
	_ = c.ws.Write(ctx, kind, data) // if it cannot, it is closed, which is heard
}

func (c *client) close() {
	executor.Outside(c.exec, func() { _ = c.ws.Close(websocket.StatusNormalClosure, "") })
}

// hear takes the next message of a WebSocket.
func (w *world) hear(s *step, c *client) error {
	within := s.span("within", DefaultWithin)
	var data []byte
	var closed error
	got, err := w.until(within, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.heard) > 0 {
			data, c.heard = c.heard[0], c.heard[1:]
			return true
		}
		closed = c.err
		return closed != nil
	})
	switch {
	case err != nil:
		return err
	case closed != nil && data == nil:
		return &stepError{what: fmt.Sprintf("%s is closed: %v", c.name, closed), want: w.wanted(s, "answer")}
	case !got:
		return &stepError{what: fmt.Sprintf("%s heard nothing within %v", c.name, within), want: w.wanted(s, "answer")}
	}
	w.release(len(data))
	w.note("%s hears %s", c.name, show(string(data)))
	return w.compareText(s, data, "answer", "it")
}

// open opens a WebSocket.
func (w *world) open(s *step, name string) error {
	if w.gateway == nil {
		return noRoutes(s)
	}
	to, err := target(s.text("open"))
	if err != nil {
		return err
	}
	if old := w.clients[name]; old != nil {
		old.start(func() { executor.Outside(old.exec, old.end) })
	}
	c, r := w.newRequest(s, http.MethodGet, to, nil)
	c.name = name
	w.note("%s opens %s", name, s.text("open"))
	dialed := make(chan error, 1)
	c.start(func() { c.dial(r, w, dialed) })
	within := s.span("within", DefaultWithin)
	if err := w.runUntilIdle(); err != nil {
		return err
	}
	var failed error
	got, err := w.until(within, func() bool {
		select {
		case failed = <-dialed:
			return true
		default:
			return false
		}
	})
	switch {
	case err != nil:
		return err
	case !got:
		c.cancel()
		return &stepError{what: fmt.Sprintf("%s was not answered within %v", s.text("open"), within)}
	case s.has("status") || failed != nil:
		if c.status == s.whole("status", 0) {
			return nil
		}
		want := "a WebSocket"
		if s.has("status") {
			want = s.text("status")
		}
		return &stepError{what: "it has another status", want: want, got: strings.TrimSpace(fmt.Sprintf("%d %s", c.status, show(c.body.String())))}
	}
	w.clients[name] = c
	return nil
}

// dial opens the WebSocket and listens.
func (c *client) dial(r *http.Request, w *world, dialed chan<- error) {
	headers := r.Header.Clone()
	ws, _, err := websocket.Dial(r.Context(), "ws://"+r.Host+r.RequestURI, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: handshake{c, w, r}}, HTTPHeader: headers, Host: r.Host,
	})
	if err == nil {
		ws.SetReadLimit(mostAnswer)
		c.ws = ws
	}
	dialed <- err
	if err == nil {
		c.listen(r.Context(), w.hold)
	}
}

// handshake has the gateway answer the request for a WebSocket.
type handshake struct {
	c *client
	w *world
	r *http.Request
}

// RoundTrip implements http.RoundTripper.
func (h handshake) RoundTrip(asked *http.Request) (*http.Response, error) {
	r := h.r.Clone(h.r.Context())
	r.Header = asked.Header
	answered := make(chan struct{})
	h.c.start(func() { h.c.shake(h.w.gateway, r, answered) })
	executor.Take(h.c.exec, answered)
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	res := &http.Response{StatusCode: h.c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h.c.header.Clone(), Request: asked}
	if h.c.theirs == nil {
		res.Body = readCloser{bytes.NewReader(h.c.body.Bytes())}
		return res, nil
	}
	res.Body = h.c.theirs
	return res, nil
}

// shake closes answered as soon as the request is answered, or is a WebSocket.
func (c *client) shake(h http.Handler, r *http.Request, answered chan<- struct{}) {
	var once sync.Once
	done := func() { once.Do(func() { close(answered) }) }
	defer done()
	c.serve(hijacked{h, done}, r)
}

// hijacked is a handler that tells when its connection was taken over.
type hijacked struct {
	http.Handler
	taken func()
}

// ServeHTTP implements http.Handler.
func (h hijacked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Handler.ServeHTTP(taker{w.(*client), h.taken}, r)
}

type taker struct {
	*client
	taken func()
}

// Hijack implements http.Hijacker.
func (t taker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := t.client.Hijack()
	t.taken()
	return conn, rw, err
}
