package slots

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/wasmactors/wasmactors/internal/race"
	"pgregory.net/rapid"
)

// What a patch was made from comes out of applying it to a fresh memory, in every
// variant, whatever was written where; what lies aside is as in the image.
func TestPatch(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
			data := sample(r.Uint64(), 1+r.IntN(6), r.Float64())
			im, err := s.NewImage(data)
			if err != nil {
				t.Fatal(err)
			}
			defer im.Close()
			fresh := func() *guest {
				m, err := s.NewMemory(im, 0, 20*WasmPage)
				if err != nil {
					t.Fatal(err)
				}
				return &guest{mem: m, image: data, model: bytes.Clone(data), view: m.Reallocate(im.Size())}
			}
			a, b := fresh(), fresh()
			defer a.mem.Free()
			defer b.mem.Free()
			var p Patch
			for range 3 {
				for range r.IntN(4) {
					at := r.IntN(len(a.view))
					switch n := min(r.IntN(9000), len(a.view)-at); r.IntN(3) {
					case 0:
						clear(a.view[at : at+n])
					case 1:
						for i := range a.view[at : at+n] {
							a.view[at+i] = byte(r.Uint32())
						}
					default:
						a.view[at]++
					}
				}
				if r.IntN(4) == 0 {
					a.grow(uint32(r.IntN(4)))
				}
				from := uint32(r.IntN(len(data)))
				aside := Span{from, from + uint32(r.IntN(len(data)-int(from)))}
				if err := a.mem.Patch(&p, aside); err != nil {
					t.Fatal(err)
				}
				want := bytes.Clone(a.mem.Bytes())
				for i := int(roundUp(uint64(aside.At))); i < int(aside.End&^7); i++ {
					want[i] = 0
					if i < len(data) {
						want[i] = data[i]
					}
				}
				b.reset(t)
				if b.mem.Size() != a.mem.Size() {
					b.grow(uint32((a.mem.Size() - b.mem.Size()) / WasmPage))
				}
				copied := p.Clone()
				switch r.IntN(3) {
				case 0:
					again, err := DecodePatch(im, p.Append(nil), a.mem.Size())
					if err != nil {
						t.Fatal(err)
					}
					copied = *again
				case 1:
					drained, err := a.mem.Drain(aside)
					if err != nil {
						t.Fatal(err)
					}
					if got, want := drained.Append(nil), p.Append(nil); len(drained.chunks) == 1 && !bytes.Equal(got, want) {
						t.Fatal("another patch")
					}
					copied = *drained
					a.reset(t)
				}
				if err := b.mem.ApplyOnce(&copied); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(b.mem.Bytes(), want) {
					t.Fatal("the patch leads elsewhere")
				}
			}
		})
	})
}

// A patch holds what differs and little else.
func TestPatchIsSmall(t *testing.T) {
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
	m, err := s.NewMemory(im, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	for i := range 20 {
		m.Bytes()[i*20_000] ^= 1
	}
	var p Patch
	if err := m.Patch(&p); err != nil {
		t.Fatal(err)
	}
	if c := p.Clone(); c.Bytes() > 20*12 {
		t.Errorf("%d bytes for 20 words", c.Bytes())
	}
	if n := testing.AllocsPerRun(20, func() { _ = m.Patch(&p) }); n != 0 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}

func TestPatchErrors(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		im, err := s.NewImage(sample(1, 2, 0.5))
		if err != nil {
			t.Fatal(err)
		}
		defer im.Close()
		m, err := s.NewMemory(im, 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		bare, err := s.NewMemory(nil, 2*WasmPage, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var p Patch
		if err := bare.Patch(&p); err != ErrPatch {
			t.Errorf("a memory without an image: %v", err)
		}
		if err := m.Patch(&p); err != nil {
			t.Fatal(err)
		}
		if err := bare.Apply(&p); err != ErrPatch {
			t.Errorf("another image: %v", err)
		}
		m.Free()
		bare.Free()
		if m.Patch(&p) != ErrClosed || m.Apply(&p) != ErrClosed {
			t.Error("a memory that was freed")
		}
	})
}

func BenchmarkPatch(b *testing.B) {
	s, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	im, err := s.NewImage(sample(1, 44, 0.5))
	if err != nil {
		b.Fatal(err)
	}
	defer im.Close()
	m, err := s.NewMemory(im, 0, 1<<30)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Free()
	for i := range 20 {
		m.Bytes()[i*20_000] ^= 1
	}
	var p Patch
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Patch(&p); err != nil {
			b.Fatal(err)
		}
	}
}
