package persist

import (
	"bytes"
	"testing"

	rules "github.com/wasmactors/wasmactors/abi/persist"
)

// What a log is forged to have is refused, or written again as it was.
func FuzzTaken(f *testing.F) {
	x := &taken{id: "/user/a", time: 5}
	for _, e := range []rules.Entry{
		{Event: Event{Number: 1, Type: "a", Version: 1, Tags: []string{"t"}, Payload: []byte{1}}}, {Kind: rules.EntrySnapshot, Snapshot: Snapshot{Number: 1, Payload: []byte{1}}},
		{Kind: rules.EntryDeleteEvents, To: 1}, {Kind: rules.EntryDeleteSnapshots, To: 1},
	} {
		x.add(e, rules.AppendEntry(nil, &e))
	}
	f.Add(x.encode(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := decodeTaken(b)
		if err != nil {
			return
		}
		if again := x.encode(nil); !bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

func FuzzMeta(f *testing.F) {
	f.Add((&meta{1, 0, 0, 5}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeMeta(b); err == nil && !bytes.Equal(m.encode(), b) {
			t.Errorf("%x", b)
		}
	})
}
