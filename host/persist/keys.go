package persist

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// The keys of the index. An ID and a tag have no zero byte.
const (
	keyEvent    = 'e' // id 0 number: offset, time, entry
	keySnapshot = 's' // id 0 number: time, entry
	keyTag      = 't' // tag 0 offset: number, id
	keyMeta     = 'm' // id: meta
	keySweep    = 'x' // id: some of its events are deleted, and still there
	keyApplied  = 'p' // how much of the log is in the index
)

func keyOf(kind byte, of string, n uint64) []byte {
	k := append(make([]byte, 0, len(of)+10), kind)
	return binary.BigEndian.AppendUint64(append(append(k, of...), 0), n)
}

// rangeOf are the keys of all numbers from one on.
func rangeOf(kind byte, of string, from uint64) (lower, upper []byte) {
	upper = append(append(make([]byte, 0, len(of)+2), kind), of...)
	return keyOf(kind, of, from), append(upper, 1)
}

func idKey(kind byte, id string) []byte { return append([]byte{kind}, id...) }

// meta is what the index knows of an ID.
type meta struct {
	last    uint64 // number of the last event that was ever stored
	deleted uint64 // events up to it are deleted
	swept   uint64 // and gone
	bytes   int64
}

func (m *meta) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, m.last)
	b = binary.BigEndian.AppendUint64(b, m.deleted)
	b = binary.BigEndian.AppendUint64(b, m.swept)
	return binary.BigEndian.AppendUint64(b, uint64(m.bytes))
}

// errIndex is the error of an index with other bytes than were written.
var errIndex = errors.New("the index of events is damaged")

func decodeMeta(b []byte) (m meta, err error) {
	if len(b) != 32 {
		return m, fmt.Errorf("%w: what it knows of an ID has %d bytes", errIndex, len(b))
	}
	m.last, m.deleted, m.swept = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
	if m.bytes = int64(binary.BigEndian.Uint64(b[24:])); m.bytes < 0 || m.swept > m.deleted {
		return m, fmt.Errorf("%w: what it knows of an ID cannot be", errIndex)
	}
	return m, nil
}

// lock encrypts values, if there is a key. The keys of the index are not encrypted: IDs, numbers and tags.
type lock struct{ aead cipher.AEAD }

func newLock(key []byte) (l lock, err error) {
	if key == nil {
		return l, nil
	}
	block, err := aes.NewCipher(key)
	if err == nil {
		l.aead, err = cipher.NewGCM(block)
	}
	return l, err
}

// seal is a value as it is in the index.
func (l lock) seal(key, value []byte) []byte {
	if l.aead == nil {
		return value
	}
	nonce := make([]byte, l.aead.NonceSize(), l.aead.NonceSize()+len(value)+l.aead.Overhead())
	_, _ = rand.Read(nonce)
	return l.aead.Seal(nonce, nonce, value, key)
}

// open is the inverse of seal; what it returns is the caller's.
func (l lock) open(key, value []byte) ([]byte, error) {
	if l.aead == nil {
		return bytes.Clone(value), nil
	}
	n := l.aead.NonceSize()
	if len(value) < n {
		return nil, fmt.Errorf("%w: a value of %d bytes", errIndex, len(value))
	}
	b, err := l.aead.Open(nil, value[:n], value[n:], key)
	if err != nil {
		return nil, fmt.Errorf("%w: a value cannot be decrypted", errIndex)
	}
	return b, nil
}
