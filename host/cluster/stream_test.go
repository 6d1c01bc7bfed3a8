package cluster

import (
	"bytes"
	"testing"
)

// What is confirmed gives its memory back, once, and what is not keeps it: no two blocks share any.
func TestBlocksShareNoMemory(t *testing.T) {
	s := newStream()
	frame := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, full) }
	for n := range 64 {
		s.parts(1, frame(n), full+maxParts)
		if n%3 == 2 {
			s.confirm(s.next - 2)
		}
		for _, b := range s.out {
			u, rest, ok := nextUnit(b.b)
			if want := frame(int(b.first) - 1); !ok || len(rest) > 0 || !bytes.Equal(u.part, want) {
				t.Fatalf("block %d has become another one", b.first)
			}
		}
	}
	if s.confirm(s.next); len(s.out) != 0 || s.bytes != 0 {
		t.Errorf("%d blocks are kept, %d bytes wait", len(s.out), s.bytes)
	}
}

// A packet that is freed is used again, and is none of the blocks that wait.
func TestPacketsAreCopies(t *testing.T) {
	p := &pair{node: &Node{}, stream: newStream()}
	frame := bytes.Repeat([]byte{7}, full)
	p.parts(1, frame, full+maxParts)
	for range 8 {
		packet := p.packet(0, p.out[0])
		clear(packet)
		Free(packet)
		if u, _, _ := nextUnit(p.out[0].b); !bytes.Equal(u.part, frame) {
			t.Fatal("the packet has the memory of the block")
		}
	}
}
