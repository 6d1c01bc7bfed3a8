package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/wasmactors/wasmactors/internal/slots"
)

// A snapshot as bytes:
//
//	"waSS"       4 bytes
//	version      1 byte
//	module       32 bytes, SHA-256, and so are the next two: see identity
//	environment  32 bytes
//	frozen       32 bytes
//	globals      varint, then 8 bytes each, little endian
//	patch        the rest but four bytes, see slots.Patch.Append
//	sum          4 bytes, CRC-32C over all before it, little endian
//
// The sum detects accidental damage only. Snapshots that are stored where others can write
// should be authenticated; a forged one can do what a guest can do, and no more.
//
// The version goes up with every change of the format, and other versions are refused by their number. Version 1, which was
// never in a release, had the key of the disk cache in place of the identity. testdata/saved has one of each version.
const (
	snapshotMagic   = "waSS"
	snapshotVersion = 2
	snapshotHead    = len(snapshotMagic) + 1 + identityBytes
)

// ErrSnapshot is wrapped by errors that say why bytes are no snapshot of an image.
var ErrSnapshot = errors.New("runtime: not a snapshot of this image")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot writes s, a snapshot of this image, to dst. Equal states have equal
// bytes. It fails with ErrNotSaved if the image was closed.
func AppendSnapshot(dst []byte, i *Image, s *Snapshot) ([]byte, error) {
	id, err := i.identify()
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrNotSaved, err)
	}
	from := len(dst)
	dst = append(dst, snapshotMagic...)
	dst = append(dst, snapshotVersion)
	dst = id.append(dst)
	dst = binary.AppendUvarint(dst, uint64(len(s.globals)))
	for _, g := range s.globals {
		dst = binary.LittleEndian.AppendUint64(dst, g)
	}
	dst = s.patch.Append(dst)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli)), nil
}

// DecodeSnapshot reads what AppendSnapshot has written for an image of the same module, environment and frozen memory, for
// an instance whose memory may have at most limit bytes, and no more than the image allows; 0: no less. It fails
// with ErrSnapshot, which says why. b must not change afterwards.
func DecodeSnapshot(i *Image, b []byte, limit uint64) (*Snapshot, error) {
	no := func(why string, args ...any) (*Snapshot, error) {
		return nil, fmt.Errorf("%w (%s): %s", ErrSnapshot, i.cfg.Name, fmt.Sprintf(why, args...))
	}
	if why := CannotSave(i); why != "" {
		return no("%s", why)
	}
	if len(b) <= len(snapshotMagic) || string(b[:len(snapshotMagic)]) != snapshotMagic {
		return no("%d bytes that do not begin like one", len(b))
	}
	if v := b[len(snapshotMagic)]; v != snapshotVersion {
		return no("version %d, this host reads version %d", v, snapshotVersion)
	}
	if len(b) < snapshotHead+4 {
		return no("%d bytes are too few", len(b))
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return no("the checksum is wrong")
	}
	id, err := i.identify()
	if err != nil {
		return no("%v", err)
	}
	if why := id.differs(readIdentity(body[len(snapshotMagic)+1:])); why != "" {
		return no("%s", why)
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
	p, err := slots.DecodePatch(i.memory, body[8*count:], slots.MaxMemory)
	if err != nil {
		return no("the memory is malformed")
	}
	if limit == 0 || limit > i.cfg.MemoryLimit {
		limit = i.cfg.MemoryLimit
	}
	if size := p.Size(); size > limit {
		return no("its memory has %d KiB, the limit is %d KiB", size>>10, limit>>10)
	}
	s.patch = *p
	return s, nil
}
