package mapped

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/typed/testdata/mapped"
	"pgregory.net/rapid"
)

// more are the types of kinds and those with rules of their own.
var more = append([]func() generated{
	func() generated { return &mapped.Required{} },
	func() generated { return &mapped.Strict{} },
	func() generated { return &mapped.Kept{} },
}, kinds...)

// readBothWays reads an input with nothing behind it, which generated code reads entry by entry, and with room behind it, where
// it reads what comes in its own order the quick way. Both must come to the same. It reports whether it was read.
func readBothWays(t interface{ Fatalf(string, ...any) }, fresh func() generated, data []byte) bool {
	exact := bytes.Clone(data)[:len(data):len(data)]
	slow := fresh()
	r := abi.NewReader(exact)
	slow.UnmarshalCBOR(r)
	want := fmt.Sprint(r.Done())
	for _, behind := range []byte{0, 'a', 0x61, 0xff} {
		roomy := append(bytes.Clone(data), bytes.Repeat([]byte{behind}, 64)...)[:len(data)]
		var q abi.Reader
		for range 3 { // a reader that is used again makes its copies elsewhere
			quick := fresh()
			q.Reset(roomy)
			quick.UnmarshalCBOR(&q)
			if got := fmt.Sprint(q.Done()); got != want {
				t.Fatalf("%T: %x: %s, with room behind it %s", slow, data, want, got)
			}
			first := encode(quick)
			clear(roomy[:cap(roomy)]) // what was read is not part of the input
			if again := encode(quick); !bytes.Equal(again, first) {
				t.Fatalf("%T: %x was read as part of the input: %x, then %x", slow, data, first, again)
			}
			if one := encode(slow); !bytes.Equal(one, first) {
				t.Fatalf("%T: %x is read as\n %x, with room behind it as\n %x", slow, data, one, first)
			}
			roomy = append(append(roomy[:0], data...), bytes.Repeat([]byte{behind}, 64)...)[:len(data)]
		}
	}
	return want == "<nil>"
}

// The quick way reads nothing else than the way entry by entry, and refuses nothing else, with the same words.
func TestQuickReadsTheSame(t *testing.T) {
	quick := 0
	rapid.Check(t, func(t *rapid.T) {
		fresh := more[rapid.IntRange(0, len(more)-1).Draw(t, "type")]
		v := fresh()
		fill(t, reflect.ValueOf(v).Elem(), 5)
		data := encode(v)
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			if len(data) == 0 {
				return
			}
			at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			case 1:
				data = append(data[:at:at], data[at+1:]...)
			case 2:
				data = append(data[:at:at], append([]byte{rapid.Byte().Draw(t, "byte")}, data[at:]...)...)
			case 3:
				data = data[:at]
			}
		}
		if readBothWays(t, fresh, data) {
			quick++
		}
	})
	if quick == 0 {
		t.Error("nothing was read: the test compares only refusals")
	}
}

// FuzzQuick is TestQuickReadsTheSame with any input.
func FuzzQuick(f *testing.F) {
	for i, fresh := range more {
		f.Add(uint8(i), encode(fresh()))
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		readBothWays(t, more[int(kind)%len(more)], data)
	})
}
