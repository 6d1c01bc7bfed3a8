package endpoint

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/http/egress"
	"pgregory.net/rapid"
)

func TestConnect(t *testing.T) {
	p, err := Compile([]string{"db.internal:5432", "*.example.com:443", "10.0.0.0/8:6379", "fd00::/8:6379", "[fd00::1]:80", "192.0.2.1:*", "localhost:1", "unix:run/db.sock"}, nil, []string{"172.16.0.0/12"}, true)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"db.internal:5432": "", "DB.Internal.:5432": "", "db.internal:5433": "denied", "a.example.com:443": "", "a.b.example.com:443": "", "example.com:443": "denied",
		"xexample.com:443": "denied", "10.1.2.3:6379": "", "10.1.2.3:80": "denied", "11.0.0.1:6379": "denied", "[fd00::7]:6379": "", "[fd00::1]:80": "", "[::ffff:10.1.2.3]:6379": "",
		"192.0.2.1:9": "", "192.0.2.2:9": "denied", "localhost:1": "", "localhost:2": "denied", "unix:run/db.sock": "", "unix:run/./db.sock": "", "unix:run/other.sock": "denied",
		"unix:../run/db.sock": "bad_request", "unix:/run/db.sock": "bad_request", "unix:": "bad_request", "db.internal": "bad_request", "db.internal:0": "bad_request",
		"db.internal:65536": "bad_request", "db.internal:http": "bad_request", "": "bad_request", "010.1.2.3:6379": "bad_request", "0x0a010203:6379": "bad_request",
		"167837955:6379": "bad_request", "[fe80::1%eth0]:80": "bad_request", "a b:80": "bad_request", ":80": "bad_request", strings.Repeat("a", 600) + ":1": "bad_request",
	} {
		_, err := p.Connect(address)
		if string(service.CodeOf(err)) != want {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
	to, err := p.Connect("db.internal:5432")
	if err != nil || to.String() != "db.internal:5432" {
		t.Fatal(to, err)
	}
	for a, named := range map[string]bool{"172.16.0.1": true, "10.0.0.1": false, "192.0.2.1": true, "127.0.0.1": false} {
		if to.Named.Names(netip.MustParseAddr(a), egress.Private) != named {
			t.Errorf("%s: named is not %v", a, named)
		}
	}
	if to, _ = p.Connect("localhost:1"); !to.Named.Names(netip.MustParseAddr("127.0.0.1"), egress.Loopback) {
		t.Error("localhost is not this machine")
	}
}

func TestListen(t *testing.T) {
	p, err := Compile(nil, []string{"127.0.0.1:7000", "localhost:7001", ":7002", "[::1]:*", "127.0.0.1:0", "unix:here.sock"}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"127.0.0.1:7000": "127.0.0.1:7000", "localhost:7000": "127.0.0.1:7000", "127.0.0.1:7001": "127.0.0.1:7001", ":7002": ":7002", "[::1]:9": "[::1]:9", "127.0.0.1:0": "127.0.0.1:0",
		"127.0.0.1:7002": "denied", ":7000": "denied", "0.0.0.0:7002": "denied", "[::1]:*": "bad_request", "example.com:7000": "bad_request", "7000": "bad_request", "unix:here.sock": "",
		"unix:there.sock": "denied", "unix:../here.sock": "bad_request",
	} {
		at, err := p.Listen(address)
		if got := at.Address + string(service.CodeOf(err)); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}

func TestWrongEntries(t *testing.T) {
	for _, s := range []string{"db", "db:0", "db:99999", ":80", "10.0.0.0/8", "10.0.0.1/8:80", "0.0.0.0/0:80", "*.10.0.0.1:80", "*.:80", "a*b:80", "unix:/abs", "unix:../x", "unix:.", "http://x:80"} {
		if _, err := Compile([]string{s}, nil, nil, true); err == nil || !strings.HasPrefix(err.Error(), "connect[0]: ") {
			t.Errorf("connect %q: %v", s, err)
		}
	}
	for _, s := range []string{"7000", "example.com:7000", "127.0.0.1", "127.0.0.1:x", "unix:/abs", "[fe80::1%lo]:1"} {
		if _, err := Compile(nil, []string{s}, nil, true); err == nil || !strings.HasPrefix(err.Error(), "listen[0]: ") {
			t.Errorf("listen %q: %v", s, err)
		}
	}
	if _, err := Compile([]string{"unix:x"}, nil, nil, false); err == nil {
		t.Error("a socket of a file without files")
	}
	var field *service.FieldError
	if _, err := Compile([]string{"a:1"}, nil, []string{"everything"}, true); !errors.As(err, &field) || field.Key != "private[0]" {
		t.Error(err)
	}
	if _, err := Compile(nil, nil, []string{"loopback"}, true); err == nil {
		t.Error("private without connect")
	}
}

// Nothing is covered that no pattern names.
func TestCoversNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9.*\[\]:/%-]{0,24}`).Draw(t, "address")
		p, err := Compile([]string{"db.internal:5432", "10.0.0.0/8:6379"}, nil, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		to, err := p.Connect(name)
		if err != nil {
			return
		}
		a, bad := netip.ParseAddr(to.Host)
		if !(to.Host == "db.internal" && to.Port == 5432 || bad == nil && netip.MustParsePrefix("10.0.0.0/8").Contains(a) && to.Port == 6379) {
			t.Fatalf("%q is %v", name, to)
		}
	})
}

func TestPath(t *testing.T) {
	base, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(base, "out")); err != nil {
		t.Skip(err)
	}
	for _, dir := range []string{"in", "in/deep"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("deep", filepath.Join(base, "in", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{"x.sock": true, "in/x.sock": true, "in/link/x.sock": true, "out/x.sock": false, "file": false, "out": false, "none/x.sock": false} {
		if full, err := Path(base, path); (err == nil) != ok {
			t.Errorf("%s: %q, %v", path, full, err)
		}
	}
}
