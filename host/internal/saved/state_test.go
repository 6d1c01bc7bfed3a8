package saved

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/supervision"
	"pgregory.net/rapid"
)

// States go through bytes as they are, and the same state has the same bytes; other versions are refused by
// their number, whatever they have.
func TestStatesGoThroughBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, bytesOf := rapid.StringN(1, 20, 60), rapid.SliceOfN(rapid.Byte(), 1, 20)
		ref := rapid.Map(rapid.Uint64Min(1), func(n uint64) abi.Ref { return abi.Ref(n) })
		refs := func(name string) []abi.Ref {
			out := rapid.SliceOfNDistinct(ref, 0, 4, rapid.ID).Draw(t, name)
			slices.Sort(out)
			return out
		}
		s := State{
			Version: Version, Ref: ref.Draw(t, "ref"), Type: rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "type"), Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			Turns: rapid.Uint64().Draw(t, "turns"), Spawned: rapid.Uint64().Draw(t, "spawned"), Guest: bytesOf.Draw(t, "guest"),
			Receive: rapid.Int64Range(0, int64(abi.MaxDuration)).Draw(t, "receive"),
		}
		for _, key := range refs("timers") {
			s.Timers = append(s.Timers, Timer{Key: uint64(key), Due: rapid.Int64().Draw(t, "due"), Period: rapid.Int64Range(0, int64(abi.MaxDuration)).Draw(t, "period"), Payload: bytesOf.Draw(t, "payload")})
		}
		for _, key := range refs("asks") {
			s.Asks = append(s.Asks, Ask{Correlation: uint64(key), Target: ref.Draw(t, "target"), Answerers: append([]abi.Ref{1}, refs("answerers")...), Due: rapid.Int64().Draw(t, "due")})
		}
		for _, w := range refs("watches") {
			s.Watches = append(s.Watches, Watch{Ref: w, Path: text.Draw(t, "path")})
		}
		s.Lookouts = append(s.Lookouts, rapid.SliceOfNDistinct(text, 0, lookouts.Most, rapid.ID).Draw(t, "lookouts")...)
		slices.Sort(s.Lookouts)
		for range rapid.IntRange(0, 3).Draw(t, "stash") {
			s.Stash = append(s.Stash, Mail{Kind: abi.KindMessage, Flags: mark.NoInfluence, Sender: ref.Draw(t, "sender"), SenderPath: text.Draw(t, "path"), Headers: bytesOf.Draw(t, "headers"), Payload: bytesOf.Draw(t, "payload")})
		}
		for i, k := range refs("children") {
			s.Children = append(s.Children, Child{Ref: k, Name: fmt.Sprint("k", i), Type: "t", Args: bytesOf.Draw(t, "args"), Lifetime: 1, Significant: true, Record: supervision.ChildState{Failures: i, Ring: []int64{int64(i)}}})
		}
		b, err := Encoder.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&s, back) {
			t.Fatalf("%+v\nwas %+v", back, &s)
		}
		if again, _ := Encoder.Marshal(back); !bytes.Equal(again, b) {
			t.Fatal("other bytes")
		}
	})
	for version, more := range map[int]bool{1: false, Version + 1: true, 99: true} {
		m := map[int]any{1: version, 2: 1 << 40, 3: "t"}
		if more {
			m[15] = "something new"
		}
		b, err := Encoder.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("version %d, this host reads versions %d to %d", version, Oldest, Version)
		if _, err := Decode(b); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// FuzzActorState: bytes are refused, or are those of a state.
func FuzzActorState(f *testing.F) {
	s := State{
		Version: Version, Ref: 1 << 40, Type: "t", Timers: []Timer{{Key: 1, Due: 2, Payload: []byte{1}}}, Asks: []Ask{{Correlation: 1, Answerers: []abi.Ref{2}}},
		Watches: []Watch{{Ref: 3, Path: "/user/x"}}, Lookouts: []string{"/user/*", "./a?"}, Stash: []Mail{{Payload: []byte{1}}}, Children: []Child{{Ref: 4, Name: "k", Type: "t"}},
	}
	good, err := Encoder.Marshal(&s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	s.Whole = &Whole{Parent: 1, Path: "wasm://w/user/t", Trial: &Trial{Code: []byte{1}, Since: 2, Old: []byte{3}, Entries: []TrialEntry{{Now: 4, First: 5, Mail: []TrialMail{{Kind: abi.KindMessage, Payload: []byte{6}}}}}}}
	whole, err := Encoder.Marshal(&s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	s.Whole = nil
	s.Lookouts = []string{"./a?", "/user/*"}
	unsorted, err := Encoder.Marshal(&s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(unsorted)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrState) {
				t.Fatal(err)
			}
			return
		}
		again, err := Encoder.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(again); err != nil {
			t.Fatalf("what was accepted is refused: %v", err)
		}
	})
}

// A list may be as long as its bytes allow: many elements that have next to none are refused before there is room for them.
func TestListsAreAsLongAsTheirBytesAllow(t *testing.T) {
	list := func(n int, element []byte) []byte {
		b := binary.BigEndian.AppendUint32([]byte{0x9a}, uint32(n))
		return append(b, bytes.Repeat(element, n)...)
	}
	mail := append([]byte{0x4d}, make([]byte, leastMail-1)...)
	for _, c := range []struct {
		n       int
		element []byte
		refused bool
	}{
		{usualElements, []byte{0x80}, false},
		{usualElements + 1, []byte{0x80}, true},
		{16 * usualElements, []byte{0x80}, true},
		{usualElements + 1, mail, false},
		{4*usualElements + 1, mail, false},
	} {
		var all []cbor.RawMessage
		err := unmarshal(list(c.n, c.element), &all)
		var many *cbor.MaxArrayElementsError
		if errors.As(err, &many) != c.refused || !c.refused && (err != nil || len(all) != c.n) {
			t.Errorf("%d elements of %d bytes: %v", c.n, len(c.element), err)
		}
	}
	var empty bytes.Buffer
	if err := Encoder.NewEncoder(&empty).Encode(Mail{}); err != nil || empty.Len() != leastMail {
		t.Errorf("the least message has %d bytes: %v", empty.Len(), err)
	}
}
