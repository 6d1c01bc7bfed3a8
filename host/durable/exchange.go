package durable

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"

	"github.com/wasmactors/wasmactors/host/record"
)

// How exchanges of code are written, see compact.go. Snapshots are compressed, before the log is locked: they are mostly zeros.

var (
	statePacker, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(1<<20))
	stateUnpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderMaxMemory(record.MostState))
)

// packed is the state of an exchange as it is written; nil: it has none.
func packed(x *record.Exchange) []byte {
	if x == nil || len(x.State) == 0 {
		return nil
	}
	return statePacker.EncodeAll(x.State, nil)
}

// exchangeSize is at least what appendExchange writes.
func exchangeSize(x *record.Exchange, state []byte) int {
	return headBytes + 6*binary.MaxVarintLen64 + len(x.Code) + len(x.Saved) + len(x.Own) + len(state)
}

func (c *shared) appendExchange(to []byte, r *record.Record, state []byte) []byte {
	to, _ = c.appendHead(to, r.Kind, r.Actor, r.Time)
	x := r.Exchange
	way := byte(x.Way) << 1
	if x.More {
		way |= 1
	}
	to = appendString(append(to, way), x.Code)
	to = appendString(appendString(appendUint(to, x.Version), x.Saved), x.Own)
	return append(appendUint(to, x.Fuel), state...)
}

func (p *parser) exchange() *record.Exchange {
	way := p.byte()
	x := &record.Exchange{Way: record.Way(way >> 1), More: way&1 != 0, Code: p.data(), Version: p.uint(), Saved: p.data(), Own: p.data(), Fuel: p.uint()}
	if len(p.rest) == 0 {
		return x
	}
	state, err := stateUnpacker.DecodeAll(p.rest, nil)
	if err != nil || len(state) == 0 {
		p.fail("a state that is not compressed as states are")
	}
	x.State, p.rest = state, nil
	return x
}
