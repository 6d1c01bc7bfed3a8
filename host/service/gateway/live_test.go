package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// alive is a site with what goes on for longer than a request.
func alive(t *testing.T, change func(*gateway.Config)) *site {
	t.Helper()
	cfg := gateway.Config{
		Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/live"}, Upgrade: gateway.Upgrade{WebSocket: true, Events: true}}},
		Limits: gateway.Limits{Body: 16 << 20},
	}
	if change != nil {
		change(&cfg)
	}
	return open(t, cfg, map[string]host.Props{"live": host.Guest(servicetest.Image(t), "gateway-live")})
}

func limit(t testing.TB) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(stop)
	return ctx
}

// socket is a client of a WebSocket.
type socket struct {
	*websocket.Conn
	t   testing.TB
	ctx context.Context
}

func (s *site) dial(path string, o *websocket.DialOptions) (*socket, *http.Response, error) {
	if o == nil {
		o = &websocket.DialOptions{}
	}
	o.HTTPClient = s.client
	ctx := limit(s.t)
	c, r, err := websocket.Dial(ctx, s.url+path, o)
	if err != nil {
		return nil, r, err
	}
	s.t.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(1 << 20)
	return &socket{c, s.t, ctx}, r, nil
}

func (s *site) socket(path string) *socket {
	s.t.Helper()
	c, _, err := s.dial(path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (c *socket) say(text string) {
	c.t.Helper()
	if err := c.Write(c.ctx, websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *socket) hear() string {
	c.t.Helper()
	_, b, err := c.Read(c.ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

func (c *socket) wants(text string) {
	c.t.Helper()
	if got := c.hear(); got != text {
		c.t.Fatalf("%q, want %q", got, text)
	}
}

// ended reads until the connection has ended, and returns the code.
func (c *socket) ended() websocket.StatusCode {
	for {
		if _, _, err := c.Read(c.ctx); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// eventually waits until a page is what it is to be.
func (s *site) eventually(path, want string) {
	s.t.Helper()
	got := ""
	for until := time.Now().Add(15 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		r, err := s.client.Get(s.url + path)
		if err != nil {
			s.t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if got = string(b); got == want {
			return
		}
	}
	s.t.Fatalf("%s: %q, want %q", path, got, want)
}

func (s *site) post(path string, body io.Reader) (int, string) {
	s.t.Helper()
	r, err := s.client.Post(s.url+path, "application/octet-stream", body)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func bytesOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 31)
	}
	return b
}

// TestBodiesOfOneConnection: the end of a body that came in parts does not end the connection for the
// next request, however close the answer follows it; and one that was not read to its end does.
func TestBodiesOfOneConnection(t *testing.T) {
	s := alive(t, nil)
	data := bytesOf(64 << 10)
	h := fnv.New64a()
	h.Write(data)
	want := fmt.Sprintf("%d %x", len(data), h.Sum64())
	for i := range 300 {
		if status, got := s.post("/digest", bytes.NewReader(data)); status != 200 || got != want {
			t.Fatalf("%d: %d %q, want %q", i, status, got, want)
		}
		if i%10 == 0 {
			if status, got := s.post("/mirror", bytes.NewReader(data)); status != 200 || got != string(data) {
				t.Fatalf("%d: mirror: %d, %d bytes", i, status, len(got))
			}
		}
	}
}

// TestBodies: bodies that fit into no message, with and without a length, and what is too much.
func TestBodies(t *testing.T) {
	s := alive(t, nil)
	for _, n := range []int{0, 1, 32 << 10, 32<<10 + 1, 64 << 10, 1<<20 + 3} {
		data := bytesOf(n)
		h := fnv.New64a()
		h.Write(data)
		want := fmt.Sprintf("%d %x", n, h.Sum64())
		for _, body := range []io.Reader{bytes.NewReader(data), struct{ io.Reader }{bytes.NewReader(data)}} {
			if status, got := s.post("/digest", body); status != 200 || got != want {
				t.Fatalf("%d bytes: %d %q, want %q", n, status, got, want)
			}
		}
		if status, got := s.post("/mirror", bytes.NewReader(data)); status != 200 || got != string(data) {
			t.Fatalf("mirror: %d, %d bytes of %d", status, len(got), n)
		}
	}
	if status, _ := s.post("/digest", bytes.NewReader(make([]byte, 17<<20))); status != 413 {
		t.Fatal(status)
	}
	// Without a length it is found out on the way.
	if status, text := s.post("/digest", struct{ io.Reader }{bytes.NewReader(make([]byte, 17<<20))}); status != 400 || !strings.Contains(text, "too_large: ") {
		t.Fatal(status, text)
	}
	// The client goes away in the middle: nothing stays behind.
	conn, err := net.Dial("tcp", s.g.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /digest HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n%s", make([]byte, 100_000))
	_ = conn.Close()
	for s.g.Underway() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestSlowBody: a client that sends nothing more is not waited for.
func TestSlowBody(t *testing.T) {
	s := alive(t, func(c *gateway.Config) { c.Timeouts.Body = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", s.g.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /digest HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n%s", make([]byte, 100_000))
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r.Body)
	if r.StatusCode != 408 && (r.StatusCode != 400 || !strings.Contains(string(b), "timeout: ")) {
		t.Fatal(r.StatusCode, string(b))
	}
}

// A route may take messages that are larger than a guest's inbox.
func TestLargeMessagesOfAWebSocket(t *testing.T) {
	s := alive(t, func(c *gateway.Config) {
		c.Routes[0].Upgrade.Message, c.Routes[0].Upgrade.Outbox = 600<<10, 2<<20
	})
	c := s.socket("/chat")
	for _, n := range []int{gateway.DefaultMessage + 1, 100_000, 600 << 10} {
		text := strings.Repeat("x", n)
		c.say(text)
		c.wants(text)
	}
	c.say(strings.Repeat("x", 600<<10+1))
	if code := c.ended(); code != websocket.StatusMessageTooBig {
		t.Fatal(code)
	}
}

func TestWebSocket(t *testing.T) {
	s := alive(t, nil)
	c := s.socket("/chat")
	c.say("hello")
	c.wants("hello")
	if err := c.Write(c.ctx, websocket.MessageBinary, []byte{0, 1, 255}); err != nil {
		t.Fatal(err)
	}
	if typ, b, err := c.Read(c.ctx); err != nil || typ != websocket.MessageBinary || !bytes.Equal(b, []byte{0, 1, 255}) {
		t.Fatal(typ, b, err)
	}
	other := s.socket("/chat")
	other.say("all of you")
	c.wants("of you")
	other.wants("of you")
	s.eventually("/count", "2 0")
	// Whatever the size, as one frame or in several.
	for _, n := range []int{0, 1, 125, 126, 4096, 65_535 - 10_000, gateway.DefaultMessage} {
		text := strings.Repeat("x", n)
		w, err := c.Writer(c.ctx, websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, text[:n/2])
		_, _ = io.WriteString(w, text[n/2:])
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		c.wants(text)
	}
	if err := c.Ping(c.CloseRead(c.ctx)); err != nil {
		t.Fatal(err)
	}
	other.say("close 3001")
	if code := other.ended(); code != 3001 {
		t.Fatal(code)
	}
	s.eventually("/closed", "3001 you asked for it")
	_ = c.Close(4000, "bye")
	s.eventually("/closed", "3001 you asked for it,4000 bye")
	s.eventually("/count", "0 0")
}

func TestWebSocketHandshake(t *testing.T) {
	s := alive(t, func(c *gateway.Config) { c.Routes[0].Upgrade.Origins = []string{"*.example.org"} })
	for _, c := range []struct {
		path    string
		header  http.Header
		offered []string
		status  int
		chosen  string
	}{
		{path: "/", status: 101},
		{path: "/", offered: []string{"other", "chat"}, status: 101, chosen: "chat"},
		{path: "/", offered: []string{"other"}, status: 101},
		{path: "/?refuse=1", status: 403},
		{path: "/", header: http.Header{"Origin": {s.url}}, status: 101},
		{path: "/", header: http.Header{"Origin": {"https://a.example.org"}}, status: 101},
		{path: "/", header: http.Header{"Origin": {"https://example.org"}}, status: 403},
		{path: "/", header: http.Header{"Origin": {"https://evil.example"}}, status: 403},
		{path: "/", header: http.Header{"Origin": {"null"}}, status: 403},
		{path: "/", header: http.Header{"Origin": {"%"}}, status: 403},
		{path: "/", header: http.Header{"Origin": {s.url, "https://evil.example"}}, status: 403},
		{path: "/", offered: strings.Fields(strings.Repeat("p ", 17)), status: 400},
	} {
		conn, r, err := s.dial(c.path, &websocket.DialOptions{HTTPHeader: c.header, Subprotocols: c.offered})
		if r == nil {
			t.Fatal(err)
		}
		if r.StatusCode != c.status || conn != nil && conn.Subprotocol() != c.chosen {
			t.Errorf("%+v: %d %v", c, r.StatusCode, err)
		}
		if conn != nil {
			_ = conn.CloseNow()
		}
	}
	// What is no handshake is an ordinary request, or a bad one.
	for head, status := range map[string]int{
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n": 426,
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n":                                               400,
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n":                   400,
		"Connection: keep-alive\r\n": 404,
	} {
		conn, err := net.Dial("tcp", s.g.Addrs()[0].String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /nothing HTTP/1.1\r\nHost: x\r\n%s\r\n", head)
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || r.StatusCode != status {
			t.Errorf("%q: %v %v", head, r, err)
		}
		_ = conn.Close()
	}
	s.eventually("/count", "0 0")
}

// TestCrashKeepsConnections: the actor crashes, its people stay, and it knows them again.
func TestCrashKeepsConnections(t *testing.T) {
	s := alive(t, nil)
	ann, bob := s.socket("/?name=ann"), s.socket("/?name=bob")
	ann.say("count")
	ann.wants("1")
	for i := range 5 {
		bob.say("crash")
		ann.wants("resumed ann")
		bob.wants("resumed bob")
		bob.say("count")
		bob.wants("1") // the actor began anew
		if i == 2 {
			bob.say("name rob")
			bob.say("name bob")
		}
	}
	ann.say("all together")
	ann.wants("together")
	bob.wants("together")
	if status, _ := s.post("/crash", nil); status != 502 {
		t.Fatal(status)
	}
	// A message that comes first finds its connection all the same.
	ann.say("hello")
	got := map[string]bool{ann.hear(): true, ann.hear(): true}
	if !got["resumed ann"] || !got["hello"] {
		t.Fatal(got)
	}
	bob.wants("resumed bob")
	s.eventually("/count", "2 0")
}

// TestOrder: messages of a peer are handled in order, none is lost, whatever happens in between.
func TestOrder(t *testing.T) {
	s := alive(t, nil)
	c, other := s.socket("/"), s.socket("/")
	n := 500
	if testing.Short() {
		n = 100
	}
	go func() {
		for range 5 {
			_ = other.Write(other.ctx, websocket.MessageText, []byte("crash"))
			time.Sleep(2 * time.Millisecond)
		}
	}()
	go func() {
		for i := range n {
			_ = c.Write(c.ctx, websocket.MessageText, []byte(fmt.Sprint("m", i)))
		}
	}()
	for i := 0; i < n; {
		switch got := c.hear(); {
		case strings.HasPrefix(got, "resumed"):
		case got == fmt.Sprint("m", i):
			i++
		default:
			t.Fatalf("%q, want m%d", got, i)
		}
	}
}

// TestActorEnds: the end of the actor is that of its connections.
func TestActorEnds(t *testing.T) {
	s := alive(t, nil)
	c := s.socket("/")
	c.say("x")
	c.wants("x")
	ref, err := s.sys.Lookup("/user/live")
	if err != nil {
		t.Fatal(err)
	}
	s.sys.Stop(ref)
	if code := c.ended(); code != websocket.StatusGoingAway && code != -1 {
		t.Fatal(code)
	}
}

// TestSlowPeer: who is told is cut off when the outbox is full, who is asked is waited for.
func TestSlowPeer(t *testing.T) {
	s := alive(t, func(c *gateway.Config) { c.Timeouts.Write = 300 * time.Millisecond })
	c := s.socket("/")
	c.say("flood 3000")
	start := time.Now()
	s.eventually("/closed", "1013 the peer is too slow")
	if time.Since(start) > 10*time.Second {
		t.Fatal("it took too long")
	}
	c = s.socket("/")
	c.say("pour 300")
	for i := range 300 {
		if i%100 == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if got := c.hear(); !strings.HasPrefix(got, fmt.Sprintf("pour %d.", i)) {
			t.Fatalf("%.20q, want %d", got, i)
		}
	}
	c.wants("done")
	// One that takes nothing at all does not stay.
	c = s.socket("/")
	c.say("pour 100000")
	for until := time.Now().Add(15 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r := s.get("/closed")
		if strings.Contains(r.body, "1006 ") && strings.Contains(r.body, "unavailable: ") {
			break
		}
		if time.Now().After(until) {
			t.Fatal(r.body)
		}
	}
}

// deadline is what frames returns if the connection does not end.
const deadline = -2

// frames writes raw frames to a fresh connection and returns what it ends with; -1: without a word.
func (s *site) frames(frames ...[]byte) int {
	s.t.Helper()
	return s.framesWith("", frames...)
}

// framesWith is frames with further headers.
func (s *site) framesWith(headers string, frames ...[]byte) int {
	s.t.Helper()
	conn, in := dialRawWith(s.t, s.g.Addrs()[0].String(), headers)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(15 * time.Second))
	go func() {
		for _, f := range frames {
			if _, err := conn.Write(f); err != nil {
				return
			}
		}
	}()
	lost := func(err error) int {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return deadline
		}
		return -1
	}
	for {
		var head [2]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return lost(err)
		}
		b := make([]byte, head[1]&0x7f)
		if _, err := io.ReadFull(in, b); err != nil {
			return lost(err)
		}
		if head[0]&0xf == 8 {
			if len(b) < 2 {
				return 1005
			}
			return int(b[0])<<8 | int(b[1])
		}
	}
}

// masked is a frame of a client; the key is 0.
func masked(first byte, payload []byte) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = append(b, 0x80|126, byte(n>>8), byte(n))
	default:
		b = append(b, 0x80|127, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

// TestHostileFrames: what a peer that keeps to nothing gets.
func TestHostileFrames(t *testing.T) {
	s := alive(t, func(c *gateway.Config) {
		c.Routes[0].Body = 600 * time.Millisecond
		c.Routes[0].Upgrade.Ping = 400 * time.Millisecond
	})
	ok := masked(0x81, []byte("fine"))
	fragments := [][]byte{masked(0x01, []byte("a"))}
	for range 200 {
		fragments = append(fragments, masked(0x00, bytes.Repeat([]byte("a"), 1000)))
	}
	var pings [][]byte
	for range 1000 {
		pings = append(pings, masked(0x89, bytes.Repeat([]byte("p"), 125)))
	}
	for name, c := range map[string]struct {
		frames [][]byte
		codes  []int
	}{
		"no UTF-8":               {[][]byte{ok, masked(0x81, []byte{0xff, 0xfe})}, []int{1007}},
		"too large":              {[][]byte{masked(0x82, make([]byte, gateway.DefaultMessage+1))}, []int{1009}},
		"too large in pieces":    {fragments, []int{1009}},
		"a length of 2^62":       {[][]byte{{0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}, []int{1009, -1}},
		"a negative length":      {[][]byte{{0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}, []int{1002, 1009, -1}},
		"not masked":             {[][]byte{{0x81, 0x01, 'a'}}, []int{1002, -1}},
		"reserved bits":          {[][]byte{masked(0xf1, []byte("a"))}, []int{1002}},
		"unknown opcode":         {[][]byte{masked(0x83, []byte("a"))}, []int{1002}},
		"a long ping":            {[][]byte{masked(0x89, make([]byte, 126))}, []int{1002}},
		"a ping in pieces":       {[][]byte{masked(0x09, []byte("a"))}, []int{1002}},
		"continued from nothing": {[][]byte{masked(0x80, []byte("a"))}, []int{1002}},
		"a message in a message": {[][]byte{masked(0x01, []byte("a")), masked(0x81, []byte("b"))}, []int{1002}},
		"compressed, unasked":    {[][]byte{masked(0xc1, []byte("a"))}, []int{1002}},
		"a flood of pings":       {pings, []int{-1}},
		"an unfinished message":  {[][]byte{masked(0x01, []byte("a"))}, []int{-1}},
		"an unfinished frame":    {[][]byte{masked(0x81, []byte("abcdef"))[:9]}, []int{-1}},
		"half-open":              {nil, []int{-1}},
		"close":                  {[][]byte{masked(0x88, []byte{0x03, 0xe8})}, []int{1000}},
		"a bad close code":       {[][]byte{masked(0x88, []byte{0x03, 0xed})}, []int{1002, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.frames(c.frames...)
			for _, want := range c.codes {
				if got == want {
					return
				}
			}
			t.Fatalf("%d, want %v", got, c.codes)
		})
	}
	s.eventually("/count", "0 0")
	c := s.socket("/") // and the next one is served
	c.say("x")
	c.wants("x")
}

// TestPeerHangsUpOnTheClose: what the actor has closed has ended as it said, also when the peer does
// not answer.
func TestPeerHangsUpOnTheClose(t *testing.T) {
	s := alive(t, nil)
	var want []string
	for range 30 {
		if code := s.frames(masked(0x81, []byte("close 3001"))); code != 3001 {
			t.Fatal(code)
		}
		want = append(want, "3001 you asked for it")
	}
	s.eventually("/closed", strings.Join(want, ","))
}

// TestDrainClosesSockets: connections are told when the server stops.
func TestDrainClosesSockets(t *testing.T) {
	s := alive(t, nil)
	c := s.socket("/")
	c.say("x")
	c.wants("x")
	e := s.listen("/", "")
	e.next()
	done := make(chan error)
	go func() { done <- s.g.Drain(limit(t)) }()
	if code := c.ended(); code != websocket.StatusGoingAway {
		t.Fatal(code)
	}
	if _, err := e.r.ReadString('\n'); err != io.EOF {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// listener reads server-sent events.
type listener struct {
	t    testing.TB
	r    *bufio.Reader
	resp *http.Response
}

func (s *site) listen(path, last string) *listener {
	s.t.Helper()
	r, err := http.NewRequestWithContext(limit(s.t), "GET", s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return &listener{s.t, bufio.NewReader(resp.Body), resp}
}

// next is the next event, as its lines; comments are passed over.
func (l *listener) next() string {
	l.t.Helper()
	var lines []string
	for {
		line, err := l.r.ReadString('\n')
		if err != nil {
			l.t.Fatal(err)
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && len(lines) > 0:
			return strings.Join(lines, "|")
		case line != "" && line[0] != ':':
			lines = append(lines, line)
		}
	}
}

func (l *listener) wants(event string) {
	l.t.Helper()
	if got := l.next(); got != event {
		l.t.Fatalf("%q, want %q", got, event)
	}
}

func TestEvents(t *testing.T) {
	s := alive(t, func(c *gateway.Config) { c.Routes[0].Upgrade.Ping = 20 * time.Millisecond })
	e := s.listen("/feed", "")
	if e.resp.StatusCode != 200 || e.resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(e.resp)
	}
	e.wants("event: greeting|data: hello ")
	s.post("/publish?name=news", strings.NewReader("one\ntwo\r\nthree\rid: 99"))
	e.wants("event: news|id: 1|data: one|data: two|data: three|data: id: 99")
	for { // a sign of life
		line, err := e.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ":\n" {
			break
		}
	}
	again := s.listen("/feed", "17")
	again.wants("event: greeting|data: hello 17")
	s.eventually("/count", "0 2")
	if status, _ := s.post("/crash", nil); status != 502 {
		t.Fatal(status)
	}
	e.wants("event: greeting|data: again ")
	again.wants("event: greeting|data: again 17")
	_ = again.resp.Body.Close() // the client goes
	s.eventually("/count", "0 1")
	s.eventually("/closed", "events")
	s.post("/end", nil)
	if b, err := io.ReadAll(e.r); err != nil {
		t.Fatalf("%q %v", b, err)
	}
	s.eventually("/count", "0 0")
	if r := s.listen("/feed?refuse=1", ""); r.resp.StatusCode != 403 {
		t.Fatal(r.resp.StatusCode)
	}
}

// TestConnectionRequests: what a guest can ask of a connection that is not right.
func TestConnectionRequests(t *testing.T) {
	refs := make(chan host.Ref, 2)
	s := open(t, gateway.Config{Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/go"}, Upgrade: gateway.Upgrade{WebSocket: true, Events: true, Outbox: 1000}}}},
		map[string]host.Props{"go": host.Func(func(ctx *host.Context, m host.Message) error {
			var op []any
			if m.Decode(&op) != nil {
				return nil
			}
			if name, _ := op[0].(string); strings.HasSuffix(name, ".open") {
				in := op[1].(map[any]any)
				ref, err := ctx.System().RefOf(refUID(in["conn"]), m.Sender)
				if err != nil {
					return err
				}
				refs <- ref
			}
			return ctx.Reply(nil)
		})})
	c := s.socket("/")
	e := s.listen("/", "")
	ws, sse := <-refs, <-refs
	ask := func(to host.Ref, op string, args any, want string) {
		t.Helper()
		_, err := s.sys.Ask(limit(t), to, []any{op, args})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Fatalf("%s %v: %v, want %q", op, args, err, want)
		}
	}
	for _, to := range []host.Ref{ws, sse} {
		ask(to, "nothing", nil, "bad_request: ")
		ask(to, "close", 7, "bad_request: ")
		ask(to, "state", strings.Repeat("x", 5000), "too_large: ")
		ask(to, "state", []any{1, 2}, "")
		for _, raw := range [][]byte{{0xf6}, {0x82}, {0x81, 0x60}, {0x82, 0x01, 0x02}, {0xff}} {
			if _, err := s.sys.Ask(limit(t), to, host.Raw(raw)); err == nil || !strings.Contains(err.Error(), "bad_request: ") {
				t.Fatalf("%x: %v", raw, err)
			}
		}
	}
	ask(ws, "text", []byte("x"), "bad_request: ")
	ask(ws, "binary", "x", "bad_request: ")
	ask(ws, "text", strings.Repeat("x", 1000), "too_large: ")
	ask(ws, "close", map[string]any{"code": 1005}, "bad_request: ")
	ask(ws, "close", map[string]any{"code": 99999}, "bad_request: ")
	ask(ws, "close", map[string]any{"code": 1000, "reason": strings.Repeat("x", 124)}, "bad_request: ")
	ask(ws, "close", map[string]any{"why": 1}, "bad_request: ")
	ask(sse, "event", map[string]any{"data": "x", "event": "a\nb"}, "bad_request: ")
	ask(sse, "event", map[string]any{"data": "x", "id": "a\rb"}, "bad_request: ")
	ask(sse, "event", map[string]any{"data": "x", "id": "a\x00"}, "bad_request: ")
	ask(sse, "event", map[string]any{"data": "x", "other": 1}, "bad_request: ")
	ask(sse, "event", map[string]any{"retry": -1}, "bad_request: ")
	ask(sse, "event", map[string]any{"event": "x"}, "bad_request: ")
	ask(sse, "comment", "a\nb", "bad_request: ")
	ask(ws, "text", "fine", "")
	c.wants("fine")
	ask(sse, "comment", "not seen", "")
	ask(sse, "event", map[string]any{"data": "x", "id": ""}, "")
	e.wants("id: |data: x")
	ask(ws, "close", nil, "")
	if code := c.ended(); code != websocket.StatusNormalClosure {
		t.Fatal(code)
	}
	// Who watches it hears of its end.
	ended, err := s.sys.Ended(ws)
	if err == nil {
		<-ended
	} else if !errors.Is(err, host.ErrUnknown) {
		t.Fatal(err)
	}
}

func refUID(v any) abi.Ref {
	n, _ := v.(uint64)
	return abi.Ref(n)
}

// TestRestartWithinTheAnnouncement: an announcement that was answered by an incarnation which has
// ended meanwhile is made again.
func TestRestartWithinTheAnnouncement(t *testing.T) {
	opened, replies := make(chan bool, 10), make(chan *host.Reply, 1)
	hold := true
	s := open(t, gateway.Config{
		Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/live"}, Upgrade: gateway.Upgrade{WebSocket: true}}},
	}, map[string]host.Props{"live": host.Func(func(ctx *host.Context, m host.Message) error {
		r := abi.NewReader(m.Payload)
		r.Array()
		switch op := r.Text(); op {
		case gateway.WSOpen:
			var in []any
			if err := m.Decode(&in); err != nil {
				return err
			}
			_, resumed := in[1].(map[any]any)["resumed"]
			opened <- resumed
			if !resumed || !hold {
				return ctx.Reply(map[string]any{})
			}
			hold = false
			later, err := ctx.Later()
			replies <- later
			return err
		case "crash":
			return errors.New("oh")
		}
		return host.ErrUnhandled
	})})
	crash := func() {
		ref, err := s.sys.Lookup("/user/live")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.sys.Tell(ref, []any{"crash"}); err != nil {
			t.Fatal(err)
		}
	}
	s.socket("/")
	next := func(what string, want bool) {
		select {
		case got := <-opened:
			if got != want {
				t.Fatalf("%s: resumed is %t", what, got)
			}
		case <-time.After(15 * time.Second):
			t.Fatalf("%s: it was not announced", what)
		}
	}
	next("at first", false)
	crash()
	next("after a crash", true)
	later := <-replies
	crash()
	time.Sleep(50 * time.Millisecond) // the connection hears of the restart; later will do, too
	if err := later.Send(nil); err != nil {
		t.Fatal(err)
	}
	next("answered by who has ended", true)
}

// TestClientGoesBeforeItsConnectionIsOpen: what was made for it ends.
func TestClientGoesBeforeItsConnectionIsOpen(t *testing.T) {
	asked := make(chan host.Ref, 1)
	s := open(t, gateway.Config{
		Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/live"}, Upgrade: gateway.Upgrade{WebSocket: true}}},
	}, map[string]host.Props{"live": host.Func(func(ctx *host.Context, m host.Message) error {
		r := abi.NewReader(m.Payload)
		r.Array()
		if r.Text() != gateway.WSOpen {
			return host.ErrUnhandled
		}
		var in []any
		if err := m.Decode(&in); err != nil {
			return err
		}
		ref, err := ctx.System().RefOf(abi.Ref(in[1].(map[any]any)["conn"].(uint64)), m.Sender)
		asked <- ref
		return err
	})})
	conn, err := net.Dial("tcp", s.g.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	ref := <-asked
	_ = conn.Close()
	for until := time.Now().Add(15 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, alive := s.sys.Load(ref); !alive && s.g.Underway() == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the actor of the connection is still there")
		}
	}
}
