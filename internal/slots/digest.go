package slots

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// digestUnit is the unit that a digest leaves out where it is zero, in bytes. Every system's page has as many or a
// multiple of that, so the digest does not depend on the system.
const digestUnit = 4096

// Digest identifies the image's size and contents: SHA-256, the same on every system. It reads all of the image; the
// caller sees to it that nobody closes the image meanwhile.
func (im *Image) Digest() [sha256.Size]byte {
	h := sha256.New()
	var head [8]byte
	h.Write(binary.LittleEndian.AppendUint64(head[:0], im.size))
	zero := make([]byte, digestUnit)
	for i := range im.index {
		page := im.page(i)
		for at := 0; at < len(page); at += digestUnit {
			if unit := page[at : at+digestUnit]; !bytes.Equal(unit, zero) {
				h.Write(binary.LittleEndian.AppendUint64(head[:0], uint64(i*grain+at)))
				h.Write(unit)
			}
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
