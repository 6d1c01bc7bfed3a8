package slots

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// A memory goes back to what a patch was made from, in every variant, whatever was written since; not when it has grown.
func TestRewind(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 30 {
			data := sample(r.Uint64(), 1+r.IntN(6), r.Float64())
			im, err := s.NewImage(data)
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.NewMemory(im, 0, 20*WasmPage)
			if err != nil {
				t.Fatal(err)
			}
			view := m.Reallocate(im.Size())
			scribble := func() {
				for range r.IntN(6) {
					at := r.IntN(len(view))
					for i := range view[at:min(at+r.IntN(9000), len(view))] {
						view[at+i] = byte(r.Uint32N(3))
					}
				}
			}
			scribble()
			var p Patch
			if err := m.Patch(&p); err != nil {
				t.Fatal(err)
			}
			want := bytes.Clone(view)
			for range 3 {
				scribble()
				if err := m.Rewind(&p); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(m.Bytes(), want) {
					t.Fatal("it is not what the patch was made from")
				}
			}
			m.Reallocate(uint64(len(view)) + WasmPage)
			if err := m.Rewind(&p); !errors.Is(err, ErrPatch) {
				t.Error(err)
			}
			m.Free()
			im.Close()
		}
	})
}
