package wal

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A batch is what is written at once: a header, and a body of records one after the other. It begins with a sector; the rest of
// its last sector is zero. Its records begin at the positions (batch + batchHeader + bytes of the body before it).
//
//	byte 0       version, 1 or 2
//	byte 1       1: the body is sealed
//	bytes 2-3    zero
//	bytes 4-7    bytes of the body
//	bytes 8-15   epoch of the writer
//	bytes 16-23  all before this position was synced when the batch was made
//
// In version 2 a record has its length, an unsigned LEB128 number that may be longer than it has to be, and the data; behind the
// last record is the CRC-32C of them all, 4 bytes. In version 1, which is read only, a record has its length, 4 bytes; the CRC-32C of
// the length and the data, 4 bytes; and the data. A sealed body is encrypted and has 16 bytes more, see seal.go. All numbers are
// little endian.
const (
	batchHeader  = 24
	recordHeader = 8 // of version 1; in version 2 at most
	batchVersion = 2
	bodySum      = 4
)

type batch struct {
	at      Position
	version int
	sealed  bool
	size    int
	epoch   uint64
	synced  Position
}

// end is the position behind the batch.
func (b *batch) end() Position { return b.at + Position(sectors(batchHeader+b.size)*sectorSize) }

func (b *batch) encode(to []byte) {
	clear(to[:batchHeader])
	to[0] = batchVersion
	if b.sealed {
		to[1] = 1
	}
	binary.LittleEndian.PutUint32(to[4:], uint32(b.size))
	binary.LittleEndian.PutUint64(to[8:], b.epoch)
	binary.LittleEndian.PutUint64(to[16:], uint64(b.synced))
}

// decodeBatch reads a header. What it returns is checked against most, the bytes that a body may have.
func decodeBatch(from []byte, at Position, most int) (b batch, err error) {
	b = batch{
		at:      at,
		version: int(from[0]),
		sealed:  from[1] == 1,
		epoch:   binary.LittleEndian.Uint64(from[8:]),
		synced:  Position(binary.LittleEndian.Uint64(from[16:])),
	}
	if b.version < 1 || b.version > batchVersion {
		return b, errVersion
	}
	size := binary.LittleEndian.Uint32(from[4:])
	if from[1] > 1 || from[2] != 0 || from[3] != 0 || uint64(size) > uint64(most) || b.synced > at {
		return b, errors.New("a header that no batch has")
	}
	b.size = int(size)
	return b, nil
}

// errVersion says that a batch was written by a later release.
var errVersion = errors.New("a batch of an unknown version")

// appendLength adds the length of a record that has at most so many bytes: as many bytes of it as most takes.
func appendLength(body []byte, n, most int) []byte {
	for ; most >= 0x80; most >>= 7 {
		body = append(body, byte(n)|0x80)
		n >>= 7
	}
	return append(body, byte(n))
}

// beginLong is appendLength of a record whose length is not yet known.
//
//go:noinline
func beginLong(body []byte, most int) []byte { return appendLength(body, 0, most) }

// endLong sets the length, which it returns, of the record that beginLong has begun at a place, and with which the body ends.
//
//go:noinline
func endLong(body []byte, began, most int) int {
	n := len(body) - began - len(appendLength(nil, 0, most))
	appendLength(body[:began], n, most)
	return n
}

// closeBody adds the checksum of a body.
func closeBody(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

// records checks the checksum of a body, and returns the records.
func (b *batch) records(body []byte) ([]byte, error) {
	if b.version == 1 {
		return body, nil
	}
	n := len(body) - bodySum
	if n < 0 || crc32.Checksum(body[:n], castagnoli) != binary.LittleEndian.Uint32(body[n:]) {
		return nil, errors.New("records whose checksum is wrong")
	}
	return body[:n:n], nil
}

// record is the first record of the rest of a body. size is how much of the body it has.
func (b *batch) record(rest []byte) (data []byte, size int, err error) {
	if b.version == 1 {
		return oldRecord(rest)
	}
	n, head, ok := length(rest)
	if !ok {
		return nil, 0, errors.New("a record without a length")
	}
	if n > uint64(len(rest)-head) {
		return nil, 0, fmt.Errorf("a record of %d bytes, where %d are left", n, len(rest)-head)
	}
	size = head + int(n)
	return rest[head:size:size], size, nil
}

// length reads the length of a record, and how many bytes say it.
func length(from []byte) (n uint64, size int, ok bool) {
	n, size = binary.Uvarint(from)
	return n, size, size > 0 && size <= recordHeader
}

// oldRecord is record in version 1.
func oldRecord(rest []byte) (data []byte, size int, err error) {
	if len(rest) < recordHeader {
		return nil, 0, errors.New("a record without a header")
	}
	n := uint64(binary.LittleEndian.Uint32(rest))
	if n > uint64(len(rest)-recordHeader) {
		return nil, 0, fmt.Errorf("a record of %d bytes, where %d are left", n, len(rest)-recordHeader)
	}
	size = recordHeader + int(n)
	if sum := crc32.Update(crc32.Checksum(rest[:4], castagnoli), castagnoli, rest[recordHeader:size]); sum != binary.LittleEndian.Uint32(rest[4:]) {
		return nil, 0, errors.New("a record whose checksum is wrong")
	}
	return rest[recordHeader:size:size], size, nil
}

// spread writes header and body into sectors, from position b.at; to has room for them. With a cipher the body is encrypted.
func (b *batch) spread(to, body []byte, box cipher.AEAD, head *[batchHeader]byte, room []byte) []byte {
	b.sealed, b.size = box != nil, len(body)
	if box != nil {
		b.size += box.Overhead()
	}
	b.encode(head[:])
	if box != nil {
		body = sealBody(room[:0], box, head[:], b.at, body)
	}
	at, mark := b.at, byte(markFirst)
	from, next := head[:], body
	for len(from)+len(next) > 0 {
		s := to[at-b.at:][:sectorSize]
		data := s[1 : 1+sectorData]
		n := copy(data, from)
		from = from[n:]
		if len(from) == 0 {
			m := copy(data[n:], next)
			n, next = n+m, next[m:]
		}
		clear(data[n:])
		closeSector(s, at, mark)
		at, mark = at+sectorSize, markMore
	}
	return body
}
