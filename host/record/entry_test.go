package record

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// commands are some of every kind.
func commands(r *rand.Rand) []byte {
	number := func() uint64 { return r.Uint64() >> r.IntN(64) }
	some := func() []byte { return bytes.Repeat([]byte{0x18}, r.IntN(1+r.IntN(700))) }
	var b []byte
	for range r.IntN(12) {
		switch r.IntN(8) {
		case 0:
			b = abi.AppendEnd(b)
		case 1:
			b = abi.AppendSend(b, 0, strings.Repeat("/x", r.IntN(40)), 0, 0, nil, some())
		case 2:
			b = abi.AppendTimer(b, number(), 1+number()>>20, 0, nil)
		default:
			b = abi.AppendSend(b, abi.Ref(number()|1), "", number(), 0, nil, some())
		}
	}
	return b
}

// Commands are told apart as the decoder does it.
func TestNextCommand(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		for b := commands(r); len(b) > 0; {
			m, other := slowly(b)
			if m == 0 {
				break
			}
			if n, end := nextCommand(b); n != m || end != other {
				t.Fatalf("%x: %d %v instead of %d %v", b, n, end, m, other)
			}
			b = b[m:]
		}
	}
}

// FuzzChecksums: what the decoder reads has the same bounds here, and nothing else does any harm.
func FuzzChecksums(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		f.Add(commands(r))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Checksums(nil, &Turn{Outbox: b})
		for len(b) > 0 {
			m, other := slowly(b)
			if m == 0 {
				return
			}
			if n, end := nextCommand(b); n != m || end != other {
				t.Fatalf("%x: %d %v instead of %d %v", b, n, end, m, other)
			}
			b = b[m:]
		}
	})
}
