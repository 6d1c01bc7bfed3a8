package tcp

import (
	"net"
	"testing"

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
