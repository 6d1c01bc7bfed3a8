package kv

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/host/service"
)

// Bounds of requests.
const (
	MaxKey   = 1024                       // bytes of a key
	MaxValue = 60 << 10                   // bytes of a value: an answer with it fits into the inbox of a guest, 64 KiB
	MaxOps   = 256                        // operations of a batch
	MaxBatch = 512 << 10                  // bytes of their keys and values
	MaxTTL   = 100 * 365 * 24 * time.Hour // of an entry
	MinTTL   = time.Millisecond
)

// checkKey refuses what is not a key.
func checkKey(key string) *service.Error {
	switch {
	case key == "":
		return service.Errorf(service.BadRequest, "key is empty")
	case len(key) > MaxKey:
		return service.Errorf(service.TooLarge, "key has %d bytes, at most %d", len(key), MaxKey)
	case !utf8.ValidString(key):
		return service.Errorf(service.BadRequest, "key is not UTF-8")
	}
	return nil
}

// checkPrefix refuses what no key begins with.
func checkPrefix(prefix string) *service.Error {
	switch {
	case len(prefix) > MaxKey:
		return service.Errorf(service.TooLarge, "prefix has %d bytes, at most %d", len(prefix), MaxKey)
	case !utf8.ValidString(prefix):
		return service.Errorf(service.BadRequest, "prefix is not UTF-8")
	}
	return nil
}

// isNamespace reports whether a name is valid for a namespace: ^[a-z0-9][a-z0-9._-]{0,62}$.
func isNamespace(name string) bool {
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return name != "" && len(name) <= 63
}

// check refuses an operation that can never succeed.
func (op *Op) check() *service.Error {
	if err := checkKey(op.Key); err != nil {
		return err
	}
	switch {
	case len(op.Value) > MaxValue:
		return service.Errorf(service.TooLarge, "value has %d bytes, at most %d; larger ones are for the service blob", len(op.Value), MaxValue)
	case op.TTL != 0 && (op.TTL < MinTTL || op.TTL > MaxTTL):
		return service.Errorf(service.BadRequest, "ttl is %v, which is not between %v and %v", op.TTL, MinTTL, MaxTTL)
	case op.Kind == OpCheck && op.If == nil:
		return service.Errorf(service.BadRequest, "check needs if_version")
	}
	return nil
}

// checkOps refuses a batch that can never succeed.
func checkOps(ops []Op) *service.Error {
	if len(ops) == 0 {
		return service.Errorf(service.BadRequest, "ops is empty")
	}
	if len(ops) > MaxOps {
		return service.Errorf(service.TooLarge, "ops has %d operations, at most %d", len(ops), MaxOps)
	}
	size := 0
	for i := range ops {
		if err := ops[i].check(); err != nil {
			return within(fmt.Sprintf("ops[%d]", i), err).(*service.Error)
		}
		size += len(ops[i].Key) + len(ops[i].Value)
	}
	if size > MaxBatch {
		return service.Errorf(service.TooLarge, "keys and values have %d bytes, at most %d", size, MaxBatch)
	}
	return nil
}
