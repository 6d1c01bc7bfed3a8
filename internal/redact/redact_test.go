package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"
)

func of(t testing.TB, secrets ...string) *Set {
	t.Helper()
	var s *Set
	for _, x := range secrets {
		var err error
		if s, err = s.With([]byte(x)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// No form of a secret that the doc of Set names is left, wherever it stands.
func TestForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SliceOfN(rapid.Byte(), MinSecret, 40).Draw(t, "secret")
		if rapid.Bool().Draw(t, "text") {
			secret = []byte(rapid.StringMatching(`[a-zA-Z0-9 "<&\\/+=%é-]{6,30}`).Draw(t, "text"))
		}
		s, err := (*Set)(nil).With(secret)
		if err != nil {
			t.Fatal(err)
		}
		before := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "before")
		after := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "after")
		whole := append(append(bytes.Clone(before), secret...), after...)
		quoted, _ := json.Marshal(string(secret))
		list := make([]int, len(secret))
		for i, c := range secret {
			list[i] = int(c)
		}
		numbers, _ := cbor.Marshal(list)
		jsonList, _ := json.Marshal(list)
		for name, c := range map[string]struct{ text, form string }{
			"raw":            {string(whole), string(secret)},
			"hex":            {hex.EncodeToString(whole), hex.EncodeToString(secret)},
			"HEX":            {strings.ToUpper(hex.EncodeToString(whole)), strings.ToUpper(hex.EncodeToString(secret))},
			"JSON":           {string(quoted), string(quoted[1 : len(quoted)-1])},
			"query":          {"?a=" + url.QueryEscape(string(secret)), url.QueryEscape(string(secret))},
			"path":           {"/a/" + url.PathEscape(string(secret)), url.PathEscape(string(secret))},
			"Go":             {fmt.Sprintf("%q", secret), strings.Trim(fmt.Sprintf("%q", secret), `"`)},
			"decimal":        {fmt.Sprint(secret), strings.Trim(fmt.Sprint(secret), "[]")},
			"JSON's list":    {string(jsonList), strings.Trim(string(jsonList), "[]")},
			"numbers (CBOR)": {string(numbers), string(numbers[1:])},
		} {
			got := s.MaskText(c.text)
			if strings.Contains(got, c.form) || len(got) != len(c.text) {
				t.Fatalf("%s: %q is left in %q", name, c.form, got)
			}
		}
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			text := e.EncodeToString(whole)
			got := s.MaskText(text)
			// Only the digits at the ends, which have bits of what is beside it, may be left.
			first, last := (len(before)*8+5)/6, (len(before)+len(secret))*8/6
			if strings.Trim(got[first:last], string(rune(Mark))) != "" {
				t.Fatalf("base64 at %d: %q of %q", len(before), got, text)
			}
		}
	})
}

// It hides nothing else, and as much as a search for each would.
func TestMask(t *testing.T) {
	s := of(t, "swordfish", "fishermen", "swordfish and chips", "aaaaaa")
	for in, want := range map[string]string{
		"":                           "",
		"short":                      "short",
		"a swordfish":                "a *********",
		"swordfishermen":             "**************",
		"swordfish and chips!":       "*******************!",
		"swordfish and chip":         "********* and chip",
		"aaaaaaaaa":                  "*********",
		"Swordfish":                  "Swordfish",
		"sword fish":                 "sword fish",
		"c3dvcmRmaXNo":               "************",
		"xswordfis":                  "xswordfis",
		"x swordfish x swordfish x":  "x ********* x ********* x",
		"\x49swordfish\x00swordfish": "\x49*********\x00*********",
	} {
		if got := s.MaskText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if s.Finds(in) != (in != want) {
			t.Errorf("Finds(%q) is wrong", in)
		}
	}
	same := []byte("nothing to hide here")
	if got := s.Mask(same); &got[0] != &same[0] {
		t.Error("a copy of what has no secret")
	}
	var none *Set
	if got := none.Mask(same); &got[0] != &same[0] || none.MaskText("x") != "x" || none.Longest() != 0 || none.Secrets() != 0 {
		t.Error("no set does something")
	}
}

// A cut through a secret leaves nothing of it.
func TestCut(t *testing.T) {
	s := of(t, "correct horse battery staple")
	text := []byte("the password is correct horse battery staple, keep it")
	for n := range len(text) + 3 {
		got := s.Cut(text, n)
		want := s.Mask(text)[:min(n, len(text))]
		if !bytes.Equal(got, want) || bytes.Contains(got, []byte("cor")) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestLinesOfASecret(t *testing.T) {
	s := of(t, "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nZZZZZZZZZZZZZZZZ\nshort\n-----END KEY-----\n")
	if got := s.MaskText("line: MIIEvQIBADANBgkqhkiG9w0BAQ"); strings.Contains(got, "MII") {
		t.Error(got)
	}
	for _, text := range []string{"-----BEGIN KEY-----", "short"} {
		if got := s.MaskText(text); got != text {
			t.Error(got)
		}
	}
}

func TestBounds(t *testing.T) {
	var s *Set
	if _, err := s.With([]byte("12345")); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
	if _, err := s.With(make([]byte, MaxSecret+1)); !errors.Is(err, ErrMany) {
		t.Error(err)
	}
	many := make([][]byte, MaxSecrets+1)
	for i := range many {
		many[i] = fmt.Appendf(nil, "secret number %d", i)
	}
	if _, err := s.With(many...); !errors.Is(err, ErrMany) {
		t.Error(err)
	}
	s, err := s.With(many[:MaxSecrets]...)
	if err != nil || s.Secrets() != MaxSecrets {
		t.Fatal(err)
	}
	if again, err := s.With(many[0]); err != nil || again.Secrets() != MaxSecrets {
		t.Error(err)
	}
}

func FuzzMask(f *testing.F) {
	f.Add([]byte("swordfish"), []byte("a swordfish c3dvcmRmaXNo"))
	f.Fuzz(func(t *testing.T, secret, text []byte) {
		s, err := (*Set)(nil).With(secret)
		if err != nil {
			return
		}
		before := bytes.Clone(text)
		got := s.Mask(text)
		if len(got) != len(text) || !bytes.Equal(before, text) {
			t.Fatal("the text was changed, or its length")
		}
		if bytes.Contains(got, secret) && !bytes.Contains(secret, []byte{Mark}) {
			t.Fatalf("%q is left in %q", secret, got)
		}
	})
}

func BenchmarkMask(b *testing.B) {
	text := bytes.Repeat([]byte("some text of a log line, with numbers 12345 and eyJhbGciOiJIUzI1NiJ9. "), 15)[:1024]
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var list [][]byte
			for i := range n {
				list = append(list, fmt.Appendf(nil, "eyJhbGciOiJIUzI1NiJ9.%d.of a token", i))
			}
			s, err := (*Set)(nil).With(list...)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for range b.N {
				s.Mask(text)
			}
		})
	}
	b.Run("worst", func(b *testing.B) { // as many places as can be that look like the beginning of each of a thousand
		var list [][]byte
		for i := range 1000 {
			list = append(list, fmt.Appendf(nil, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%d", i+1000))
		}
		s, _ := (*Set)(nil).With(list...)
		worst := bytes.Repeat([]byte("a"), 1024)
		b.SetBytes(1024)
		for range b.N {
			s.Mask(worst)
		}
	})
}

func TestCutText(t *testing.T) {
	s := of(t, "swordfish and chips", "abcabcabd")
	for in, want := range map[string]string{
		"it is swordfish an":  "it is ************",
		"it is swor":          "it is ****",
		"it is swo":           "it is swo",
		"swordfish and chips": "*******************",
		"swordfish swordfi":   "swordfish *******",
		"xabcabcabcab":        "xabc********",
		"":                    "",
	} {
		if got := s.MaskCutText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
