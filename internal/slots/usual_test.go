package slots

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// What was drained comes back byte for byte, and is written as if there were no usual memory, whatever memories of the image
// were drained before and however much they have in common.
func TestUsualMemories(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
			data := sample(r.Uint64(), 2+r.IntN(3), r.Float64())
			im, err := s.NewImage(data)
			if err != nil {
				t.Fatal(err)
			}
			defer im.Close()
			fresh := func(size uint64) *Memory {
				m, err := s.NewMemory(im, 0, 20*WasmPage)
				if err != nil {
					t.Fatal(err)
				}
				if m.Reallocate(size) == nil {
					t.Fatal("no room")
				}
				return m
			}
			seeds := []uint64{r.Uint64(), r.Uint64(), r.Uint64()}
			aside := Span{uint32(3 * grain), uint32(3*grain + r.IntN(2*grain))}
			known := map[*usual]bool{}
			for range 5 {
				size := im.Size()
				if r.IntN(6) == 0 {
					size += WasmPage
				}
				m := fresh(size)
				scribble(rand.New(rand.NewPCG(seeds[max(r.IntN(6)-3, 0)], 1)), m.Bytes(), 12, 600) // in common
				scribble(r, m.Bytes(), r.IntN(4), 40)                                              // its own
				var plain Patch
				if err := m.Patch(&plain, aside); err != nil {
					t.Fatal(err)
				}
				want := bytes.Clone(m.Bytes())
				from, to := roundUp(uint64(aside.At)), uint64(aside.End)&^7
				if from < to {
					copy(want[from:to], data[from:])
				}
				p, err := m.Drain(aside)
				if err != nil {
					t.Fatal(err)
				}
				m.Free()
				if got := p.Append(nil); !bytes.Equal(got, plain.Append(nil)) {
					t.Fatal("it is written in another way")
				}
				if got, want := p.Bytes(), len(plain.chunks[0]); got != want {
					t.Fatalf("%d bytes, alone it has %d", got, want)
				}
				if p.usual != nil {
					known[p.usual] = true
				}
				c := p.Clone()
				back := fresh(size)
				if r.IntN(2) == 0 {
					err = back.Apply(&c)
				} else {
					err = back.ApplyOnce(p)
				}
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(back.Bytes(), want) {
					t.Fatal("it leads elsewhere")
				}
				back.Free()
			}
			if len(known) > mostUsuals {
				t.Fatalf("%d usual memories", len(known))
			}
		})
	})
}

// scribble writes n times up to size bytes into the first pages.
func scribble(r *rand.Rand, mem []byte, n, size int) {
	for range n {
		at := r.IntN(10*grain - size)
		for i := range 1 + r.IntN(size) {
			mem[at+i] = byte(r.Uint32())
		}
	}
}

// Memories that differ in some bytes take little more than these. When guests come to do something else, they do again after a
// while.
func TestUsualMemoriesAreSmall(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	im, err := s.NewImage(sample(1, 10, 0.5))
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	held := func(seed uint64, own byte) int {
		m, err := s.NewMemory(im, 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		scribble(rand.New(rand.NewPCG(seed, 1)), m.Bytes(), 12, 600)
		m.Bytes()[100] = own
		if len(s.back.changed(nil, m.Bytes()))*grain > usualBytes {
			t.Skip("this system does not tell which pages have changed")
		}
		p, err := m.Drain()
		if err != nil {
			t.Fatal(err)
		}
		if len(p.chunks) == 0 {
			return 0
		}
		return cap(p.chunks[0])
	}
	for seed := range uint64(mostUsuals) {
		for i := range usualMisses {
			held(seed, byte(i))
		}
		for i := range byte(100) {
			if n := held(seed, 100+i); n > 20 {
				t.Fatalf("%d: %d bytes for one that differs", seed, n)
			}
		}
	}
	for i := range 3 * usualMisses { // there are no more of them, and the last one stays
		held(99, byte(i))
	}
	if n := held(mostUsuals-1, 1); n > 20 {
		t.Fatalf("%d bytes", n)
	}
	if im.usuals.made != mostUsuals {
		t.Fatalf("%d usual memories were made", im.usuals.made)
	}
}

// Many goroutines drain memories of one image.
func TestUsualMemoriesHammer(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		im, err := s.NewImage(sample(1, 2, 0.5))
		if err != nil {
			t.Fatal(err)
		}
		defer im.Close()
		var all sync.WaitGroup
		for g := range uint64(8) {
			all.Go(func() {
				r := rand.New(rand.NewPCG(g, 2))
				for range 20 {
					a, err := s.NewMemory(im, 0, im.Size())
					if err != nil {
						t.Error(err)
						return
					}
					if a.Reallocate(im.Size()) == nil {
						t.Error("no room")
						return
					}
					scribble(rand.New(rand.NewPCG(r.Uint64N(3), 1)), a.Bytes(), 12, 600)
					scribble(r, a.Bytes(), 1, 30)
					want := bytes.Clone(a.Bytes())
					p, err := a.Drain()
					if err != nil {
						t.Error(err)
						return
					}
					a.Reset()
					a.Reallocate(im.Size())
					if err := a.ApplyOnce(p); err != nil || !bytes.Equal(a.Bytes(), want) {
						t.Error("another memory", err)
					}
					a.Free()
				}
			})
		}
		all.Wait()
	})
}
