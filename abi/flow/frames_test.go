package flow

import (
	"math/rand"
	"strings"
	"testing"
)

// parts cuts data into random parts.
func parts(rnd *rand.Rand, data string) Source[[]byte] {
	var all [][]byte
	for len(data) > 0 {
		n := min(len(data), 1+rnd.Intn(5))
		all = append(all, []byte(data[:n]))
		data = data[n:]
	}
	return From(all...)
}

func text2(src Source[[]byte]) Source[string] {
	return Map(src, func(b []byte) string { return string(b) })
}

func TestFramesOfBytes(t *testing.T) {
	for seed := range int64(50) {
		rnd := rand.New(rand.NewSource(seed))
		gives(t, Lines(parts(rnd, "one\r\n\ntwo\nthree"), 5), "one", "", "two", "three")
		gives(t, Lines(parts(rnd, "one\n"), 3), "one")
		fails(t, Fold(Lines(parts(rnd, "one\n"+strings.Repeat("x", 30)+"\n"), 5), 0, func(n int, _ string) (int, error) { return n, nil }), ErrFrame)
		fails(t, Fold(Lines(parts(rnd, "one\n"+strings.Repeat("x", 7)), 5), 0, func(n int, _ string) (int, error) { return n, nil }), ErrFrame)
		gives(t, text2(Lengths(parts(rnd, "\x00\x03abc\x00\x00\x00\x01d"), 2, 3)), "abc", "", "d")
		fails(t, Fold(Lengths(parts(rnd, "\x00\x04abcd"), 2, 3), 0, func(n int, _ []byte) (int, error) { return n, nil }), ErrFrame) // too long
		fails(t, Fold(Lengths(parts(rnd, "\x03ab"), 1, 3), 0, func(n int, _ []byte) (int, error) { return n, nil }), ErrFrame)       // half of one
		fails(t, Fold(Lengths(parts(rnd, "\xff\xff\xff\xff"), 4, 1<<20), 0, func(n int, _ []byte) (int, error) { return n, nil }), ErrFrame)
		stream := ": hello\n\nevent: add\ndata: 1\ndata:2\nid: 7\n\ndata\n\nevent: none\n\nretry: 5\ndata: x\n\ndata: lost"
		gives(t, Events(Lines(parts(rnd, stream), 100)), Event{"add", "1\n2", "7"}, Event{"message", "", "7"}, Event{"message", "x", "7"})
	}
	fails(t, Events(Repeat("data: x")), ErrFrame)
}
