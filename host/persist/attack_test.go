package persist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/ref"
)

// An actor chooses how long its path, types and tags are. Pages and batches of tiny events that have much of those are within their bounds: or else
// nobody could read a tag that it uses, and it could not begin again itself.
func TestTagsCount(t *testing.T) {
	j, err := Open(Options{Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	id := "/user/" + strings.Repeat("x", 600)
	const self = abi.Ref(1<<20 | 1)
	j.join(ref.Of(self, "wasm://s"+id), &feed{}, 0)
	m := j.members[self]
	var list []rules.Entry
	const events = 300
	for n := range uint64(events) {
		e := Event{Number: n + 1, Type: strings.Repeat("a", 60), Version: 1, Payload: []byte{0xf6}, Tags: []string{"t"}}
		for i := range rules.MaxTags - 1 {
			e.Tags = append(e.Tags, fmt.Sprintf("%c%s", 'a'+i, strings.Repeat("x", rules.MaxTag-1)))
		}
		list = append(list, rules.Entry{Event: e})
	}
	if _, err := put(j, m, 0, 1, list[:events/2]); err != nil {
		t.Fatal(err)
	}
	j.Durable(1000)
	if _, err := put(j, m, 0, 1000, list[events/2:]); err != nil { // not in the index yet
		t.Fatal(err)
	}
	feeds := func() (seen int) {
		c := cursor{journal: j, id: m.id, state: m.state}
		for done := false; !done; {
			b, err := c.batch()
			if err != nil {
				t.Fatal(err)
			}
			if n := len(rules.AppendBatch(nil, &b)); n > batchBytes+8<<10 {
				t.Fatalf("a batch of %d bytes", n)
			}
			seen, done = seen+len(b.Events), b.Done
		}
		return seen
	}
	if n := feeds(); n != events {
		t.Errorf("%d events", n)
	}
	j.Durable(2000)
	if n := feeds(); n != events {
		t.Errorf("%d events from the index", n)
	}
	for name, page := range map[string]func(Query, int) (Page, error){
		"by ID":  func(q Query, n int) (Page, error) { return j.PageByID(context.Background(), m.id, q, n) },
		"by tag": func(q Query, n int) (Page, error) { return j.PageByTag(context.Background(), "t", q, n) },
	} {
		seen := 0
		for q, more := (Query{}), true; more; {
			p, err := page(q, 48<<10)
			if err != nil {
				t.Fatal(err)
			}
			if p.Bytes() > 48<<10 {
				t.Fatalf("%s: a page of %d bytes", name, p.Bytes())
			}
			seen, q.From, more = seen+len(p.Events), p.Next, p.More
		}
		if seen != events {
			t.Errorf("%s: %d events", name, seen)
		}
	}
}

// Turns that ran together store no more than a record may have when it is read again: one that cannot be read would make the whole store useless.
func TestWhatIsStoredCanBeRead(t *testing.T) {
	for n, want := range map[int]bool{rules.MaxTurn - 1: true, rules.MaxTurn: true, rules.MaxTurn + 1: false, 2 * rules.MaxTurn: false} {
		j, err := Open(Options{Manual: true})
		if err != nil {
			t.Fatal(err)
		}
		list := []rules.Entry{{Event: Event{Number: 1, Type: "a", Version: 1, Payload: []byte{0xf6}}}}
		for len(list) < n {
			list = append(list, rules.Entry{Kind: rules.EntryDeleteSnapshots, From: 5, To: 5})
		}
		b, err := put(j, seat(t, j, "/user/a"), 0, 1, list)
		var large *TurnTooLargeError
		switch {
		case (err == nil) != want:
			t.Errorf("%d entries: %v", n, err)
		case err == nil:
			if x, err := decodeTaken(b); err != nil || len(x.entries) != n {
				t.Errorf("%d entries cannot be read: %v", n, err)
			}
		case !errors.As(err, &large) || record.FailureOf(refused(err), 1).Kind != abi.FailureMemoryLimit:
			t.Errorf("%d entries: %v", n, err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What an ID may be, in a record that somebody else has written: what reaches file names, tables and subjects is what paths of actors are.
func TestBoundsOfIDs(t *testing.T) {
	long := "/" + strings.Repeat("a", abi.MaxPath-2)
	for id, want := range map[string]bool{
		"/user/a": true, "/user/key/~2F~0A": true, long: true, long + "b": true, long + "bc": false, "": false, "user/a": false, "/": true,
		"/user/a\x00": false, "/user/a\nb": false, "/user/a\tb": false, "/user/\x1b[2J": false, "/user/\x7f": false, "/user/a b": false, "/user/\xff": false,
		"/user/é": false, "/user/\u202e": false,
	} {
		x := &taken{id: id}
		e := rules.Entry{Event: Event{Number: 1, Type: "a", Version: 1, Payload: []byte{0xf6}}}
		x.add(e, rules.AppendEntry(nil, &e))
		if _, err := decodeTaken(x.encode(nil)); (err == nil) != want {
			t.Errorf("%.40q, %d bytes: %v", id, len(id), err)
		}
	}
}

// Whose failure each way is in which an actor's turn may be refused: never the host's, whose failures escalate.
func TestNoRefusalIsTheHosts(t *testing.T) {
	for err, want := range map[error]abi.FailureKind{
		errNoEvents: abi.FailureInit, errTooEarly: abi.FailureABIViolation, &LimitError{2, 1}: abi.FailureMemoryLimit, &TurnTooLargeError{1 << 20}: abi.FailureMemoryLimit,
		&rules.Rejected{Reason: "x"}: abi.FailureABIViolation, &rules.UnknownEvent{}: abi.FailureABIViolation, rules.ErrRecovering: abi.FailureABIViolation,
		fmt.Errorf("x: %w", &LimitError{2, 1}): abi.FailureMemoryLimit, abi.ErrTooLong: abi.FailureABIViolation,
	} {
		f := record.FailureOf(refused(err), 3)
		if f.Kind != want || strings.Contains(f.Reason, record.Unrecorded) || f.Turn != 3 {
			t.Errorf("%v: %v", err, f)
		}
	}
}
