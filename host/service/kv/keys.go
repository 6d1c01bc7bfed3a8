package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// What an engine holds, by the first byte of a key:
//
//	m name                       what the store says of itself
//	u LEN namespace              how much a namespace holds
//	e LEN namespace key          an entry
//	x TIME LEN namespace key     when an entry ends; TIME is 8 bytes, big-endian
//
// LEN is a byte, so no name is the beginning of another one's.
const (
	spaceMeta   = 'm'
	spaceUsage  = 'u'
	spaceEntry  = 'e'
	spaceExpiry = 'x'
)

var (
	metaFormat  = []byte{spaceMeta, 'f'}
	metaVersion = []byte{spaceMeta, 'v'}
)

// format is of the layout above and of the records below. A store of another one is
// refused.
const format = 1

func appendNamespace(dst []byte, ns string) []byte {
	return append(append(dst, byte(len(ns))), ns...)
}

func usageKey(ns string) []byte { return appendNamespace([]byte{spaceUsage}, ns) }

func entryKey(ns, key string) []byte {
	return append(appendNamespace(append(make([]byte, 0, 2+len(ns)+len(key)), spaceEntry), ns), key...)
}

func expiryKey(at int64, ns, key string) []byte {
	b := append(make([]byte, 0, 10+len(ns)+len(key)), spaceExpiry)
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	return append(appendNamespace(b, ns), key...)
}

// parseExpiryKey reverses expiryKey.
func parseExpiryKey(b []byte) (at int64, ns, key string, ok bool) {
	if len(b) < 10 || b[0] != spaceExpiry || len(b) < 10+int(b[9]) {
		return 0, "", "", false
	}
	n := 10 + int(b[9])
	return int64(binary.BigEndian.Uint64(b[1:])), string(b[10:n]), string(b[n:]), true
}

// end is the first key behind all that begin with prefix.
func end(prefix []byte) []byte {
	b := bytes.Clone(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] != 0 {
			return b[:i+1]
		}
	}
	panic("kv: no key is behind these") // keys begin with a letter
}

// record is the value of an entry's key.
type record struct {
	version uint64
	expires int64 // ns since 1970, 0: never
	counter bool
	count   int64  // of a counter
	value   []byte // else
}

const (
	kindBytes   = 1
	kindCounter = 2
)

func (r *record) encode() []byte {
	kind := byte(kindBytes)
	if r.counter {
		kind = kindCounter
	}
	b := append(make([]byte, 0, 1+3*binary.MaxVarintLen64+len(r.value)), kind)
	b = binary.AppendUvarint(b, r.version)
	b = binary.AppendUvarint(b, uint64(r.expires))
	if r.counter {
		return binary.AppendVarint(b, r.count)
	}
	return append(b, r.value...)
}

var errRecord = errors.New("a record cannot be read")

// decodeRecord reads a record, whose value is a part of b.
func decodeRecord(b []byte) (*record, error) {
	if len(b) == 0 || b[0] != kindBytes && b[0] != kindCounter {
		return nil, errRecord
	}
	r := &record{counter: b[0] == kindCounter}
	b = b[1:]
	version, n := binary.Uvarint(b)
	if n <= 0 || version == 0 {
		return nil, errRecord
	}
	expires, m := binary.Uvarint(b[n:])
	if m <= 0 || int64(expires) < 0 {
		return nil, errRecord
	}
	r.version, r.expires, b = version, int64(expires), b[n+m:]
	if !r.counter {
		r.value = b
		return r, nil
	}
	count, n := binary.Varint(b)
	if n <= 0 || n != len(b) {
		return nil, errRecord
	}
	r.count = count
	return r, nil
}

// Usage is how much a namespace holds.
type Usage struct {
	Keys  int64 `json:"keys"`
	Bytes int64 `json:"bytes"` // keys, values and EntryOverhead each
}

func (u Usage) encode() []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(u.Keys)), uint64(u.Bytes))
}

func decodeUsage(b []byte) (u Usage, err error) {
	keys, n := binary.Uvarint(b)
	if n <= 0 {
		return u, errRecord
	}
	size, m := binary.Uvarint(b[n:])
	if m <= 0 || n+m != len(b) || int64(keys) < 0 || int64(size) < 0 {
		return u, errRecord
	}
	return Usage{int64(keys), int64(size)}, nil
}

// EntryOverhead is what an entry counts in addition to its key and its value, in bytes: about
// what the store needs for the record, its version and its expiry.
const EntryOverhead = 64

// cost is what an entry counts towards its namespace's quota.
func cost(key string, r *record) int64 {
	if r == nil {
		return 0
	}
	n := int64(len(key)+len(r.value)) + EntryOverhead
	if r.counter {
		n += 8
	}
	return n
}
