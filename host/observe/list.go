package observe

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/host"
)

// order compares two actors of a snapshot.
type order func(a, b int32) int

// Sorts are what lists can be sorted by.
func Sorts() []string {
	return []string{"path", "type", "state", "mailbox", "oldest", "turns", "fuel", "held", "restarts", "crashes", "since"}
}

// order is the order with a name. Equal actors are in the order of their refs: always the same,
// and without reading paths, which are rarely in a cache.
func (s *snapshot) order(name string, desc bool) (order, error) {
	by := func(key func(i *host.Info) uint64) order {
		return func(a, b int32) int { return cmp.Compare(key(&s.infos[a]), key(&s.infos[b])) }
	}
	var first order
	switch name {
	case "", "path":
	case "type":
		first = func(a, b int32) int { return strings.Compare(s.infos[a].Type, s.infos[b].Type) }
	case "state":
		first = by(func(i *host.Info) uint64 { return uint64(i.State) })
	case "mailbox":
		first = by(func(i *host.Info) uint64 { return uint64(i.Mailbox) })
	case "oldest":
		first = func(a, b int32) int { return cmp.Compare(s.oldest[a], s.oldest[b]) }
	case "turns":
		first = by(func(i *host.Info) uint64 { return i.Turns })
	case "fuel":
		first = by(func(i *host.Info) uint64 { return i.Fuel })
	case "held":
		first = by(func(i *host.Info) uint64 { return uint64(max(i.Held, 0)) })
	case "restarts":
		first = by(func(i *host.Info) uint64 { return i.Restarts })
	case "crashes":
		first = by(func(i *host.Info) uint64 { return i.Crashes })
	case "since":
		first = by(func(i *host.Info) uint64 { return uint64(max(i.Since, 0)) })
	default:
		return nil, invalid("lists are sorted by %s, not by %q", strings.Join(Sorts(), ", "), clip(name))
	}
	sign := 1
	if desc {
		sign = -1
	}
	if first == nil {
		return func(a, b int32) int { return sign * s.infos[a].Ref.Compare(s.infos[b].Ref) }, nil
	}
	return func(a, b int32) int {
		if c := first(a, b); c != 0 {
			return sign * c
		}
		return cmp.Compare(s.infos[a].Ref.UID(), s.infos[b].Ref.UID())
	}, nil
}

// firsts keeps the first most actors of those that are added, in an order: a heap with the last of them at
// its top.
type firsts struct {
	most  int
	order order
	heap  []int32
}

func (f *firsts) add(i int32) {
	if f.most <= 0 {
		return
	}
	if len(f.heap) < f.most {
		f.heap = append(f.heap, i)
		for at := len(f.heap) - 1; at > 0; {
			up := (at - 1) / 2
			if f.order(f.heap[up], f.heap[at]) >= 0 {
				break
			}
			f.heap[up], f.heap[at] = f.heap[at], f.heap[up]
			at = up
		}
		return
	}
	if f.order(i, f.heap[0]) >= 0 {
		return
	}
	f.heap[0] = i
	for at := 0; ; {
		down := 2*at + 1
		if down >= len(f.heap) {
			return
		}
		if down+1 < len(f.heap) && f.order(f.heap[down+1], f.heap[down]) > 0 {
			down++
		}
		if f.order(f.heap[at], f.heap[down]) >= 0 {
			return
		}
		f.heap[at], f.heap[down] = f.heap[down], f.heap[at]
		at = down
	}
}

// sorted is what was kept, in order.
func (f *firsts) sorted() []int32 {
	slices.SortFunc(f.heap, f.order)
	return f.heap
}

// Actors is a list of actors, without /user and /system.
func (o *Observer) Actors(q Query) (Page, error) {
	m, limit, err := q.check()
	if err != nil {
		return Page{}, err
	}
	look := o.view
	if q.Now {
		look = o.afresh
	}
	var p Page
	look(func(s *snapshot) {
		p, err = s.page(q, m, limit, func(at int32, row *Actor) {
			if now, err := o.sys.View().Info(s.infos[at].Ref); err == nil {
				row.Children = now.Children
			}
		})
	})
	return p, err
}

// check compiles a query, or says what is wrong with it.
func (q *Query) check() (m *matcher, limit int, err error) {
	if m, err = q.Select.compile(q.Search); err != nil {
		return nil, 0, err
	}
	if limit, err = limitOf(q.Limit); err != nil {
		return nil, 0, err
	}
	if q.Offset < 0 || q.Offset > 1<<30 {
		return nil, 0, invalid("an offset of %d", q.Offset)
	}
	return m, limit, nil
}

// page is a part of the list of actors; children sets how many children a row has.
func (s *snapshot) page(q Query, m *matcher, limit int, children func(at int32, row *Actor)) (Page, error) {
	by, err := s.order(q.Sort, q.Desc)
	if err != nil {
		return Page{}, err
	}
	p := Page{Version: Version, Now: s.now.UTC(), Actors: []Actor{}}
	var rows []int32
	f := firsts{most: limit, order: by}
	for at := range s.infos {
		if i := &s.infos[at]; !i.Parent.IsZero() && m.match(i) {
			p.Total++
			if q.Offset > 0 {
				rows = append(rows, int32(at))
			} else {
				f.add(int32(at))
			}
		}
	}
	if q.Offset > 0 {
		rows = window(s.keys(rows, q.Sort, q.Desc), by, q.Offset, limit)
	} else {
		rows = f.sorted()
	}
	for _, at := range rows {
		row := s.row(int(at))
		children(at, &row)
		p.Actors = append(p.Actors, row)
	}
	return p, nil
}

// limitOf is the limit of a query, with its default.
func limitOf(n int) (int, error) {
	switch {
	case n == 0:
		return 100, nil
	case n < 0 || n > MaxLimit:
		return 0, invalid("a limit is from 1 to %d, not %d", MaxLimit, n)
	}
	return n, nil
}
