package observe

import "slices"

// window is the part of a list, in an order, that begins at offset and has at most limit
// elements. The list is changed. It takes time by the length of the list alone, wherever the
// window is: what stands before it and behind it is never sorted.
func window(list []int32, by order, offset, limit int) []int32 {
	if offset >= len(list) || limit <= 0 {
		return nil
	}
	end := min(offset+limit, len(list))
	divide(list, by, offset)
	if rest := list[offset:]; end < len(list) {
		divide(rest, by, end-offset)
	}
	slices.SortFunc(list[offset:end], by)
	return list[offset:end]
}

// divide arranges a list so that its first n elements are the first n in the order: Hoare's
// selection with the median of three as pivot. A list that resists, which a guest could make
// with the names of its actors, is sorted.
func divide(list []int32, by order, n int) {
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

// partition moves what comes before a pivot to the front, and says how many that are: at
// least one, and not all.
func partition(list []int32, by order) int {
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
