package actor

import (
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// Messages that the rings have no room for. One that comes in is fetched into a buffer beside the inbox, one that goes
// out is written from where it is encoded. Both buffers are kept: the collector would run every few messages otherwise, and
// memory that was used once is the actor's in any case.

func init() { Need(abi.FeatureLarge) }

// bulkStep is what the buffers' sizes are multiples of, in bytes.
const bulkStep = 64 << 10

// grown is b, empty and with room for n bytes.
func grown(b []byte, n uint64) []byte {
	if uint64(cap(b)) < n {
		b = make([]byte, 0, (n+bulkStep-1)&^(bulkStep-1))
	}
	return b[:0]
}

// fetch gets the payload of the message, of n bytes, which is not in the inbox. Payloads are found by their distance from
// the inbox, also this one.
//
//go:nocheckptr
func (m *Message) fetch(n uint64) {
	c := &mem.ctx
	if uint64(cap(c.apart)) < n+spare {
		c.apart = nil // the collector may take it before there is a larger one
		c.apart = grown(nil, n+spare)
	}
	b := c.apart[:n]
	bridge.Fetch(b)
	m.payload = int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(inbox))))
	m.size = int(n)
}

// lengthLarge is a Context.length that says that the last payload was larger than the outbox.
const lengthLarge = 9

// largeBody is body where the payload before was larger than the outbox: this one is encoded elsewhere at once.
func (c *Context) largeBody(head int, v Encoder) {
	b, ok := v.(Raw)
	if !ok || len(b) == 0 {
		c.payload.Reset(c.bulk[:0])
		encode(v, &c.payload)
		b = c.payload.Bytes()
		c.bulk = b[:0]
	}
	if need := head + 9 + len(b); need >= OutboxSize {
		c.writeBody(head, b)
		return
	}
	c.length = 1
	c.longBody(head, b)
}

// writeBody writes a payload from where it is, behind a head of so many bytes at the end of the outbox.
func (c *Context) writeBody(head int, b []byte) {
	end := mem.ctx.written + head
	mem.ctx.written = len(abi.AppendBytesHead(outbox[:end], len(b)))
	flush()
	bridge.Write(b)
}

// within reports whether a slice lies in another one.
func within(all, part []byte) bool {
	p, first := uintptr(unsafe.Pointer(unsafe.SliceData(part))), uintptr(unsafe.Pointer(unsafe.SliceData(all)))
	return p >= first && p < first+uintptr(len(all))
}
