package abi

import (
	"bytes"
	"testing"
)

func TestNestingIsBounded(t *testing.T) {
	for _, c := range []struct {
		depth int
		leaf  byte
		ok    bool
	}{{MaxNesting, 0xf6, true}, {MaxNesting - 1, 0x80, true}, {MaxNesting, 0x80, false}, {MaxNesting + 1, 0xf6, false}, {MaxNesting, 0xa0, false}} {
		b := append(bytes.Repeat([]byte{0x81}, c.depth), c.leaf)
		if err := Valid(b); (err == nil) != c.ok {
			t.Errorf("%d arrays around %#x: %v", c.depth, c.leaf, err)
		}
	}
}
