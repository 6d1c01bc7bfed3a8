package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/wasmactors/wasmactors/internal/slots"
)

// A snapshot as bytes:
//
//	"waSS"   4 bytes
//	version  1 byte
//	image    32 bytes, the image's key: module, configuration, versions
//	globals  varint, then 8 bytes each, little endian
//	patch    the rest but four bytes, see slots.Patch.Append
//	sum      4 bytes, CRC-32C over all before it, little endian
//
// The sum detects accidental damage only. Snapshots that are stored where others can write
// should be authenticated; a forged one can do what a guest can do, and no more.
const (
	snapshotMagic   = "waSS"
	snapshotVersion = 1
	snapshotHead    = len(snapshotMagic) + 1 + 32
)

// ErrSnapshot is wrapped by errors that say why bytes are no snapshot of an image.
var ErrSnapshot = errors.New("runtime: not a snapshot of this image")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot writes s, a snapshot of this image, to dst. Equal states have equal
// bytes.
func AppendSnapshot(dst []byte, i *Image, s *Snapshot) []byte {
	from := len(dst)
	dst = append(dst, snapshotMagic...)
	dst = append(dst, snapshotVersion)
	dst = append(dst, i.key[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(s.globals)))
	for _, g := range s.globals {
		dst = binary.LittleEndian.AppendUint64(dst, g)
	}
	dst = s.patch.Append(dst)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// DecodeSnapshot reads what AppendSnapshot has written for the same image. It fails
// with ErrSnapshot, which says why. b must not change afterwards.
func DecodeSnapshot(i *Image, b []byte) (*Snapshot, error) {
	no := func(why string, args ...any) (*Snapshot, error) {
		return nil, fmt.Errorf("%w (%s): %s", ErrSnapshot, i.cfg.Name, fmt.Sprintf(why, args...))
	}
	if why := CannotSave(i); why != "" {
		return no("%s", why)
	}
	if len(b) < snapshotHead+4 || string(b[:len(snapshotMagic)]) != snapshotMagic {
		return no("%d bytes that do not begin like one", len(b))
	}
	if v := b[len(snapshotMagic)]; v != snapshotVersion {
		return no("version %d, this host reads version %d", v, snapshotVersion)
	}
	if !bytes.Equal(b[len(snapshotMagic)+1:snapshotHead], i.key[:]) {
		return no("it is of another module, configuration or version of the host")
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return no("the checksum is wrong")
	}
	body = body[snapshotHead:]
	count, n := binary.Uvarint(body)
	if n <= 0 || count != uint64(i.mutable) || uint64(len(body)-n) < 8*count {
		return no("the globals are malformed")
	}
	body = body[n:]
	s := &Snapshot{globals: make([]uint64, count)}
	for k := range s.globals {
		s.globals[k] = binary.LittleEndian.Uint64(body[8*k:])
	}
	p, err := slots.DecodePatch(i.memory, body[8*count:], i.cfg.MemoryLimit)
	if err != nil {
		return no("the memory is malformed")
	}
	s.patch = *p
	return s, nil
}
