package journal

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
)

// places are where the list of IDs goes on. A page may end at an ID that is not granted, whose path is for nobody to see: then
// the place is sealed, with a key of this process.
type places struct {
	rand func([]byte)
	aead cipher.AEAD
}

// sealedPlace is what a sealed place begins with; no path does.
const sealedPlace = "~"

func newPlaces(rand func([]byte)) places {
	key := make([]byte, 32)
	rand(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // a key of 32 bytes
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES
	}
	return places{rand, aead}
}

// hide seals a path.
func (p places) hide(path string) string {
	nonce := make([]byte, p.aead.NonceSize())
	p.rand(nonce)
	return sealedPlace + base64.RawURLEncoding.EncodeToString(p.aead.Seal(nonce, nonce, []byte(path), nil))
}

// read is the path of a place; false: it is none.
func (p places) read(place string) (path string, ok bool) {
	sealed, hidden := strings.CutPrefix(place, sealedPlace)
	if !hidden {
		return place, len(place) <= abi.MaxPath
	}
	if len(sealed) > 2*abi.MaxPath+64 {
		return "", false
	}
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	n := p.aead.NonceSize()
	if err != nil || len(b) < n {
		return "", false
	}
	b, err = p.aead.Open(nil, b[:n], b[n:], nil)
	return string(b), err == nil
}
