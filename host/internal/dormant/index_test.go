package dormant

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
)

const root = "wasm://w/user"

// planted is a tree in the order of a checkpoint: the path of each actor says where it is.
func planted(t *rapid.T) (all []Part) {
	next := abi.Ref(100)
	var grow func(path string, parent abi.Ref, depth int)
	grow = func(path string, parent abi.Ref, depth int) {
		for i := range rapid.IntRange(0, 4-depth).Draw(t, "children") {
			next++
			of := Part{
				Path: fmt.Sprintf("%s/k%d", path, i), Name: fmt.Sprint("k", i), Ref: next * 977, Parent: parent, Turns: rapid.Uint64().Draw(t, "turns"),
				Busy: rapid.IntRange(0, 5).Draw(t, "busy") == 0, Sort: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "sort"),
				Incarnation: rapid.Uint64Range(0, 1<<33).Draw(t, "incarnation"), Held: rapid.IntRange(0, 1<<20).Draw(t, "held"),
			}
			all = append(all, of)
			grow(of.Path, of.Ref, depth+1)
		}
	}
	grow(root, 7, 0)
	return all
}

// built is an index with a frame of one part each, and the head with the first.
func built(all []Part, busy bool) []byte {
	var b Builder
	b.Add(&Part{Busy: busy})
	for i := range all {
		b.Add(&all[i])
		b.Cut(i + 1)
	}
	if len(all) == 0 {
		b.Cut(1)
	}
	return b.Bytes()
}

// dormantOf says which actors of a checkpoint may stay there: those with a sort, without children, and below nobody who decides about them.
func dormantOf(all []Part, busy bool) (names []string) {
	parents, decides := map[abi.Ref]bool{}, map[abi.Ref]bool{7: busy}
	for _, of := range all {
		parents[of.Parent], decides[of.Ref] = true, of.Busy
	}
	for _, of := range all {
		if of.Sort != "" && !parents[of.Ref] && !decides[of.Parent] && of.Incarnation < 1<<32 {
			names = append(names, of.Path)
		}
	}
	return names
}

// An index says of each actor what was added, and which of them may stay.
func TestIndexesSayWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, busy := planted(t), rapid.Bool().Draw(t, "busy")
		x, err := Decode(built(all, busy))
		if err != nil {
			t.Fatal(err)
		}
		if x.Rows() != len(all) || len(x.Frames) != max(1, len(all)) {
			t.Fatalf("%d actors in %d frames: %+v", x.Rows(), len(x.Frames), all)
		}
		var stay []string
		paths := []string{}
		for i, r := range x.rows {
			path := root
			if r.parent >= 0 {
				path = paths[r.parent]
			}
			path += "/" + string(x.names[r.name:][:r.length])
			if paths = append(paths, path); path != all[i].Path || r.ref != all[i].Ref {
				t.Fatalf("%s %v, was %+v", path, r.ref, all[i])
			}
			if r.sort > 0 {
				stay = append(stay, path)
				if of := all[i]; x.Sorts[r.sort-1] != of.Sort || r.turns != of.Turns || uint64(r.life) != of.Incarnation || int(r.held) != of.Held {
					t.Errorf("%+v, was %+v", r, of)
				}
			}
			if f := x.Frames[i]; i > 0 && f != (IndexFrame{i + 1, 1}) || i == 0 && f != (IndexFrame{1, 2}) {
				t.Errorf("frame %d: %+v", i, f)
			}
		}
		if want := dormantOf(all, busy); !reflect.DeepEqual(stay, want) {
			t.Errorf("%q stay, want %q", stay, want)
		}
	})
}

// What cannot be is refused, with the reason.
func TestForgedIndexes(t *testing.T) {
	row := func(up byte, more ...byte) []byte {
		return append(append([]byte{up, 1, 'k'}, 1, 2, 3, 4, 5, 6, 7, 8), more...)
	}
	index := func(rows ...[]byte) []byte {
		b := []byte{1, 1, 1, byte(len(rows) + 1), 1, 1, 's', byte(len(rows))}
		for _, r := range rows {
			b = append(b, r...)
		}
		return b
	}
	inert := []byte{1, 9, 9, 9}
	if _, err := Decode(index(row(0, 0), row(1, inert...))); err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{
		"version 2":                            append([]byte{2}, index()[1:]...),
		"it is cut":                            {1},
		"bytes behind its end":                 append(index(), 0),
		"an actor before its parent":           index(row(1, 0)),
		"an actor of no sort":                  index(row(0, 2, 0, 0, 0)),
		"has nobody below it":                  index(row(0, inert...), row(1, 0)),
		"actors in":                            {1, 1, 1, 5, 0, 0},
		"a frame without pieces":               {1, 1, 0, 1, 0, 0},
		"more than its bytes can hold":         {1, 200, 1},
		"a text that is too long":              {1, 1, 1, 1, 1, 200, 1, 0},
		"numbers out of range":                 index(row(0, 1, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0)),
		"an actor without a ref or a name":     index(append([]byte{0, 1, 'k', 0, 0, 0, 0, 0, 0, 0, 0}, 0)),
		"not the index of a checkpoint: it is": {},
	} {
		if _, err := Decode(b); !errors.Is(err, ErrIndex) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzIndex: bytes are refused, or are an index whose actors have parents before them.
func FuzzIndex(f *testing.F) {
	f.Add(built(nil, false))
	f.Add(built([]Part{
		{Path: root + "/a", Name: "a", Ref: 1, Parent: 7, Turns: 3}, {Path: root + "/a/k", Name: "k", Ref: 2, Parent: 1, Sort: "x", Incarnation: 2, Held: 5},
	}, false))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrIndex) {
				t.Fatal(err)
			}
			return
		}
		for i, r := range x.rows {
			if int(r.parent) >= i || int(r.sort) > len(x.Sorts) || int(r.name)+int(r.length) > len(x.names) {
				t.Fatalf("actor %d: %+v", i, r)
			}
		}
	})
}
