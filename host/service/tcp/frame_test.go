package tcp

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func framings() []Framing {
	return []Framing{
		{Kind: Lines}, {Kind: Lines, Delimiter: []byte("\r\n")}, {Kind: Lines, Delimiter: []byte{0}, Limit: 100},
		{Kind: Length, Size: 1}, {Kind: Length, Size: 2}, {Kind: Length, Size: 2, Little: true}, {Kind: Length, Size: 4}, {Kind: Length, Size: 4, Little: true},
		{Kind: Length}, {Kind: Fixed, Size: 7},
	}
}

func TestFramesOnTheWire(t *testing.T) {
	for _, c := range []struct {
		f    Framing
		text string
		want string
	}{
		{Framing{Kind: Lines}, "ab", "ab\n"}, {Framing{Kind: Lines, Delimiter: []byte("--")}, "a-b", "a-b--"},
		{Framing{Kind: Length, Size: 1}, "ab", "\x02ab"}, {Framing{Kind: Length, Size: 2}, "ab", "\x00\x02ab"},
		{Framing{Kind: Length, Size: 2, Little: true}, "ab", "\x02\x00ab"}, {Framing{Kind: Length, Size: 4}, "", "\x00\x00\x00\x00"},
		{Framing{Kind: Length, Size: 4, Little: true}, "ab", "\x02\x00\x00\x00ab"},
		{Framing{Kind: Length}, strings.Repeat("x", 300), "\xac\x02" + strings.Repeat("x", 300)}, {Framing{Kind: Fixed, Size: 2}, "ab", "ab"},
	} {
		if err := c.f.check(); err != nil {
			t.Fatal(err)
		}
		got, err := c.f.wrap(nil, []byte(c.text))
		if err != nil || string(got) != c.want {
			t.Errorf("%+v: %q %v, want %q", c.f, got, err, c.want)
		}
	}
}

func TestFrameErrors(t *testing.T) {
	for _, f := range []Framing{
		{Kind: "x"}, {Size: 3}, {Kind: Lines, Size: 1}, {Kind: Lines, Delimiter: []byte("123456789")}, {Kind: Length, Size: 3}, {Kind: Fixed}, {Kind: Fixed, Size: MaxMessage + 1},
		{Kind: Length, Limit: MaxMessage + 1}, {Kind: Length, Limit: -1}, {Kind: Lines, Little: true}, {Kind: Length, Delimiter: []byte("x")}, {Delimiter: []byte("x")},
	} {
		if f.check() == nil {
			t.Errorf("%+v is taken", f)
		}
	}
	for _, c := range []struct {
		f  Framing
		in string
	}{
		{Framing{Kind: Lines, Limit: 4}, "12345\n"}, {Framing{Kind: Lines, Limit: 4}, "123456"}, {Framing{Kind: Length, Size: 4}, "\xff\xff\xff\xff"},
		{Framing{Kind: Length, Limit: 4}, "\x05"}, {Framing{Kind: Length}, strings.Repeat("\xff", 10)}, {Framing{Kind: Length}, strings.Repeat("\xff", 9) + "\x02"},
	} {
		if err := c.f.check(); err != nil {
			t.Fatal(err)
		}
		d := decoder{f: &c.f}
		if m, n, err := d.next([]byte(c.in)); err == nil {
			t.Errorf("%+v: %q is %q, %d", c.f, c.in, m, n)
		}
	}
	lines, fixed, length := Framing{Kind: Lines}, Framing{Kind: Fixed, Size: 2}, Framing{Kind: Length, Size: 1}
	for _, f := range []*Framing{&lines, &fixed, &length} {
		_ = f.check()
	}
	for _, c := range []struct {
		f    *Framing
		text string
	}{{&lines, "a\nb"}, {&lines, strings.Repeat("x", DefaultFrame+1)}, {&fixed, "abc"}, {&length, strings.Repeat("x", 256)}} {
		if b, err := c.f.wrap(nil, []byte(c.text)); err == nil {
			t.Errorf("%+v: %q", c.f, b)
		}
	}
}

// Whatever the pieces in which bytes come, the messages are those that were sent.
func TestFramesWhole(t *testing.T) {
	all := framings()
	rapid.Check(t, func(t *rapid.T) {
		f := all[rapid.IntRange(0, len(all)-1).Draw(t, "framing")]
		if err := f.check(); err != nil {
			t.Fatal(err)
		}
		var want [][]byte
		var wire []byte
		for range rapid.IntRange(0, 8).Draw(t, "n") {
			b := rapid.SliceOfN(rapid.Byte(), 0, 90).Draw(t, "message")
			if f.Kind == Fixed {
				b = append(b, make([]byte, f.Size)...)[:f.Size]
			}
			out, err := f.wrap(wire, b)
			if err != nil || f.Kind == Lines && len(f.Delimiter) == 0 && bytes.HasSuffix(b, []byte{'\r'}) {
				continue
			}
			if f.Kind == Lines && bytes.Index(append(bytes.Clone(b), f.Delimiter...), f.Delimiter) < len(b) && len(f.Delimiter) > 1 {
				continue // the end of the message and the delimiter together begin with a delimiter
			}
			wire, want = out, append(want, b)
		}
		d := decoder{f: &f}
		var in []byte
		var got [][]byte
		for from := 0; from < len(wire); {
			n := rapid.IntRange(1, len(wire)-from).Draw(t, "piece")
			in = append(in, wire[from:from+n]...)
			from += n
			for {
				m, used, err := d.next(in)
				if err != nil {
					t.Fatal(err)
				}
				if used == 0 {
					break
				}
				got = append(got, bytes.Clone(m))
				in = in[used:]
			}
		}
		if len(got) != len(want) || len(in) > 0 {
			t.Fatalf("%d messages, want %d; %d bytes are left", len(got), len(want), len(in))
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("%q, want %q", got[i], want[i])
			}
		}
	})
}

// The decoder takes what it says, never grows beyond its limit, and does not depend on how often it is called.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("ab\r\ncd\n"), byte(0), byte(1))
	f.Add([]byte("\x02ab\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), byte(8), byte(3))
	all := framings()
	f.Fuzz(func(t *testing.T, b []byte, which, piece byte) {
		fr := all[int(which)%len(all)]
		if fr.Limit == 0 {
			fr.Limit = 64
		}
		if fr.check() != nil {
			t.Fatal("a framing of this test")
		}
		decode := func(step int) (out []string, failed error) {
			d := decoder{f: &fr}
			var in []byte
			for from := 0; from < len(b); from += step {
				in = append(in, b[from:min(from+step, len(b))]...)
				for {
					m, used, err := d.next(in)
					if err != nil {
						return out, err
					}
					if used == 0 {
						break
					}
					if used > len(in) || len(m) > used || len(m) > fr.Limit {
						t.Fatalf("%d of %d, a message of %d", used, len(in), len(m))
					}
					out, in = append(out, string(m)), in[used:]
				}
				if len(in) > fr.Limit+16 {
					t.Fatalf("%d bytes wait", len(in))
				}
			}
			return out, nil
		}
		whole, e1 := decode(max(len(b), 1))
		parts, e2 := decode(int(piece)%16 + 1)
		if strings.Join(whole, "|") != strings.Join(parts, "|") && (e1 == nil) == (e2 == nil) {
			t.Fatalf("%q and %q", whole, parts)
		}
	})
}

// An order that is taken is one of the operations, with arguments of its type.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{0x82, 0x65, 'w', 'r', 'i', 't', 'e', 0x41, 1})
	f.Add([]byte{0x82, 0x64, 'm', 'o', 'r', 'e', 0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := readOrder(b)
		if err == nil && (len(o.bytes) > len(b) || len(o.state) > maxState || strings.ContainsAny(o.op, " \n")) {
			t.Fatalf("%+v", o)
		}
	})
}
