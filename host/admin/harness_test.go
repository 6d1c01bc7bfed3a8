package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
	"github.com/wasmactors/wasmactors/host/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a system that is served at a socket and on TCP.
type site struct {
	t      *testing.T
	sys    *host.System
	server *Server
	socket string
	base   string // of the TCP listener's URLs
	token  Token
	read   Token
	unix   *http.Client
	tcp    *http.Client
}

// echo answers a number with itself, fails at 0, and says nothing to texts.
func echo(c *host.Context, m host.Message) error {
	var n int
	if m.Decode(&n) != nil {
		return nil
	}
	if n == 0 {
		return errors.New("zero")
	}
	return c.Reply(n)
}

func serveSite(t *testing.T, change func(Config) Config) *site {
	t.Helper()
	return serveSiteOf(t, nil, change)
}

// serveSiteOf is serveSite for a system that prepare has added something to.
func serveSiteOf(t *testing.T, prepare func(*host.System), change func(Config) Config) *site {
	t.Helper()
	sys, err := host.New(host.NewConfig("shop"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := sys.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"a", "b"} {
		if _, err := sys.Spawn(name, host.Func(echo)); err != nil {
			t.Fatal(err)
		}
	}
	if prepare != nil {
		prepare(sys)
	}
	dir, err := os.MkdirTemp("", "admin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, sys: sys, socket: filepath.Join(dir, "s.sock"), token: NewToken(), read: NewToken()}
	cfg := NewConfig().WithSocket(s.socket).WithTCP("127.0.0.1:0").WithToken(s.token).WithReadToken(s.read)
	if change != nil {
		cfg = change(cfg)
	}
	if s.server, err = Serve(context.Background(), sys, cfg); err != nil {
		t.Fatal(err)
	}
	s.connect()
	if err := sys.Idle(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

// connect has clients for the server, until the test ends.
func (s *site) connect() {
	s.base = "http://" + s.server.Addr().String()
	s.unix = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return endpoint.Dial(ctx, s.socket) }}}
	s.tcp = &http.Client{Transport: &http.Transport{}}
	s.t.Cleanup(func() {
		s.unix.CloseIdleConnections()
		s.tcp.CloseIdleConnections()
		if err := s.server.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

// do asks at the socket.
func (s *site) do(method, path, body string) (int, []byte) {
	s.t.Helper()
	r, err := http.NewRequest(method, "http://wasmactors"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
		r.ContentLength = 0
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	return s.send(s.unix, r)
}

func (s *site) send(c *http.Client, r *http.Request) (int, []byte) {
	s.t.Helper()
	res, err := c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, text
}

// get decodes an answer.
func get[T any](s *site, path string) T {
	s.t.Helper()
	status, text := s.do(http.MethodGet, path, "")
	var v T
	if err := json.Unmarshal(text, &v); err != nil || status != 200 {
		s.t.Fatalf("%s: %d %s %v", path, status, text, err)
	}
	return v
}

// post sends a command that must be carried out.
func post[T any](s *site, path, body string) T {
	s.t.Helper()
	status, text := s.do(http.MethodPost, path, body)
	var v T
	if err := json.Unmarshal(text, &v); err != nil || status != 200 {
		s.t.Fatalf("%s %s: %d %s %v", path, body, status, text, err)
	}
	return v
}

// refused makes a request that is not carried out.
func (s *site) refused(method, path, body string) Problem {
	s.t.Helper()
	status, text := s.do(method, path, body)
	var f ErrorBody
	if err := json.Unmarshal(text, &f); err != nil || status < 400 || f.Error.Code == "" {
		s.t.Fatalf("%s %s %s: %d %s %v", method, path, body, status, text, err)
	}
	f.Error.Status = status
	return f.Error
}

// schemaOf compiles a part of the OpenAPI file.
func schemaOf(t *testing.T, pointer string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(OpenAPI()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	sch, err := c.Compile("openapi.json#" + pointer)
	if err != nil {
		t.Fatal(pointer, err)
	}
	return sch
}

func valid(t *testing.T, sch *jsonschema.Schema, text []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = sch.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

// eventually polls.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

var _ model = (*observe.Observer)(nil)

// dialRaw connects and writes.
func dialRaw(address, text string) (net.Conn, error) {
	c, err := net.Dial("tcp", address)
	if err == nil {
		_, err = io.WriteString(c, text)
	}
	return c, err
}
