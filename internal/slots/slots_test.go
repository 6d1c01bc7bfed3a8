package slots

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// variants are the ways in which a space can work; on platforms without memfd
// all are the portable one.
var variants = map[string]Options{
	"native":     {Reserve: 1 << 30},
	"no scan":    {Reserve: 1 << 30, NoPageScan: true},
	"no pagemap": {Reserve: 1 << 30, NoPageMap: true},
	"copy only":  {Reserve: 1 << 30, MaxMapped: -1},
	"one mapped": {Reserve: 1 << 30, MaxMapped: 1},
	"tiny":       {Reserve: 1 << 20},
	"portable":   {Portable: true},
}

func each(t *testing.T, f func(t *testing.T, s *Space)) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			s, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			f(t, s)
			if n := s.Live(); n != 0 {
				t.Errorf("%d memories live", n)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// sample is image contents: pages wasm pages long, with a share of its small
// pages filled.
func sample(seed uint64, pages int, share float64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, pages*WasmPage)
	for at := 0; at < len(data); at += grain {
		if r.Float64() < share {
			for i := at; i < at+grain; i += 61 {
				data[i] = byte(r.Uint32() | 1)
			}
		}
	}
	return data
}

// guest is a memory beside what it should hold, and what wazero believes.
type guest struct {
	mem   *Memory
	view  []byte
	model []byte
	image []byte
}

// grow does what wazero's Grow does with the allocator.
func (g *guest) grow(pages uint32) (uint32, bool) {
	old := uint32(len(g.view) / WasmPage)
	view := g.mem.Reallocate(uint64(old+pages) * WasmPage)
	if view == nil {
		return 0, false
	}
	g.view = view
	return old, true
}

func (g *guest) check(t interface{ Fatalf(string, ...any) }) {
	if len(g.view) != len(g.model) {
		t.Fatalf("memory of %d bytes, want %d", len(g.view), len(g.model))
	}
	if !bytes.Equal(g.view, g.model) {
		for i := range g.model {
			if g.view[i] != g.model[i] {
				t.Fatalf("byte %d is %d, want %d", i, g.view[i], g.model[i])
			}
		}
	}
}

func (g *guest) reset(t interface{ Fatalf(string, ...any) }) {
	stale, err := g.mem.Reset()
	if err != nil {
		t.Fatalf("reset: %v", err)
	}
	if stale && !g.mem.Rebase(g.grow) {
		t.Fatalf("rebase refused")
	}
	g.model = append(g.model[:0], g.image...)
}

// TestMemoriesKeepApart drives some memories at random and compares each with a
// plain slice: writes, growth, resets, frees and new ones in old places.
func TestMemoriesKeepApart(t *testing.T) {
	thorough.Checks(t, 40)
	each(t, func(t *testing.T, s *Space) {
		rapid.Check(t, func(t *rapid.T) {
			var images []*Image
			var contents [][]byte
			for i := range rapid.IntRange(1, 2).Draw(t, "images") {
				data := sample(uint64(i), rapid.IntRange(1, 12).Draw(t, "pages"), rapid.SampledFrom([]float64{0, 0.02, 0.5, 1}).Draw(t, "share"))
				im, err := s.NewImage(data)
				if err != nil {
					t.Fatal(err)
				}
				images, contents = append(images, im), append(contents, data)
			}
			const limit = 40 * WasmPage
			var guests []*guest
			pick := func() *guest { return guests[rapid.IntRange(0, len(guests)-1).Draw(t, "guest")] }
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				op := rapid.SampledFrom([]string{"new", "write", "write", "flood", "grow", "reset", "free"}).Draw(t, "op")
				if len(guests) == 0 {
					op = "new"
				}
				switch op {
				case "new":
					k := rapid.IntRange(0, len(images)-1).Draw(t, "image")
					m, err := s.NewMemory(images[k], 0, limit)
					if err != nil {
						t.Fatal(err)
					}
					g := &guest{mem: m, image: contents[k], model: bytes.Clone(contents[k])}
					g.view = m.Reallocate(uint64(len(contents[k])))
					guests = append(guests, g)
				case "write":
					g := pick()
					at := rapid.IntRange(0, len(g.model)-1).Draw(t, "at")
					v := rapid.Byte().Draw(t, "v")
					g.view[at], g.model[at] = v, v
				case "flood":
					g := pick()
					from := rapid.IntRange(0, len(g.model)-1).Draw(t, "from")
					for i := from; i < len(g.model); i += 997 {
						g.view[i], g.model[i] = 0xee, 0xee
					}
				case "grow":
					g := pick()
					n := rapid.IntRange(1, 16).Draw(t, "by")
					_, ok := g.grow(uint32(n))
					if want := len(g.model)+n*WasmPage <= limit; ok != want {
						t.Fatalf("grow %d pages to %d bytes: %v", n, len(g.model)+n*WasmPage, ok)
					}
					if ok {
						g.model = append(g.model, make([]byte, n*WasmPage)...)
					} else if !g.mem.Refused() {
						t.Fatal("refusal not recorded")
					}
				case "reset":
					pick().reset(t)
				case "free":
					i := rapid.IntRange(0, len(guests)-1).Draw(t, "guest")
					guests[i].mem.Free()
					guests[i].mem.Free()
					guests = append(guests[:i], guests[i+1:]...)
				}
				for _, g := range guests {
					g.check(t)
				}
			}
			for _, im := range images {
				im.Close()
			}
			for _, g := range guests {
				g.check(t) // an image lives as long as its memories
				g.reset(t)
				g.check(t)
				g.mem.Free()
			}
		})
	})
}

func TestResetAfterManyLives(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		data := sample(7, 40, 0.6)
		im, err := s.NewImage(data)
		if err != nil {
			t.Fatal(err)
		}
		defer im.Close()
		m, err := s.NewMemory(im, 0, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		g := &guest{mem: m, image: data, model: bytes.Clone(data), view: m.Reallocate(im.Size())}
		r := rand.New(rand.NewPCG(1, 2))
		for life := range 60 {
			pages := 5
			if life%7 == 6 {
				pages = 600 // beyond keepPages: discards all but the hot ones
			}
			for range pages {
				at := r.IntN(len(g.view))
				if r.IntN(2) == 0 {
					at = r.IntN(8) * grain
				}
				g.view[at] ^= 0x55
			}
			if life%5 == 0 {
				g.grow(uint32(1 + r.IntN(300)))
				g.view[len(g.view)-1] = 1
			}
			g.reset(t)
			g.check(t)
		}
	})
}

func TestLimit(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		m, err := s.NewMemory(nil, WasmPage, 3*WasmPage)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Free()
		if m.Reallocate(3*WasmPage) == nil || m.Refused() {
			t.Fatal("growth to the limit refused")
		}
		if m.Reallocate(4*WasmPage) != nil || !m.Refused() {
			t.Fatal("growth beyond the limit allowed")
		}
		m.ClearRefused()
		m.SetLimit(2 * WasmPage)
		if m.Size() != 3*WasmPage || m.Reallocate(3*WasmPage) == nil {
			t.Fatal("a lower limit must not shrink a memory")
		}
	})
}

func TestSizesAreChecked(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		if _, err := s.NewMemory(nil, 100, 1<<20); err != ErrSize {
			t.Errorf("odd size: %v", err)
		}
		if _, err := s.NewMemory(nil, MaxMemory+WasmPage, 1<<20); err != ErrSize {
			t.Errorf("huge size: %v", err)
		}
		if _, err := s.NewImage(make([]byte, 100)); err != ErrSize {
			t.Errorf("odd image: %v", err)
		}
	})
}

func TestCloseWaitsForMemories(t *testing.T) {
	for name, o := range variants {
		t.Run(name, func(t *testing.T) {
			s, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			im, err := s.NewImage(sample(3, 4, 1))
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.NewMemory(im, 0, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			im.Close()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			m.Bytes()[5] = 1 // still there
			if _, err := s.NewMemory(nil, WasmPage, 1<<20); err != ErrClosed {
				t.Errorf("memory from a closed space: %v", err)
			}
			if _, err := s.NewImage(nil); err != ErrClosed {
				t.Errorf("image from a closed space: %v", err)
			}
			m.Free()
			if s.Live() != 0 {
				t.Errorf("%d live", s.Live())
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestManyGoroutines(t *testing.T) {
	each(t, func(t *testing.T, s *Space) {
		data := sample(11, 6, 0.7)
		im, err := s.NewImage(data)
		if err != nil {
			t.Fatal(err)
		}
		defer im.Close()
		lives := 60
		if testing.Short() {
			lives = 15
		}
		var wg sync.WaitGroup
		for w := range 6 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 9))
				for range lives {
					m, err := s.NewMemory(im, 0, 20*WasmPage)
					if err != nil {
						t.Error(err)
						return
					}
					g := &guest{mem: m, image: data, model: bytes.Clone(data), view: m.Reallocate(im.Size())}
					for range 3 {
						for range 20 {
							g.view[r.IntN(len(g.view))]++
						}
						if r.IntN(3) == 0 {
							g.grow(uint32(r.IntN(10)))
						}
						g.reset(t)
						g.check(t)
					}
					m.Free()
				}
			})
		}
		wg.Wait()
	})
}

func TestRebaseRefused(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.NewMemory(nil, WasmPage, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	m.Reallocate(2 * WasmPage)
	if stale, err := m.Reset(); err != nil || !stale {
		t.Fatal(stale, err)
	}
	if m.Rebase(func(uint32) (uint32, bool) { return 0, false }) {
		t.Error("a refusal passed for success")
	}
}

func BenchmarkReset(b *testing.B) {
	for name, o := range map[string]Options{"native": {}, "nopagemap": {NoPageMap: true}, "portable": {Portable: true}} {
		for _, c := range []struct {
			name           string
			pages, touched int
			share          float64
		}{{"small", 1, 3, 0.1}, {"go", 40, 22, 0.6}} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				s, _ := New(o)
				defer s.Close()
				im, _ := s.NewImage(sample(1, c.pages, c.share))
				defer im.Close()
				m, _ := s.NewMemory(im, 0, 64<<20)
				defer m.Free()
				mem := m.Bytes()
				for b.Loop() {
					for i := range c.touched {
						mem[i*len(mem)/c.touched]++
					}
					if _, err := m.Reset(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkFork(b *testing.B) {
	for name, share := range map[string]float64{"small": 0, "go": 0.6} {
		b.Run(name, func(b *testing.B) {
			s, _ := New(Options{})
			defer s.Close()
			pages := 40
			if name == "small" {
				pages = 1
			}
			data := sample(1, pages, share)
			data[0] = 1
			im, _ := s.NewImage(data)
			defer im.Close()
			for b.Loop() {
				m, err := s.NewMemory(im, 0, 64<<20)
				if err != nil {
					b.Fatal(err)
				}
				m.Bytes()[0]++
				m.Free()
			}
		})
	}
}

func isPortable(t *testing.T, o Options, want bool) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Portable() != want {
		t.Errorf("portable is %v with %+v", s.Portable(), o)
	}
}
