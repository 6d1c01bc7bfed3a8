// Package wasmgen generates valid WebAssembly modules for tests: guests of
// wasmactors that use every instruction that internal/wasm accepts, mostly end, and
// mostly do something that can be observed.
//
// A module is a function of a byte slice, the choices: equal choices make equal
// modules, fewer or smaller ones make simpler modules. That serves go's fuzzing
// and rapid's shrinking alike.
package wasmgen

import "math/rand/v2"

// Seed makes choices from a number, up to 4 KiB of them.
func Seed(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0x7761736d67656e))
	b := make([]byte, 64<<r.IntN(6)+r.IntN(2048))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// choices reads decisions; behind the end everything is decided as 0, which is
// the simplest.
type choices struct {
	b  []byte
	at int
}

func (c *choices) byte() byte {
	if c.at >= len(c.b) {
		return 0
	}
	c.at++
	return c.b[c.at-1]
}

func (c *choices) spent() bool { return c.at >= len(c.b) }

// n chooses one of k.
func (c *choices) n(k int) int {
	switch {
	case k <= 1:
		return 0
	case k <= 256:
		return int(c.byte()) % k
	}
	return (int(c.byte())<<8 | int(c.byte())) % k
}

// chance is true in p of 256 cases.
func (c *choices) chance(p int) bool { return int(c.byte()) >= 256-p }

func (c *choices) u64(bytes int) uint64 {
	var v uint64
	for range bytes {
		v = v<<8 | uint64(c.byte())
	}
	return v
}

func pick[T any](c *choices, list []T) T { return list[c.n(len(list))] }

// Shrink makes choices that fail simpler, as long as they fail.
func Shrink(b []byte, fails func([]byte) bool) []byte {
	for cut := len(b) / 2; cut > 0; cut /= 2 {
		for len(b) > cut && fails(b[:len(b)-cut]) {
			b = b[:len(b)-cut]
		}
	}
	b = append([]byte(nil), b...)
	for size := max(1, len(b)/4); size > 0; size /= 2 {
		for at := 0; at+size <= len(b); at += size {
			part := append([]byte(nil), b[at:at+size]...)
			clear(b[at : at+size])
			if string(part) != string(b[at:at+size]) && !fails(b) {
				copy(b[at:], part)
			}
		}
	}
	return b
}
