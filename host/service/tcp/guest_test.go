package tcp

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

func askText(t *testing.T, w *servicetest.World, to host.Ref, v any) string {
	t.Helper()
	m, err := w.Ask(t.Context(), to, v)
	if err != nil {
		t.Fatal(err)
	}
	var s string
	if err := m.Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGuests(t *testing.T) {
	w := servicetest.New(t, Service, nil, nil, nil)
	grant := Service.Grant(usual(), service.Bounds{})
	echo := w.Spawn("echo", "tcp-echo", grant, nil)
	address := ""
	for address == "" { // it may not listen yet
		address = askText(t, w, echo, "address")
	}
	x := &world{t: t}
	nc, other := x.dial(address), x.dial(address)
	for range 3 {
		long := strings.Repeat("0123456789", 30_000) + "\n" // several windows
		go func() { _, _ = nc.Write([]byte(long)) }()
		if got := read(t, nc, len(long)); got != long {
			t.Fatal("what came back is not what was sent")
		}
	}
	send(t, other, "before\n")
	read(t, other, 7)
	// A crash loses no connection.
	crashes := w.Subscribe(16, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	defer crashes.Close()
	send(t, other, "crash\n")
	<-crashes.C() // what is sent next could otherwise come together with it
	for i, c := range []net.Conn{nc, other, nc} {
		text := strings.Repeat("after", i+1) + "\n"
		send(t, c, text)
		if got := read(t, c, len(text)); got != text {
			t.Fatalf("%q", got)
		}
	}

	lines := w.Spawn("lines", "tcp-lines", grant, nil)
	l := server(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	if got := askText(t, w, lines, []any{l.Addr().String(), "a line"}); got != "a line" {
		t.Fatal(got)
	}
	if _, err := w.Ask(t.Context(), lines, []any{"10.0.0.1:80", "x"}); err == nil || !strings.Contains(err.Error(), "denied: ") {
		t.Fatal(err)
	}
}
