package persist

import (
	"bytes"
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

func FuzzEntry(f *testing.F) {
	for _, e := range []Entry{
		{Event: Event{Number: 1, Type: "a", Version: 1, Tags: []string{"t"}, Payload: []byte{1}}}, {Kind: EntrySnapshot, Snapshot: Snapshot{Number: 1, Payload: []byte{1}}},
		{Kind: EntryDeleteEvents, To: 1}, {Kind: EntryDeleteSnapshots, From: 1, To: 9}, {Kind: EntryRecover, Recovery: Recovery{Off: true, SnapshotVersion: 7, Most: 1}},
	} {
		f.Add(AppendEntry(nil, &e))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Entry
		if DecodeEntry(&e, b) == nil && !bytes.Equal(AppendEntry(nil, &e), b) {
			t.Errorf("%x became %x", b, AppendEntry(nil, &e))
		}
	})
}

func FuzzBatch(f *testing.F) {
	f.Add(AppendBatch(nil, &Batch{Done: true, Last: 5, Snapshot: &Snapshot{Number: 2, Version: 1, Time: 3, Payload: []byte{1}}, Events: []Event{{Number: 3, Type: "a", Version: 1, Tags: []string{"t"}, Payload: []byte{1}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		x := Batch{}
		var err error
		x.Last, x.Done, err = ReadBatch(abi.NewReader(b), func(s *Snapshot) error { x.Snapshot = s; return nil }, func(e *Event) error { x.Events = append(x.Events, *e); return nil })
		if err == nil && !bytes.Equal(AppendBatch(nil, &x), b) {
			t.Errorf("%x became %x", b, AppendBatch(nil, &x))
		}
	})
}

func FuzzEvent(f *testing.F) {
	f.Add(AppendEvent(nil, &Event{ID: "/user/a", Number: 1, Type: "a", Version: 1, Tags: []string{"t"}, Time: -1, Payload: []byte{1}, Offset: 9}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Event
		r := abi.NewReader(b)
		if ReadEvent(r, &e); r.Done() == nil && !bytes.Equal(AppendEvent(nil, &e), b) {
			t.Errorf("%x became %x", b, AppendEvent(nil, &e))
		}
	})
}

// Upcasters that make ever more of an event, or come to no end, are stopped.
func TestUpcastersAreBounded(t *testing.T) {
	s := new(Schema).Type("a", 9)
	s.Upcast("loop", 1, func(e Event) ([]Event, error) { return []Event{e}, nil }).
		Upcast("bomb", 1, func(e Event) ([]Event, error) { return []Event{e, e}, nil }).
		Upcast("many", 1, func(e Event) ([]Event, error) { return make([]Event, 2000), nil }).
		Upcast("bad", 1, func(e Event) ([]Event, error) { return nil, errors.New("no") })
	for _, name := range []string{"loop", "many", "bad", "bomb", "never"} {
		n := 0
		err := s.Upcasted(&Event{Number: 3, Type: name, Version: 1}, func(*Event) error { n++; return nil })
		if err == nil || n > mostParts {
			t.Error(name, err, n)
		}
	}
}

func TestH19_Deliveries(t *testing.T) {
	var d Deliveries
	for i, to := range []string{"/user/a", "/user/b", "/user/a"} {
		if id, err := d.Add(to, []byte{byte(i)}); err != nil || id != uint64(i+1) {
			t.Fatal(id, err)
		}
	}
	if !d.Confirm(2) || d.Confirm(2) || d.Waits(2) || !d.Waits(3) || d.Len() != 2 {
		t.Error(d)
	}
	w := abi.NewWriter(nil)
	d.MarshalCBOR(w)
	var back Deliveries
	r := abi.NewReader(w.Bytes())
	if back.UnmarshalCBOR(r); r.Done() != nil || back.Len() != 2 {
		t.Fatal(r.Err())
	}
	if id, _ := back.Add("/user/c", nil); id != 4 {
		t.Error(id)
	}
	var sent []uint64
	next := back.Due(100, func(x *Delivery, _ bool) { sent = append(sent, x.ID) })
	if len(sent) != 3 || sent[0] != 1 || sent[1] != 3 || next != 100+DefaultInterval {
		t.Error(sent, next)
	}
}

func TestH20_Settings(t *testing.T) {
	d := Deliveries{Interval: 10, Burst: 2, Warn: 3, Most: 3}
	for range 3 {
		if _, err := d.Add("/user/a", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Add("/user/a", nil); !errors.Is(err, ErrUnconfirmed) || !d.Full() {
		t.Error(err)
	}
	counts, warned := map[uint64]int{}, 0
	for now := int64(0); now < 60; now++ {
		n := 0
		d.Due(now, func(x *Delivery, warn bool) {
			n++
			counts[x.ID]++
			if warn {
				warned++
			}
		})
		if n > 2 {
			t.Error("a burst of ", n)
		}
	}
	if counts[1] != 6 || counts[3] != 6 || warned != 6 {
		t.Error(counts, warned)
	}
}

func FuzzDeliveries(f *testing.F) {
	var d Deliveries
	_, _ = d.Add("/user/a", []byte{1})
	w := abi.NewWriter(nil)
	d.MarshalCBOR(w)
	f.Add(w.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Deliveries
		r := abi.NewReader(b)
		if d.UnmarshalCBOR(r); r.Done() != nil {
			return
		}
		w := abi.NewWriter(nil)
		if d.MarshalCBOR(w); !bytes.Equal(w.Bytes(), b) {
			t.Errorf("%x became %x", b, w.Bytes())
		}
	})
}
