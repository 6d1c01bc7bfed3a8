package schedule

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// index finds items by owner and name, and counts them.
type index struct {
	by      map[string]map[string]*item
	n       int
	byGrant map[uint64]int // of grants of this process
	byTop   map[string]int // those whose grant is not known yet, by the top-level actor at or above the owner
}

func newIndex() index {
	return index{by: map[string]map[string]*item{}, byGrant: map[uint64]int{}, byTop: map[string]int{}}
}

func (i *index) get(owner, name string) *item { return i.by[owner][name] }

func (i *index) put(x *item) {
	if i.by[x.owner] == nil {
		i.by[x.owner] = map[string]*item{}
	}
	i.by[x.owner][x.Name] = x
	i.n++
	i.count(x, 1)
}

func (i *index) remove(x *item) {
	if i.by[x.owner][x.Name] != x {
		return
	}
	delete(i.by[x.owner], x.Name)
	if len(i.by[x.owner]) == 0 {
		delete(i.by, x.owner)
	}
	i.n--
	i.count(x, -1)
}

func (i *index) count(x *item, d int) {
	switch {
	case x.owner == "":
	case x.grant != 0:
		i.byGrant[x.grant] += d
		if i.byGrant[x.grant] == 0 {
			delete(i.byGrant, x.grant)
		}
	default:
		i.byTop[top(x.owner)] += d
		if i.byTop[top(x.owner)] == 0 {
			delete(i.byTop, top(x.owner))
		}
	}
}

// bind notes the grant of an owner at its first request.
func (i *index) bind(owner string, grant uint64) {
	if i.byTop[top(owner)] == 0 {
		return
	}
	for _, x := range i.by[owner] {
		if x.grant == 0 {
			i.count(x, -1)
			x.grant = grant
			i.count(x, 1)
		}
	}
}

// used is how many entries count for a grant: those that its actors have set, and those of earlier
// processes in the same tree that are not bound yet.
func (i *index) used(owner string, grant uint64) int { return i.byGrant[grant] + i.byTop[top(owner)] }

// top is the path of the top-level actor at or above an actor.
func top(path string) string {
	rest, ok := strings.CutPrefix(path, "/user/")
	if !ok {
		return path
	}
	name, _, _ := strings.Cut(rest, "/")
	return path[:len("/user/")+len(name)]
}

// within reports whether a path is another, or below it.
func within(path, of string) bool {
	return path == of || strings.HasPrefix(path, of) && path[len(of)] == '/'
}

// of is the items of an owner, by name.
func (i *index) of(owner string) []*item {
	return sorted(slices.Collect(maps.Values(i.by[owner])))
}

// all is all items, by owner and name.
func (i *index) all() []*item {
	out := make([]*item, 0, i.n)
	for _, of := range i.by {
		out = slices.AppendSeq(out, maps.Values(of))
	}
	return sorted(out)
}

func sorted(items []*item) []*item {
	slices.SortFunc(items, func(a, b *item) int {
		return cmp.Or(strings.Compare(a.owner, b.owner), strings.Compare(a.Name, b.Name))
	})
	return items
}
