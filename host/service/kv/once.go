package kv

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

// Writes of durable actors are carried out once: the key of each, and what it has led to, are written in its batch.
//
//	k LEN namespace LIFE NUMBER        what is kept of a request
//	o LEN namespace TIME LIFE NUMBER   when that was
//
// LIFE, NUMBER and TIME are 8 bytes, big-endian. Both count for the namespace.
const (
	spaceKept = 'k'
	spaceOld  = 'o'
	// oldAtOnce is how many that are too old a write removes.
	oldAtOnce = 2
)

func keptPrefix(ns string, life abi.Ref) []byte {
	return binary.BigEndian.AppendUint64(appendNamespace([]byte{spaceKept}, ns), uint64(life))
}

func keptKey(ns string, life abi.Ref, number uint64) []byte {
	return binary.BigEndian.AppendUint64(keptPrefix(ns, life), number)
}

func oldKey(ns string, at int64, life abi.Ref, number uint64) []byte {
	b := binary.BigEndian.AppendUint64(appendNamespace([]byte{spaceOld}, ns), uint64(at))
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(life)), number)
}

// outcome is what a write has led to.
type outcome struct {
	version uint64
	results []Result
}

func (o *outcome) encode() []byte {
	b := binary.AppendUvarint(nil, o.version)
	b = binary.AppendUvarint(b, uint64(len(o.results)))
	for _, r := range o.results {
		b = binary.AppendVarint(binary.AppendUvarint(b, r.Version), r.Count)
		existed := byte(0)
		if r.Existed {
			existed = 1
		}
		b = append(b, existed)
	}
	return b
}

func decodeOutcome(b []byte) (o outcome, err error) {
	version, n := binary.Uvarint(b)
	if n <= 0 {
		return o, once.ErrKept
	}
	b = b[n:]
	count, n := binary.Uvarint(b)
	if n <= 0 || count > MaxOps {
		return o, once.ErrKept
	}
	b = b[n:]
	o = outcome{version, make([]Result, count)}
	for i := range o.results {
		r := &o.results[i]
		if r.Version, n = binary.Uvarint(b); n <= 0 {
			return outcome{}, once.ErrKept
		}
		b = b[n:]
		if r.Count, n = binary.Varint(b); n <= 0 || n >= len(b) || b[n] > 1 {
			return outcome{}, once.ErrKept
		}
		r.Existed = b[n] == 1
		b = b[n+1:]
	}
	if len(b) > 0 {
		return outcome{}, once.ErrKept
	}
	return o, nil
}

// keptCost is what a kept request with so many results counts towards its namespace's quota.
func keptCost(results int) int64 { return once.Overhead + 24*int64(results) }

// changeOnce is changeThen for a request that may have a key.
func (s *store) changeOnce(ctx context.Context, ns string, q Quota, ops []Op, d Durability, visible func(), r *once.Request) ([]Result, uint64, error) {
	return s.submit(ctx, &commit{ns: ns, quota: q, ops: ops, durability: d, visible: visible, once: r, done: make(chan error, 1)})
}

// remembered reports whether the write was carried out before, and has what it has led to.
func (t *turn) remembered(c *commit) (bool, error) {
	b, found, err := t.eng.get(keptKey(t.ns, c.once.Life, c.once.Effect.Number))
	if err != nil || !found {
		return false, err
	}
	k, err := once.Decode(b)
	if err != nil {
		return false, err
	}
	if k.Number = c.once.Effect.Number; !k.Is(c.once) {
		return false, nil
	}
	o, err := decodeOutcome(k.Answer)
	if err == nil {
		c.results, c.version = o.results, o.version
	}
	return err == nil, err
}

// forget decides which requests are not kept any more when another one is: those of its life that are settled, and some that are old.
func (t *turn) forget(c *commit) error {
	left, gone := 0, map[string]bool{}
	var failed error
	drop := func(life abi.Ref, k *once.Kept) {
		o, err := decodeOutcome(k.Answer)
		if failed = err; err != nil {
			return
		}
		key := keptKey(t.ns, life, k.Number)
		if gone[string(key)] {
			return
		}
		gone[string(key)] = true
		t.w.remove(key)
		t.w.remove(oldKey(t.ns, k.At, life, k.Number))
		t.kept -= keptCost(len(o.results))
	}
	prefix := keptPrefix(t.ns, c.once.Life)
	err := t.eng.scan(prefix, end(prefix), false, func(key, value []byte) bool {
		var k once.Kept
		if k, failed = once.Decode(value); failed != nil || len(key) != len(prefix)+8 {
			return false
		}
		k.Number = binary.BigEndian.Uint64(key[len(prefix):])
		if k.Dropped(c.once, t.now) {
			drop(c.once.Life, &k)
		} else {
			left++
		}
		return failed == nil
	})
	if err != nil || failed != nil {
		return cmp.Or(err, failed)
	}
	if left >= once.MostOpen {
		return once.TooMany()
	}
	space := appendNamespace([]byte{spaceOld}, t.ns)
	var old [][]byte
	err = t.eng.scan(space, oldKey(t.ns, max(t.now-int64(once.Keep), 0), 0, 0), false, func(key, _ []byte) bool {
		if len(key) == len(space)+24 {
			old = append(old, bytes.Clone(key[len(space):]))
		}
		return len(old) < oldAtOnce
	})
	if err != nil {
		return err
	}
	for _, key := range old {
		at, life, number := binary.BigEndian.Uint64(key), abi.Ref(binary.BigEndian.Uint64(key[8:])), binary.BigEndian.Uint64(key[16:])
		b, found, err := t.eng.get(keptKey(t.ns, life, number))
		if err != nil {
			return err
		}
		if k, err := once.Decode(b); found && err == nil && k.At == int64(at) {
			k.Number = number
			drop(life, &k)
		} else {
			t.w.remove(oldKey(t.ns, int64(at), life, number)) // left over
		}
	}
	t.kept += keptCost(len(c.ops))
	return failed
}

// remember writes what a write has led to.
func (t *turn) remember(c *commit) {
	k := once.Kept{Key: c.once.Effect.Key, At: t.now, Answer: (&outcome{c.version, c.results}).encode()}
	t.w.set(keptKey(t.ns, c.once.Life, c.once.Effect.Number), k.Append(nil))
	t.w.set(oldKey(t.ns, t.now, c.once.Life, c.once.Effect.Number), nil)
}
