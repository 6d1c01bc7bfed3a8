package abi

// decodeMap reads a map with text keys: known ones through field, which must
// read exactly one item; it refuses a known key that comes twice and steps over
// unknown ones. The result has a bit set for every known key that was there.
// It is quickest if the keys come in the order of keys.
func decodeMap(r *Reader, keys []string, field func(key int)) (seen uint64) {
	next := 0
	for range r.Map() {
		at := r.at
		key := next
		if key >= len(keys) || !r.isKey(keys[key]) {
			if key = findKey(keys, r.TextBytes()); r.err != nil {
				return seen
			}
		}
		switch {
		case key < 0:
			r.skip(1)
		case seen&(1<<key) != 0:
			r.at, r.err = at, ErrDuplicate
		default:
			seen |= 1 << key
			next = key + 1
			field(key)
		}
		if r.err != nil {
			return seen
		}
	}
	return seen
}

// isKey steps over the text k, of fewer than 24 bytes, if that is what comes next.
func (r *Reader) isKey(k string) bool {
	end := r.at + 1 + len(k)
	if end > len(r.buf) || r.buf[r.at] != majorText<<5|byte(len(k)) || string(r.buf[r.at+1:end]) != k {
		return false
	}
	r.at = end
	return true
}

func findKey(keys []string, name []byte) int {
	for i, k := range keys {
		if k == string(name) {
			return i
		}
	}
	return -1
}
