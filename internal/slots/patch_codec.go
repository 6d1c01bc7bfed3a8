package slots

import (
	"encoding/binary"
	"errors"
)

// ErrCorrupt is returned for bytes that are no patch.
var ErrCorrupt = errors.New("slots: not a patch")

// Append writes the patch to dst: its size and its runs as one chunk, so that equal patches have
// equal bytes. It does not name its image.
func (p *Patch) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, p.size)
	if p.usual != nil {
		return p.usual.plain(dst, p)
	}
	for _, c := range p.chunks {
		dst = append(dst, c...)
	}
	return dst
}

// DecodePatch reads what Append has written, for a memory of that image which may have at most
// limit bytes. It fails with ErrCorrupt if the patch could not be applied; b must not change
// afterwards.
func DecodePatch(im *Image, b []byte, limit uint64) (*Patch, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size%WasmPage != 0 || size > min(limit, MaxMemory) || size < im.size {
		return nil, ErrCorrupt
	}
	runs := b[n:]
	left := size / word
	for rest := runs; len(rest) > 0; {
		same, n := binary.Uvarint(rest)
		if n <= 0 || same > left {
			return nil, ErrCorrupt
		}
		left -= same
		rest = rest[n:]
		other, n := binary.Uvarint(rest)
		if n <= 0 || other == 0 || other > left || other > uint64(len(rest)-n)/word {
			return nil, ErrCorrupt
		}
		left -= other
		rest = rest[uint64(n)+other*word:]
	}
	return &Patch{image: im, size: size, chunks: [][]byte{runs}}, nil
}
