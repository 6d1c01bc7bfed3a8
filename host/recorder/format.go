// Package recorder writes down what the guests of a system take in, so that all of them can be run again, and reads it.
// Package host/rerun repeats it.
//
// A guest is a function of its state, its messages and the header of its turns. So a recording has, for each entry of a guest
// (what it was handed at once), the time in the header and which messages came. Of a message that another recorded guest has
// sent only its origin is written: the entry that has sent it, and the command of that entry. The repetition has it then. A
// message from anywhere else (actors in Go, services, gateways, timers, the host) is written down whole. Of what an entry has
// led to there is a hash, which includes all that the guest has done before: a chain.
//
// # The format
//
// Each worker writes its records to a stream of its own, a lane, without a lock. A file has the lanes in blocks; all fixed
// numbers are little endian, and "n" is a varint:
//
//	"waRE" version:1 created:8 length:4 host:length crc:4        the head; crc is CRC-32C over all before it
//	kind:1 lane:4 length:4 crc:4 body:length                     a block; crc is over kind, lane, length and body
//
//	kind 1  an image: its number is that of the blocks of this kind before
//	kind 2  records of a lane, as many as are whole; they continue those of its last block
//	kind 3  the end: for each lane n: its bytes. Nothing follows
//	kind 4  the system begins to stop its actors: time:8. At most one; it may have begun before the file
//
// The number of a record is its place in its lane, from 0. A record begins with a tag; its lowest three bits are the type:
//
//	1 life    n:id n:image turns seed:16 prepare:16 limits path type [snapshot]
//	2 turn    n:life [n:moved] n:time [n:lane] n:entry [n:command] hash:3      one message of a recorded guest, one turn
//	3 entry   n:life flags:1 [n:moved] n:time n:pushed n:done [failure] [cut] hash:3 messages
//	4 end     n:life [n:moved] n:time chain:8                                  the incarnation is over
//	5 left    n:life [n:moved] text                                            the rest of it is not recorded, and why
//	6 none    text text                                                        an actor that is not recorded, and why
//
// time is the difference from the lane's record before, as a signed number. moved is there if the life's record before is in
// another lane: how many records the life has before. There is no other order between lanes: a record comes after the record
// of its life before it, and after the entries that have sent its messages. That is all that a repetition needs.
package recorder

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

const (
	magic    = "waRE"
	version  = 3
	headSize = len(magic) + 1 + 8 + 4
	sumSize  = 4
	// blockHead is what a block has before its body.
	blockHead = 1 + 4 + 4 + sumSize
	// mostHost bounds the text that names the host.
	mostHost = 256
)

// The kinds of blocks.
const (
	blockImage byte = iota + 1
	blockLane
	blockEnd
	blockEnding
)

// Kind says what a record is.
type Kind uint8

// The kinds of records.
const (
	Life  Kind = iota + 1 // an incarnation begins, or its records begin anew in a further file
	turn                  // is read as an Entry
	Entry                 // a guest was handed messages
	End                   // an incarnation is over
	Left                  // the rest of an incarnation is not recorded
	None                  // an actor that is not recorded
)

// The bits of a tag beside the kind.
const (
	tagMoved    = 1 << 3 // moved is there
	tagOwn      = 1 << 4 // of a turn: the origin is in the same lane
	tagFirst    = 1 << 5 // of a turn: the origin is command 0
	tagSnapshot = 1 << 4 // of a life: it begins with a snapshot
	kindBits    = 7
)

// The flags of an entry.
const (
	flagFailed  = 1 << iota // the turn after those has failed
	flagEnded               // the host had ended the batch
	flagCut                 // something from outside has ended the failed turn
	flagJudged              // the failed turn could not pay for what depends on other actors
	flagRewound             // the guest was brought back to the state before the failed turn
	flagMasked              // known secrets are masked from here on: hash and fuel are 0
)

// The flags of a message.
const (
	mailInline  = 1 << iota // it is here; otherwise its origin is
	mailOwn                 // the origin is in the same lane
	mailHeaders             // its headers are here
)

// ErrFile is wrapped by errors that say why bytes are no recording, and where.
var ErrFile = errors.New("not a recording")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Origin is the command that has sent a message: 19 bits of the lane, from 1, 32 of the record in it, 12 of the command among
// those of the entry. 0 is none.
type Origin = uint64

const (
	commandBits = 12
	recordBits  = 32
	mostLane    = 1<<(64-1-commandBits-recordBits) - 1
	mostRecord  = 1<<recordBits - 1
	// MostCommands is how many commands of an entry can be origins; messages of further ones are written whole.
	MostCommands = 1 << commandBits
)

// Incarnation is one of a guest that is recorded, or what is recorded of it in a file.
type Incarnation struct {
	Path, Type string
	Ref        abi.Ref
	Number     uint64 // of the incarnation, from 0
	Turns      uint64 // of the actor before
	Spawned    uint64 // children that it had asked for; counts only with a snapshot
	// Seed is where the actor's random numbers come from, Prepare where those of the initialisation of an instance whose
	// image is not frozen. Key is that of its children's refs; it counts only with a snapshot.
	Seed, Prepare [abi.SeedSize]byte
	Key           abi.RefKey
	// Fuel, Memory and Outbox are the limits of a turn, in units of fuel and bytes; 0: the runtime's own.
	Fuel, Memory, Outbox uint64
	// Snapshot is the state that it begins with, see sandbox.AppendSnapshot; nil: the image's.
	Snapshot []byte
}

// appendIncarnation is what follows the numbers of the life and its image.
func appendIncarnation(b []byte, l *Incarnation) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(l.Ref))
	for _, n := range [...]uint64{l.Number, l.Turns, l.Fuel, l.Memory, l.Outbox} {
		b = binary.AppendUvarint(b, n)
	}
	b = append(append(b, l.Seed[:]...), l.Prepare[:]...)
	b = appendText(appendText(b, l.Path), l.Type)
	if l.Snapshot != nil {
		b = append(b, l.Key[:]...)
		b = binary.AppendUvarint(b, l.Spawned)
		b = appendText(b, l.Snapshot)
	}
	return b
}

func (r *reader) incarnation(l *Incarnation, snapshot bool) {
	l.Ref = abi.Ref(r.fixed())
	for _, to := range [...]*uint64{&l.Number, &l.Turns, &l.Fuel, &l.Memory, &l.Outbox} {
		*to = r.number()
	}
	copy(l.Seed[:], r.take(abi.SeedSize))
	copy(l.Prepare[:], r.take(abi.SeedSize))
	l.Path, l.Type = r.text(), r.text()
	if snapshot {
		copy(l.Key[:], r.take(uint64(len(l.Key))))
		l.Spawned = r.number()
		l.Snapshot = r.bytes()
	}
}

func appendText[S string | []byte](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// zigzag makes small numbers of small differences.
func zigzag(n int64) uint64 { return uint64(n<<1) ^ uint64(n>>63) }

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

func appendCut(b []byte, c *sandbox.Cut) []byte {
	b = append(b, byte(c.Stage), byte(c.Kind))
	b = binary.AppendUvarint(binary.AppendUvarint(b, c.Phase), c.At)
	return appendText(b, c.Reason)
}

func (r *reader) cut() *sandbox.Cut {
	c := &sandbox.Cut{Stage: sandbox.Stage(r.byte()), Kind: abi.FailureKind(r.byte())}
	c.Phase, c.At = r.number(), r.number()
	c.Reason = r.text()
	if r.err == nil && (c.Stage > sandbox.StageWork || c.Kind == 0 || len(c.Reason) > abi.MaxReason) {
		r.fail("an entry was cut in a way that is not known")
	}
	return c
}

// Chain is the hash of all that an incarnation has done.
type Chain uint64

// The constants of wyhash, which the chain follows: 64 random bits, half of them set.
const (
	secret1 = 0xe7037ed1a0b428db
	secret2 = 0x8ebc6af09c88c6e3
)

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// Add is the chain after an entry: its outbox, the fuel of its turns and how many of them ended well. Of an entry that has
// failed it is the kind of the failure instead of the fuel. It is made at each turn, mostly of a few dozen bytes.
func (c Chain) Add(outbox []byte, fuel uint64, done int) Chain {
	h, b := uint64(c)^(fuel*secret2+uint64(done)), outbox
	for len(b) > 32 { // two rounds of 16 bytes each, with one look at the length
		p := (*[32]byte)(b)
		h = mix(binary.LittleEndian.Uint64(p[:])^secret1, binary.LittleEndian.Uint64(p[8:])^h)
		h = mix(binary.LittleEndian.Uint64(p[16:])^secret1, binary.LittleEndian.Uint64(p[24:])^h)
		b = b[32:]
	}
	if len(b) > 16 {
		h = mix(binary.LittleEndian.Uint64(b)^secret1, binary.LittleEndian.Uint64(b[8:16])^h)
		b = b[16:]
	}
	x, y := uint64(len(outbox))<<32, uint64(0)
	if n := len(b); n >= 8 {
		x, y = x^binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	} else if n >= 4 {
		x, y = x^uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	} else if n > 0 {
		y = uint64(b[0])<<16 | uint64(b[n>>1])<<8 | uint64(b[n-1])
	}
	return Chain(bits.RotateLeft64(uint64(c), 17) + mix(x^secret1, y^h))
}

// short is the part of it that each entry has.
func (c Chain) short() uint32 { return uint32(c >> 40) }
