//go:build linux && (amd64 || arm64) && !portable

package slots

import (
	"bytes"
	"math/rand/v2"
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

// The answer of this machine, for people.
func TestAskTheMachine(t *testing.T) {
	t.Log("reads of pages that are mapped very often are slow:", manyMappingsAreSlow())
}
