package swap

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
)

// What is divided is put together again, also where the records of a process that was killed come before.
func TestPartsOfAState(t *testing.T) {
	was := Part
	defer func() { Part = was }()
	rapid.Check(t, func(t *rapid.T) {
		Part = rapid.IntRange(1, 7).Draw(t, "part")
		state := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "state")
		all := inParts([]byte("code"), state)
		broken := rapid.IntRange(0, len(all)-1).Draw(t, "parts before the kill")
		var p Partial
		for i := range all[:broken] {
			if more, err := p.Add(&all[i]); !more || err != nil {
				t.Fatalf("part %d: %v, %v", i, more, err)
			}
		}
		for i := range all {
			if more, err := p.Add(&all[i]); more != (i < len(all)-1) || err != nil {
				t.Fatalf("part %d of %d: %v, %v", i, len(all), more, err)
			}
		}
		if !bytes.Equal(p.bytes, state) {
			t.Fatalf("%v instead of %v", p.bytes, state)
		}
		if _, err := p.Add(&record.Exchange{Part: uint64(len(all)) + 1}); err == nil {
			t.Fatal("a part was left out, and nobody says so")
		}
	})
}

// A state that is damaged is an error, and never a state.
func TestDamagedState(t *testing.T) {
	whole := record.Pack(bytes.Repeat([]byte("state"), 100))
	for _, b := range [][]byte{{1}, whole[:len(whole)/2]} {
		var p Partial
		if _, err := p.Add(&record.Exchange{State: b}); err != nil {
			t.Fatal(err)
		}
		if s, err := p.State(nil); s != nil || err == nil {
			t.Errorf("%d bytes: %v, %v", len(b), s, err)
		}
	}
}

func TestRecordsOfAnExchange(t *testing.T) {
	saved := &Code{Saved: &abi.State{Version: 3, Payload: []byte("p"), Own: []byte("own")}, Fuel: 9}
	all, err := RecordsOf(saved, []byte("code"))
	if err != nil || len(all) != 1 || all[0].Way != record.Loaded || all[0].Version != 3 || all[0].Fuel != 9 || string(all[0].Saved) != "p" {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := RecordsOf(saved, nil); err == nil {
		t.Error("the code is closed, and that is no error")
	}
	if all, err := RecordsOf(&Code{Same: true}, nil); len(all) != 0 || err != nil {
		t.Errorf("nothing changes, and is recorded: %+v, %v", all, err)
	}
}

// gate has room for so much in one record, and in all.
type gate struct{ one, all int }

var errFull = errors.New("full")

func (g gate) Admit(n int) error {
	if n > g.one {
		return errFull
	}
	return nil
}

func (g gate) AdmitAll(n int64) error {
	if n > int64(g.all) {
		return errFull
	}
	return nil
}

func TestAdmit(t *testing.T) {
	all := []record.Exchange{{Saved: make([]byte, 3), Own: make([]byte, 2)}, {State: make([]byte, 4)}}
	for g, want := range map[gate]error{{5, 9}: nil, {4, 9}: errFull, {5, 8}: errFull} {
		if err := Admit(g, all); !errors.Is(err, want) {
			t.Errorf("%+v: %v", g, err)
		}
	}
}
