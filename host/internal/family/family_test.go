package family

import (
	"errors"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"pgregory.net/rapid"
)

func as(child int) func(string) (*Member[int], error) {
	return func(string) (*Member[int], error) { return &Member[int]{Child: child}, nil }
}

func TestAdmission(t *testing.T) {
	var f Family[int]
	if m, no, err := f.Adopt("a", 2, as(1)); m == nil || no != Admitted || err != nil || m.Name() != "a" {
		t.Error(m, no, err)
	}
	if _, no, _ := f.Adopt("a", 2, as(2)); no != Taken {
		t.Error(no)
	}
	failing := errors.New("no")
	if m, no, err := f.Adopt("b", 2, func(string) (*Member[int], error) { return nil, failing }); m != nil || no != Admitted || err != failing || f.Len() != 1 {
		t.Error(m, no, err)
	}
	if m, no, err := f.Adopt("", 2, func(string) (*Member[int], error) { return nil, failing }); m != nil || no != Admitted || err != failing {
		t.Error(m, no, err)
	}
	var named string
	if m, no, _ := f.Adopt("", 2, func(n string) (*Member[int], error) { named = n; return &Member[int]{Child: 3}, nil }); no != Admitted || named != "$0" || m.Name() != "$0" {
		t.Error(no, named)
	}
	if _, no, _ := f.Adopt("", 2, as(4)); no != Full {
		t.Error(no)
	}
	if _, no, _ := f.Adopt("a", 2, as(4)); no != Taken { // says more than that there are too many
		t.Error(no)
	}
	if m, _, _ := f.Adopt("", 3, as(5)); m.Name() != "$1" {
		t.Error(m.Name())
	}
	f.SkipTo("$1")
	f.SkipTo("7")
	f.SkipTo("$-")
	f.SkipTo("$a")
	if m, _, _ := f.Adopt("", 4, as(5)); m.Name() != "$a" {
		t.Error(m.Name())
	}
	if left := f.Close(); left != 4 {
		t.Error(left)
	}
	if _, no, _ := f.Adopt("z", 9, as(6)); no != Closed {
		t.Error(no)
	}
}

func TestRemoval(t *testing.T) {
	var f Family[int]
	m, _, _ := f.Adopt("a", 9, as(1))
	if was, left := f.Remove(&Member[int]{Child: 1, name: "a"}); was || left != 1 || f.Find("a") != m {
		t.Error("another one of the name", was, left)
	}
	if was, left := f.Remove(m); !was || left != 0 || f.Find("a") != nil || f.Has(m) {
		t.Error(was, left)
	}
	if was, left := f.Remove(m); was || left != 0 {
		t.Error("twice", was, left)
	}
}

// The name and the place of one that has stopped are free before its parent has heard of it,
// and then nobody takes them from who has them now.
func TestRelease(t *testing.T) {
	var f Family[int]
	m, _, _ := f.Adopt("a", 1, as(1))
	f.Release(m)
	if f.Find("a") != nil || !f.Has(m) || f.Len() != 1 || !slices.Equal(f.Children(), []int{1}) {
		t.Error("a released one is still a member, by no name", f.Children())
	}
	next, no, _ := f.Adopt("a", 1, as(2))
	if no != Admitted {
		t.Fatal(no)
	}
	f.Release(m)
	if f.Find("a") != next || !slices.Equal(f.Children(), []int{1, 2}) {
		t.Error(f.Children())
	}
	if was, left := f.Remove(m); !was || left != 1 || f.Find("a") != next {
		t.Error(was, left)
	}
	if _, no, _ := f.Adopt("b", 2, as(3)); no != Admitted {
		t.Error(no)
	}
	for range 4 { // two that are there, four that have gone
		if m, no, _ := f.Adopt("", 3, as(4)); no == Admitted {
			f.Release(m)
		} else {
			t.Error(no)
		}
	}
	if _, no, _ := f.Adopt("", 3, as(5)); no != Full {
		t.Error(no, "those that have gone take no room")
	}
	f.Release(next)
	if left := f.Close(); left != 6 {
		t.Error(left, "to wait for")
	}
}

func TestHostRefs(t *testing.T) {
	var f Family[int]
	derived := 0
	derive := func() abi.RefKey { derived++; return abi.RefKey{1} }
	for i := range uint64(3) {
		if key, n := f.NextHostRef(derive); n != i || key != (abi.RefKey{1}) {
			t.Error(key, n)
		}
	}
	if derived != 1 {
		t.Error(derived)
	}
}

// Whatever comes and goes: names and order are those of a list.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Family[int]
		var names []string
		var kids []int
		var members []*Member[int]
		for i := range rapid.IntRange(0, 30).Draw(t, "steps") {
			if len(names) > 0 && rapid.Bool().Draw(t, "remove") {
				at := rapid.IntRange(0, len(names)-1).Draw(t, "which")
				if was, left := f.Remove(members[at]); !was || left != len(names)-1 {
					t.Fatal(was, left)
				}
				names, kids, members = slices.Delete(names, at, at+1), slices.Delete(kids, at, at+1), slices.Delete(members, at, at+1)
			} else {
				m, _, _ := f.Adopt("", 100, as(i))
				names, kids, members = append(names, m.Name()), append(kids, i), append(members, m)
			}
			var got []string
			for _, m := range f.Members() {
				got = append(got, m.Name())
			}
			if !slices.Equal(got, names) || !slices.Equal(f.Children(), kids) || f.Len() != len(names) {
				t.Fatalf("%v %v, want %v %v", got, f.Children(), names, kids)
			}
		}
	})
}
