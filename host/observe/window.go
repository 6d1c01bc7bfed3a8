package observe

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// keyed is an actor of a snapshot with keys that are compared before its order: if two actors have different
// keys, the first key that differs decides. Most comparisons need nothing else, and do not
// read actors and paths that are scattered in memory.
type keyed struct {
	key, tie uint64
	at       int32
}

// window is the part of a list, in an order, that begins at offset and has at most limit
// elements. It takes time in proportion to the length of the list, wherever the window is: what
// is before it and after it is never sorted.
func window(list []keyed, by order, offset, limit int) []int32 {
	if offset >= len(list) || limit <= 0 {
		return nil
	}
	less := func(a, b keyed) int {
		switch {
		case a.key != b.key:
			return cmp.Compare(a.key, b.key)
		case a.tie != b.tie:
			return cmp.Compare(a.tie, b.tie)
		}
		return by(a.at, b.at)
	}
	end := min(offset+limit, len(list))
	divide(list, less, offset)
	if rest := list[offset:]; end < len(list) {
		divide(rest, less, end-offset)
	}
	slices.SortFunc(list[offset:end], less)
	out := make([]int32, 0, end-offset)
	for _, k := range list[offset:end] {
		out = append(out, k.at)
	}
	return out
}

// keys are the keys of actors for an order that snapshot.order knows by the name.
func (s *snapshot) keys(list []int32, name string, desc bool) []keyed {
	var number func(at int32) uint64
	tie := func(at int32) uint64 { return uint64(s.infos[at].Ref.UID()) }
	switch name {
	case "", "path":
		number = leading(list, func(at int32) string { return s.infos[at].Ref.Path() })
		tie = func(int32) uint64 { return 0 } // paths may differ further on
	case "type":
		number = leading(list, func(at int32) string { return s.infos[at].Type })
		tie = func(int32) uint64 { return 0 }
	case "state":
		number = func(at int32) uint64 { return uint64(s.infos[at].State) }
	case "mailbox":
		number = func(at int32) uint64 { return uint64(s.infos[at].Mailbox) }
	case "oldest":
		number = func(at int32) uint64 { return uint64(max(s.oldest[at], 0)) }
	case "turns":
		number = func(at int32) uint64 { return s.infos[at].Turns }
	case "fuel":
		number = func(at int32) uint64 { return s.infos[at].Fuel }
	case "held":
		number = func(at int32) uint64 { return uint64(max(s.infos[at].Held, 0)) }
	case "restarts":
		number = func(at int32) uint64 { return s.infos[at].Restarts }
	case "crashes":
		number = func(at int32) uint64 { return s.infos[at].Crashes }
	case "since":
		number = func(at int32) uint64 { return uint64(max(s.infos[at].Since, 0)) }
	}
	var flip uint64
	if desc {
		flip = ^flip
	}
	out := make([]keyed, len(list))
	for i, at := range list {
		out[i] = keyed{number(at) ^ flip, tie(at), at}
	}
	return out
}

// leading maps texts to numbers in the same order, which differ if the eight bytes differ that follow
// their common beginning.
func leading(list []int32, text func(at int32) string) func(at int32) uint64 {
	if len(list) == 0 {
		return nil
	}
	same := text(list[0])
	for _, at := range list {
		t := text(at)
		if strings.HasPrefix(t, same) {
			continue
		}
		n := 0
		for n < len(t) && n < len(same) && t[n] == same[n] {
			n++
		}
		same = same[:n]
	}
	return func(at int32) uint64 {
		var b [8]byte
		copy(b[:], text(at)[len(same):])
		return binary.BigEndian.Uint64(b[:])
	}
}

// divide arranges a list so that its first n elements are the first n in the order: Hoare's
// selection with the median of three as pivot. A list that resists, which a guest could make
// with the names of its actors, is sorted.
func divide(list []keyed, by func(a, b keyed) int, n int) {
	patience := 4
	for len(list) > 32 {
		if n <= 0 || n >= len(list) {
			return
		}
		before := len(list)
		at := partition(list, by)
		if n <= at {
			list = list[:at]
		} else {
			list, n = list[at:], n-at
		}
		if len(list) > before*7/8 {
			if patience--; patience == 0 {
				break
			}
		}
	}
	slices.SortFunc(list, by)
}

// partition moves what comes before a pivot to the front, and returns how many those are: at
// least one, and not all.
func partition(list []keyed, by func(a, b keyed) int) int {
	a, b, c := 0, len(list)/2, len(list)-1
	if by(list[b], list[a]) < 0 {
		list[a], list[b] = list[b], list[a]
	}
	if by(list[c], list[b]) < 0 {
		list[b], list[c] = list[c], list[b]
		if by(list[b], list[a]) < 0 {
			list[a], list[b] = list[b], list[a]
		}
	}
	pivot := list[b]
	i, j := a, c
	for {
		for i++; by(list[i], pivot) < 0; i++ {
		}
		for j--; by(pivot, list[j]) < 0; j-- {
		}
		if i >= j {
			return i
		}
		list[i], list[j] = list[j], list[i]
	}
}
