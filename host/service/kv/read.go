package kv

import (
	"strings"

	"github.com/wasmactors/wasmactors/host/service"
)

// Entry is a key with its value.
type Entry struct {
	Key     string
	Value   []byte
	Counter bool  // it holds Count, not Value
	Count   int64 // of a counter
	Version uint64
	Expires int64 // ns since 1970, 0: never
}

func (r *record) entry(key string) *Entry {
	return &Entry{Key: key, Value: r.value, Counter: r.counter, Count: r.count, Version: r.version, Expires: r.expires}
}

// get finds an entry.
func (s *store) get(ns, key string) (*Entry, error) {
	b, found, err := s.engine().get(entryKey(ns, key))
	if err != nil {
		return nil, s.cannotRead(err)
	}
	if found {
		r, err := decodeRecord(b)
		if err != nil {
			return nil, s.cannotRead(err)
		}
		if !r.ended(s.now()) {
			return r.entry(key), nil
		}
	}
	return nil, service.Errorf(service.NotFound, "there is no %q", key)
}

func (s *store) cannotRead(err error) error {
	s.heal()
	return &service.Error{Code: service.Unavailable, Text: "the store cannot be read", Err: err}
}

// Bounds of a page of a list.
const (
	PageEntries = 1000     // at most
	PageBytes   = 56 << 10 // of keys and values, so that an answer fits into a guest's inbox; a single entry may exceed it
	pageVisits  = 10_000   // entries looked at, including expired ones
)

// listing is what to list.
type listing struct {
	ns, prefix string
	cursor     []byte // of the previous page; nil: from the beginning
	limit      int    // entries; 0 is defaultPage
	values     bool
	reverse    bool
}

const defaultPage = 100

// list is a page of the entries whose keys begin with a prefix, in the order of their
// bytes. cursor is nil after the last page.
func (s *store) list(l listing) (page []Entry, cursor []byte, err error) {
	page, cursor, failed, err := l.of(s.engine(), s.now())
	if failed {
		err = s.cannotRead(err)
	}
	return page, cursor, err
}

// of lists what an engine has. failed says that the error is the engine's.
func (l listing) of(eng engine, now int64) (page []Entry, cursor []byte, broken bool, err error) {
	prefix := entryKey(l.ns, l.prefix)
	from, to := prefix, end(prefix)
	if l.cursor != nil {
		last, err := decodeCursor(l.cursor, l.prefix)
		if err != nil {
			return nil, nil, false, err
		}
		if at := entryKey(l.ns, last); l.reverse {
			to = at
		} else {
			from = append(at, 0)
		}
	}
	limit := l.limit
	if limit == 0 {
		limit = defaultPage
	}
	skip := len(entryKey(l.ns, ""))
	var failed error
	var last string
	bytes, visits, more := 0, 0, false
	err = eng.scan(from, to, l.reverse, func(k, v []byte) bool {
		if visits >= pageVisits {
			more = true
			return false
		}
		r, err := decodeRecord(v)
		if err != nil {
			failed = err
			return false
		}
		visits++
		key := string(k[skip:])
		if !r.ended(now) { // one that has ended, and is not swept yet, is no reason for another page
			if len(page) >= limit {
				more = true
				return false
			}
			size := len(key) + entryBytes
			if l.values {
				size += len(r.value)
			}
			if len(page) > 0 && bytes+size > PageBytes {
				more = true
				return false
			}
			bytes += size
			e := r.entry(key)
			e.Value = nil
			if l.values && !r.counter {
				e.Value = append([]byte{}, r.value...)
			}
			page = append(page, *e)
		}
		last = key
		return true
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, nil, true, err
	}
	if more {
		cursor = encodeCursor(last)
	}
	return page, cursor, false, nil
}

// entryBytes is about the size of a page's entry in addition to its key and value.
const entryBytes = 48

// A cursor is a version, 1, and the last key that was visited. A forged cursor only leads to
// another place below the same prefix: namespace and prefix always come from the request.
const cursorVersion = 1

func encodeCursor(last string) []byte { return append([]byte{cursorVersion}, last...) }

// decodeCursor reads a cursor.
func decodeCursor(b []byte, prefix string) (last string, err error) {
	if len(b) < 1 || b[0] != cursorVersion || checkKey(string(b[1:])) != nil {
		return "", service.Errorf(service.BadRequest, "cursor is not one that a list has returned")
	}
	if last = string(b[1:]); !strings.HasPrefix(last, prefix) {
		return "", service.Errorf(service.BadRequest, "cursor is of a list with another prefix")
	}
	return last, nil
}

// Info is what is known of a namespace.
type Info struct {
	Name string `json:"namespace"`
	Usage
}

// namespaces are those that are not empty, in order; expired entries that were not removed yet
// count.
func (s *store) namespaces() (list []Info, err error) {
	list, err = namespacesOf(s.engine())
	if err != nil {
		err = s.cannotRead(err)
	}
	return list, err
}

func namespacesOf(eng engine) (list []Info, err error) {
	var failed error
	err = eng.scan([]byte{spaceUsage}, []byte{spaceUsage + 1}, false, func(k, v []byte) bool {
		u, err := decodeUsage(v)
		if err != nil || len(k) < 2 || int(k[1]) != len(k)-2 {
			failed = errRecord
			return false
		}
		list = append(list, Info{string(k[2:]), u})
		return true
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}
