package reliable

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

func headers(key string, v []byte) []byte { return abi.AppendHeader(nil, key, string(v)) }

func TestMarksAndAcks(t *testing.T) {
	for _, m := range []Mark{{0, 0, 1, 1}, {7, 3, 1<<64 - 1, 5}} {
		if got, ok := ParseMark(headers(Header, AppendMark(nil, m))); !ok || got != m {
			t.Errorf("%+v, %v", got, ok)
		}
	}
	a := Ack{1<<64 - 1, 0, 9}
	if got, ok := ParseAck(headers(AckHeader, AppendAck(nil, a))); !ok || got != a {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, bad := range []string{"", "1", "1 2 3", "1 2 3 ", "1 2 3 4 5", " 1 2 3 3", "1  2 3 3", "1 2 3 x", "1 2 3 -1", "01 2 3 3", "1 2 3 18446744073709551616", "1 2 3 4", "1 2 3 0", "1 2 0 0"} {
		if m, ok := ParseMark(headers(Header, []byte(bad))); ok {
			t.Errorf("%q is %+v", bad, m)
		}
	}
	if _, ok := ParseMark(nil); ok {
		t.Error("nothing is a mark")
	}
}

// What can be read is what would be written.
func FuzzMark(f *testing.F) {
	f.Add("0 1 2 1")
	f.Add("1 2 3 99999999999999999999")
	f.Fuzz(func(t *testing.T, v string) {
		if len(v) > abi.MaxHeaderValue {
			return
		}
		if m, ok := ParseMark(headers(Header, []byte(v))); ok && string(AppendMark(nil, m)) != v {
			t.Errorf("%q is %+v", v, m)
		}
	})
}

func TestWindow(t *testing.T) {
	w := NewWindow[string](3, 10)
	add := func(v string, want uint64) {
		t.Helper()
		if n, err := w.Add(v, len(v)); n != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v", v, n, err)
		}
	}
	add("aaaa", 1)
	add("bbbbbbb", 0) // the bytes
	add("bbbb", 2)
	add("cc", 3)
	add("", 0) // the number
	for number, want := range map[uint64]int{0: 0, 4: 0, 1 << 63: 0} {
		if n := w.Ack(number); n != want {
			t.Errorf("%d: %d", number, n)
		}
	}
	if n := w.Ack(2); n != 2 || w.First() != 3 || w.Len() != 1 || w.Bytes() != 2 || w.Get(3) != "cc" || w.Ack(2) != 0 {
		t.Errorf("%d, %+v", n, w)
	}
	for i := uint64(4); i < 100; i++ {
		add("x", i)
		w.Ack(i - 1)
		if w.Get(i) != "x" || w.Len() != 1 {
			t.Fatalf("%+v", w)
		}
	}
}

// TestK21_Receiver: in order, once; a gap is not taken; a new session starts over and an old one counts no
// more; a receiver that knows nothing begins where the sender does.
func TestK21_Receiver(t *testing.T) {
	var r Receiver
	for i, c := range []struct {
		m    Mark
		want Verdict
		ack  uint64
	}{
		{Mark{0, 1, 5, 5}, Deliver, 5}, {Mark{0, 1, 5, 5}, Duplicate, 5}, {Mark{0, 1, 7, 6}, Gap, 0}, {Mark{0, 1, 6, 6}, Deliver, 6},
		{Mark{0, 1, 7, 6}, Deliver, 7}, {Mark{0, 1, 5, 5}, Duplicate, 7}, {Mark{1, 1, 1, 1}, Deliver, 1},
		{Mark{0, 2, 1, 1}, Deliver, 1}, {Mark{0, 1, 8, 8}, Stale, 0}, {Mark{0, 2, 2, 1}, Deliver, 2},
		{Mark{0, 2, 9, 9}, Deliver, 9}, // it has given 3 to 8 up
		{Mark{0, 2, 11, 9}, Gap, 0},
	} {
		if v, a := r.Accept(3, c.m); v != c.want || a.Number != c.ack {
			t.Errorf("%d: %+v: %v, %+v", i, c.m, v, a)
		}
	}
	if v, _ := r.Accept(4, Mark{0, 2, 1, 1}); v != Deliver {
		t.Error("streams of two senders are mixed up")
	}
	r.Forget(3)
	if v, _ := r.Accept(3, Mark{0, 2, 9, 9}); v != Deliver || len(r.streams) != 2 {
		t.Error("it is not forgotten")
	}
	few := NewReceiver(2)
	for i := abi.Ref(1); i <= 100; i++ {
		few.Accept(1, Mark{0, 1, uint64(i), uint64(i)})
		few.Accept(i+10, Mark{0, 1, 1, 1})
	}
	if v, _ := few.Accept(1, Mark{0, 1, 100, 1}); v != Duplicate || len(few.streams) != 2 {
		t.Errorf("%v: not the one is forgotten that was quiet for longest; %d", v, len(few.streams))
	}
}

// A sender with any number of streams cannot have those of others forgotten, so that they are taken twice.
func TestAFloodOfStreams(t *testing.T) {
	const room, others = 64, 30
	r := NewReceiver(room)
	for i := range abi.Ref(others) {
		r.Accept(i+1, Mark{0, 1, 5, 5})
	}
	for i := range uint64(10_000) {
		r.Accept(1000, Mark{i, 1, 1, 1})
	}
	for i := range abi.Ref(others) {
		if v, _ := r.Accept(i+1, Mark{0, 1, 5, 5}); v != Duplicate {
			t.Errorf("%d: %v", i+1, v)
		}
	}
	if len(r.streams) != room {
		t.Errorf("%d streams", len(r.streams))
	}
	for i := range abi.Ref(others) { // who comes later finds room
		r.Accept(i+101, Mark{0, 1, 5, 5})
	}
	for i := range abi.Ref(others) {
		if v, _ := r.Accept(i+1, Mark{0, 1, 5, 5}); v != Duplicate {
			t.Errorf("later %d: %v", i+1, v)
		}
	}
}

// Through a network that loses, doubles and reorders everything arrives once and in order, as long as the
// receiver remembers.
func TestThroughABadNetwork(t *testing.T) {
	for seed := range int64(100) {
		rnd := rand.New(rand.NewSource(seed))
		w := NewWindow[int](10, 1000)
		var r Receiver
		var got []int
		var out []Mark
		var acks []Ack
		sent := 0
		for len(got) < 50 {
			if n, err := w.Add(sent, 1); err == nil {
				out = append(out, Mark{0, 1, n, w.First()})
				sent++
			}
			if rnd.Intn(4) == 0 { // resend
				for n := w.First(); n < w.First()+uint64(w.Len()); n++ {
					out = append(out, Mark{0, 1, n, w.First()})
				}
			}
			rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			for _, m := range out {
				for range rnd.Intn(3) {
					v, a := r.Accept(1, m)
					if v == Deliver {
						got = append(got, int(m.Number)-1)
					}
					if v == Deliver || v == Duplicate {
						acks = append(acks, a)
					}
				}
			}
			out = out[:0]
			for _, a := range acks {
				if rnd.Intn(2) == 0 {
					w.Ack(a.Number)
				}
			}
			if rnd.Intn(2) == 0 {
				acks = nil
			}
		}
		for i, n := range got {
			if i != n {
				t.Fatalf("seed %d: %v", seed, got)
			}
		}
		if !slices.IsSorted(got) {
			t.Fatal("?")
		}
	}
}
