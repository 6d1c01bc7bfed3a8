package abi

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestIdentify(t *testing.T) {
	for _, path := range []string{"/user/a", "./child", strings.Repeat("x", 30), strings.Repeat("x", MaxPath-1)} {
		b := AppendIdentify(nil, path, 5, 2_000_000)
		if want := AppendAsk(nil, 0, IdentifySign+path, 5, 2_000_000, nil, nil); !bytes.Equal(b, want) {
			t.Errorf("% x, want % x", b, want)
		}
		var c Command
		if n, err := DecodeCommand(&c, b); err != nil || n != len(b) || c.Op != OpAsk || string(c.ToPath) != IdentifySign+path || len(c.Payload) != 0 {
			t.Errorf("%d of %d, %v, %+v", n, len(b), err, c)
		}
	}
	if ValidName([]byte("a" + IdentifySign)) {
		t.Error("the sign may be in a name")
	}
}

func TestIdentities(t *testing.T) {
	many := make([]Identity, MaxIdentities)
	size := IdentitiesHead
	for i := range many {
		many[i] = Identity{Ref: 1<<64 - 1, Path: "/user/" + strings.Repeat("x", i)}
		size += IdentitySize(len(many[i].Path))
	}
	for _, listed := range [][]Identity{nil, {{7, "/user/a"}}, many} {
		b := AppendIdentities(nil, 1<<30, listed)
		got, total, err := DecodeIdentities(b)
		if err != nil || total != 1<<30 || !reflect.DeepEqual(got, listed) {
			t.Errorf("%v of %d, %v", got, total, err)
		}
		if len(b) > size {
			t.Errorf("%d bytes, more than %d", len(b), size)
		}
	}
	a := Identity{7, "/user/a"}
	for name, c := range map[string]struct {
		b    []byte
		want *Error
	}{
		"nothing":           {nil, ErrTruncated},
		"more than there":   {AppendIdentities(nil, 1, []Identity{a, a}), ErrRange},
		"too many":          {AppendIdentities(nil, 1<<30, make([]Identity, MaxIdentities+1)), ErrRange},
		"nobody":            {AppendIdentities(nil, 1, []Identity{{0, "/user/a"}}), ErrRange},
		"nowhere":           {AppendIdentities(nil, 1, []Identity{{7, ""}}), ErrRange},
		"a long path":       {AppendIdentities(nil, 1, []Identity{{7, strings.Repeat("x", MaxPath+1)}}), ErrRange},
		"something behind":  {append(AppendIdentities(nil, 1, []Identity{a}), 0xf6), ErrTrailing},
		"three":             {[]byte{0x83, 0, 0x80, 0}, ErrArity},
		"an actor of three": {[]byte{0x82, 1, 0x81, 0x83, 7, 0x61, 'a', 0}, ErrArity},
		"a huge total":      {[]byte{0x82, 0x1b, 255, 255, 255, 255, 255, 255, 255, 255, 0x80}, ErrRange},
		"a text":            {[]byte{0x61, 'a'}, ErrType},
	} {
		if listed, total, err := DecodeIdentities(c.b); !errors.Is(err, c.want) || listed != nil || total != 0 {
			t.Errorf("%s: %v of %d, %v", name, listed, total, err)
		}
	}
}
