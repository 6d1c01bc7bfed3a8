package durable

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/supervision"
)

// appendRecord writes a record as a store does. most is how many bytes it would have asked for.
func appendRecord(c *shared, to []byte, r *record.Record) (_ []byte, most int) {
	switch {
	case r.Kind == record.Refused:
		return c.appendRefusal(to, r.Actor, r.Time, r.Message), messageSize(r.Message)
	case r.Message != nil:
		return c.appendMessage(to, r.Actor, r.Time, r.Message), messageSize(r.Message)
	case r.Entry != nil:
		o := outcomeOf(nil, r.Entry)
		return c.appendEntry(to, r.Actor, r.Time, r.Entry, &o), entrySize(r.Entry, &o)
	}
	return c.appendOther(to, r), otherSize(r)
}

// randomRecord is any record, of few actors.
func randomRecord(r *rand.Rand) *record.Record {
	refs := []abi.Ref{1, 2, 0x1234567890abcdef, 1 << 63, abi.Ref(r.Uint64())}
	ref := func() abi.Ref { return refs[r.IntN(len(refs))] }
	some := func(n int) []byte {
		b := make([]byte, r.IntN(n))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if len(b) == 0 {
			return nil
		}
		return b
	}
	number := func() uint64 { return r.Uint64() >> r.IntN(64) }
	maybe := func() bool { return r.IntN(3) == 0 }
	failure := func() *abi.Failure {
		f := &abi.Failure{Kind: abi.FailureKind(r.Uint32()), Reason: string(some(20)), Message: string(some(20)), Turn: number(), Fuel: number(), GuestStack: string(some(300))}
		for range r.IntN(4) {
			f.Stack = append(f.Stack, string(some(30)))
		}
		return f
	}
	x := &record.Record{Actor: ref(), Time: int64(number()), Kind: record.Kind(1 + r.IntN(10))}
	switch x.Kind {
	case record.Refused:
		x.Message = &record.Message{Kind: abi.Kind(r.Uint32()), Sender: ref(), Correlation: number(), Payload: []byte{1, 2, byte(r.Uint32()), 4}}
	case record.Accepted:
		m := &record.Message{Position: number() | 1, Kind: abi.KindMessage, Payload: some(300)}
		if maybe() {
			m.Kind, m.Flags, m.Correlation, m.Due = abi.Kind(r.Uint32()), uint16(r.Uint32()), number(), -int64(number())
		}
		if !maybe() {
			m.Sender, m.SenderPath = ref(), []string{"", "wasm://w/user/a", strings.Repeat("x", 200)}[r.IntN(3)]
		}
		if maybe() {
			m.Headers = some(200)
		}
		x.Message = m
	case record.Exchanged:
		y := &record.Exchange{Code: make([]byte, record.FingerprintBytes), Way: record.Way(1 + r.IntN(3))}
		y.Code[r.IntN(len(y.Code))] = byte(r.Uint32())
		switch y.Way {
		case record.Loaded:
			y.Version, y.Saved, y.Own, y.Fuel = number(), append(some(300), 1), append(some(20), 2), number()
		case record.Copied:
			y.State, y.More, y.Part = append(some(300), 3), maybe(), number()%(1<<16)
		}
		x.Exchange = y
	case record.Decided:
		switch d := (&record.Decision{About: record.About(1 + r.IntN(3)), Child: ref() | 1}); d.About {
		case record.Reported:
			d.Chosen, d.Directive = supervision.Directive(r.IntN(6)), supervision.Directive(1+r.IntN(5))
			d.Delay, d.Group, d.Alone, d.Keep = time.Duration(number()>>1), supervision.Kind(r.IntN(3)), maybe(), maybe()
			x.Decision = d
		case record.Significant:
			d.Quits, x.Decision = maybe(), d
		case record.Delayed:
			d.Child, d.Meanwhile, d.Stash, d.Grace, d.Overtake = 0, supervision.Meanwhile(r.IntN(3)), int(number()>>1), time.Duration(number()>>1), maybe()
			x.Decision = d
		}
	case record.Turned:
		e := &record.Entry{Incarnation: number(), First: number()}
		for range r.IntN(1 + r.IntN(100)) {
			e.Mail = append(e.Mail, number())
			if n := len(e.Mail); n > 1 && !maybe() {
				e.Mail[n-1] = e.Mail[n-2] + 1
			}
		}
		for range r.IntN(6) {
			e.Outbox = append(e.Outbox, uint32(r.Uint32())>>r.IntN(32))
		}
		if e.Done = len(e.Mail); maybe() {
			e.Done, e.Ended = r.IntN(len(e.Mail)+1), record.Ending(r.IntN(4))
		}
		if maybe() {
			e.Failure = failure()
		}
		if maybe() {
			e.Cut = &record.Cut{Stage: 2, Phase: number(), At: number(), Kind: 3, Reason: string(some(40))}
		}
		if maybe() {
			e.Fuel, e.Memory = number()|1, number()
		}
		x.Entry = e
	case record.Took:
		x.Signal = &record.Signal{
			What: string(some(20)), From: ref(), Other: ref(), Correlation: number(), How: uint16(r.Uint32()), Directive: uint8(r.Uint32()),
			Delay: -int64(number()), Reason: string(some(200)), Position: number(),
		}
		if maybe() {
			x.Signal.Failure = failure()
		}
	default:
		x.Life = &record.Life{Path: "p" + string(some(100)), Type: string(some(20)), Args: some(200), Parent: ref(), Incarnation: number(), Code: some(40)}
		if x.Kind == record.Changed || maybe() {
			all := usualLimits
			for i := range all {
				if maybe() {
					all[i] = number() // also what Go takes for less than nothing
				}
			}
			x.Life.Limits = withLimits(&all)
			if maybe() {
				x.Life.Rules = randomRules(r)
			}
		}
	}
	return x
}

func randomRules(r *rand.Rand) *record.Rules {
	maybe := func() bool { return r.IntN(2) == 0 }
	list := func() (all []string) {
		for range r.IntN(3) {
			all = append(all, strings.Repeat("/**", r.IntN(5)))
		}
		return all
	}
	x := &record.Rules{Lifetime: supervision.Lifetime(r.IntN(3)), Significant: maybe(), Letter: maybe(), Inherits: maybe()}
	if maybe() {
		x.Redelivered = 1 + r.IntN(record.MostRedelivered)
	}
	if !x.Inherits {
		x.Send, x.Spawn, x.Stop, x.Services = list(), list(), list(), list()
	}
	return x
}

// All records come out as they went in, in any order and in batches of any length, and take no more room than was said.
func TestRecordsComeOutAsTheyWentIn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var to shared
	var from records
	for i := range 20_000 {
		x := randomRecord(r)
		first := i == 0 || r.IntN(20) == 0
		if first {
			to.begin()
		}
		b, most := appendRecord(&to, nil, x)
		if len(b) > most {
			t.Fatalf("%d bytes, of at most %d: %+v", len(b), most, x)
		}
		v, err := from.next(&wal.Record{First: first, Data: b})
		if err != nil {
			t.Fatalf("%v: %+v", err, x)
		}
		if !reflect.DeepEqual(v, x) {
			t.Fatalf("%d: %x\n%+v\n%+v", i, b, v, x)
		}
	}
}

// A message between two durable actors takes 24 bytes of the log besides its headers and its payload, if 32 turns share a
// write.
func TestBytesOfAMessage(t *testing.T) {
	const (
		messages = 10_000
		shares   = 32
		length   = 1  // of a record, in the log
		header   = 64 // of a batch of the log, at most
	)
	actors, paths := [2]abi.Ref{0x1234567890abcdef, 0x2234567890abcdef}, [2]string{"wasm://w/user/a", "wasm://w/user/b"}
	payload, headers := bytes.Repeat([]byte{7}, 40), bytes.Repeat([]byte{8}, 10)
	now := int64(1_800_000_000_000_000_000)
	var to shared
	total := 0
	for i := range uint64(messages) {
		if i%shares == 0 {
			to.begin()
			total += header
		}
		receiver := i % 2
		now += 1500
		m := &record.Message{Position: 1_000_000 + i/2, Kind: abi.KindMessage, Sender: actors[1-receiver], SenderPath: paths[1-receiver], Payload: payload, Headers: headers}
		total += length + len(to.appendMessage(nil, actors[receiver], now, m))
		turn := &record.Turn{
			Actor: actors[receiver], Incarnation: 1, First: 1_000_000 + i/2, Time: now + 700, Mail: []*record.Envelope{{Position: m.Position}}, Done: 1,
			Outbox: abi.AppendSend(nil, actors[1-receiver], "", 0, 0, headers, payload), Worth: 1000,
		}
		e := record.EntryOf(turn, record.Positions(nil, turn), record.Checksums(nil, turn))
		o := outcomeOf(nil, &e)
		total += length + len(to.appendEntry(nil, turn.Actor, turn.Time, &e, &o))
	}
	each := float64(total)/messages - float64(len(payload)+len(headers))
	t.Logf("%.1f bytes", each)
	if each > 24 {
		t.Errorf("a message takes %.1f bytes more than it has", each)
	}
}

// What a store does for a message allocates nothing.
func TestRecordsAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector keeps on the heap what is on the stack otherwise")
	}
	s, err := Open(Options{Dir: t.TempDir(), Sync: Never})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := &record.Message{Position: 1, Kind: abi.KindMessage, Sender: 3, SenderPath: "wasm://w/user/b", Payload: make([]byte, 100)}
	r := &record.Record{Kind: record.Accepted, Actor: 2, Message: m}
	turn := &record.Turn{
		Actor: 2, Incarnation: 1, Mail: []*record.Envelope{{}}, Done: 1, Marked: true,
		Outbox: abi.AppendEnd(abi.AppendSend(abi.AppendSend(nil, 3, "", 0, 0, nil, make([]byte, 100)), 0, "/user/b", 0, 0, nil, []byte{1})),
	}
	const each = 2000
	allocations := testing.AllocsPerRun(10, func() {
		for range each {
			m.Position++
			turn.Mail[0].Position = m.Position
			s.Note(r)
			if _, err := s.turned(turn); err != nil {
				t.Error(err)
			}
			turn.First++
		}
	})
	if allocations > each/20 { // batches do
		t.Errorf("%v allocations for %d messages", allocations, each)
	}
}

// FuzzCompact: a batch of any bytes is read without harm, and what is a record comes out the same again.
func FuzzCompact(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		var to shared
		to.begin()
		var all []byte
		for range 1 + r.IntN(6) {
			b, _ := appendRecord(&to, nil, randomRecord(r))
			all = append(binary.AppendUvarint(all, uint64(len(b))), b...)
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var to shared
		var from, again records
		to.begin()
		for first := true; len(b) > 0; first = false {
			n, head := binary.Uvarint(b)
			if head <= 0 || n > uint64(len(b)-head) {
				return
			}
			data := b[head:][:n]
			b = b[head+int(n):]
			if len(data) == 0 || data[0] < compact {
				continue
			}
			v, err := from.next(&wal.Record{First: first, Data: data})
			if err != nil {
				return
			}
			x := v.(*record.Record)
			if x.Entry != nil && len(x.Entry.Mail) > len(data)+mostCounted {
				t.Fatalf("%d messages of %d bytes", len(x.Entry.Mail), len(data))
			}
			c, most := appendRecord(&to, nil, x)
			if len(c) > most {
				t.Fatalf("%d bytes, of at most %d: %+v", len(c), most, x)
			}
			w, err := again.next(&wal.Record{First: first, Data: c})
			if err != nil || !reflect.DeepEqual(v, w) {
				t.Fatalf("%v\n%+v\n%+v", err, v, w)
			}
		}
	})
}
