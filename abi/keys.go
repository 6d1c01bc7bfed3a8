package abi

// SortedTextKeys are the keys of m in the order of deterministic CBOR (RFC 8949,
// 4.2.1): by their encoding, so shorter ones first.
func SortedTextKeys[K ~string, V any](m map[K]V) []K {
	return sortedKeys(m, func(a, b K) bool { return len(a) < len(b) || len(a) == len(b) && a < b })
}

// SortedUintKeys are the keys of m in the order of deterministic CBOR.
func SortedUintKeys[K Unsigned, V any](m map[K]V) []K {
	return sortedKeys(m, func(a, b K) bool { return a < b })
}

// SortedIntKeys are the keys of m in the order of deterministic CBOR: 0, 1, 2 and
// so on, then -1, -2 and so on.
func SortedIntKeys[K Signed, V any](m map[K]V) []K {
	return sortedKeys(m, func(a, b K) bool {
		if a < 0 && b < 0 {
			return a > b
		}
		return a >= 0 && (b < 0 || a < b)
	})
}

// sortedKeys is a heap sort: the packages sort and slices bring reflection or
// coroutines along.
func sortedKeys[K comparable, V any](m map[K]V, less func(a, b K) bool) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	for i := len(keys)/2 - 1; i >= 0; i-- {
		siftDown(keys, i, less)
	}
	for n := len(keys) - 1; n > 0; n-- {
		keys[0], keys[n] = keys[n], keys[0]
		siftDown(keys[:n], 0, less)
	}
	return keys
}

func siftDown[K any](heap []K, i int, less func(a, b K) bool) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && less(heap[child], heap[child+1]) {
			child++
		}
		if !less(heap[i], heap[child]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
