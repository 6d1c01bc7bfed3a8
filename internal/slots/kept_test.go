package slots

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// A memory goes to each of its states, in any order, in every variant, whatever was written since; not when it has grown. What states
// have in common is held once, and what is dropped is given back.
func TestKept(t *testing.T) {
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
			view := m.Reallocate(im.Size() + uint64(r.IntN(2))*WasmPage)
			scribble := func() {
				for range r.IntN(6) {
					at := r.IntN(len(view))
					for i := range view[at:min(at+r.IntN(9000), len(view))] {
						view[at+i] = byte(r.Uint32N(3))
					}
				}
			}
			type state struct {
				*Kept
				want []byte
			}
			var k Keeper
			var states []state
			for range 6 {
				scribble()
				var near *Kept
				if len(states) > 0 && r.IntN(4) > 0 {
					near = states[r.IntN(len(states))].Kept
				}
				kept, err := m.Keep(&k, near)
				if err != nil {
					t.Fatal(err)
				}
				before := k.Bytes()
				same, err := m.Keep(&k, kept)
				if err != nil {
					t.Fatal(err)
				}
				if more := k.Bytes() - before; more != pageNote*len(kept.pages) {
					t.Errorf("an equal state takes %d bytes more", more)
				}
				same.Drop()
				if k.Bytes() != before {
					t.Errorf("after it was dropped there are %d bytes, not %d", k.Bytes(), before)
				}
				states = append(states, state{kept, bytes.Clone(view)})
			}
			for range 10 {
				x := states[r.IntN(len(states))]
				scribble()
				if err := m.Return(x.Kept); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(m.Bytes(), x.want) {
					t.Fatal("it is not what the state was made from")
				}
				if i := r.IntN(len(states)); len(states) > 2 && r.IntN(3) == 0 {
					states[i].Drop()
					states = append(states[:i], states[i+1:]...)
				}
			}
			var other Keeper
			if _, err := m.Keep(&other, states[0].Kept); !errors.Is(err, ErrPatch) {
				t.Error(err)
			}
			m.Reallocate(uint64(len(view)) + WasmPage)
			if err := m.Return(states[0].Kept); !errors.Is(err, ErrPatch) {
				t.Error(err)
			}
			for _, x := range states {
				x.Drop()
			}
			if k.Bytes() != 0 {
				t.Errorf("%d bytes are left", k.Bytes())
			}
			m.Free()
			if _, err := m.Keep(&k, nil); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			im.Close()
		}
	})
}
