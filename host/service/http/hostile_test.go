package httpclient_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
)

// Each hop of a redirect is a request of its own.
func TestRedirects(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.name("other.example.com", "93.184.216.35")
	w.name("in.example.com", "127.0.0.1")
	w.name("metadata.example.com", "169.254.169.254")
	var hits, loops atomic.Int32
	w.serve("127.0.0.1:80", func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	w.serve("169.254.169.254:80", func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	w.serve("10.0.0.1:80", func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	show := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s%s auth=%q cookie=%q accept=%q type=%q key=%q body=%q", r.Method, r.Host, r.URL,
			r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("Accept"), r.Header.Get("Content-Type"), r.Header.Get("X-Key"), body)
	}
	w.serve(public+":80", func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header()["Location"] = []string{to}
			var status int
			_, _ = fmt.Sscan(strings.TrimPrefix(r.URL.Path, "/"), &status)
			w.WriteHeader(status)
			return
		}
		if r.URL.Path == "/loop" {
			loops.Add(1)
			http.Redirect(w, r, "/loop", http.StatusFound)
			return
		}
		if r.URL.Path == "/nowhere" {
			w.WriteHeader(http.StatusFound)
			return
		}
		show(w, r)
	})
	w.serve("93.184.216.35:80", show)
	f := start(t, w, nil)
	g := httpclient.Grant{
		Hosts: []string{"http://www.example.com", "http://in.example.com", "http://metadata.example.com"}, Methods: []string{"GET", "POST", "HEAD"},
		Headers: []string{"authorization", "cookie", "x-key"}, Redirects: 3,
		Rules: []httpclient.Rule{{Hosts: []string{"http://other.example.com"}, Methods: []string{"GET", "POST"}, Paths: []string{"/ok/**"}}},
	}
	a := f.actor(g, service.Bounds{})
	with := func(status int, to string, more args) args {
		in := args{"url": fmt.Sprintf("http://www.example.com/%d?to=%s", status, strings.NewReplacer("%", "%25", "&", "%26", "\\", "%5c", " ", "%20", "#", "%23", "\r", "%0d", "\n", "%0a", "\t", "%09").Replace(to))}
		for k, v := range more {
			in[k] = v
		}
		return in
	}
	secrets := [][2]string{{"authorization", "secret"}, {"cookie", "c"}, {"accept", "text/html"}, {"content-type", "text/plain"}, {"x-key", "k"}}
	post := args{"method": "POST", "headers": secrets, "body": []byte("data")}
	for _, row := range []struct {
		in   args
		want string
	}{
		{with(302, "/x", args{"headers": secrets[:3]}), `GET www.example.com/x auth="secret" cookie="c" accept="text/html" type="" key="" body=""`},
		{with(302, "//other.example.com/ok/1", args{"headers": secrets[:3]}), `GET other.example.com/ok/1 auth="" cookie="" accept="text/html" type="" key="" body=""`},
		{with(303, "/x", post), `GET www.example.com/x auth="secret" cookie="c" accept="text/html" type="" key="k" body=""`},
		{with(301, "/x", post), `GET www.example.com/x auth="secret" cookie="c" accept="text/html" type="" key="k" body=""`},
		{with(307, "/x", post), `POST www.example.com/x auth="secret" cookie="c" accept="text/html" type="text/plain" key="k" body="data"`},
		{with(308, "http://other.example.com/ok/2", post), `POST other.example.com/ok/2 auth="" cookie="" accept="text/html" type="text/plain" key="" body="data"`},
		{with(302, "http://www.example.com/302?to=/y", nil), `GET www.example.com/y auth="" cookie="" accept="" type="" key="" body=""`},
	} {
		r, err := a.do(row.in)
		if err != nil || string(r.Body) != row.want || r.URL == "" {
			t.Errorf("%v: %+v, %v", row.in, r, err)
			if r != nil {
				t.Errorf("%s", r.Body)
			}
		}
	}
	for _, row := range []struct {
		in   args
		code service.Code
		text string
	}{
		{with(302, "http://10.0.0.1/", nil), service.Denied, "after a redirect: http://10.0.0.1:80 is not granted; capabilities.http.hosts"},
		{with(302, "http://evil.example/", nil), service.Denied, "capabilities.http.hosts"},
		{with(302, "https://www.example.com/", nil), service.Denied, "capabilities.http.hosts"},
		{with(302, "http://www.example.com:8080/", nil), service.Denied, "capabilities.http.hosts"},
		{with(302, "http://in.example.com/", nil), service.Denied, "capabilities.http.private"},
		{with(302, "http://metadata.example.com/latest/meta-data", nil), service.Denied, "metadata"},
		{with(302, "http://other.example.com/admin", nil), service.Denied, "capabilities.http.paths"},
		{with(302, "http://other.example.com/ok/%2e%2e/admin", nil), service.Denied, "capabilities.http.paths"},
		{with(302, "http://www.example.com@evil.example/", nil), service.Failed, "has a user"},
		{with(302, "http://evil.example\\@www.example.com/", nil), service.Failed, "not a URL to follow"},
		{with(302, "\\\\evil.example/", nil), service.Failed, "not a URL to follow"},
		{with(302, "http://0x7f.1/", nil), service.Failed, "not a URL to follow"},
		{with(302, "http://2130706433/", nil), service.Failed, "not a URL to follow"},
		{with(302, "file:///etc/passwd", nil), service.Failed, "not a URL to follow"},
		{with(302, "gopher://www.example.com/", nil), service.Failed, "not a URL to follow"},
		{with(302, "http://www.example.com/ x", nil), service.Failed, "not a URL to follow"},
		{args{"url": "http://www.example.com/loop"}, service.Failed, "more than 3 redirects"},
		{args{"url": "http://www.example.com/loop", "redirects": 1}, service.Failed, "more than 1 redirects"},
	} {
		a.fails(row.in, row.code, row.text)
	}
	for _, in := range []args{{"url": "http://www.example.com/nowhere"}, with(302, "/x", args{"redirects": 0}), with(304, "/x", nil), with(201, "/x", nil)} {
		if r, err := a.do(in); err != nil || r.Status != 302 && r.Status != 304 && r.Status != 201 || r.URL != "" {
			t.Errorf("%v: %+v, %v", in, r, err)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests have reached what is not public", hits.Load())
	}
	if n := loops.Load(); n != 4+2 { // of two requests, with the redirects that each may follow
		t.Errorf("%d requests for a page that redirects to itself", n)
	}
	none := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{})
	if r, err := none.do(with(302, "/x", args{"redirects": 9})); err != nil || r.Status != 302 || r.header("location") != "/x" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A name that turns to a private address is refused when a connection is made to it, and one rule's
// connections are no other's.
func TestRebindingAndPools(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public, "127.0.0.1")
	w.name("in.example.com", "10.0.0.1")
	w.serve(public+":80", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	w.serve("127.0.0.1:80", echo)
	w.serve("10.0.0.1:80", echo)
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{})
	a.get("http://www.example.com/")
	a.fails(args{"url": "http://www.example.com/"}, service.Denied, "loopback")
	// One grant names the network, and its connection is kept. The other must not use it.
	b := f.actor(httpclient.Grant{Hosts: []string{"http://in.example.com"}, Private: []string{"10.0.0.0/8"}}, service.Bounds{})
	b.get("http://in.example.com/")
	c := f.actor(httpclient.Grant{Hosts: []string{"http://in.example.com"}}, service.Bounds{})
	c.fails(args{"url": "http://in.example.com/"}, service.Denied, "private")
	// Nor another rule of the same grant.
	d := f.actor(httpclient.Grant{
		Hosts: []string{"http://in.example.com"}, Private: []string{"10.0.0.0/8"}, Paths: []string{"/open"},
		Rules: []httpclient.Rule{{Hosts: []string{"http://in.example.com"}}},
	}, service.Bounds{})
	d.get("http://in.example.com/open")
	d.fails(args{"url": "http://in.example.com/closed"}, service.Denied, "private")
	if dials := w.dials(); dials != public+":80 10.0.0.1:80 10.0.0.1:80" {
		t.Errorf("dialled %s", dials)
	}
}

// The socket itself is judged where nothing is between the service and TCP.
func TestRealSocket(t *testing.T) {
	w := newWorld(t)
	s := w.serve("", echo)
	kind := httpclient.New(httpclient.Options{}) // the machine's resolver and TCP
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, sys: sys, kind: kind}
	if f.running, err = kind.Start(sys, nil, nil); err != nil {
		t.Fatal(err)
	}
	defer f.close()
	port := s.Listener.Addr().(*net.TCPAddr).Port
	a := f.actor(httpclient.Grant{Hosts: []string{"http://*:*"}}, service.Bounds{})
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "0.0.0.0", "[::]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254", "LOCALHOST."} {
		a.fails(args{"url": fmt.Sprintf("http://%s:%d/", host, port)}, service.Denied, "capabilities.http.private")
	}
	for _, host := range []string{"2130706433", "0x7f000001", "0x7f.1", "127.1", "017700000001", "0177.0.0.1", "127.0.0.1%00.example.com", "[::1%25lo]", "a@127.0.0.1"} {
		a.fails(args{"url": fmt.Sprintf("http://%s:%d/", host, port)}, service.BadRequest, "")
	}
	b := f.actor(httpclient.Grant{Hosts: []string{"http://*:*"}, Private: []string{"loopback"}}, service.Bounds{})
	if r := b.get(fmt.Sprintf("http://127.0.0.1:%d/", port)); r.Status != 200 {
		t.Errorf("%+v", r)
	}
}

// A proxy of the settings gets tunnels to addresses that were judged, and the environment none.
func TestProxyOfTheSettings(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.name("in.example.com", "10.0.0.1")
	behind := w.serve("", echo)
	var mu sync.Mutex
	var asked []string
	proxy := w.serve("", func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.RequestURI)
		mu.Unlock()
		near, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := net.Dial("tcp", behind.Listener.Addr().String())
		if err != nil {
			return
		}
		defer far.Close()
		_, _ = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(far, near); far.Close() }()
		_, _ = io.Copy(near, far)
	})
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	f := start(t, w, &httpclient.Settings{Proxy: proxy.URL})
	a := f.actor(httpclient.Grant{Hosts: []string{"http://*.example.com"}}, service.Bounds{})
	if r := a.get("http://www.example.com/x"); string(r.Body) != "GET www.example.com /x" {
		t.Errorf("%s", r.Body)
	}
	a.fails(args{"url": "http://in.example.com/"}, service.Denied, "private")
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(asked, ","); got != "CONNECT "+public+":80" {
		t.Error(got)
	}
}

// What is forwarded has lost the grants of who has sent it, and whoever sends it on has none.
func TestForgedSenders(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.serve(public+":80", echo)
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{})
	a.get("http://www.example.com/")
	// Someone without a grant has the ref, and says who it is.
	f.with(noChange).fails(args{"url": "http://www.example.com/", "sender": a.ref.UID()}, service.Denied, "")
	// An actor with a grant forwards what others send.
	forwarder, err := f.sys.Spawn("", host.Func(func(ctx *host.Context, m host.Message) error {
		return ctx.Forward(f.running.Ref())
	}).WithGrant(httpclient.Name, f.kind.Grant(httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{})))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.sys.Ask(t.Context(), forwarder, []any{"do", args{"url": "http://www.example.com/"}})
	if err == nil || !strings.Contains(err.Error(), "denied: http is not granted") {
		t.Errorf("%v", err)
	}
}

// Garbage is refused, whatever it is, and what follows is answered.
func TestGarbage(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.serve(public+":80", echo)
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{})
	for _, in := range []any{
		nil, 5, "x", []byte("x"), []any{}, args{"url": nil}, args{"url": []byte("http://www.example.com/")}, args{"url": "http://www.example.com/", "headers": "x"},
		args{"url": "http://www.example.com/", "headers": []any{[]any{"a", "b", "c"}}}, args{"url": "http://www.example.com/", "headers": []any{[]any{"a", 5}}},
		args{"url": "http://www.example.com/", "inline": -1}, args{"url": "http://www.example.com/", "max": "x"}, args{"url": "http://www.example.com/", "stream": 1},
		args{"url": "http://www.example.com/", "body": "text"}, args{"URL": "http://www.example.com/"}, args{"url": "http://www.example.com/", "redirects": 1.5}, args{"url": "http://www.example.com/", "": 1},
	} {
		for _, op := range []string{"do", "upload"} {
			if _, err := a.order(order{Op: op, Args: in}); err == nil || !strings.HasPrefix(a.reason(err).Error(), "bad_request: ") {
				t.Errorf("%s %v: %v", op, in, err)
			}
		}
	}
	a.get("http://www.example.com/")
}

// raw puts a server of bytes at an address: it reads a request's head and writes what write does.
func (w *world) raw(to string, write func(net.Conn)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	var open sync.WaitGroup
	w.t.Cleanup(func() { listener.Close(); open.Wait() })
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				buf := make([]byte, 4096)
				if _, err := conn.Read(buf); err == nil {
					write(conn)
				}
			})
		}
	})
	w.put(to, listener.Addr())
}

// Servers that answer what no client wants to read.
func TestHostileServers(t *testing.T) {
	forever := func(head, part string) func(net.Conn) {
		return func(c net.Conn) {
			if _, err := io.WriteString(c, head); err != nil {
				return
			}
			for {
				if _, err := io.WriteString(c, part); err != nil {
					return
				}
			}
		}
	}
	once := func(s string) func(net.Conn) { return func(c net.Conn) { _, _ = io.WriteString(c, s) } }
	part := strings.Repeat("x", 1000)
	for _, row := range []struct {
		name  string
		write func(net.Conn)
		code  service.Code
	}{
		{"a header without end", forever("HTTP/1.1 200 OK\r\nX: ", part), service.Failed},
		{"headers without end", forever("HTTP/1.1 200 OK\r\n", "X: y\r\n"), service.Failed},
		{"a status line without end", forever("HTTP/1.1 200 ", part), service.Failed},
		{"provisional answers without end", forever("", "HTTP/1.1 100 Continue\r\nX: y\r\n\r\n"), service.Failed},
		{"a body without end", forever("HTTP/1.1 200 OK\r\n\r\n", part), service.TooLarge},
		{"chunks without end", forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "3e8\r\n"+part+"\r\n"), service.TooLarge},
		{"a chunk's size without end", forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0000000000"), service.Failed},
		{"a chunk's extension without end", forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", part), service.Failed},
		{"trailers without end", forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: y\r\n"), service.Failed},
		{"tiny chunks with long extensions", forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1;"+part+"\r\nx\r\n"), service.Failed},
		{"no HTTP", once("SSH-2.0-OpenSSH_9.9\r\n\r\n"), service.Failed},
		{"nothing", once(""), service.Failed},
		{"two lengths", once("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), service.Failed},
		{"a length that is none", once("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello"), service.Failed},
		{"an enormous length", once("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nhello"), service.TooLarge},
		{"another protocol", once("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), service.Failed},
		{"a status that is none", once("HTTP/1.1 2000 OK\r\n\r\n"), service.Failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.name("www.example.com", public)
			w.raw(public+":80", row.write)
			f := start(t, w, nil)
			a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}, MaxResponse: 20_000}, service.Bounds{})
			a.fails(args{"url": "http://www.example.com/"}, row.code, "")
		})
	}
}

// Servers that take their time: each is ended by the time that is for it.
func TestSlowServers(t *testing.T) {
	drip := func(head string, ticks *atomic.Int64) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = io.WriteString(c, head)
			for {
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
				ticks.Add(1)
				time.Sleep(time.Millisecond)
			}
		}
	}
	for _, row := range []struct {
		name, head string
		grant      httpclient.Grant
		bounds     service.Bounds
	}{
		{"a head, byte by byte, against header-timeout", "HTTP/1.1 200 OK\r\nX: ", httpclient.Grant{Header: time.Second}, service.Bounds{Timeout: time.Hour}},
		{"a head, byte by byte, against timeout", "HTTP/1.1 200 OK\r\nX: ", httpclient.Grant{}, service.Bounds{Timeout: time.Second}},
		{"a body, byte by byte, against timeout", "HTTP/1.1 200 OK\r\n\r\n", httpclient.Grant{}, service.Bounds{Timeout: time.Second}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.name("www.example.com", public)
			var ticks atomic.Int64
			w.raw(public+":80", drip(row.head, &ticks))
			f := start(t, w, nil)
			g := row.grant
			g.Hosts, g.MaxHeaders = []string{"http://www.example.com"}, 1<<20
			a := f.actor(g, row.bounds)
			go func() {
				for ticks.Load() < 10 {
					time.Sleep(time.Millisecond)
				}
				f.clock.Advance(time.Second)
			}()
			a.fails(args{"url": "http://www.example.com/"}, service.Timeout, "")
		})
	}
	t.Run("a stream, byte by byte, against body-timeout", func(t *testing.T) {
		w := newWorld(t)
		w.name("www.example.com", public)
		var ticks atomic.Int64
		w.raw(public+":80", drip("HTTP/1.1 200 OK\r\n\r\n", &ticks))
		f := start(t, w, nil)
		a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}, Body: time.Second, Idle: time.Hour}, service.Bounds{})
		r, err := a.do(args{"url": "http://www.example.com/", "stream": true})
		if err != nil {
			t.Fatal(err)
		}
		f.clock.Advance(time.Second)
		if _, err := a.read(r.Stream); err == nil || !strings.HasPrefix(err.Error(), "timeout: ") {
			t.Error(err)
		}
	})
}

// Streams that nobody reads are bounded in number and bytes, and end.
func TestStreamsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.name("www.example.com", public)
	w.serve(public+":80", func(w http.ResponseWriter, _ *http.Request) {
		part := make([]byte, 10_000)
		for {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	f := start(t, w, nil)
	a := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}, Streams: 3, Idle: time.Minute, MaxResponse: 1 << 40}, service.Bounds{})
	in := args{"url": "http://www.example.com/", "stream": true}
	for range 3 {
		if _, err := a.do(in); err != nil {
			t.Fatal(err)
		}
	}
	a.fails(in, service.Busy, "streams of the grant")
	b := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}, MaxResponse: 1 << 40}, service.Bounds{Bytes: 300 << 10})
	if _, err := b.do(in); err != nil {
		t.Fatal(err)
	}
	b.fails(in, service.Busy, "bytes of the grant")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				f.clock.Advance(time.Minute)
			}
		}
	}()
	f.noStreams()
	close(stop)
	<-stopped
	if _, err := a.do(in); err != nil {
		t.Error(err)
	}
}

// One actor asks 10^5 times while no server answers: as many as the grant has are under way, the
// rest are refused at once, and what it all takes is the messages that wait.
func TestFlood(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	w := newWorld(t)
	w.name("www.example.com", public)
	var at atomic.Int32
	blocked := make(chan struct{})
	w.serve(public+":80", func(_ http.ResponseWriter, r *http.Request) {
		at.Add(1)
		select {
		case <-blocked:
		case <-r.Context().Done():
		}
	})
	f := start(t, w, nil)
	var busy, done, other atomic.Int64
	flooder, err := f.sys.Spawn("", host.Native(func() host.Actor {
		left, next := n, uint64(0)
		return receiver(func(ctx *host.Context, m host.Message) error {
			switch {
			case m.Kind == abi.KindReply:
				done.Add(1)
				return nil
			case m.Kind == abi.KindReplyError:
				// The service says that it is busy, or the host that its mailbox is full.
				if text := m.Err().Error(); strings.Contains(text, "busy: ") || strings.Contains(text, "the mailbox is full") {
					busy.Add(1)
				} else {
					if other.Add(1) < 4 {
						t.Log(m.Err())
					}
				}
				return nil
			}
			for range min(left, 1000) {
				left--
				next++
				if err := ctx.Ask(f.running.Ref(), []any{"do", args{"url": "http://www.example.com/"}}, next, time.Hour); err != nil {
					return err
				}
			}
			if left > 0 {
				return ctx.Tell(ctx.Self(), "go on")
			}
			return nil
		})
	}).WithLimits(host.Limits{Asks: n + 1, Mailbox: n + 1, MailboxBytes: 1 << 30}).
		WithGrant(httpclient.Name, f.kind.Grant(httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{AtOnce: 64, Timeout: time.Hour})))
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	if err := f.sys.Tell(flooder, "begin"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "as many are refused as may not be under way, and not wait", func() bool { return busy.Load() == int64(n-64-2500) })
	f.clock.Advance(service.DefaultWait)
	eventually(t, "as many are refused as may not be under way", func() bool { return busy.Load() == int64(n-64) })
	eventually(t, "those under way have reached the server", func() bool { return at.Load() == httpclient.DefaultPerHost })
	per := (heap() - before) / 64
	t.Logf("%d requests: %d refused, 64 under way at %d connections; %d KiB each with its asks", n, busy.Load(), at.Load(), per>>10)
	if per > 200<<10 {
		t.Errorf("%d bytes of the heap a request under way", per)
	}
	close(blocked)
	eventually(t, "those under way are answered", func() bool { return done.Load() == 64 })
	if other.Load() != 0 {
		t.Errorf("%d other errors", other.Load())
	}
	b := f.actor(httpclient.Grant{Hosts: []string{"http://www.example.com"}}, service.Bounds{})
	b.get("http://www.example.com/")
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The connections of all grants together are bounded: idle ones make room, and who gets none in
// time is told that it is busy.
func TestConnectionsInAll(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.name(fmt.Sprintf("h%d.example.com", i), fmt.Sprintf("93.184.216.%d", i))
	}
	began, blocked := make(chan struct{}, 10), make(chan struct{})
	for i := range 4 {
		w.serve(fmt.Sprintf("93.184.216.%d:80", i), func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hang" {
				began <- struct{}{}
				<-blocked
			}
		})
	}
	f := start(t, w, &httpclient.Settings{Connections: 2})
	a := f.actor(httpclient.Grant{Hosts: []string{"http://*.example.com"}, Connect: time.Second}, service.Bounds{Timeout: time.Hour})
	for i := range 4 { // each leaves an idle connection
		a.get(fmt.Sprintf("http://h%d.example.com/", i))
	}
	var open sync.WaitGroup
	for i := range 2 {
		open.Go(func() { a.get(fmt.Sprintf("http://h%d.example.com/hang", i)) })
		<-began
	}
	result := make(chan error, 1)
	go func() {
		_, err := a.do(args{"url": "http://h2.example.com/"})
		result <- err
	}()
	eventually(t, "the third is refused", func() bool { f.clock.Advance(time.Second); return len(result) == 1 })
	if err := <-result; err == nil || !strings.HasPrefix(err.Error(), "busy: ") {
		t.Error(err)
	}
	close(blocked)
	open.Wait()
	a.get("http://h3.example.com/")
}
