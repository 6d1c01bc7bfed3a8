//go:build linux && (amd64 || arm64) && !portable

package slots

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
)

// So many memories share a file as may, all have the image's contents, and what has ended makes room.
func TestMemoriesShareFiles(t *testing.T) {
	const most, n = 4, 10
	s, err := New(Options{Share: most})
	if err != nil || s.Portable() {
		t.Skip("no mapped memory here", err)
	}
	defer s.Close()
	data := make([]byte, 2*WasmPage)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	clear(data[WasmPage/2 : WasmPage])
	im, err := s.NewImage(data)
	if err != nil || !im.Mapped() {
		t.Fatal(err)
	}
	var all []*Memory
	more := func() {
		m, err := s.NewMemory(im, 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m.Bytes(), data) {
			t.Fatal("it is not the image")
		}
		m.Bytes()[len(all)]++ // its own
		all = append(all, m)
	}
	for range n {
		more()
	}
	counts := func() (used []int) {
		for _, f := range im.files.all {
			used = append(used, f.used)
		}
		return used
	}
	if got := counts(); len(got) != 3 || got[0] != most || got[1] != most || got[2] != n-2*most {
		t.Fatal(got)
	}
	all[1].Free()
	all[5].Free()
	if got := counts(); got[0] != most-1 || got[1] != most-1 {
		t.Fatal(got)
	}
	more()
	more()
	if got := counts(); len(got) != 3 || got[0] != most || got[1] != most {
		t.Fatal(got)
	}
	for i, m := range all {
		if i != 1 && i != 5 {
			m.Free()
		}
	}
	for _, used := range counts() {
		if used != 0 {
			t.Fatal(counts())
		}
	}
	im.Close()
	if im.files.all != nil {
		t.Error("files are left open")
	}
}

// Memories come and go on all processors.
func TestFilesAreSharedByMany(t *testing.T) {
	s, err := New(Options{Share: 2})
	if err != nil || s.Portable() {
		t.Skip("no mapped memory here", err)
	}
	defer s.Close()
	im, err := s.NewImage(bytes.Repeat([]byte{7}, WasmPage))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				m, err := s.NewMemory(im, 0, WasmPage)
				if err != nil {
					t.Error(err)
					return
				}
				if m.Bytes()[WasmPage-1] != 7 {
					t.Error("it is not the image")
				}
				m.Free()
			}
		})
	}
	wg.Wait()
	used := 0
	for _, f := range im.files.all {
		used += f.used
	}
	if used != 0 || len(im.files.all) > 8 {
		t.Error(used, len(im.files.all))
	}
	im.Close()
}

// Files without memories are closed, but for one.
func TestUnusedFilesAreClosed(t *testing.T) {
	s, err := New(Options{Share: 1})
	if err != nil || s.Portable() {
		t.Skip("no mapped memory here", err)
	}
	defer s.Close()
	im, err := s.NewImage(bytes.Repeat([]byte{7}, WasmPage))
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	var all []*Memory
	for range 5 {
		m, err := s.NewMemory(im, 0, WasmPage)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	for i, want := range []int{5, 5, 4, 3, 2} { // the first one ends: its file is the image's
		if all[i].Free(); len(im.files.all) != want {
			t.Errorf("%d files when %d memories have ended", len(im.files.all), i+1)
		}
	}
	m, err := s.NewMemory(im, 0, WasmPage)
	if err != nil || m.Bytes()[0] != 7 {
		t.Fatal(err)
	}
	m.Free()
}

// Files are shared by all until the machine has been found to be slow.
func TestSharingFollowsTheMachine(t *testing.T) {
	was := sharing.slow.Load()
	defer sharing.slow.Store(was)
	for _, x := range []struct {
		share int
		slow  bool
		most  int
	}{{0, false, math.MaxInt}, {0, true, mostShare}, {7, true, 7}, {7, false, 7}, {-1, true, math.MaxInt}} {
		sharing.slow.Store(x.slow)
		if n := (&native{share: x.share}); n.most() != x.most {
			t.Errorf("%+v: %d", x, n.most())
		}
	}
	f := newFiles(-1)
	more := func() (int, error) { return -1, nil }
	for i := 1; i <= askAt+1; i++ {
		if _, ask := f.take(math.MaxInt, more); ask != (i == askAt) {
			t.Errorf("memory %d: the machine is asked: %v", i, ask)
		}
	}
	if len(f.all) != 1 {
		t.Errorf("%d files", len(f.all))
	}
}

// Whatever the machine's answer is, nothing stays mapped or open.
func TestAskTheMachine(t *testing.T) {
	mappings := func() int {
		text, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip(err)
		}
		return bytes.Count(text, []byte("wasmactors-probe"))
	}
	t.Log("reads of pages that are mapped very often are slow:", manyMappingsAreSlow())
	if n := mappings(); n != 0 {
		t.Errorf("%d mappings are left", n)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, f := range open {
		if to, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.Contains(to, "wasmactors-probe") {
			t.Error("its file is open")
		}
	}
}
