package printable

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":      "plain\ttext\n",
		"Grüße, 世界 👩\u200d🚀": "Grüße, 世界 👩\u200d🚀",
		"\x1b[2J":            "\uFFFD[2J",
		"a\rb\x00\x7f\x08":   "a\uFFFDb\uFFFD\uFFFD\uFFFD",
		"\u009b31m":          "\uFFFD31m",
		"a\u202eb\u2066c":    "a\uFFFDb\uFFFDc",
		"\u2028\ufeff":       "\uFFFD\uFFFD",
		"\U000e0041":         "\uFFFD",
		"\xff\xc3":           "\uFFFD",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestLineAndClip(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		line string
		clip string
	}{
		{"abc\ndef", 10, "abc", "abc\ndef"}, {"abcdef", 5, "ab...", "abcde"}, {"ää", 3, "...", "ä"}, {"äää", 5, "ä...", "ää"}, {"", 0, "", ""}, {"ab", 0, "...", ""},
		{"\xff\xff\xff", 2, "...", "\xff\xff"}, {"a\tb", 9, "a b", "a\tb"},
	} {
		if got := Line(c.s, c.most); got != c.line {
			t.Errorf("line of %q: %q, want %q", c.s, got, c.line)
		}
		if got := Clip(c.s, c.most); got != c.clip {
			t.Errorf("clip of %q: %q, want %q", c.s, got, c.clip)
		}
	}
}

// Hostile reports whether a byte or character of a text reaches a terminal as something
// other than text.
func hostile(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return r == 0x7f || r < ' ' && r != '\n' && r != '\t' || r >= 0x80 && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r)
	})
}

func FuzzText(f *testing.F) {
	f.Add("\x1b]0;x\a\u202e", 3)
	f.Fuzz(func(t *testing.T, s string, at int) {
		if out := Text(s); hostile(out) || !utf8.ValidString(out) {
			t.Errorf("%q: %q", s, out)
		}
		if out := Line(s, 20); hostile(out) || strings.Contains(out, "\n") {
			t.Errorf("%q: %q", s, out)
		}
		// Written in two parts it is the same, but for bytes that are no text.
		var b bytes.Buffer
		w := Writer(&b)
		at = min(max(at, 0), len(s))
		_, _ = w.Write([]byte(s[:at]))
		_, _ = w.Write([]byte(s[at:]))
		if hostile(b.String()) || utf8.ValidString(s) && b.String() != Text(s) {
			t.Errorf("%q at %d: %q, want %q", s, at, b.String(), Text(s))
		}
		text, err := json.Marshal(s)
		if err != nil {
			return
		}
		out := JSON(text)
		var back string
		if err := json.Unmarshal(out, &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") && utf8.ValidString(s) || hostile(string(out)) {
			t.Errorf("%q: %s, %v", s, out, err)
		}
	})
}
