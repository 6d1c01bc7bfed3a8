//go:build unix

package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// TestPipesAreNoFiles: requests of a FIFO below a folder of files are answered at once, and
// no thread waits for somebody to write to it.
func TestPipesAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.txt"), 0o644); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Mkfifo(filepath.Join(dir, "sub", "index.html"), 0o644)
	_ = os.Symlink("pipe.txt", filepath.Join(dir, "link.txt"))
	_ = os.Symlink("/dev/zero", filepath.Join(dir, "zero"))
	s := open(t, gateway.Config{Base: dir, Limits: gateway.Limits{AtOnce: 1000}, Routes: []gateway.Route{
		{Pattern: "/s/", Static: &middleware.Static{Dir: "."}}, {Pattern: "/l/", Static: &middleware.Static{Dir: ".", Index: true}},
	}}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	before := pprof.Lookup("threadcreate").Count()
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			path := []string{"/s/pipe.txt", "/s/link.txt", "/s/sub/", "/s/zero", "/l/pipe.txt"}[i%5]
			r, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			res, err := s.client.Do(r)
			if err != nil {
				t.Error(path, err)
				return
			}
			_ = res.Body.Close()
			if res.StatusCode != 404 {
				t.Errorf("%s: %d", path, res.StatusCode)
			}
		})
	}
	all.Wait()
	if made := pprof.Lookup("threadcreate").Count() - before; made > 100 {
		t.Errorf("%d threads were made for 400 requests", made)
	}
}

// TestFilesOfSettings: whatever a manifest names as a file is refused at once if it never ends.
func TestFilesOfSettings(t *testing.T) {
	sys, err := host.New(host.NewConfig("odd"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(context.Background()) }()
	dir := t.TempDir()
	ca := newAuthority(t, "ca")
	ca.issue(dir, "server")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "huge"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "huge"), 1<<40); err != nil {
		t.Skip(err)
	}
	route := func(a *middleware.Auth) gateway.Config {
		return gateway.Config{Routes: []gateway.Route{{Pattern: "/", To: gateway.Target{Path: "/user/api"}, Auth: a}}}
	}
	listen := func(x gateway.TLS) gateway.Config {
		c := route(nil)
		c.Listen = []gateway.Listener{{Address: "127.0.0.1:0", TLS: &x}}
		return c
	}
	for key, of := range map[string]func(file string) gateway.Config{
		"basic": func(f string) gateway.Config { return route(&middleware.Auth{Basic: &middleware.Basic{File: f}}) },
		"static": func(f string) gateway.Config {
			return gateway.Config{Routes: []gateway.Route{{Pattern: "/", Static: &middleware.Static{Dir: f}}}}
		},
		"secret": func(f string) gateway.Config {
			return route(&middleware.Auth{JWT: &middleware.JWT{Keys: []middleware.JWTKey{{Alg: "HS256", File: f}}}})
		},
		"key": func(f string) gateway.Config {
			return route(&middleware.Auth{JWT: &middleware.JWT{Keys: []middleware.JWTKey{{Alg: "RS256", File: f}}}})
		},
		"tls.cert": func(f string) gateway.Config { return listen(gateway.TLS{Cert: f, Key: "server.key"}) },
		"tls.key":  func(f string) gateway.Config { return listen(gateway.TLS{Cert: "server.pem", Key: f}) },
		"tls.client-ca": func(f string) gateway.Config {
			return listen(gateway.TLS{Cert: "server.pem", Key: "server.key", ClientCA: f})
		},
	} {
		for file, want := range map[string]error{"pipe": regular.ErrKind, "/dev/zero": regular.ErrKind, "huge": regular.ErrSize} {
			t.Run(key+"/"+filepath.Base(file), func(t *testing.T) {
				cfg := of(file)
				cfg.Base = dir
				failed := make(chan error, 1)
				go func() {
					g, err := gateway.New(sys, cfg)
					if err == nil {
						err = g.Listen()
						_ = g.Close()
					}
					failed <- err
				}()
				select {
				case err := <-failed:
					if key == "static" && err != nil {
						return
					}
					if err == nil || !strings.Contains(fmt.Sprint(err), want.Error()) {
						t.Errorf("%v, want %v", err, want)
					}
				case <-time.After(30 * time.Second):
					t.Fatal("it waits for the file")
				}
			})
		}
	}
}
