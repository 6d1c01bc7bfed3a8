package linked

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A list does what a slice does, in both directions.
func TestListIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var links [8]Link[int]
		for i := range links {
			links[i].Of = i
		}
		var list List[int]
		var model []int
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, len(links)-1).Draw(t, "link")
			at := slices.Index(model, i)
			if links[i].Listed() != (at >= 0) {
				t.Fatalf("%d: listed is %v", i, links[i].Listed())
			}
			switch {
			case at >= 0:
				list.Remove(&links[i])
				model = slices.Delete(model, at, at+1)
			case rapid.Bool().Draw(t, "front"):
				list.PushFront(&links[i])
				model = slices.Insert(model, 0, i)
			default:
				list.PushBack(&links[i])
				model = append(model, i)
			}
			var forth, back []int
			for l := list.First(); l != nil; l = l.Next() {
				forth = append(forth, l.Of)
			}
			for l := list.last; l != nil; l = l.prev {
				back = append(back, l.Of)
			}
			slices.Reverse(back)
			if !slices.Equal(forth, model) || !slices.Equal(back, model) {
				t.Fatalf("%v forth, %v back, want %v", forth, back, model)
			}
		}
	})
}
