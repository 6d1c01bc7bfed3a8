//go:build linux && (amd64 || arm64) && !portable

package slots

import "testing"

// TestResident: it is known which pages a memory has of its own, whatever others of the image have touched, and how much
// a reset has given back.
func TestResident(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		const pages = 256 // with contents in every second one
		data := make([]byte, pages*grain)
		for at := 0; at < len(data); at += 2 * grain {
			data[at] = 1
		}
		im, err := s.NewImage(data)
		if err != nil {
			t.Fatal(err)
		}
		defer im.Close()
		memory := func() *Memory {
			m, err := s.NewMemory(im, uint64(len(data)), 4<<20)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		a, b := memory(), memory()
		defer a.Free()
		defer b.Free()
		for at := range pages { // also what has no contents in the image
			b.Bytes()[at*grain] = 7
		}
		if _, ok := a.Resident(); !ok {
			if s.Portable() {
				return
			}
			if s.back.(*native).pages != nil {
				t.Error("it is not known")
			}
			if _, err := b.Reset(); err != nil || b.Discarded() != uint64(len(data)) {
				t.Errorf("%v, %d bytes were discarded", err, b.Discarded())
			}
			return
		}
		first, _ := a.Resident() // of a copy, what has contents
		for at := 1; at < 21; at += 2 {
			a.Bytes()[at*grain] = 7
		}
		if now, ok := a.Resident(); !ok || now != first+10*uint64(grain) || first > pages/2*uint64(grain) {
			t.Errorf("%d bytes, before %d", now, first)
		}
		if now, ok := b.Resident(); !ok || now != pages*uint64(grain) {
			t.Errorf("%d bytes of the other one, want all", now)
		}
		grown := 3 * uint64(WasmPage)
		if b.Reallocate(uint64(len(data))+grown) == nil {
			t.Fatal("it does not grow")
		}
		for at := len(data); at < len(b.Bytes()); at += grain {
			b.Bytes()[at] = 7
		}
		for range 2 { // nothing remains of the first time
			had, _ := b.Resident()
			if _, err := b.Reset(); err != nil {
				t.Fatal(err)
			}
			now, _ := b.Resident()
			if gone := b.Discarded(); gone < had-min(had, now) || gone > uint64(len(data))+grown {
				t.Errorf("%d bytes were discarded, %d of %d are left", gone, now, had)
			}
		}
		if now, _ := b.Resident(); b.Discarded() > now {
			t.Errorf("%d bytes were discarded of an untouched memory, %d are left", b.Discarded(), now)
		}
	})
}
