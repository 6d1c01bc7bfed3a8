package gateway_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// offered is what clients say that can compress.
const offered = "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover; server_no_context_takeover\r\n"

// wire counts the bytes of connections.
type wire struct{ sent, got atomic.Int64 }

type wired struct {
	net.Conn
	w *wire
}

func (c wired) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.w.got.Add(int64(n))
	return n, err
}

func (c wired) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.w.sent.Add(int64(n))
	return n, err
}

// permessage-deflate is there if the route and the client want it, and then in both directions.
func TestDeflate(t *testing.T) {
	s := said(t, t.TempDir(), "  routes:\n    /on: {to: /user/echo, upgrade: {websocket: true, deflate: true}}\n    /off: {to: /user/echo, upgrade: {websocket: true, deflate: false}}\n    /unsaid: {to: /user/echo, upgrade: {websocket: true}}\n",
		map[string]host.Props{"echo": echo()})
	random := make([]byte, 30_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	for _, c := range []struct {
		path   string
		mode   websocket.CompressionMode
		zipped bool
	}{
		{"/on", websocket.CompressionNoContextTakeover, true},
		{"/on", websocket.CompressionContextTakeover, true},
		{"/on", websocket.CompressionDisabled, false},
		{"/off", websocket.CompressionNoContextTakeover, false},
		{"/unsaid", websocket.CompressionNoContextTakeover, false},
	} {
		var w wire
		s.client.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return wired{conn, &w}, err
		}}
		conn, r, err := s.dial(c.path, &websocket.DialOptions{CompressionMode: c.mode})
		if err != nil {
			t.Fatal(err)
		}
		if said := r.Header.Get("Sec-Websocket-Extensions"); strings.HasPrefix(said, "permessage-deflate") != c.zipped {
			t.Errorf("%+v: %q", c, said)
		}
		w.sent.Store(0)
		w.got.Store(0)
		text := strings.Repeat("the same again, ", 3000)
		conn.say(text)
		conn.wants(text)
		if small := w.sent.Load() < 2000 && w.got.Load() < 2000; small != c.zipped {
			t.Errorf("%+v: %d bytes take %d there and %d back", c, len(text), w.sent.Load(), w.got.Load())
		}
		for _, text := range []string{"", "short", fmt.Sprintf("%x", random), text} { // what does not pay, and one after the other
			conn.say(text)
			conn.wants(text)
		}
		_ = conn.CloseNow()
	}
}

// deflated is a message of a client with so many zeros, compressed: of a part of them again and again,
// and of the rest.
func deflated(n int) []byte {
	const part = 1 << 20
	pack := func(n int) []byte {
		var b bytes.Buffer
		z, _ := flate.NewWriter(&b, flate.BestCompression)
		_, _ = z.Write(make([]byte, n))
		_ = z.Flush() // it ends with a byte, and the next may follow
		return b.Bytes()
	}
	b := append(bytes.Repeat(pack(part), n/part), pack(n%part)...)
	return masked(0xc2, bytes.TrimSuffix(b, []byte{0, 0, 0xff, 0xff}))
}

// A message that becomes large when it is unpacked is one that is too large, and nobody unpacks more
// of it; one in which there is nothing, again and again, has to end in time.
func TestDeflateBombs(t *testing.T) {
	s := said(t, t.TempDir(), "  routes:\n    /: {to: /user/quiet, body-timeout: 300ms, upgrade: {websocket: true, deflate: true, message: 40KiB, ping: 100ms}}\n", map[string]host.Props{"quiet": quiet()})
	if code := s.framesWith(offered, deflated(40<<10), masked(0x88, []byte{0x03, 0xe8})); code != 1000 {
		t.Errorf("a message of 40 KiB: %d", code)
	}
	if code := s.framesWith(offered, deflated(40<<10+1)); code != 1009 {
		t.Errorf("a byte more: %d", code)
	}
	bomb := deflated(200 << 20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if code := s.framesWith(offered, bomb); code != 1009 {
		t.Errorf("a bomb: %d", code)
	}
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes that unpack to 200 MiB make the process allocate %d", len(bomb), after.TotalAlloc-before.TotalAlloc)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 && !race.Enabled {
		t.Errorf("a bomb takes %d bytes", n)
	}
	// Blocks without contents never come to the bound.
	empty := append([]byte{0x40 | 0x02, 0x80 | 126, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 1000)...)
	binary.BigEndian.PutUint16(empty[2:], 5000)
	more := bytes.Clone(empty)
	more[0] = 0
	within(t, "a message with nothing in it", func() {
		conn, in := dialRawWith(t, s.g.Addrs()[0].String(), offered)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(2 * soon))
		go func() {
			for f, i := empty, 0; ; f, i = more, i+1 { // and it gives signs of life
				if _, err := conn.Write(append(bytes.Clone(f), masked(0x8a, fmt.Append(nil, i%200+1))...)); err != nil {
					return
				}
			}
		}()
		if _, err := io.Copy(io.Discard, in); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a message with nothing in it goes on and on")
		}
	})
	for name, frame := range map[string][]byte{
		"what is no deflate":     masked(0xc1, []byte("\xff\xff\xff\xff")),
		"a distance too far":     masked(0xc1, []byte{0x4b, 0x04, 0x62, 0x00}),
		"a compressed ping":      masked(0xc9, []byte("p")),
		"compressed in between":  append(masked(0x01, []byte("a")), masked(0xc0, []byte("b"))...),
		"two bits of extensions": masked(0xe1, []byte("a")),
	} {
		if code := s.framesWith(offered, frame); code == 1000 || code == deadline {
			t.Errorf("%s: %d", name, code)
		}
	}
	if code := s.framesWith(offered, deflated(100), masked(0x88, []byte{0x03, 0xe8})); code != 1000 {
		t.Errorf("the next one: %d", code)
	}
}

// TestIdleDeflate measures what a connection with permessage-deflate takes that says nothing: one
// that never has, and one that has said something in each direction.
func TestIdleDeflate(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if race.Enabled {
		t.Skip("the race detector's memory would be measured")
	}
	const n = 300
	const sent = 1000 // beyond what the library compresses
	s := said(t, t.TempDir(), "  limits: {at-once: 10k}\n  routes:\n    /: {to: /user/echo, upgrade: {websocket: true, deflate: true}}\n", map[string]host.Props{"echo": echo()})
	var keep []net.Conn
	defer func() {
		for _, c := range keep {
			_ = c.Close()
		}
	}()
	// Made once: to compress takes a megabyte, which would be counted.
	plainMessage, zipped := masked(0x81, bytes.Repeat([]byte("x"), sent)), deflated(sent)
	zipped[0] = 0xc1
	dial := func(extension string, talk bool) {
		conn, in := dialRawWith(t, s.g.Addrs()[0].String(), extension)
		keep = append(keep, conn)
		if !talk {
			return
		}
		message := plainMessage
		if extension != "" {
			message = zipped
		}
		if _, err := conn.Write(message); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		var head [4]byte
		if _, err := io.ReadFull(in, head[:2]); err != nil {
			t.Fatal(err)
		}
		size := int(head[1])
		if size == 126 {
			if _, err := io.ReadFull(in, head[2:]); err != nil {
				t.Fatal(err)
			}
			size = int(binary.BigEndian.Uint16(head[2:]))
		}
		if _, err := io.CopyN(io.Discard, in, int64(size)); err != nil {
			t.Fatal(err)
		}
		if packed := head[0]&0x40 != 0; packed != (extension != "") {
			t.Fatalf("compressed: %v", packed)
		}
	}
	exact(t)
	each := func(extension string, talk bool) int64 {
		for range 20 {
			dial(extension, talk)
		}
		before := kept()
		for range n {
			dial(extension, talk)
		}
		return (kept() - before) / n
	}
	plain, silent, said, spoken := each("", false), each(offered, false), each("", true), each(offered, true)
	t.Logf("of %d idle connections each takes %d bytes of the heap; with deflate %d; and after a message in each direction: %d, with deflate %d", n, plain, silent, said, spoken)
	if silent-plain > 2<<10 {
		t.Errorf("deflate takes %d bytes of a connection that says nothing", silent-plain)
	}
	if spoken-said > 12<<10 {
		t.Errorf("deflate takes %d bytes of a connection that has said something", spoken-said)
	}
}

// dialRawWith is dialRaw with further headers; what the server says is read from in.
func dialRawWith(t testing.TB, addr, headers string) (conn net.Conn, in *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"+headers+"\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	in = bufio.NewReaderSize(conn, 512)
	r, err := http.ReadResponse(in, nil)
	if err != nil || r.StatusCode != 101 {
		t.Fatal(r, err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	return conn, in
}
