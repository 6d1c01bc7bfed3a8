//go:build wasip1

package main

import (
	"bytes"
	"compress/flate"
	"io"
)

// deflate compresses n KiB of text and reads it back.
func deflate(n int) uint32 {
	words := []string{"actor ", "message ", "the ", "turn ", "a ", "supervisor ", "restarts ", "and ", "fuel\n", "isolated "}
	r, text := random(3), make([]byte, 0, n<<10)
	for len(text) < n<<10 {
		text = append(text, words[r.next()%10]...)
		if r.next()%8 == 0 {
			text = append(text, byte(r.next()))
		}
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, 6)
	if err != nil {
		panic(err)
	}
	if _, err := w.Write(text); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	sum := mix(0, uint32(packed.Len()))
	for _, b := range packed.Bytes() {
		sum = mix(sum, uint32(b))
	}
	back, err := io.ReadAll(flate.NewReader(&packed))
	if err != nil || !bytes.Equal(back, text) {
		panic("what was unpacked is not what was packed")
	}
	return sum
}
