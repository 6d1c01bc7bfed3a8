package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	rules "github.com/wasmactors/wasmactors/abi/persist"
)

// records are what an actor stores: events with texts, a snapshot, and the end of what is before it.
func records(id string, entries ...rules.Entry) (list [][]byte) {
	for i := range entries {
		x := &taken{id: id, time: int64(100 + i)}
		x.add(entries[i], rules.AppendEntry(nil, &entries[i]))
		list = append(list, x.encode(nil))
	}
	return list
}

func event(n uint64) rules.Entry {
	return rules.Entry{Event: Event{Number: n, Type: "a", Version: 1, Tags: []string{"t"}, Payload: []byte{byte(n)}}}
}

// some are five events, of which three are in a snapshot and deleted.
func some(id string) [][]byte {
	return records(id, event(1), event(2), event(3), rules.Entry{Kind: rules.EntrySnapshot, Snapshot: Snapshot{Number: 3, Version: 1, Payload: []byte{9}}},
		rules.Entry{Kind: rules.EntryDeleteEvents, To: 3}, event(4), event(5))
}

func living(t *testing.T) *Journal {
	j, err := Open(Options{Manual: true, Living: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func told(t *testing.T, j *Journal, id string) (text string) {
	for e, err := range j.ByID(context.Background(), id, Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%d:%x@%d ", e.Number, e.Payload, e.Time)
	}
	s, err := j.snapshot(id, nil, 1<<63, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s != nil {
		text += fmt.Sprintf("snapshot %d:%x@%d", s.Number, s.Payload, s.Time)
	}
	return text
}

// What was loaded is what was stored, and one record of all that there is brings the same back, wherever it is loaded.
func TestLoad(t *testing.T) {
	const want = "4:04@105 5:05@106 snapshot 3:09@103"
	j, id := living(t), "/user/a/b"
	if err := j.Load(t.Context(), id, nil, some(id)); err != nil {
		t.Fatal(err)
	}
	j.Work()
	if got := told(t, j, id); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	whole, err := j.Whole(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	other := living(t)
	for range 2 { // it takes the place of all that there was
		if err := other.Load(t.Context(), id, whole, records(id, event(6))); err != nil {
			t.Fatal(err)
		}
		if got := told(t, other, id); got != "4:04@105 5:05@106 6:06@100 snapshot 3:09@103" {
			t.Errorf("of one record and another one: %s", got)
		}
	}
	if err := other.Load(t.Context(), id, whole, nil); err != nil {
		t.Fatal(err)
	}
	if again, err := other.Whole(t.Context(), id); err != nil || !bytes.Equal(again, whole) {
		t.Errorf("%x became %x, %v", whole, again, err)
	}
	if page, err := other.PageByTag(t.Context(), "t", Query{}, 1000); err != nil || len(page.Events) > 0 {
		t.Errorf("by tag: %v, %v", page, err)
	}
	if x, err := other.Info(id); err != nil || x.Last != 5 || x.Deleted != 3 || x.Bytes == 0 {
		t.Errorf("%+v, %v", x, err)
	}
}

// Records that are not what a journal has written are refused, and nothing changes.
func TestLoadRefuses(t *testing.T) {
	j, id := living(t), "/user/a/b"
	if err := j.Load(t.Context(), id, nil, some(id)); err != nil {
		t.Fatal(err)
	}
	whole, err := j.Whole(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	before := told(t, j, id)
	for name, err := range map[string]error{
		"of another":          j.Load(t.Context(), id, nil, some("/user/a/c")),
		"an event is missing": j.Load(t.Context(), id, nil, records(id, event(1), event(3))),
		"no record":           j.Load(t.Context(), id, nil, [][]byte{{1, 2, 3}}),
		"a whole of another":  j.Load(t.Context(), "/user/a/c", whole, nil),
		"half a whole":        j.Load(t.Context(), id, whole[:len(whole)-1], nil),
		"a gap behind it":     j.Load(t.Context(), id, whole, records(id, event(7))),
	} {
		if !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := told(t, j, id); got != before {
		t.Errorf("%s became %s", before, got)
	}
}

// What is loaded stays what it is, while what was deleted before is removed.
func TestLoadWhileEventsAreRemoved(t *testing.T) {
	j, err := Open(Options{Living: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	id := "/user/a/b"
	var long []rules.Entry
	for n := range uint64(600) {
		e := event(n + 1)
		e.Event.Payload = []byte{1}
		long = append(long, e)
	}
	long = append(long, rules.Entry{Kind: rules.EntryDeleteEvents, To: 590})
	for n := range 100 {
		list, last := records(id, long...), uint64(600)
		if n%2 == 1 {
			list, last = some(id), 5
		}
		if err := j.Load(t.Context(), id, nil, list); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if m, err := j.index.meta(id); err != nil || m.last != last {
				t.Fatalf("load %d: the last event is %d, want %d, %v", n, m.last, last, err)
			}
		}
	}
}

// What a log is forged to have in the place of a whole is refused, or written again as it was.
func FuzzWhole(f *testing.F) {
	e, s := event(3), rules.Entry{Kind: rules.EntrySnapshot, Snapshot: Snapshot{Number: 2, Payload: []byte{1}}}
	f.Add((&whole{id: "/a", last: 3, deleted: 2, entries: []timed{{1, rules.AppendEntry(nil, &s), s}, {5, rules.AppendEntry(nil, &e), e}}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := decodeWhole("/a", append([]byte{}, b...))
		if err != nil {
			return
		}
		if again := w.encode(); !bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}
