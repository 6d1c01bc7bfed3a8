package wal

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A batch is what is written at once: a header, and records one after the other. It begins with a sector; the rest of its last
// sector is zero. Its records begin at the positions (batch + batchHeader + bytes of the body before it).
//
//	byte 0       version, 1
//	byte 1       1: the body is sealed
//	bytes 2-3    zero
//	bytes 4-7    bytes of the body
//	bytes 8-15   epoch of the writer
//	bytes 16-23  all before this position was synced when the batch was made
//
// A record has its length, 4 bytes; the CRC-32C of the length and the data, 4 bytes; and the data. A sealed body is encrypted and has
// 16 bytes more, see seal.go. All numbers are little endian.
const (
	batchHeader  = 24
	recordHeader = 8
	batchVersion = 1
)

type batch struct {
	at     Position
	sealed bool
	size   int
	epoch  uint64
	synced Position
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
func decodeBatch(from []byte, at Position, most int) (b batch, version int, err error) {
	if from[0] != batchVersion {
		return b, int(from[0]), fmt.Errorf("a batch of version %d", from[0])
	}
	b = batch{
		at:     at,
		sealed: from[1] == 1,
		epoch:  binary.LittleEndian.Uint64(from[8:]),
		synced: Position(binary.LittleEndian.Uint64(from[16:])),
	}
	size := binary.LittleEndian.Uint32(from[4:])
	if from[1] > 1 || from[2] != 0 || from[3] != 0 || uint64(size) > uint64(most) || b.synced > at {
		return b, batchVersion, errors.New("a header that no batch has")
	}
	b.size = int(size)
	return b, batchVersion, nil
}

// appendRecord adds a record of n bytes to a body.
func appendRecord(body []byte, n int, parts [][]byte) []byte {
	at := len(body)
	body = binary.LittleEndian.AppendUint64(body, uint64(uint32(n)))
	for _, p := range parts {
		body = append(body, p...)
	}
	binary.LittleEndian.PutUint32(body[at+4:], recordSum(body[at:]))
	return body
}

// recordSum is the checksum of a record's length and data.
func recordSum(r []byte) uint32 {
	return crc32.Update(crc32.Checksum(r[:4], castagnoli), castagnoli, r[recordHeader:])
}

// record is the first record of the rest of a body.
func record(rest []byte) (data []byte, err error) {
	if len(rest) < recordHeader {
		return nil, errors.New("a record without a header")
	}
	n := uint64(binary.LittleEndian.Uint32(rest))
	if n > uint64(len(rest)-recordHeader) {
		return nil, fmt.Errorf("a record of %d bytes, where %d are left", n, len(rest)-recordHeader)
	}
	data = rest[recordHeader:][:n:n]
	if recordSum(rest[:recordHeader+n]) != binary.LittleEndian.Uint32(rest[4:]) {
		return nil, errors.New("a record whose checksum is wrong")
	}
	return data, nil
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
