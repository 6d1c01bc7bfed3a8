package durable

import (
	"encoding/binary"
)

func (d *done) encode() []byte {
	b := binary.LittleEndian.AppendUint64([]byte{version, tagKept}, uint64(d.mark))
	b = binary.LittleEndian.AppendUint32(b, d.pieces)
	b = binary.LittleEndian.AppendUint64(b, d.bytes)
	b = binary.LittleEndian.AppendUint32(b, d.sum)
	b = binary.LittleEndian.AppendUint32(b, d.actors)
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, d.frames), d.states)
}
