package lives

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/secret"
)

const guardian = abi.Ref(7)

// The refs of a name are the same in each process with the secret, one for each life, and follow from nothing else.
func TestRefsFollowFromTheName(t *testing.T) {
	before, again, other := New(secret.Of(1)), New(secret.Of(1)), New(secret.Of(2))
	seen := map[abi.Ref]bool{}
	for range 3 {
		for _, path := range []string{"/user/a", "/user/b"} {
			ref, ok := before.Next(guardian, path)
			if same, _ := again.Next(guardian, path); !ok || seen[ref] || same != ref {
				t.Errorf("%s: %v %v, then %v", path, ref, ok, same)
			}
			if different, _ := other.Next(guardian, path); different == ref {
				t.Errorf("%s has the same ref with another secret", path)
			}
			seen[ref] = true
		}
	}
}

// Records bring lives back: the next one is behind those that they name, and a ref that no life can have is none.
func TestRecordedLives(t *testing.T) {
	first, second := New(secret.Of(1)), New(secret.Of(1))
	var refs []abi.Ref
	for range 4 {
		ref, _ := first.Next(guardian, "/user/a")
		refs = append(refs, ref)
	}
	for _, ref := range refs[1:3] {
		if !second.Lived(guardian, "/user/a", ref) {
			t.Error("a life is not known")
		}
	}
	if second.Lived(guardian, "/user/b", refs[0]) || second.Lived(guardian, "/user/a", refs[0]+1) {
		t.Error("a life that is none is known")
	}
	if next, _ := second.Next(guardian, "/user/a"); next != refs[3] {
		t.Errorf("the next life is %v, not %v", next, refs[3])
	}
}

// What is saved is sorted; loading it lowers no number.
func TestSavedLives(t *testing.T) {
	a := New(secret.Of(1))
	for range 2 {
		a.Next(guardian, "/user/b")
	}
	a.Next(guardian, "/user/a")
	want := []saved.Lives{{Path: "/user/a", N: 1}, {Path: "/user/b", N: 2}}
	if got := a.Save()(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	a.Load([]saved.Lives{{Path: "/user/a", N: 5}, {Path: "/user/b", N: 1}})
	want = []saved.Lives{{Path: "/user/a", N: 5}, {Path: "/user/b", N: 2}}
	if got := a.Save()(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// The names are bounded; those that are known go on.
func TestNamesAreBounded(t *testing.T) {
	a := New(secret.Of(1))
	var all []saved.Lives
	for i := range most {
		all = append(all, saved.Lives{Path: fmt.Sprint("/user/", i), N: 1})
	}
	a.Load(all)
	if _, ok := a.Next(guardian, "/user/new"); ok {
		t.Error("one more is counted")
	}
	if _, ok := a.Next(guardian, "/user/0"); !ok {
		t.Error("one that is known is not counted")
	}
}
