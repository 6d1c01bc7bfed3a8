package wal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// The body of a batch is encrypted with a key of its file's, which is derived from the log's key and the file's random
// salt (HKDF, RFC 5869, with SHA-256). The nonce is the position: in one file it occurs once. So two copies of a
// log that go different ways never use a key and a nonce twice. The header is authenticated with it.

const (
	saltSize = 32
	keySize  = 32
)

// cipherOf is that of a file.
func cipherOf(key []byte, salt []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("%w: it has %d bytes instead of %d", ErrKey, len(key), keySize)
	}
	derived, err := hkdf.Key(sha256.New, key, salt, "wasmactors log file", keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func nonceOf(at Position) (n [12]byte) {
	binary.LittleEndian.PutUint64(n[:], uint64(at))
	return n
}

func sealBody(to []byte, box cipher.AEAD, head []byte, at Position, body []byte) []byte {
	nonce := nonceOf(at)
	return box.Seal(to, nonce[:], body, head)
}

// openBody decrypts in place.
func openBody(box cipher.AEAD, head []byte, at Position, body []byte) ([]byte, error) {
	nonce := nonceOf(at)
	return box.Open(body[:0], nonce[:], body, head)
}
