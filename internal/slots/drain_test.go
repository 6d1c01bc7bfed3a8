package slots

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmactors/wasmactors/internal/race"
)

// TestDrainGivesBack: when a large memory has been drained, the patch is there and the
// memory is not, and a fresh memory becomes what the old one was.
func TestDrainGivesBack(t *testing.T) {
	if race.Enabled {
		t.Skip("it has one goroutine, and takes half a minute")
	}
	each(t, func(t *testing.T, s *Space) {
		const size = 24 << 20
		for _, start := range []int{2 * WasmPage, 258 * WasmPage, size} { // moved to a larger block, grown within it, and neither
			im, err := s.NewImage(append(sample(3, 2, 0.5), make([]byte, start-2*WasmPage)...))
			if err != nil {
				t.Fatal(err)
			}
			defer im.Close()
			fresh := func() *Memory {
				m, err := s.NewMemory(im, 0, size)
				if err != nil {
					t.Fatal(err)
				}
				if m.Reallocate(im.Size()) == nil || start < size && m.Reallocate(size) == nil {
					t.Fatal("no room")
				}
				return m
			}
			a, b := fresh(), fresh()
			defer a.Free()
			defer b.Free()
			rnd := rand.NewChaCha8([32]byte{1})
			_, _ = rnd.Read(a.Bytes())
			want := bytes.Clone(a.Bytes())
			p, err := a.Drain()
			if err != nil {
				t.Fatal(err)
			}
			if len(p.chunks) != size/(drainPages*grain) {
				t.Errorf("%d chunks", len(p.chunks))
			}
			if n := p.Bytes(); n > size+size/100 {
				t.Errorf("%d bytes for %d", n, size)
			}
			known := len(s.back.changed(nil, b.Bytes())) < size/grain // which pages are there
			if n := len(s.back.changed(nil, a.Bytes())); known && n > 300 {
				t.Errorf("%d pages are left of %d", n, size/grain)
			}
			if err := b.ApplyOnce(p); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				t.Error("another memory")
			}
			if n := p.Bytes(); n != 0 {
				t.Errorf("%d bytes of the patch are left", n)
			}
		}
	})
}

// After each MiB that is copied, others run, however many processors there are. The memory is one in Go's heap: system
// calls, which let others run too, are not what is looked for.
func TestLargeCopiesLetOthersIn(t *testing.T) {
	if race.Enabled {
		t.Skip("it copies for long enough to be preempted")
	}
	const chunks = 32
	size := chunks * drainPages * grain
	s, err := New(Options{Portable: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	im, err := s.NewImage(make([]byte, size))
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	fresh := func() *Memory {
		m, err := s.NewMemory(im, 0, uint64(size))
		if err != nil {
			t.Fatal(err)
		}
		if m.Reallocate(uint64(size)) == nil {
			t.Fatal("no room")
		}
		for i := range m.Bytes() { // the pages are there
			m.Bytes()[i] = 1
		}
		return m
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns atomic.Int64
	var done atomic.Bool
	var other sync.WaitGroup
	other.Go(func() {
		for !done.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	})
	defer other.Wait()
	defer done.Store(true)
	runtime.Gosched() // the other goroutine has begun

	var p *Patch
	for what, f := range map[string]func(m *Memory) error{
		"drain":      func(m *Memory) error { _, err := m.Drain(); return err },
		"apply":      func(m *Memory) error { return m.Apply(p) },
		"apply once": func(m *Memory) error { return m.ApplyOnce(p) },
	} {
		most := int64(0)
		for range 5 { // the other goroutine may be held up for a while
			m, from := fresh(), fresh()
			if p, err = from.Drain(); err != nil {
				t.Fatal(err)
			}
			from.Free()
			began := turns.Load()
			if err := f(m); err != nil {
				t.Fatal(err)
			}
			most = max(most, turns.Load()-began)
			m.Free()
			if most >= chunks*3/4 { // the scheduler passes over a goroutine now and then
				break
			}
		}
		if most < chunks*3/4 {
			t.Errorf("%s: others have run %d times during %d MiB", what, most, chunks)
		}
	}
}

// FuzzPatch: bytes that are accepted can be applied, and are what they were.
func FuzzPatch(f *testing.F) {
	s, err := New(Options{Portable: true})
	if err != nil {
		f.Fatal(err)
	}
	data := sample(1, 2, 0.5)
	im, err := s.NewImage(data)
	if err != nil {
		f.Fatal(err)
	}
	const limit = 6 * WasmPage
	seed, err := s.NewMemory(im, 0, limit)
	if err != nil {
		f.Fatal(err)
	}
	seed.Bytes()[70] ^= 1
	seed.Bytes()[80000] ^= 1
	var p Patch
	if err := seed.Patch(&p); err != nil {
		f.Fatal(err)
	}
	f.Add(p.Append(nil))
	f.Add([]byte{})
	f.Add([]byte{0x80, 0x80, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodePatch(im, b, limit)
		if err != nil {
			return
		}
		m, err := s.NewMemory(im, 0, limit)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		if m.Reallocate(p.Size()) == nil {
			t.Fatal("a size that cannot be had")
		}
		if err := m.Apply(p); err != nil {
			t.Fatal(err)
		}
		var again Patch
		if err := m.Patch(&again); err != nil {
			t.Fatal(err)
		}
		back, err := DecodePatch(im, again.Append(nil), limit)
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.NewMemory(im, 0, limit)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Free()
		n.Reallocate(back.Size())
		if err := n.Apply(back); err != nil || !bytes.Equal(n.Bytes(), m.Bytes()) {
			t.Fatal("another memory", err)
		}
	})
}
