package lookouts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/internal/errs"
)

func pattern(watcher, tree, text string) *Pattern[string] {
	return &Pattern[string]{Watcher: watcher, Tree: tree, Text: text, At: strings.Split(text, "/")}
}

func TestWhoHearsOfAStart(t *testing.T) {
	var table Table[string]
	for _, x := range []*Pattern[string]{pattern("a", "t", "user/*"), pattern("b", "t", "user/w*"), pattern("b", "t", "user/w*/x"), pattern("w1", "t", "user/*")} {
		if err := table.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(who string, path string) (all []string) {
		for _, x := range table.Born(who, strings.Split(path, "/")) {
			all = append(all, x.Watcher)
		}
		return all
	}
	if got := hears("w1", "user/w1"); !slices.Equal(got, []string{"a", "b"}) { // not of itself
		t.Errorf("%q hear of w1", got)
	}
	if got := hears("x", "user/w1/x"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q hear of x", got)
	}
	if got := table.Of("b"); !slices.Equal(got, []string{"user/w*", "user/w*/x"}) {
		t.Errorf("b has %q", got)
	}
	table.Drop("b", "user/w*")
	if got := hears("w1", "user/w1"); !slices.Equal(got, []string{"a"}) || table.Len() != 3 {
		t.Errorf("%q hear of w1 after one was dropped, %d are left", got, table.Len())
	}
	for _, w := range []string{"a", "b", "w1"} {
		table.Drop(w, "")
	}
	if !table.None() {
		t.Error("some are left")
	}
}

func TestBoundsOfPatterns(t *testing.T) {
	var table Table[string]
	refused := func(what string, x *Pattern[string]) {
		t.Helper()
		if err := table.Add(x); !errors.Is(err, errs.ErrLimit) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("much behind the star", pattern("a", "t", "user/*"+strings.Repeat("x", MostBehindStar+1)))
	for i := range MostOfTree {
		if err := table.Add(pattern(fmt.Sprint("w", i/Most), "t", fmt.Sprint("user/", i))); err != nil {
			t.Fatal(err)
		}
	}
	refused("one more of an actor", pattern("w0", "other", "user/more"))
	refused("one more of a tree", pattern("new", "t", "user/more"))
	if err := table.Add(pattern("w0", "t", "user/0")); err != nil || table.Len() != MostOfTree {
		t.Errorf("the same once more: %v, %d", err, table.Len())
	}
	for i := MostOfTree; i < mostOfAll; i++ {
		if err := table.Add(pattern(fmt.Sprint("w", i), fmt.Sprint("t", i), "user/x")); err != nil {
			t.Fatal(err)
		}
	}
	refused("one more of all", pattern("last", "last", "user/x"))
}

// What a start costs for the patterns of other trees is told apart.
func TestCostOfAStart(t *testing.T) {
	var table Table[string]
	above := []string{"user"}
	if own, others := table.Cost("t", above, "x"); own != 0 || others != 0 {
		t.Errorf("nobody looks out: %d, %d", own, others)
	}
	_ = table.Add(pattern("a", "t", "user/*"))
	own, others := table.Cost("t", above, "x")
	if own == 0 || others != 0 {
		t.Errorf("one of the own tree: %d, %d", own, others)
	}
	_ = table.Add(pattern("b", "other", "user/*"))
	if o, others := table.Cost("t", above, "x"); o != own || others != own {
		t.Errorf("one of another tree: %d, %d, want %d and %d", o, others, own, own)
	}
	if longer, _ := table.Cost("t", above, "xxxx"); longer <= own {
		t.Errorf("a longer name costs %d, a short one %d", longer, own)
	}
}

func TestMissedStarts(t *testing.T) {
	x := pattern("a", "t", "user/*")
	if x.Missed() {
		t.Error("none was missed")
	}
	if x.Miss(); !x.Missed() || x.Missed() {
		t.Error("that some were missed is told once")
	}
}
