package observe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/host"
)

// A window is what a sorted list has at its place.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.IntRange(0, rapid.SampledFrom([]int{1, 10, 1 << 30}).Draw(t, "most")), 0, 300).Draw(t, "keys")
		if rapid.Bool().Draw(t, "in order") {
			slices.Sort(keys)
		}
		offset, limit := rapid.IntRange(0, 320).Draw(t, "offset"), rapid.IntRange(0, 50).Draw(t, "limit")
		by := func(a, b int32) int { return cmp.Or(cmp.Compare(keys[a], keys[b]), cmp.Compare(a, b)) }
		part := rapid.IntRange(1, 4).Draw(t, "keys tell one part in")
		list := make([]keyed, len(keys))
		sorted := make([]int32, len(keys))
		for i := range list {
			list[i] = keyed{uint64(keys[i] / (2 * part)), uint64(keys[i] / part), int32(i)}
			sorted[i] = int32(i)
		}
		slices.SortFunc(sorted, by)
		want := sorted[min(offset, len(sorted)):min(offset+limit, len(sorted))]
		if got := window(list, by, offset, limit); !slices.Equal(got, want) {
			t.Fatalf("window of %d at %d: %v, not %v", limit, offset, got, want)
		}
		slices.SortFunc(list, func(a, b keyed) int { return cmp.Compare(a.at, b.at) })
		for i, k := range list {
			if int(k.at) != i {
				t.Fatalf("the list has lost %d", i)
			}
		}
	})
}

// Whatever the order of the elements, finding a window stays far from quadratic.
func TestWindowOfWhatResists(t *testing.T) {
	const n = 20_000
	for name, key := range map[string]func(i int) int{
		"rising": func(i int) int { return i }, "falling": func(i int) int { return -i }, "equal": func(int) int { return 0 },
		"organ pipes": func(i int) int { return min(i, n-i) }, "saw": func(i int) int { return i % 7 },
	} {
		compared := 0
		by := func(a, b int32) int {
			compared++
			return cmp.Or(cmp.Compare(key(int(a)), key(int(b))), cmp.Compare(a, b))
		}
		for _, offset := range []int{0, n / 3, n / 2, n - 100} {
			list := make([]keyed, n) // the keys tell nothing
			for i := range list {
				list[i].at = int32(i)
			}
			compared = 0
			window(list, by, offset, 100)
			if compared > 25*n {
				t.Errorf("%s at %d: %d comparisons of %d elements", name, offset, compared, n)
			}
		}
	}
}

// The children of a node and the rows of a list, taken a page at a time, are all of them.
func TestPages(t *testing.T) {
	s := newStage(t, nil)
	for i := range 37 {
		s.spawn(fmt.Sprintf("a%02d", (i*7)%37), quietActor().WithChildren(host.Child{Name: "kid", Props: quietActor()}))
	}
	s.run()
	for _, size := range []int{1, 5, 37, 100} {
		var children, rows []string
		for offset := 0; offset < 80; offset += size {
			tree, err := s.Observer.Tree(TreeQuery{Depth: 1, Offset: offset, Limit: size})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(tree.Nodes) + tree.More; got != 37 || tree.Children != 37 || tree.Below.Actors != 75 {
				t.Errorf("at %d: %d children in all, %d below", offset, got, tree.Below.Actors)
			}
			for _, n := range tree.Nodes {
				children = append(children, n.Path)
				if n.Below.Actors != 2 {
					t.Errorf("%s: %d below", n.Path, n.Below.Actors)
				}
			}
			page, err := s.Actors(Query{Offset: offset, Limit: size})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range page.Actors {
				rows = append(rows, a.Path)
			}
		}
		if len(children) != 37 || !slices.IsSorted(children) {
			t.Errorf("%d at a time: %v", size, children)
		}
		if len(rows) != 74 || !slices.IsSorted(rows) {
			t.Errorf("%d at a time: %v", size, rows)
		}
	}
	if _, err := s.Observer.Tree(TreeQuery{Offset: -1}); err == nil {
		t.Error("an offset below 0")
	}
}

// Under every order a page at any offset is that part of the whole list.
func TestPagesOfEveryOrder(t *testing.T) {
	s := newStage(t, nil)
	for i := range 40 {
		name := fmt.Sprintf("%s%d", []string{"a", "aa", "b", "same-beginning-", "same-beginning-and-"}[i%5], i*i%17*100+i)
		ref := s.spawn(name, host.Func(func(_ *host.Context, m host.Message) error {
			var fail bool
			if m.Decode(&fail) == nil && fail {
				return errors.New("told to")
			}
			return nil
		}))
		for j := range i % 4 {
			if err := s.Tell(ref, j == 2); err != nil {
				t.Fatal(err)
			}
		}
		if i%3 == 0 {
			s.run()
		}
	}
	for _, sort := range Sorts() {
		for _, desc := range []bool{false, true} {
			all, err := s.Actors(Query{Sort: sort, Desc: desc, Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for offset := 1; offset < 42; offset += 3 {
				page, err := s.Actors(Query{Sort: sort, Desc: desc, Offset: offset, Limit: 7})
				if err != nil {
					t.Fatal(err)
				}
				want := all.Actors[min(offset, len(all.Actors)):min(offset+7, len(all.Actors))]
				if !slices.EqualFunc(page.Actors, want, func(a, b Actor) bool { return a.Path == b.Path }) {
					t.Fatalf("%s, desc %v, at %d: %v, not %v", sort, desc, offset, page.Actors, want)
				}
			}
		}
	}
}
