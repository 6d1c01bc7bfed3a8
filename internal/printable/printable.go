// Package printable makes texts of guests, modules and manifests safe to show.
//
// None of them is trusted with a terminal: control characters move cursors, change
// titles and hide lines, and bidirectional ones make a text read as another. Whoever
// prints what is not the program's own uses this package, and nothing else.
package printable

import (
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Replacement stands where a character was that is not shown.
const Replacement = '\uFFFD'

// ok reports whether a character can be shown: no control character (C0, DEL, C1), no
// character of a format that is not seen (bidirectional controls, tags, marks of byte
// order), no line or paragraph separator. The joiners that scripts and emoji need are.
func ok(r rune) bool {
	switch {
	case r >= ' ' && r < 0x7f:
		return true
	case r == '\u200c' || r == '\u200d': // zero width (non-)joiner
		return true
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cs):
		return false
	}
	return true
}

// Text is s with what cannot be shown replaced. Line ends and tabs stay.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || ok(r) {
			return r
		}
		return Replacement
	}, strings.ToValidUTF8(s, string(Replacement)))
}

// Line is the first line of s, at most most bytes long, with "..." where it was cut off. Tabs
// become blanks.
func Line(s string, most int) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > most {
		s = Clip(s, max(most-3, 0)) + "..."
	}
	return strings.ReplaceAll(Text(s), "\t", " ")
}

// Clip is at most most bytes of s, without a half character at its end.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = s[:max(most, 0)]
	for i := 1; i <= utf8.UTFMax && i <= len(s); i++ {
		if c := s[len(s)-i]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}

const hex = "0123456789abcdef"

// JSON is a JSON text in which what cannot be shown is escaped. Such characters occur
// in strings alone, so the value is the same.
func JSON(text []byte) []byte {
	clean := true
	for i := 0; i < len(text) && clean; {
		r, n := utf8.DecodeRune(text[i:])
		clean = ok(r) || r == '\n' || r == '\t' || r == '\r'
		i += n
	}
	if clean {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	unit := func(u rune) {
		out = append(out, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case ok(r) || r == '\n' || r == '\t' || r == '\r':
			out = append(out, text[i:i+n]...)
		case r > 0xffff:
			r -= 0x10000
			unit(0xd800 + r>>10)
			unit(0xdc00 + r&0x3ff)
		default:
			unit(r)
		}
		i += n
	}
	return out
}

// Writer is a writer of texts for people: what cannot be shown is replaced, whoever
// wrote it. It is safe for concurrent use.
func Writer(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	mu   sync.Mutex
	w    io.Writer
	half []byte // the beginning of a character
}

func (x *writer) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	whole := p
	if len(x.half) > 0 {
		whole = append(x.half, p...)
		x.half = nil
	}
	end := len(whole)
	for i := 1; i < utf8.UTFMax && i <= len(whole); i++ {
		if c := whole[len(whole)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(whole[len(whole)-i:]) {
				end = len(whole) - i
			}
			break
		}
	}
	x.half = append(x.half, whole[end:]...)
	if _, err := io.WriteString(x.w, Text(string(whole[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
