package abi

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// keepAll reads a map and keeps all of its keys.
func keepAll(b []byte) (*Unknown, *Reader) {
	u, r := new(Unknown), NewReader(b)
	for n := r.Map(); n > 0 && r.OK(); n-- {
		from := r.Offset()
		r.Skip()
		u.Keep(r, from)
	}
	return u, r
}

func (u *Unknown) encoded() []byte {
	w := NewWriter(nil)
	w.Map(u.Len())
	u.WriteRest(w, 0)
	return w.Bytes()
}

// Keys are written again in the order of deterministic CBOR, whatever the order in which they came.
func TestUnknownKeysAreSorted(t *testing.T) {
	keys := []string{"a", "b", "aa", "ab", "c", "longer"}
	want := []string{"a", "b", "c", "aa", "ab", "longer"}
	for range 50 {
		w := NewWriter(nil)
		w.Map(len(keys))
		for i, k := range keys {
			w.Text(k)
			w.Int(int64(i))
		}
		u, r := keepAll(w.Bytes())
		if err := r.Done(); err != nil {
			t.Fatal(err)
		}
		r = NewReader(u.encoded())
		var got []string
		for n := r.Map(); n > 0; n-- {
			got = append(got, r.Text())
			r.Skip()
		}
		if err := r.Done(); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, %v", got, err)
		}
		keys = append(keys[1:], keys[0])
	}
	if v, ok := new(Unknown).Get("a"); ok || v != nil {
		t.Error("there is a key in nothing")
	}
}

// Entries fall between the keys that are known.
func TestUnknownKeysBetweenKnownOnes(t *testing.T) {
	w := NewWriter(nil)
	w.Map(3)
	for _, k := range []string{"a", "c", "dd"} {
		w.Text(k)
		w.Null()
	}
	u, _ := keepAll(w.Bytes())
	w.Reset(nil)
	at := u.WriteBefore(w, 0, "\x61b")
	w.Encoded("\x61b\xf6")
	at = u.WriteBefore(w, at, "\x61d")
	w.Encoded("\x61d\xf6")
	u.WriteRest(w, at)
	if got := w.Bytes(); string(got) != "\x61a\xf6\x61b\xf6\x61c\xf6\x61d\xf6\x62dd\xf6" {
		t.Errorf("%q", got)
	}
	if v, ok := u.Get("dd"); !ok || string(v) != "\xf6" {
		t.Errorf("%q %v", v, ok)
	}
	if u.Clear(); u.Len() != 0 || u.Size() != 0 {
		t.Error("it was not cleared")
	}
}

func TestUnknownKeysAreBounded(t *testing.T) {
	many := func(n, size int) []byte {
		w := NewWriter(nil)
		w.Map(n)
		for i := range n {
			w.Int(int64(-1 - i))
			w.ByteString(make([]byte, size))
		}
		return w.Bytes()
	}
	deep := append(append([]byte{0xa1, 0x61, 'a'}, bytes.Repeat([]byte{0x81}, MaxNesting)...), 0)
	for _, c := range []struct {
		name string
		b    []byte
		want *Error
	}{
		{"as many as may be", many(MaxUnknown, 1), nil},
		{"one more", many(MaxUnknown+1, 1), ErrUnknownKeys},
		{"as large as may be", many(1, MaxUnknownBytes-4), nil},
		{"a byte more", many(1, MaxUnknownBytes-3), ErrUnknownKeys},
		{"deep", deep, ErrNesting},
		{"twice", []byte{0xa2, 0x61, 'a', 0, 0x61, 'a', 1}, ErrDuplicate},
		{"twice, apart", []byte{0xa3, 0x61, 'a', 0, 0x61, 'b', 0, 0x61, 'a', 1}, ErrDuplicate},
		{"cut off", []byte{0xa1, 0x61, 'a'}, ErrTruncated},
	} {
		u, r := keepAll(c.b)
		if err := r.Done(); c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if u.Len() > MaxUnknown || u.Size() > MaxUnknownBytes {
			t.Errorf("%s: %d keys of %d bytes are kept", c.name, u.Len(), u.Size())
		}
	}
}

// FuzzUnknown: what was kept is written as a map that is read as the same, within the bounds.
func FuzzUnknown(f *testing.F) {
	f.Add([]byte{0xa2, 0x61, 'b', 0, 0x61, 'a', 1})
	f.Add([]byte{0xa2, 1, 0x81, 0x80, 0xf6, 0xa0})
	f.Fuzz(func(t *testing.T, b []byte) {
		u, r := keepAll(b)
		if u.Len() > MaxUnknown || u.Size() > MaxUnknownBytes {
			t.Fatalf("%d keys of %d bytes are kept", u.Len(), u.Size())
		}
		if r.Done() != nil {
			return
		}
		again, r := keepAll(u.encoded())
		if err := r.Done(); err != nil || !bytes.Equal(again.encoded(), u.encoded()) {
			t.Fatalf("%x became %x and %x, %v", b, u.encoded(), again.encoded(), err)
		}
		if len(u.encoded()) > len(b) {
			t.Fatalf("%x has grown to %x", b, u.encoded())
		}
	})
}

func TestMessageTypes(t *testing.T) {
	for _, c := range []struct {
		value, name string
		version     uint16
		ok          bool
	}{
		{"bank.payment@3", "bank.payment", 3, true},
		{"p@65535", "p", 65535, true},
		{"p@65536", "", 0, false},
		{"p@100000", "", 0, false},
		{"p@0", "", 0, false},
		{"p@01", "", 0, false},
		{"p@", "", 0, false},
		{"p@+1", "", 0, false},
		{"p", "", 0, false},
		{"", "", 0, false},
		{"@1", "", 0, false},
		{"1p@1", "", 0, false},
		{"p.@1", "", 0, false},
		{"p q@1", "", 0, false},
		{"p@1@2", "", 0, false},
		{string(bytes.Repeat([]byte("p"), MaxMessageName+1)) + "@1", "", 0, false},
	} {
		name, version, ok := CutMessageType(c.value)
		if name != c.name || version != c.version || ok != c.ok {
			t.Errorf("%q: %q %d %v", c.value, name, version, ok)
		}
		if ok && JoinMessageType(name, version) != c.value {
			t.Errorf("%q is not joined again", c.value)
		}
	}
}
