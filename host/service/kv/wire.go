package kv

import (
	"time"

	"github.com/wasmactors/wasmactors/host/service"
)

// Arguments of requests, and answers. All keys except those of the operation are
// optional where the documentation says so.

type keyArgs struct {
	Namespace  string  `cbor:"namespace"`
	Key        string  `cbor:"key"`
	IfVersion  *uint64 `cbor:"if_version"`
	Durability string  `cbor:"durability"`
}

type getArgs struct {
	Namespace string `cbor:"namespace"`
	Key       string `cbor:"key"`
}

type putArgs struct {
	keyArgs
	Value []byte        `cbor:"value"`
	TTL   time.Duration `cbor:"ttl"`
}

type addArgs struct {
	keyArgs
	Delta int64         `cbor:"delta"`
	TTL   time.Duration `cbor:"ttl"`
}

type listArgs struct {
	Namespace string `cbor:"namespace"`
	Prefix    string `cbor:"prefix"`
	Cursor    []byte `cbor:"cursor"`
	Limit     int    `cbor:"limit"`
	Values    bool   `cbor:"values"`
	Reverse   bool   `cbor:"reverse"`
}

type batchArgs struct {
	Namespace  string    `cbor:"namespace"`
	Ops        []batchOp `cbor:"ops"`
	Durability string    `cbor:"durability"`
}

type batchOp struct {
	Op        string        `cbor:"op"`
	Key       string        `cbor:"key"`
	Value     []byte        `cbor:"value"`
	TTL       time.Duration `cbor:"ttl"`
	Delta     *int64        `cbor:"delta"`
	IfVersion *uint64       `cbor:"if_version"`
}

type watchArgs struct {
	Namespace string `cbor:"namespace"`
	Prefix    string `cbor:"prefix"`
	Values    bool   `cbor:"values"`
}

type usageArgs struct {
	Namespace string `cbor:"namespace"`
}

// wireEntry is an entry in an answer.
type wireEntry struct {
	Key     string `cbor:"key,omitempty"`
	Value   []byte `cbor:"value,omitempty"`
	Count   *int64 `cbor:"count,omitempty"`
	Version uint64 `cbor:"version"`
	Expires int64  `cbor:"expires,omitempty"`
}

type wireVersion struct {
	Version uint64 `cbor:"version"`
}

type wireCount struct {
	Count   int64  `cbor:"count"`
	Version uint64 `cbor:"version"`
}

type wireExisted struct {
	Existed bool `cbor:"existed"`
}

type wirePage struct {
	Entries []wireEntry `cbor:"entries"`
	Cursor  []byte      `cbor:"cursor,omitempty"`
}

type wireBatch struct {
	Version uint64       `cbor:"version"`
	Results []wireResult `cbor:"results"`
}

type wireResult struct {
	Version uint64 `cbor:"version,omitempty"`
	Count   *int64 `cbor:"count,omitempty"`
	Existed *bool  `cbor:"existed,omitempty"`
}

type wireUsage struct {
	Keys     int64 `cbor:"keys"`
	Bytes    int64 `cbor:"bytes"`
	MaxKeys  int64 `cbor:"max_keys"`
	MaxBytes int64 `cbor:"max_bytes"`
}

// wire is an entry as it is answered. A list without values has none.
func (e *Entry) wire(values bool) wireEntry {
	w := wireEntry{Key: e.Key, Version: e.Version, Expires: e.Expires}
	switch {
	case e.Counter:
		w.Count = &e.Count
	case values:
		w.Value = e.Value
		if w.Value == nil {
			w.Value = []byte{}
		}
	}
	return w
}

// op is an operation of a batch.
func (b *batchOp) op() (Op, *service.Error) {
	op := Op{Key: b.Key, Value: b.Value, TTL: b.TTL, If: b.IfVersion}
	valued := b.Value != nil
	switch b.Op {
	case "put":
		op.Kind = OpPut
		if !valued {
			return op, service.Errorf(service.BadRequest, "put needs value, a byte string")
		}
		valued = false
	case "delete":
		op.Kind = OpDelete
	case "check":
		op.Kind = OpCheck
	case "add":
		op.Kind = OpAdd
		if b.Delta == nil {
			return op, service.Errorf(service.BadRequest, "add needs delta")
		}
		op.Delta = *b.Delta
	default:
		return op, service.Errorf(service.BadRequest, "op is %.40q, and none of put, delete, add, check", b.Op)
	}
	switch {
	case valued:
		return op, service.Errorf(service.BadRequest, "%s takes no value", b.Op)
	case b.Delta != nil && op.Kind != OpAdd:
		return op, service.Errorf(service.BadRequest, "%s takes no delta", b.Op)
	case b.TTL != 0 && op.Kind != OpAdd && op.Kind != OpPut:
		return op, service.Errorf(service.BadRequest, "%s takes no ttl", b.Op)
	}
	return op, op.check()
}
