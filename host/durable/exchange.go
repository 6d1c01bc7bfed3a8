package durable

import (
	"encoding/binary"

	"github.com/wasmactors/wasmactors/host/record"
)

// How exchanges of code are written, see compact.go.

// exchangeSize is at least what appendExchange writes.
func exchangeSize(x *record.Exchange) int {
	return 7*binary.MaxVarintLen64 + len(x.Code) + len(x.Saved) + len(x.Own) + len(x.State)
}

func appendExchange(to []byte, x *record.Exchange) []byte {
	way := byte(x.Way) << 1
	if x.More {
		way |= 1
	}
	to = appendString(append(to, way), x.Code)
	to = appendString(appendString(appendUint(to, x.Version), x.Saved), x.Own)
	return append(appendUint(appendUint(to, x.Fuel), x.Part), x.State...)
}

func (p *parser) exchange() *record.Exchange {
	way := p.byte()
	x := &record.Exchange{Way: record.Way(way >> 1), More: way&1 != 0, Code: p.data(), Version: p.uint(), Saved: p.data(), Own: p.data(), Fuel: p.uint(), Part: p.uint()}
	x.State = clone(p.bytes(uint64(len(p.rest))))
	return x
}
