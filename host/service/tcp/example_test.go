package tcp_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/host/service/tcp"
	"github.com/wasmactors/wasmactors/host/service/udp"
)

// The bundle of the documentation: guests that listen, dial and receive datagrams, by grants of a manifest.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the guest once more")
	}
	m, err := bundle.LoadWith("testdata", nil, tcp.Service, udp.Service)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[service.Reach]int{}
	allow := func(all []bundle.Reach) error {
		for _, r := range all {
			asked[r.Kind]++
		}
		return nil
	}
	b, err := bundle.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir(), Compiler: "go", Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	if asked[service.ReachListen] != 2 || asked[service.ReachConnect] != 3 {
		t.Errorf("asked about %v", asked)
	}
	sys, err := b.Start(nil, func(*host.System) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ask := func(path string, v any) string {
		t.Helper()
		ref, err := sys.Lookup(path)
		if err != nil {
			t.Fatal(err)
		}
		for {
			text, err := host.AskAs[string](ctx, sys, ref, v)
			if err != nil {
				t.Fatal(err)
			}
			if text != "" {
				return text
			}
		}
	}
	address := ask("/user/echo", "address")
	if got := ask("/user/lines", []any{address, "from one guest to another"}); got != "from one guest to another" {
		t.Errorf("%q", got)
	}
	nc, err := net.Dial("udp", ask("/user/datagrams", "address"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	buf, n := make([]byte, 100), 0
	for range 60 { // a datagram may be lost
		_ = nc.SetDeadline(time.Now().Add(time.Second))
		if _, err = nc.Write([]byte("a datagram")); err != nil {
			t.Fatal(err)
		}
		if n, err = nc.Read(buf); err == nil {
			break
		}
	}
	if string(buf[:n]) != "a datagram" || err != nil {
		t.Errorf("%q %v", buf[:n], err)
	}
	_ = sys.Close(context.Background())
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
