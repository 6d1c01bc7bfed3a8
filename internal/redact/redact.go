// Package redact finds secrets in what is shown to others, and hides them.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
)

// Bounds of what can be looked for.
const (
	MinSecret  = 6        // bytes: shorter ones would be found everywhere
	MaxSecret  = 64 << 10 // bytes of one
	MaxSecrets = 1000
	MaxBytes   = 256 << 10 // of all together
	minLine    = 12        // bytes of a line of a secret with several
)

// Errors of With.
var (
	ErrShort = fmt.Errorf("a secret must have at least %d bytes: a shorter one would match unrelated texts", MinSecret)
	ErrMany  = fmt.Errorf("more than %d secrets, or one of more than %d bytes, or more than %d bytes in all", MaxSecrets, MaxSecret, MaxBytes)
)

// Set is secrets to be hidden. It is immutable and for any goroutine; nil has none.
//
// A secret is found as it is, and as base64 (either alphabet, wherever in an encoded text it
// begins), hexadecimal, JSON, percent-encoded, a list of decimal numbers, and as a list of
// numbers in CBOR. Of one with several lines each longer line is looked for, too. What has been
// changed in any other way is not found.
type Set struct {
	secrets [][]byte
	bytes   int
	longest int
	filter  [1 << 10]uint64      // 64 Ki bits, by the hash of a pattern's first bytes
	by      map[uint64][]pattern // sorted, by their first bytes
}

// pattern is a form of a secret; parent is the longest other one that it begins with, -1 for
// none.
type pattern struct {
	text   []byte
	parent int
}

const head = MinSecret // bytes that a pattern is looked up by

// With is the set with more secrets.
func (s *Set) With(secrets ...[]byte) (*Set, error) {
	n := &Set{by: map[uint64][]pattern{}}
	if s != nil {
		n.secrets = slices.Clone(s.secrets)
	}
	for _, x := range secrets {
		if len(x) < MinSecret {
			return nil, ErrShort
		}
		if !slices.ContainsFunc(n.secrets, func(y []byte) bool { return bytes.Equal(x, y) }) {
			n.secrets = append(n.secrets, bytes.Clone(x))
		}
	}
	for _, x := range n.secrets {
		if n.bytes += len(x); len(x) > MaxSecret || n.bytes > MaxBytes || len(n.secrets) > MaxSecrets {
			return nil, ErrMany
		}
		n.addAll(x)
		lines := bytes.FieldsFunc(x, func(r rune) bool { return r == '\n' || r == '\r' })
		for _, line := range lines {
			if len(lines) > 1 && len(line) >= minLine && !bytes.HasPrefix(line, []byte("-----")) {
				n.addAll(line)
			}
		}
	}
	for k, list := range n.by {
		slices.SortFunc(list, func(a, b pattern) int { return bytes.Compare(a.text, b.text) })
		list = slices.CompactFunc(list, func(a, b pattern) bool { return bytes.Equal(a.text, b.text) })
		for i := range list {
			parent := i - 1
			for parent >= 0 && !bytes.HasPrefix(list[i].text, list[parent].text) {
				parent = list[parent].parent
			}
			list[i].parent = parent
		}
		n.by[k] = list
	}
	return n, nil
}

// addAll adds all forms of a secret.
func (s *Set) addAll(x []byte) {
	s.add(x)
	s.add([]byte(hex.EncodeToString(x)))
	s.add([]byte(strings.ToUpper(hex.EncodeToString(x))))
	for shift := range 3 {
		// What stands before the secret in the encoded text has shift bytes modulo 3; digits
		// that have bits of what stands before or behind it are left out.
		padded := append(make([]byte, shift), x...)
		first, last := (shift*8+5)/6, len(padded)*8/6
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			s.add([]byte(e.EncodeToString(padded))[first:last])
		}
	}
	for _, html := range []bool{false, true} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(string(x)) == nil {
			s.add(bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(b.Bytes()), []byte{'"'}), []byte{'"'}))
		}
	}
	quoted := strconv.Quote(string(x))
	s.add([]byte(quoted[1 : len(quoted)-1]))
	s.add([]byte(url.QueryEscape(string(x))))
	s.add([]byte(url.PathEscape(string(x))))
	for _, between := range []string{" ", ", ", ","} {
		var b []byte
		for i, c := range x {
			if i > 0 {
				b = append(b, between...)
			}
			b = strconv.AppendUint(b, uint64(c), 10)
		}
		s.add(b)
	}
	var numbers []byte
	for _, c := range x {
		numbers = abi.AppendUint(numbers, uint64(c))
	}
	s.add(numbers)
}

func (s *Set) add(text []byte) {
	if len(text) < head {
		return
	}
	k := key(text)
	s.by[k] = append(s.by[k], pattern{text: bytes.Clone(text)})
	h := hash(k)
	s.filter[h>>6] |= 1 << (h & 63)
	s.longest = max(s.longest, len(text))
}

// match is the length of the longest pattern that a text begins with, 0 for none: the last
// that is not behind the text in their order, or one that it begins with.
func (s *Set) match(text []byte, k uint64) int {
	list := s.by[k]
	i, found := slices.BinarySearchFunc(list, text, func(p pattern, t []byte) int { return bytes.Compare(p.text, t) })
	if !found {
		i--
	}
	for ; i >= 0; i = list[i].parent {
		if bytes.HasPrefix(text, list[i].text) {
			return len(list[i].text)
		}
	}
	return 0
}

func key(b []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<32
}

func hash(k uint64) uint64 { return k * 0x9E3779B97F4A7C15 >> 48 }

// Secrets is how many there are.
func (s *Set) Secrets() int {
	if s == nil {
		return 0
	}
	return len(s.secrets)
}

// Longest is the length of the longest form of a secret, in bytes: what may be needed behind a
// cut to find one that it goes through.
func (s *Set) Longest() int {
	if s == nil {
		return 0
	}
	return s.longest
}

// Mark is what stands in the place of each byte of a secret. It keeps lengths, so that what is
// encoded stays what it is.
const Mark = '*'

// Mask is b with all secrets hidden: b itself if there are none, else a copy of its length.
func (s *Set) Mask(b []byte) []byte {
	if s == nil {
		return b
	}
	out := b
	for i, end := 0, 0; i+head <= len(b); i++ {
		k := key(b[i:])
		h := hash(k)
		if s.filter[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		n := s.match(b[i:], k)
		if n == 0 {
			continue
		}
		if &out[0] == &b[0] {
			out = bytes.Clone(b)
		}
		for j := max(i, end); j < i+n; j++ {
			out[j] = Mark
		}
		end = max(end, i+n)
	}
	return out
}

// MaskText is Mask for a text.
func (s *Set) MaskText(t string) string {
	if s == nil || len(t) < head {
		return t
	}
	in := []byte(t)
	if out := s.Mask(in); &out[0] != &in[0] {
		return string(out)
	}
	return t
}

// Cut is the first n bytes of Mask(b), without looking at more of it than that needs.
func (s *Set) Cut(b []byte, n int) []byte {
	if n >= len(b) {
		return s.Mask(b)
	}
	if s == nil {
		return b[:n]
	}
	return s.Mask(b[:min(len(b), n+s.longest)])[:n]
}

// Finds reports whether there is a secret in a text.
func (s *Set) Finds(t string) bool { return s.MaskText(t) != t }

// minEnd is how many bytes of a secret at the end of a text that was cut are taken for its
// beginning.
const minEnd = 4

// MaskCutText is MaskText for a text that may have been cut: what stands at its end and is how a
// secret begins is hidden, too.
func (s *Set) MaskCutText(t string) string {
	t = s.MaskText(t)
	if s == nil {
		return t
	}
	for _, secret := range s.secrets {
		end := t[len(t)-min(len(t), len(secret)-1):]
		for len(end) >= minEnd {
			at := strings.Index(end, string(secret[:minEnd]))
			if at < 0 {
				break
			}
			if end = end[at:]; bytes.HasPrefix(secret, []byte(end)) {
				return t[:len(t)-len(end)] + strings.Repeat(string(rune(Mark)), len(end))
			}
			end = end[1:]
		}
	}
	return t
}
