package abi

import "unsafe"

// Place is where a field of a struct lies, and how it is written: one line of the tables that generated code has for
// ReadStruct and WriteStruct. A table ends with an empty line.
type Place struct {
	Key    uint64 // the first bytes of what is written, 8 at the most, the lowest first: the head of the map, the key
	Offset uint32 // of the field, in bytes
	Len    uint8  // of Key, in bytes
	Kind   Kinds
	Bits   uint8 // of an integer
	Shift  uint8 // 64 less the bits of Key
}

// Kinds are what fields of tables may be.
type Kinds uint8

// The kinds: integers without and with a sign, of 8 to 64 bits, and types whose underlying type is the one that is
// named. struct_wasm.s has the numbers.
const (
	PlaceUint Kinds = 1 + iota
	PlaceInt
	PlaceBool
	PlaceFloat // float64
	PlaceText
	PlaceBytes // []byte
	PlaceTexts // []string
	PlaceKey   // no field: the beginning of a long key, which the next line continues
)

// Reading is what ReadStruct reports.
type Reading int

const (
	ReadNot   Reading = iota // it was not tried: not here, after an error, or the input is not small
	_                        // something else comes: other keys or another order, texts that are not ASCII, or an error
	ReadAll                  // all of it
	readChunk                // there must be more room for copies
	readTexts                // and for lists: the low byte; the others are how many
)

// ReadStructAgain makes the room that ReadStruct has asked for, and lets it read again.
func (r *Reader) ReadStructAgain(m unsafe.Pointer, places *Place, how Reading) Reading {
	// At most three times: what is asked for is of the size of the input at most.
	for tries := 0; how > ReadAll; tries++ {
		if tries == 3 {
			return ReadNot
		}
		if how == readChunk {
			size := len(r.buf) + ahead
			if r.chunk != nil {
				size = chunkSize
			}
			r.chunk = make([]byte, 0, size)
		} else {
			room := int(how >> 8)
			if r.texts != nil && room < chunkTexts || room == 0 {
				room = chunkTexts
			}
			r.texts = make([]string, 0, room)
		}
		how = ReadStruct(r, m, places)
	}
	return how
}
