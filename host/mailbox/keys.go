package mailbox

import (
	"hash/maphash"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// keys are the keys that were seen; the oldest are forgotten first. A key is the sender, and a hash of
// 128 bits of the header's value under a secret: it takes the same room whatever the value's
// length, no sender can find two values with the same hash, and none can use up another's keys.
type keys struct {
	header string
	seeds  [2]maphash.Seed
	seen   map[key]int // where it is in order
	order  []key       // a ring
	next   int         // of order: where the next one goes, and the oldest is
	most   int
}

type key struct {
	hash   [2]uint64
	sender abi.Ref
}

func newKeys(most int, header string) *keys {
	return &keys{header: header, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, seen: map[key]int{}, most: most}
}

// keyOf is the key of a message; false if it has none. Only messages that somebody
// has sent, and no answers, have one.
func (k *keys) keyOf(e *host.Envelope) (key, bool) {
	if e.Kind != abi.KindMessage || len(e.Headers) == 0 {
		return key{}, false
	}
	v, ok := abi.FindHeader(e.Headers, k.header)
	if !ok || len(v) == 0 {
		return key{}, false
	}
	out := key{hash: [2]uint64{maphash.Bytes(k.seeds[0], v), maphash.Bytes(k.seeds[1], v)}, sender: e.Sender}
	if host.FromOutside(e) {
		out.sender = 0 // each ask from Go has another ref
	}
	return out, true
}

func (k *keys) has(x key) bool { _, ok := k.seen[x]; return ok }

// add remembers a new key. If there are too many it forgets the oldest.
func (k *keys) add(x key) {
	at := k.next
	if len(k.order) < k.most {
		at = len(k.order)
		k.order = append(k.order, x)
	} else {
		if old := k.order[at]; k.has(old) && k.seen[old] == at {
			delete(k.seen, old)
		}
		k.order[at] = x
		k.next = (at + 1) % k.most
	}
	k.seen[x] = at
}

// forget lets a message with the key in again.
func (k *keys) forget(x key) { delete(k.seen, x) }

// shrink halves the room for keys: it drops what forgotten keys took, and the oldest keys. It returns false
// if there are none.
func (k *keys) shrink() bool {
	if len(k.order) == 0 {
		return false
	}
	live := make([]key, 0, len(k.seen))
	for i := range k.order {
		at := (k.next + i) % len(k.order)
		if x := k.order[at]; k.has(x) && k.seen[x] == at {
			live = append(live, x)
		}
	}
	if most := len(k.order) / 2; len(live) > most {
		live = live[len(live)-most:]
	}
	k.order, k.next = append([]key(nil), live...), 0
	k.seen = make(map[key]int, len(live))
	for at, x := range live {
		k.seen[x] = at
	}
	return true
}

// bytes is what the table takes.
func (k *keys) bytes() int64 { return int64(len(k.order)) * KeyBytes }
