package wal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A sector is the least that a disk writes. It begins and ends with a mark that differs from zero in at least two bits,
// and has a checksum that covers its position. Since it is written once, over zeros, and a crash leaves bytes
// as they were before or after, it is told apart what has happened to it:
//
//	byte 0        first or more: whether a batch begins here
//	bytes 1-506   part of the batch
//	bytes 507-510 CRC-32C of its position and bytes 0-506, little endian
//	byte 511      last
//
// A sector with both marks and a right checksum is written; one of zeros is not; one that lacks a mark
// because it is zero is torn. Everything else is damage: a flipped bit does not make a mark zero.
const (
	sectorSize = 512
	sectorData = sectorSize - 6

	markFirst = 0xa5
	markMore  = 0x96
	markLast  = 0x5a
)

type sectorState uint8

const (
	written sectorState = iota
	blank
	torn
	damaged
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var zeros [sectorSize]byte

func sectorSum(s []byte, at Position) uint32 {
	sum := ^uint32(0)
	for range 8 { // the little-endian bytes of the position, without a buffer for them
		sum = castagnoli[byte(sum)^byte(at)] ^ sum>>8
		at >>= 8
	}
	return crc32.Update(^sum, castagnoli, s[:1+sectorData])
}

// closeSector completes a sector, whose data is there.
func closeSector(s []byte, at Position, mark byte) {
	s[0], s[sectorSize-1] = mark, markLast
	binary.LittleEndian.PutUint32(s[1+sectorData:], sectorSum(s, at))
}

// stateOf says what has happened to a sector.
func stateOf(s []byte, at Position) sectorState {
	switch {
	case bytes.Equal(s, zeros[:]):
		return blank
	case s[0] == 0 || s[sectorSize-1] == 0:
		return torn
	case (s[0] == markFirst || s[0] == markMore) && s[sectorSize-1] == markLast &&
		binary.LittleEndian.Uint32(s[1+sectorData:]) == sectorSum(s, at):
		return written
	default:
		return damaged
	}
}

// sectors is how many sectors so many bytes of data take.
func sectors(n int) int { return (n + sectorData - 1) / sectorData }
