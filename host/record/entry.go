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

	// What a turn could spend, where it was not what the actor's limits say; 0: it was.
	Fuel   uint64 `cbor:"9,keyasint,omitempty"`
	Memory uint64 `cbor:"10,keyasint,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Set takes over a turn that waits for its answer. It keeps nothing of it but the failure and the cut, which nobody
// changes. The slices of e are used again.
func (e *Entry) Set(t *Turn) {
	mail, outbox := Positions(e.Mail[:0], t), Checksums(e.Outbox[:0], t)
	*e = EntryOf(t, mail, outbox)
}

// EntryOf is the entry of a turn that waits for its answer, with its [Positions] and [Checksums].
func EntryOf(t *Turn, mail []uint64, outbox []uint32) Entry {
	return Entry{
		Incarnation: t.Incarnation, First: t.First, Mail: mail, Done: t.Done, Ended: t.Ended, Failure: t.Failure, Cut: t.Cut, Outbox: outbox,
		Fuel: t.Fuel, Memory: t.Memory,
	}
}

// Positions adds those of the messages of a turn.
func Positions(to []uint64, t *Turn) []uint64 {
	for _, m := range t.Mail {
		if m.Position != 0 {
			to = append(to, m.Position)
		}
	}
	return to
}

// Checksums adds those of what a turn has led to, see Entry.Outbox.
func Checksums(to []uint32, t *Turn) []uint32 {
	to = checksums(to, t.Outbox)
	for i := range t.Effects {
		x := &t.Effects[i]
		head := binary.LittleEndian.AppendUint64([]byte{byte(x.Kind)}, uint64(x.To))
		if x.Env != nil {
			head = append(binary.LittleEndian.AppendUint64(head, x.Env.Correlation), byte(x.Env.Kind))
			head = append(append(head, x.Env.Headers...), x.Env.Payload...)
		}
		to = append(to, sum(head))
	}
	return to
}

// checksums adds those of commands.
func checksums(to []uint32, outbox []byte) []uint32 {
	for at := 0; at < len(outbox); {
		n, end := nextCommand(outbox[at:])
		switch {
		case n == 0:
			return to // the host has read it before
		case end:
			to = append(to, 0)
		default:
			to = append(to, sum(outbox[at:at+n]))
		}
		at += n
	}
	return to
}

// nextCommand is how many bytes the first command has, of commands that the host has read before; 0: it is none. end says that
// it is the marker behind a turn.
func nextCommand(b []byte) (n int, end bool) {
	if b[0] == null {
		return 1, true
	}
	if len(b) > plainSend+2 && b[0] == 0x86 && b[1] == 0 && b[2] == 0x1b && b[11]|b[12] == 0 && b[13] == null {
		switch c := b[plainSend]; { // the payload of a message to a ref, without anything else
		case c >= 0x40 && c < 0x58:
			n = plainSend + 1 + int(c-0x40)
		case c == 0x58:
			n = plainSend + 2 + int(b[plainSend+1])
		}
		if n > 0 && n <= len(b) {
			return n, false
		}
	}
	return anyCommand(b)
}

// null is the marker behind a turn, and what a command has not; plainSend is where the payload of most messages is.
const (
	null      = 0xf6
	plainSend = 14
)

func anyCommand(b []byte) (n int, end bool) {
	if b[0]>>5 != 4 || b[0]&31 > 23 { // an array of few items
		return slowly(b)
	}
	n = 1
	for range b[0] & 31 {
		if n >= len(b) {
			return 0, false
		}
		c := b[n]
		n++
		arg := uint64(c & 31)
		if arg >= 24 {
			if arg > 27 || n+8 > len(b) {
				return slowly(b)
			}
			arg = binary.BigEndian.Uint64(b[n:]) >> (64 - 8<<(arg-24))
			n += 1 << (c&31 - 24)
		}
		switch c >> 5 {
		case 0, 7: // a number, null
		case 2, 3: // bytes, text
			if arg > uint64(len(b)-n) {
				return 0, false
			}
			n += int(arg)
		default:
			return slowly(b)
		}
	}
	return n, false
}

// slowly is nextCommand for what it does not know itself.
func slowly(b []byte) (n int, end bool) {
	var c abi.Command
	n, err := abi.DecodeCommand(&c, b)
	if err != nil {
		return 0, false
	}
	return n, c.Op == abi.OpEnd
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
