package abi

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"
)

// script reads an input with operations that it names, and notes what came of them.
func script(r *Reader, ops []byte) (notes string) {
	keys := []Key{{Word: 0x6162, Encoded: "ba"}, {Word: 0x01, Encoded: "\x01"}, {Word: 0x6867666564636269, Encoded: "ibcdefghi"}}
	next := 0
	for _, op := range ops {
		switch op % 10 {
		case 0:
			notes += fmt.Sprint(r.Uint())
		case 1:
			notes += fmt.Sprint(r.Int())
		case 2:
			notes += fmt.Sprintf("%q", r.TextBytes())
		case 3:
			notes += fmt.Sprintf("%q", r.Text())
		case 4:
			notes += fmt.Sprintf("%x", r.ByteString())
		case 5:
			notes += fmt.Sprintf("%x", r.Bytes())
		case 6:
			notes += fmt.Sprint(r.Map())
		case 7:
			notes += fmt.Sprint(r.Bool())
		case 8:
			notes += fmt.Sprint(r.Float())
		case 9:
			notes += fmt.Sprint(r.Field(keys, &next), next)
		}
		notes += fmt.Sprint(" ", r.Offset(), r.Err(), "\n")
	}
	return notes
}

// The quick ways look at eight bytes at once, also behind the end where there is room. What is there
// must not matter, nor whether there is any.
func TestReaderIgnoresWhatIsBehind(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	pieces := [][]byte{
		{0}, {23}, {24, 24}, {24, 23}, {25, 1, 0}, {25, 0, 255}, {26, 0, 1, 0, 0}, {26, 0, 0, 1, 0}, {27, 0, 0, 0, 1, 0, 0, 0, 0}, {27, 255, 255, 255, 255, 255, 255, 255, 255},
		{0x20}, {0x38, 24}, {0x3b, 127, 255, 255, 255, 255, 255, 255, 255}, {0x3b, 128, 0, 0, 0, 0, 0, 0, 0}, {28}, {31}, {0x40}, {0x43, 1, 2, 3}, {0x58, 24}, {0x60}, {0x62, 'a', 'b'},
		[]byte("\x68abcdefgh"), []byte("\x69abcdefghi"), []byte("\x77abcdefghijklmnopqrstuvw"), []byte("\x62\xc3\xbc"), []byte("\x61\xff"), append([]byte{0x78, 24}, make([]byte, 24)...),
		{0xa0}, {0xa1}, {0xb7}, {0xf4}, {0xf5}, {0xf6}, {0xfb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0}, []byte("ba"), []byte("ibcdefghi"), []byte("ibcdefghj"),
	}
	for range 50_000 {
		var in, ops []byte
		for range 1 + rnd.Intn(5) {
			in = append(in, pieces[rnd.Intn(len(pieces))]...)
			ops = append(ops, byte(rnd.Intn(256)))
		}
		in = in[:len(in)-rnd.Intn(3)%(len(in)+1)]
		exact := bytes.Clone(in)[:len(in):len(in)]
		want := script(NewReader(exact), ops)
		for _, behind := range []byte{0, 'a', 0xff} {
			roomy := append(bytes.Clone(in), bytes.Repeat([]byte{behind}, 16)...)[:len(in)]
			if got := script(NewReader(roomy), ops); got != want {
				t.Fatalf("% x with % x:\n%s\nwith %#x behind:\n%s", in, ops, want, behind, got)
			}
		}
	}
}

// What is read into memory of its own shares nothing with the input, nor with what else is read.
func TestOwnMemory(t *testing.T) {
	for _, size := range []int{3, smallInput + 10} {
		in := append([]byte("\x63abc\x43\x01\x02\x03\x63def\x40"), make([]byte, size)...)
		r := NewReader(in)
		a, b, c, d := r.Text(), r.Bytes(), r.Text(), r.Bytes()
		clear(in)
		_ = append(b, 'x', 'x')
		b[0] = 9
		if a != "abc" || c != "def" || b[1] != 2 || d == nil || len(d) != 0 || r.Err() != nil {
			t.Errorf("%d: %q %x %q %x %v", size, a, b, c, d, r.Err())
		}
	}
}

func TestWriterGrows(t *testing.T) {
	for room := range 20 {
		w := NewWriter(make([]byte, 0, room))
		w.Word(0x6261, 2)
		w.Uint(1 << 40)
		w.Int(-500)
		w.Text("text")
		w.Float(1)
		w.Bool(true)
		w.ByteString([]byte{1})
		w.Map(30)
		w.Encoded("x")
		want := "ab\x1b\x00\x00\x01\x00\x00\x00\x00\x00\x39\x01\xf3\x64text\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00\xf5\x41\x01\xb8\x1ex"
		if string(w.Bytes()) != want {
			t.Errorf("room %d: % x\nwant % x", room, w.Bytes(), want)
		}
	}
}
