package cluster

import (
	"bytes"
	"testing"
)

func samples() [][]byte {
	p := packet{flags: flagAnswer | flagHello, born: 1, receiver: 1<<64 - 1, session: 3, confirms: 4, of: 5, first: 1 << 40}
	head := appendHead(nil, &p)
	one := appendUnit(bytes.Clone(head), &unit{to: 7, part: []byte("abc")})
	return [][]byte{head, one, appendUnit(bytes.Clone(one), &unit{to: 1<<64 - 1, more: true})}
}

func TestPacketsComeBack(t *testing.T) {
	for _, b := range samples() {
		p, err := decodePacket(b)
		if err != nil {
			t.Fatal(err)
		}
		if again := encodePacket(p); !bytes.Equal(again, b) {
			t.Errorf("%x, want %x", again, b)
		}
		for n := range b {
			if p, err := decodePacket(b[:n]); err == nil && !bytes.Equal(encodePacket(p), b[:n]) {
				t.Errorf("%d bytes of %x are %+v", n, b, p)
			}
		}
	}
	for name, b := range map[string][]byte{
		"another version": append([]byte{version + 1}, samples()[0][1:]...),
		"an unknown flag": append([]byte{version, 4}, samples()[0][2:]...),
		"a unit flag":     append(bytes.Clone(samples()[0]), 2, 0, 0),
		"a part beyond":   append(bytes.Clone(samples()[0]), 0, 0, 5, 1),
		"a padded number": append(bytes.Clone(samples()[0]), 0, 0x80, 0, 0),
	} {
		if _, err := decodePacket(b); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func encodePacket(p *packet) []byte {
	b := appendHead(nil, p)
	for rest := p.units; len(rest) > 0; {
		var u unit
		u, rest, _ = nextUnit(rest)
		b = appendUnit(b, &u)
	}
	return b
}

func FuzzPacket(f *testing.F) {
	for _, b := range samples() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := decodePacket(b); err == nil && !bytes.Equal(encodePacket(p), b) {
			t.Errorf("%x is %+v", b, p)
		}
	})
}

func FuzzMember(f *testing.F) {
	m := Member{Oldest: 1, Newest: 2, Number: 3, ID: 7, Name: "a", Roles: []string{"front"}, Beat: 5, Born: 1}
	f.Add("node.3", m.encode(), uint64(9))
	f.Add("node.03", m.encode(), uint64(9))
	f.Fuzz(func(t *testing.T, key string, b []byte, revision uint64) {
		m, err := decodeMember(Entry{Key: key, Value: b, Revision: revision})
		if err != nil {
			return
		}
		again, err := decodeMember(Entry{Key: memberKey(m.Number), Value: m.encode(), Revision: revision})
		if err != nil || again.ID != m.ID || again.Born != m.Born || memberKey(m.Number) != key {
			t.Errorf("%+v, %+v, %v", m, again, err)
		}
	})
}

func TestEntriesThatNoNodeWrites(t *testing.T) {
	ok := Member{Oldest: 1, Newest: 2, Number: 3, ID: 7, Name: "a", Born: 1}
	for name, e := range map[string]Entry{
		"another node's":    {Key: "node.4", Value: ok.encode(), Revision: 9},
		"a padded number":   {Key: "node.03", Value: ok.encode(), Revision: 9},
		"node 0":            {Key: "node.0", Value: (&Member{Oldest: 1, Newest: 2, ID: 7, Name: "a"}).encode(), Revision: 9},
		"no ID":             {Key: "node.3", Value: (&Member{Oldest: 1, Newest: 2, Number: 3, Name: "a"}).encode(), Revision: 9},
		"no name":           {Key: "node.3", Value: (&Member{Oldest: 1, Newest: 2, Number: 3, ID: 7}).encode(), Revision: 9},
		"born later":        {Key: "node.3", Value: (&Member{Oldest: 1, Newest: 2, Number: 3, ID: 7, Name: "a", Born: 10}).encode(), Revision: 9},
		"a role with words": {Key: "node.3", Value: (&Member{Oldest: 1, Newest: 2, Number: 3, ID: 7, Name: "a", Roles: []string{"a b"}}).encode(), Revision: 9},
		"a zone with words": {Key: "node.3", Value: (&Member{Oldest: 1, Newest: 2, Number: 3, ID: 7, Name: "a", Zone: "a b"}).encode(), Revision: 9},
		"no protocol":       {Key: "node.3", Value: (&Member{Number: 3, ID: 7, Name: "a"}).encode(), Revision: 9},
		"a protocol before": {Key: "node.3", Value: (&Member{Oldest: 2, Newest: 1, Number: 3, ID: 7, Name: "a"}).encode(), Revision: 9},
		"a large identity":  {Key: "node.3", Value: (&Member{Oldest: 1, Newest: 2, Number: 3, ID: 7, Name: "a", Identity: make([]byte, MaxIdentity+1)}).encode(), Revision: 9},
		"too large":         {Key: "node.3", Value: make([]byte, maxEntry+1), Revision: 9},
		"nothing":           {Key: "node.3", Revision: 9},
	} {
		if m, err := decodeMember(e); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m, err := decodeMember(Entry{Key: "node.3", Value: ok.encode(), Revision: 9}); err != nil || m.revision != 9 {
		t.Error(m, err)
	}
}
