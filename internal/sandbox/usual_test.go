package sandbox

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
)

// number draws numbers of all encoded lengths.
func number(t *rapid.T, label string) uint64 {
	usual := rapid.Uint64Range(1<<40, 1<<62)
	if rapid.IntRange(0, 9).Draw(t, "usual") > 0 {
		return usual.Draw(t, label)
	}
	return rapid.OneOf(
		rapid.Uint64Range(0, 30), rapid.Uint64Range(0, 1<<16), rapid.Uint64Range(1<<31, 1<<33), rapid.Uint64(),
	).Draw(t, label)
}

func someBytes(t *rapid.T, label string) []byte {
	n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(250, 260), rapid.IntRange(65530, 65540)).Draw(t, label)
	return bytes.Repeat([]byte{byte(n)}, n)
}

// TestUsual: the short ways write and read what the codec does, or give up.
func TestUsual(t *testing.T) {
	taken := 0
	buf, want := make([]byte, 70_000), make([]byte, 70_000)
	var reused abi.Command
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			e := abi.Envelope{
				Kind: abi.Kind(rapid.IntRange(0, 5).Draw(t, "kind")), Time: int64(number(t, "time")), Sender: abi.Ref(number(t, "sender")),
				Correlation: number(t, "correlation"), Payload: someBytes(t, "payload"),
			}
			switch rapid.IntRange(0, 15).Draw(t, "more") {
			case 0:
				e.Headers = []byte{0xa1, 0x61, 'a', 0x61, 'b'}
			case 1:
				e.Sequence = 1
			case 2:
				e.Position = 7
			}
			room := rapid.IntRange(0, 2).Draw(t, "room")
			size := []int{len(buf), abi.EnvelopeSize(&e), abi.EnvelopeSize(&e) - 1}[room]
			if n := putUsual(buf[:min(size, len(buf))], &e); n > 0 {
				taken++
				if m, ok := abi.PutEnvelope(want, &e); !ok || room == 2 || !bytes.Equal(buf[:n], want[:m]) {
					t.Fatalf("%x\nwant %x", buf[:n], want[:m])
				}
			}

			// A command, well-formed or with bytes changed or cut off.
			w := commandBytes(t)
			n := decodeUsual(&reused, w)
			if n == 0 {
				_, _ = abi.DecodeCommand(&reused, w)
				continue
			}
			taken++
			var c abi.Command
			m, err := abi.DecodeCommand(&c, w)
			if err != nil || m != n || !reflect.DeepEqual(c, reused) {
				t.Fatalf("%d bytes, %+v\nwant %d (%v) %+v", n, reused, m, err, c)
			}
		}
	})
	if taken == 0 {
		t.Errorf("taken %d times", taken)
	}
}

// commandBytes draws a send, or nearly one, or something else.
func commandBytes(t *rapid.T) []byte {
	put := func(b []byte, major byte, v uint64) []byte {
		n := 0 // the shortest
		if rapid.IntRange(0, 19).Draw(t, "odd") == 19 {
			n = rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "width")
		}
		switch {
		case n == 0 && v < 24:
			return append(b, major<<5|byte(v))
		case n == 1 || n == 0 && v < 1<<8:
			return append(b, major<<5|24, byte(v))
		case n == 2 || n == 0 && v < 1<<16:
			return append(b, major<<5|25, byte(v>>8), byte(v))
		case n == 0 && v < 1<<32:
			return append(b, major<<5|26, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
		b = append(b, major<<5|27)
		for i := 56; i >= 0; i -= 8 {
			b = append(b, byte(v>>i))
		}
		return b
	}
	if rapid.IntRange(0, 9).Draw(t, "other") == 0 {
		return []byte{0x82, byte(abi.OpFail), 0x61, 'x'}
	}
	b := []byte{0x86, rapid.SampledFrom([]byte{0, 0, 0, 0, 2}).Draw(t, "op")}
	if rapid.IntRange(0, 9).Draw(t, "path") == 0 {
		b = append(b, 0x62, '/', 'a')
	} else {
		b = put(b, 0, number(t, "to"))
	}
	b = put(b, 0, number(t, "correlation"))
	b = put(b, 0, rapid.SampledFrom([]uint64{0, 0, 0, 1, 1, 2, 3, 4, 7, 8, 30}).Draw(t, "flags"))
	if rapid.IntRange(0, 9).Draw(t, "headers") == 0 {
		b = append(b, 0xa1, 0x61, 'a', 0x61, 'b')
	} else {
		b = append(b, 0xf6)
	}
	p := someBytes(t, "payload")
	b = append(put(b, 2, uint64(len(p))), p...)
	if rapid.IntRange(0, 4).Draw(t, "cut") == 0 {
		b = b[:rapid.IntRange(0, len(b)).Draw(t, "at")]
	}
	return append(b, make([]byte, rapid.IntRange(0, 3).Draw(t, "behind"))...)
}

// FuzzUsual holds the short way of reading against the codec.
func FuzzUsual(f *testing.F) {
	f.Add([]byte("\x86\x00\x1b\x12\x34\x56\x78\x9a\xbc\xde\xf0\x00\x00\xf6\x58\x20aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c, want abi.Command
		if n := decodeUsual(&c, b); n > 0 {
			if m, err := abi.DecodeCommand(&want, b); err != nil || m != n || !reflect.DeepEqual(c, want) {
				t.Fatalf("%d, %+v; want %d, %v, %+v", n, c, m, err, want)
			}
		}
	})
}
