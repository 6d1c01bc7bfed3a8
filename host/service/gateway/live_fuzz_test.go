package gateway

import (
	"bytes"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// FuzzConnectionOps: whatever a guest sends to a connection or answers to one is refused or
// understood, and an event is one event: nothing in it can begin a line of its own.
func FuzzConnectionOps(f *testing.F) {
	f.Add([]byte{0xa1, 0x64, 'd', 'a', 't', 'a', 0x63, 'a', '\n', 'b'})
	f.Add([]byte{0xa2, 0x62, 'i', 'd', 0x61, '7', 0x65, 'r', 'e', 't', 'r', 'y', 0x18, 100})
	f.Add([]byte{0xa1, 0x68, 'p', 'r', 'o', 't', 'o', 'c', 'o', 'l', 0x61, 'x'})
	f.Add([]byte{0xa1, 0x66, 's', 't', 'r', 'e', 'a', 'm', 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, _ = decodeHow(b)
		_, _ = decodeAccepted(abi.NewReader(b))
		ws := &webSocket{}
		for _, op := range []string{"text", "binary", "close", "x"} {
			if fr, err := ws.frame(op, abi.NewReader(b)); err == nil && fr.kind == frameClose && (!sendable(fr.code) || len(fr.b) > 123) {
				t.Fatalf("a close frame of %d, %d bytes", fr.code, len(fr.b))
			}
		}
		out, ok := encodeEvent(abi.NewReader(b))
		if !ok {
			return
		}
		body, found := bytes.CutSuffix(out, []byte("\n\n"))
		if !found || bytes.Contains(body, []byte("\n\n")) || bytes.IndexByte(out, '\r') >= 0 {
			t.Fatalf("%q is not one event", out)
		}
		for _, line := range bytes.Split(body, []byte("\n")) {
			name, _, _ := bytes.Cut(line, []byte(": "))
			if n := string(name); n != "data" && n != "event" && n != "id" && n != "retry" {
				t.Fatalf("%q has the line %q", out, line)
			}
		}
	})
}
