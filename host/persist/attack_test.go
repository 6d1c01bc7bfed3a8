package persist

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
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
