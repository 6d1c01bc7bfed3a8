package tcp

import (
	"net"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/service/internal/endpoint"
)

// Many connections are open at once, and each still works.
func TestManyConnections(t *testing.T) {
	n := 10_000
	if files := endpoint.Descriptors(); testing.Short() || files > 0 && uint64(n)*2+1000 > files {
		n = 300
	}
	w := newWorld(t, Options{}, nil)
	g := usual()
	g.Connections = n
	p := w.puppet("p", g)
	_, address := p.listen(nil)
	peers := make([]net.Conn, n)
	for i := range peers {
		peers[i], _ = p.accept(address)
	}
	for i := 0; i < n; i += max(n/100, 1) {
		send(t, peers[i], "one of many")
		m := p.expect(Data)
		p.tell(m.Sender, "write", []byte(m.data(t)))
		if got := read(t, peers[i], 11); got != "one of many" {
			t.Fatal(got)
		}
	}
	for _, nc := range peers {
		_ = nc.(*net.TCPConn).SetLinger(0) // no port waits afterwards
		_ = nc.Close()
	}
	for range peers {
		p.closed(HowError)
	}
}

// A reader that has waited for long goes on in another goroutine, as it was: in the middle of a message, too.
func TestQuietConnections(t *testing.T) {
	was := settle
	settle = time.Millisecond
	w := newWorld(t, Options{}, nil)
	t.Cleanup(func() { settle = was }) // once the world has ended
	p := w.puppet("p", usual())
	_, address := p.listen(args{"options": args{"framing": args{"kind": Lines}}})
	nc, ref := p.accept(address)
	other := func() {
		t.Helper()
		n := w.svc.Provider().(*provider).counts.settled.Load()
		for begun := time.Now(); w.svc.Provider().(*provider).counts.settled.Load() == n; time.Sleep(time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatal("the reader has not gone on elsewhere")
			}
		}
	}
	for range 3 {
		send(t, nc, "half of")
		other()
		send(t, nc, " a line\n")
		if m := p.expect(Data); m.data(t) != "half of a line" {
			t.Fatal(m.data(t))
		}
		other()
	}
	p.tell(ref, "write", []byte("back"))
	if got := read(t, nc, 5); got != "back\n" {
		t.Fatalf("%q", got)
	}
	_ = nc.Close()
	p.closed(HowPeer)
}
