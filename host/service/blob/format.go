package blob

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
)

// Object describes an object.
type Object struct {
	Name     string
	Size     int64             // bytes
	SHA256   [sha256.Size]byte // of its bytes
	Type     string            // as its writer states, such as image/png; "" if not stated
	Modified time.Time
}

// Bounds of objects.
const (
	MaxName = 1024 // bytes of a name, in UTF-8
	MaxType = 255  // bytes of a type
)

// CheckName says what is wrong with the name of an object: it has 1 to [MaxName] bytes of UTF-8
// without zero bytes. Every such name is allowed, even ../x: it is a name, not a path.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is missing")
	case len(name) > MaxName:
		return fmt.Errorf("a name of %d bytes, at most %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return errors.New("the name is not UTF-8")
	}
	for i := range len(name) {
		if name[i] == 0 {
			return errors.New("the name has a zero byte")
		}
	}
	return nil
}

// fileName is the name of an object's file.
func fileName(name string) string {
	h := sha256.Sum256([]byte(name))
	return hex.EncodeToString(h[:])
}

// A file is the object's bytes, then its description as an array, then the length of that array
// in 4 bytes, little-endian, and the magic. So ranges are ranges of the file, and one rename
// publishes both.
const (
	magic     = "wblob1\r\n"
	tailSize  = 4 + len(magic)
	mostAbout = MaxName + MaxType + 128
)

// appendAbout appends the description that follows the bytes of an object.
func appendAbout(dst []byte, o *Object) []byte {
	w := abi.NewWriter(nil)
	w.Array(5)
	w.Text(o.Name)
	w.Int(o.Size)
	w.ByteString(o.SHA256[:])
	w.Text(o.Type)
	w.Int(o.Modified.UnixNano())
	about := w.Bytes()
	dst = append(dst, about...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(about)))
	return append(dst, magic...)
}

var errFormat = errors.New("blob: no object, or a damaged one")

// readAbout reads the description behind the bytes of an object, in a file of size bytes.
func readAbout(r io.ReaderAt, size int64) (o Object, err error) {
	var tail [tailSize]byte
	if size < int64(len(tail)) {
		return Object{}, errFormat
	}
	if _, err := r.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return Object{}, err
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	if string(tail[4:]) != magic || n > mostAbout || n > size-int64(len(tail)) {
		return Object{}, errFormat
	}
	about := make([]byte, n)
	if _, err := r.ReadAt(about, size-int64(len(tail))-n); err != nil {
		return Object{}, err
	}
	if o, err = decodeAbout(about); err != nil {
		return Object{}, err
	}
	if o.Size != size-int64(len(tail))-n {
		return Object{}, errFormat
	}
	return o, nil
}

func decodeAbout(b []byte) (o Object, err error) {
	r := abi.NewReader(b)
	if r.Array() != 5 {
		return Object{}, errFormat
	}
	o.Name = r.Text()
	o.Size = r.Int()
	hash := r.ByteString()
	o.Type = r.Text()
	o.Modified = time.Unix(0, r.Int()).UTC()
	if r.Done() != nil || len(hash) != len(o.SHA256) || o.Size < 0 || len(o.Type) > MaxType || CheckName(o.Name) != nil {
		return Object{}, errFormat
	}
	copy(o.SHA256[:], hash)
	return o, nil
}

// mostSize is the largest size of any object.
const mostSize = math.MaxInt64 / 4
