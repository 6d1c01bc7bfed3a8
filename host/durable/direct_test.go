package durable

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
)

// TestDirect: what is written for usual messages and turns is what is written for any, in no more room than is asked for.
func TestDirect(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	sometimes := func(v uint64) uint64 {
		if r.IntN(16) == 0 {
			return v >> r.IntN(64)
		}
		return 0
	}
	one, two := &shared{}, &shared{}
	type actor struct{ sent, taken, turn uint64 }
	actors := map[abi.Ref]*actor{}
	short := 0
	now := int64(1 << 60)
	for i := range 40_000 {
		if i%200 == 0 {
			one.begin()
			two.begin()
		}
		few := 6
		if i/200%4 == 0 {
			few = 600 // some have the place of another
		}
		ref := abi.Ref(1 + r.IntN(few))
		a := actors[ref]
		if a == nil {
			a = &actor{turn: uint64(r.IntN(2))}
			actors[ref] = a
		}
		now += int64(r.IntN(40)) - 10 + int64(sometimes(1<<40))
		var got, want []byte
		most := 0
		if r.IntN(2) == 0 {
			a.sent += 1 + sometimes(1<<30)
			e := &record.Envelope{
				Kind: abi.KindMessage + abi.Kind(sometimes(7)), Flags: uint16(sometimes(1 << 15)), Due: int64(sometimes(1 << 60)), Sender: abi.Ref(r.IntN(few)), Position: a.sent,
				Correlation: sometimes(1 << 60), Headers: make([]byte, sometimes(200)), Payload: make([]byte, r.IntN(200)),
			}
			if e.Sender%3 != 0 {
				e.SenderPath = string(make([]byte, e.Sender%7+abi.Ref(sometimes(2))))
			}
			var m record.Message
			m.Set(e)
			want = one.appendMessage(nil, ref, now, &m)
			got = two.appendAccepted(nil, ref, now, e, isPlain(e))
			if most = messageSize(&m); most != sizeOf(e, isPlain(e)) {
				t.Fatalf("message %d: %d bytes are asked for instead of %d", i, sizeOf(e, isPlain(e)), most)
			}
			if len(got) == 4+len(e.Payload) {
				short++
			}
		} else {
			a.taken += 1 + sometimes(1<<30)
			h := &record.Handled{Actor: ref, Incarnation: sometimes(2), First: a.turn, Position: a.taken, Time: now}
			a.turn += 1 + sometimes(1<<30)
			commands := r.IntN(4)
			if r.IntN(8) == 0 {
				commands *= 5
			}
			for range commands {
				h.Outbox = abi.AppendSend(h.Outbox, ref, "", 0, 0, nil, []byte{byte(i)})
			}
			if r.IntN(8) > 0 {
				h.Outbox = abi.AppendEnd(h.Outbox)
				h.Alone = commands == 1
			}
			turn := &record.Turn{
				Actor: ref, Incarnation: h.Incarnation, First: h.First, Time: now, Mail: []*record.Envelope{{Position: h.Position}}, Done: 1, Outbox: h.Outbox,
			}
			e := record.EntryOf(turn, record.Positions(nil, turn), record.Checksums(nil, turn))
			o := outcomeOf(nil, &e)
			want = one.appendEntry(nil, ref, now, &e, &o)
			switch sums := h.Checksums(nil); {
			case len(sums) == 0:
				two.appendEntry(nil, ref, now, &e, &o)
				continue
			case h.Alone:
				got, most = two.appendAlone(nil, h, h.Checksum()), handledBytes
			default:
				got, most = two.appendHandled(nil, h, sums), handledBytes+4*len(sums)
			}
			if len(got) == 9 {
				short++
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("record %d: %x instead of %x", i, got, want)
		}
		if len(got) > most {
			t.Fatalf("record %d: %d bytes, %d were asked for", i, len(got), most)
		}
	}
	if short < 10_000 {
		t.Errorf("%d of 40000 records are as short as most should be", short)
	}
}
