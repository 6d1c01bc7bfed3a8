package mailbox

import "encoding/hex"

// EffectKey is the length of the key of an effect, in bytes.
const EffectKey = 16

// Effect is the identity of what a durable actor asks of a service. It is the same when the request is sent again after the process
// has died, and no other request has it. The life of the actor is the sender of the request.
type Effect struct {
	// Key gives nothing away about the actor, and nobody without the system's secret can compute it.
	Key [EffectKey]byte
	// Number counts the requests of the actor's life to all services, from 1.
	Number uint64
	// Settled is a number up to Number. Requests of the life to this service with lower ones are never sent again: what the actor
	// has learned of them, or that it has given them up, is durable. What was kept of them may be forgotten.
	Settled uint64
}

// String is the key as a UUID of version 8 (RFC 9562).
func (e *Effect) String() string {
	k := e.Key
	k[6], k[8] = k[6]&0x0f|0x80, k[8]&0x3f|0x80
	b := make([]byte, 0, 36)
	for i, n := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, k[[...]int{0, 4, 6, 8, 10}[i]:n])
	}
	return string(b)
}
