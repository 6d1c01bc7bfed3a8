package record

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/wasmactors/wasmactors/abi"
)

// Entry is a turn, or the turns of a guest's entry, as it can be written down: what it has taken in, and enough of what it
// has led to that a repetition can be compared with it. The seed is not part of it: it follows from the system's secret,
// the ref and the incarnation.
type Entry struct {
	Incarnation uint64       `cbor:"1,keyasint"`
	First       uint64       `cbor:"2,keyasint"` // number of the first turn in the actor's life
	Mail        []uint64     `cbor:"3,keyasint"` // positions of the messages that were pushed together; none: a start, an end, a decision
	Done        int          `cbor:"4,keyasint"` // turns that ended well
	Ended       Ending       `cbor:"5,keyasint,omitempty"`
	Failure     *abi.Failure `cbor:"6,keyasint,omitempty"`
	Cut         *Cut         `cbor:"7,keyasint,omitempty"`
	Outbox      []uint32     `cbor:"8,keyasint"` // the CRC-32C of each command or effect, 0 behind the last one of each turn
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Set takes over a turn that waits for its answer. It keeps nothing of it but the failure and the cut, which nobody
// changes. The slices of e are used again.
func (e *Entry) Set(t *Turn) {
	*e = Entry{
		Incarnation: t.Incarnation, First: t.First, Mail: e.Mail[:0], Done: t.Done, Ended: t.Ended, Failure: t.Failure, Cut: t.Cut,
		Outbox: e.Outbox[:0],
	}
	for _, m := range t.Mail {
		if m.Position != 0 {
			e.Mail = append(e.Mail, m.Position)
		}
	}
	for at := 0; at < len(t.Outbox); {
		var c abi.Command
		n, err := abi.DecodeCommand(&c, t.Outbox[at:])
		if err != nil {
			break // the host has read it before
		}
		if c.Op == abi.OpEnd {
			e.Outbox = append(e.Outbox, 0)
		} else {
			e.Outbox = append(e.Outbox, sum(t.Outbox[at:at+n]))
		}
		at += n
	}
	for i := range t.Effects {
		x := &t.Effects[i]
		head := binary.LittleEndian.AppendUint64([]byte{byte(x.Kind)}, uint64(x.To))
		if x.Env != nil {
			head = append(binary.LittleEndian.AppendUint64(head, x.Env.Correlation), byte(x.Env.Kind))
			head = append(append(head, x.Env.Headers...), x.Env.Payload...)
		}
		e.Outbox = append(e.Outbox, sum(head))
	}
}

func sum(b []byte) uint32 { return max(crc32.Checksum(b, castagnoli), 1) }

// Differs compares the outboxes of two runs of one entry. If they are not equal it names the first difference: the
// turn, counted from 0, and the command or effect in it.
func (e *Entry) Differs(other *Entry) (turn, command int, differs bool) {
	for i := range max(len(e.Outbox), len(other.Outbox)) {
		if i >= len(e.Outbox) || i >= len(other.Outbox) || e.Outbox[i] != other.Outbox[i] {
			return turn, command, true
		}
		if command++; e.Outbox[i] == 0 {
			turn, command = turn+1, 0
		}
	}
	return 0, 0, false
}
