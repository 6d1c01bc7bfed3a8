package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

const magic = "WACACHE2"

const headerSize = len(magic) + sha256.Size + 8 + sha256.Size

// seal puts the header before the body: magic, name, length, checksum. The name
// is the hash of key and part, so that a file in the wrong place is no part.
func seal(k Key, part string, body []byte) []byte {
	name, sum := KeyOf(k[:], []byte(part)), sha256.Sum256(body)
	file := make([]byte, 0, headerSize+len(body))
	file = append(file, magic...)
	file = append(file, name[:]...)
	file = binary.LittleEndian.AppendUint64(file, uint64(len(body)))
	file = append(file, sum[:]...)
	return append(file, body...)
}

// unseal checks a file and returns its body.
func unseal(k Key, part string, file []byte) ([]byte, bool) {
	if len(file) < headerSize || string(file[:len(magic)]) != magic {
		return nil, false
	}
	name := KeyOf(k[:], []byte(part))
	head := file[len(magic):headerSize]
	body := file[headerSize:]
	if !bytes.Equal(head[:len(name)], name[:]) || binary.LittleEndian.Uint64(head[len(name):]) != uint64(len(body)) {
		return nil, false
	}
	sum := sha256.Sum256(body)
	return body, bytes.Equal(sum[:], head[len(name)+8:])
}
