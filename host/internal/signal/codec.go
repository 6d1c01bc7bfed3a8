package signal

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// The encoding of a signal: its kind, a byte of flags, its code, and the two refs and the correlation as unsigned varints. If flagPath is
// set, the length of its path follows as another varint, and then the path. The rest is its reason. There is one encoding of each signal,
// and each decoded signal is a whole one.

// MaxSize bounds an encoded signal, in bytes.
const MaxSize = 3 + 3*binary.MaxVarintLen64 + binary.MaxVarintLen16 + MaxPath + MaxReason

const (
	flagOnce = 1
	flagPath = 2 // nodes of earlier releases do not know it
)

// ErrMalformed is what Decode says of anything that Append does not write.
var ErrMalformed = errors.New("signal: malformed")

// Append appends the encoding of s. A reason that is too long, or no text, is cut; a path that is so is left out, and Err is not
// encoded.
func Append(dst []byte, s *Signal) []byte {
	flags := byte(0)
	if s.Once {
		flags = flagOnce
	}
	path := s.Path != "" && len(s.Path) <= MaxPath && clip(s.Path, MaxPath) == s.Path
	if path {
		flags |= flagPath
	}
	dst = append(dst, byte(s.Kind), flags, byte(s.Code))
	dst = binary.AppendUvarint(dst, uint64(s.From))
	dst = binary.AppendUvarint(dst, uint64(s.Other))
	dst = binary.AppendUvarint(dst, s.Correlation)
	if path {
		dst = append(binary.AppendUvarint(dst, uint64(len(s.Path))), s.Path...)
	}
	return append(dst, Clip(s.Reason)...)
}

// Clip is the part of a text that may be a reason.
func Clip(text string) string { return clip(text, MaxReason) }

func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	for n := 0; n < len(text); {
		r, size := utf8.DecodeRuneInString(text[n:])
		if r == utf8.RuneError && size <= 1 {
			return text[:n]
		}
		n += size
	}
	return text
}

// Decode is the inverse of Append. The error is ErrMalformed.
func Decode(b []byte) (Signal, error) {
	if len(b) < 3 || len(b) > MaxSize {
		return Signal{}, ErrMalformed
	}
	s := Signal{Kind: Kind(b[0]), Once: b[1]&flagOnce != 0, Code: Code(b[2])}
	if b[1] > flagOnce|flagPath {
		return Signal{}, ErrMalformed
	}
	rest := b[3:]
	for _, into := range []*uint64{(*uint64)(&s.From), (*uint64)(&s.Other), &s.Correlation} {
		v, n := binary.Uvarint(rest)
		if n <= 0 || n > 1 && rest[n-1] == 0 { // a longer encoding of the same number
			return Signal{}, ErrMalformed
		}
		*into, rest = v, rest[n:]
	}
	if b[1]&flagPath != 0 {
		var ok bool
		if s.Path, rest, ok = readPath(rest); !ok {
			return Signal{}, ErrMalformed
		}
	}
	s.Reason = string(rest)
	if Clip(s.Reason) != s.Reason || !s.whole() {
		return Signal{}, ErrMalformed
	}
	return s, nil
}

// readPath reads a path that is not empty, and returns what follows it.
func readPath(b []byte) (path string, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 || size == 0 || size > MaxPath || size > uint64(len(b)-n) {
		return "", nil, false
	}
	path = string(b[n : n+int(size)])
	return path, b[n+int(size):], clip(path, MaxPath) == path
}

// fields are those that a kind has.
type fields struct{ once, code, other, correlation, reason, path bool }

var has = [kinds]fields{
	Watch:      {once: true},
	Terminated: {reason: true, path: true},
	Unanswered: {code: true, correlation: true, reason: true, path: true},
	Delegate:   {other: true, correlation: true},
	Observe:    {correlation: true},
	Stop:       {reason: true},
	Kill:       {reason: true},
}

// whole reports whether a signal has the fields of its kind, and no others. What is about an actor or an ask names it; only
// the target of an ask to a path may be unknown, and abandon, stop and kill have no sender.
func (s *Signal) whole() bool {
	if s.Kind == 0 || s.Kind >= kinds {
		return false
	}
	f := has[s.Kind]
	switch {
	case s.Once && !f.once, s.Code != 0 && !f.code, s.Correlation != 0 && !f.correlation, s.Reason != "" && !f.reason, s.Path != "" && !f.path:
		return false
	case (s.Other != 0) != f.other:
		return false
	}
	switch s.Kind {
	case Unanswered:
		if _, failed := s.Code.FailureKind(); s.Path != "" && (!failed || s.From == 0) {
			return false
		}
		return s.Correlation != 0
	case Abandoned, Stop, Kill:
		return s.From == 0
	case Delegate:
		return s.From != 0 && s.Correlation != 0
	}
	return s.From != 0
}
