package cache

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"sync"
)

const magic = "WACACHE3"

const headerSize = len(magic) + 8 + sha256.Size

// chunk is what is hashed at a stretch. Machine code of a Go guest is 8 MB and
// is checked at every start, so chunks are hashed by all processors.
const chunk = 1 << 20

// seal puts the header before the body: magic, length, authentication code.
func (s *Secret) seal(name Key, part string, body []byte) []byte {
	mac := s.mac(name, part, body)
	file := make([]byte, 0, headerSize+len(body))
	file = append(file, magic...)
	file = binary.LittleEndian.AppendUint64(file, uint64(len(body)))
	file = append(file, mac[:]...)
	return append(file, body...)
}

// unseal checks a file and returns its body. What it returns are the bytes that
// were checked: whoever uses them must not read the file again.
func (s *Secret) unseal(name Key, part string, file []byte) ([]byte, bool) {
	if len(file) < headerSize || string(file[:len(magic)]) != magic {
		return nil, false
	}
	body := file[headerSize:]
	if binary.LittleEndian.Uint64(file[len(magic):]) != uint64(len(body)) {
		return nil, false
	}
	mac := s.mac(name, part, body)
	return body, hmac.Equal(mac[:], file[headerSize-len(mac):headerSize])
}

// mac is the HMAC-SHA256 of the entry's name, the part's name, the length and the
// hashes of the body's chunks, so that a file in the wrong place is no part.
func (s *Secret) mac(name Key, part string, body []byte) Key {
	sums := make([]byte, (len(body)+chunk-1)/chunk*sha256.Size)
	each((len(body)+chunk-1)/chunk, func(i int) {
		sum := sha256.Sum256(body[i*chunk : min(len(body), (i+1)*chunk)])
		copy(sums[i*sha256.Size:], sum[:])
	})
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(body)))
	return s.hash("part", name[:], []byte(part), n[:], sums)
}

// each calls f with 0 to n-1, on as many processors as there are.
func each(n int, f func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}
