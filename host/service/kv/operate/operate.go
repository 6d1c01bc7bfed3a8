// Package operate is the operator's interface to the keys of a bundle, separate from the store:
// package kv implements it, the admin API and the command line use it.
package operate

import "context"

// Keys gives access to the keys of a bundle's service kv. Errors are *service.Error.
type Keys interface {
	Namespaces() (Namespaces, error)
	List(q Query) (KeyPage, error)
	Get(namespace, key string) (KeyEntry, error)
	Put(ctx context.Context, p PutKey) (Written, error)
	Delete(ctx context.Context, d DeleteKey) (Deleted, error)
}

// Namespaces are those that are not empty.
type Namespaces struct {
	Namespaces []Namespace `json:"namespaces"` // sorted by name
}

// Namespace is how much a namespace holds. Expired entries count until they are removed.
type Namespace struct {
	Namespace string `json:"namespace"`
	Keys      int64  `json:"keys"`
	Bytes     int64  `json:"bytes"` // of keys and values, and 64 for each entry
}

// Query is what to list.
type Query struct {
	Namespace string
	Prefix    string
	Cursor    []byte // of the previous page
	Limit     int    // 1 to 1000; 0: 100
	Reverse   bool
}

// KeyPage is a page of a list, without values.
type KeyPage struct {
	Entries []KeyEntry `json:"entries"`
	Cursor  []byte     `json:"cursor,omitempty"` // Base64: for the next page; missing after the last
}

// KeyEntry is an entry.
type KeyEntry struct {
	Key     string `json:"key"`
	Value   []byte `json:"value,omitempty"` // Base64; not in lists
	Counter bool   `json:"counter,omitempty"`
	Count   int64  `json:"count,omitempty"` // of a counter
	Version uint64 `json:"version"`
	Expires int64  `json:"expires_ns,omitempty"` // nanoseconds since 1970; missing: it does not expire
}

// PutKey writes a value.
type PutKey struct {
	Namespace string  `json:"namespace"`
	Key       string  `json:"key"`
	Value     []byte  `json:"value"`                // Base64
	Counter   *int64  `json:"counter,omitempty"`    // a counter with this count, instead of a value
	TTL       int64   `json:"ttl_ns,omitempty"`     // nanoseconds after which it expires
	IfVersion *uint64 `json:"if_version,omitempty"` // only if the entry has this version; 0: only if there is none
}

// Written is the result of a write.
type Written struct {
	Version uint64 `json:"version"`
}

// DeleteKey removes an entry.
type DeleteKey struct {
	Namespace string  `json:"namespace"`
	Key       string  `json:"key"`
	IfVersion *uint64 `json:"if_version,omitempty"` // only if the entry has this version
}

// Deleted says whether there was an entry.
type Deleted struct {
	Existed bool `json:"existed"`
}
