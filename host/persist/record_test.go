package persist

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// plain is what a journal has of an ID, without an index, a queue or a log.
type plain struct {
	last      uint64
	events    map[uint64][]byte
	snapshots map[uint64][]byte
}

func (p *plain) take(list []rules.Entry) {
	for _, e := range list {
		switch e.Kind {
		case rules.EntryEvent:
			p.last = e.Event.Number
			p.events[p.last] = e.Event.Payload
		case rules.EntrySnapshot:
			p.snapshots[e.Snapshot.Number] = e.Snapshot.Payload
		case rules.EntryDeleteEvents:
			for n := range p.events {
				if n <= e.To {
					delete(p.events, n)
				}
			}
		case rules.EntryDeleteSnapshots:
			for n := range p.snapshots {
				if n >= e.From && n <= e.To {
					delete(p.snapshots, n)
				}
			}
		}
	}
}

func (p *plain) bytes(id string) (n int64) {
	for _, b := range p.events {
		n += weight(id, &rules.Entry{Event: Event{Type: "a", Tags: []string{"t"}, Payload: b}})
	}
	for _, b := range p.snapshots {
		n += weight(id, &rules.Entry{Kind: rules.EntrySnapshot, Snapshot: Snapshot{Payload: b}})
	}
	return n
}

// puts is the part of a journal that a turn goes through, without a system.
func put(j *Journal, m *member, limit int64, at uint64, list []rules.Entry) (record []byte, err error) {
	m.limit = limit
	t := &taken{}
	for i := range list {
		t.add(list[i], rules.AppendEntry(nil, &list[i]))
	}
	last := m.state.last
	if err := j.admit(m, t, &last); err != nil {
		return nil, err
	}
	j.Stored(&Turn{member: m, taken: t}, at)
	return t.encode(nil), nil
}

func seat(t *testing.T, j *Journal, id string) *member {
	j.join(ref.Of(abi.Ref(uint64(len(id))<<20|1), "wasm://s"+id), &feed{}, 0)
	for _, m := range j.members {
		if m.id == id {
			return m
		}
	}
	t.Fatal("it has not joined")
	return nil
}

// Whatever an actor has stored and deleted, in whichever order and in as many turns of one entry as it likes, what there is is what a model says:
// now, by its tag, in one record, and when the records are loaded by another journal. What counts for limits.durable is what is there.
func TestRecordsAreWhatTheyDelete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, err := Open(Options{Manual: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = j.Close() }()
		const id = "/user/a/b"
		j.join(ref.Of(abi.Ref(1<<20|1), "wasm://s"+id), &feed{}, 0)
		m := j.members[abi.Ref(1<<20|1)]
		want := &plain{events: map[uint64][]byte{}, snapshots: map[uint64][]byte{}}
		var records [][]byte
		at := uint64(1)
		for range rapid.IntRange(1, 25).Draw(t, "records") {
			var list []rules.Entry
			last, before := want.last, want.last
			for range rapid.IntRange(1, 9).Draw(t, "entries") {
				n := rapid.Uint64Range(0, last+1).Draw(t, "n")
				switch rapid.IntRange(0, 7).Draw(t, "kind") {
				case 0:
					list = append(list, rules.Entry{Kind: rules.EntryDeleteEvents, To: n})
				case 1:
					list = append(list, rules.Entry{Kind: rules.EntryDeleteSnapshots, From: rapid.Uint64Range(0, 2).Draw(t, "from"), To: n})
				case 2:
					if last > 0 {
						list = append(list, rules.Entry{Kind: rules.EntrySnapshot, Snapshot: Snapshot{Number: max(1, min(n, last)), Version: 1, Payload: []byte{0x42, byte(n), 2}}})
					}
				case 3, 4: // as of a state that is kept
					list = append(list, rules.Entry{Kind: rules.EntryDeleteEvents, To: last}, rules.Entry{Kind: rules.EntryDeleteSnapshots, To: last})
					fallthrough
				default:
					last++
					list = append(list, rules.Entry{Event: Event{Number: last, Type: "a", Version: 1, Tags: []string{"t"}, Payload: []byte{0x41, byte(last)}}})
				}
			}
			if len(list) == 0 {
				continue
			}
			want.take(list)
			if rapid.IntRange(0, 4).Draw(t, "refused") == 0 && m.state.bytes() > 0 { // with less room: it is refused, or it makes room itself
				own := false // something that the record adds is left
				for n := range want.events {
					own = own || n > before
				}
				for _, e := range list {
					own = own || e.Kind == rules.EntrySnapshot && want.snapshots[e.Snapshot.Number] != nil
				}
				b, err := put(j, m, 1, at, slices.Clone(list))
				if err == nil && own {
					t.Fatalf("%d bytes were taken", want.bytes(id))
				} else if err == nil {
					records = append(records, b)
					at += 1000
					continue
				}
			}
			b, err := put(j, m, 1<<40, at, list)
			if err != nil {
				t.Fatal(err)
			}
			at += 1000
			records = append(records, b)
			if rapid.Bool().Draw(t, "applied") {
				j.Durable(at)
			}
			if rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
				j.Work()
			}
		}
		j.Durable(at)
		j.Work()
		check(t, "of itself", j, id, want)
		other, err := Open(Options{Manual: true, Living: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		if len(records) == 0 {
			return
		}
		if err := other.Load(context.Background(), id, nil, records); err != nil {
			t.Fatal(err)
		}
		other.Work()
		check(t, "loaded", other, id, want)
		whole, err := other.Whole(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Load(context.Background(), id, whole, nil); err != nil {
			t.Fatal(err)
		}
		check(t, "of one record", other, id, want)
	})
}

func check(t *rapid.T, what string, j *Journal, id string, want *plain) {
	t.Helper()
	say := func(m map[uint64][]byte) (list []string) {
		for n, b := range m {
			list = append(list, fmt.Sprintf("%d:%x", n, b))
		}
		slices.Sort(list)
		return list
	}
	events, snapshots := map[uint64][]byte{}, map[uint64][]byte{}
	for e, err := range j.ByID(context.Background(), id, Query{}) {
		if err != nil {
			t.Fatal(what, err)
		}
		events[e.Number] = e.Payload
	}
	w, err := j.index.whole(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range w.entries {
		if e.entry.Kind == rules.EntrySnapshot {
			snapshots[e.entry.Snapshot.Number] = e.entry.Snapshot.Payload
		}
	}
	if a, b := say(events), say(want.events); !slices.Equal(a, b) {
		t.Fatalf("%s there are the events %v, want %v", what, a, b)
	}
	if a, b := say(snapshots), say(want.snapshots); !slices.Equal(a, b) {
		t.Fatalf("%s there are the snapshots %v, want %v", what, a, b)
	}
	info, err := j.Info(id)
	if err != nil || info.Bytes != want.bytes(id) || info.Last != want.last {
		t.Fatalf("%s: %+v, want %d bytes and %d: %v", what, info, want.bytes(id), want.last, err)
	}
	if j.living {
		return
	}
	p, err := j.PageByTag(context.Background(), "t", Query{}, 1<<18)
	if err != nil || p.More {
		t.Fatal(what, p.More, err)
	}
	tagged := map[uint64][]byte{}
	for _, e := range p.Events {
		tagged[e.Number] = e.Payload
	}
	if a, b := say(tagged), say(want.events); !slices.Equal(a, b) {
		t.Fatalf("%s its tag leads to %v, want %v", what, a, b)
	}
	if m := j.ids[id]; m.queued != 0 || m.since != 0 || m.replacing != 0 || m.bytes() != info.Bytes {
		t.Fatalf("%s: %+v", what, m)
	}
}

// keeps is what a state leads to that is kept: n times, in as many records as turns.
func keeps(last uint64, n int, payload []byte) (list []rules.Entry) {
	for range n {
		if last > 0 {
			list = append(list, rules.Entry{Kind: rules.EntryDeleteEvents, To: last}, rules.Entry{Kind: rules.EntryDeleteSnapshots, To: last})
		}
		last++
		list = append(list, rules.Entry{Event: Event{Number: last, Type: "a", Version: 1, Tags: []string{"t"}, Payload: payload}})
	}
	return list
}

// Several states that one entry has kept are one in its record, and the numbers go on.
func TestOnlyTheLastStateOfARecordIsWritten(t *testing.T) {
	j := living(t)
	m := seat(t, j, "/user/a")
	state := append([]byte{0x59, 0x03, 0xe8}, make([]byte, 1000)...)
	one, err := put(j, m, 0, 1, keeps(0, 1, state))
	if err != nil {
		t.Fatal(err)
	}
	ten, err := put(j, m, 0, 2000, keeps(1, 10, state))
	if err != nil {
		t.Fatal(err)
	}
	if len(ten) > len(one)+9*32 {
		t.Errorf("a state takes %d bytes, and ten of one entry %d", len(one), len(ten))
	}
	if _, err := decodeTaken(ten); err != nil {
		t.Error(err)
	}
	if m.state.last != 11 {
		t.Error(m.state.last)
	}
}

// A state may be as large as limits.durable says, however often it is kept, and however far the index is behind.
func TestAStateMayFillItsRoom(t *testing.T) {
	j := living(t)
	m := seat(t, j, "/user/a")
	state := append([]byte{0x59, 0x03, 0xe8}, make([]byte, 1000)...)
	limit := int64(1200)
	for n := range uint64(50) {
		if _, err := put(j, m, limit, 1+n*2000, keeps(n, 1, state)); err != nil {
			t.Fatal(err)
		}
		if n%7 == 0 {
			j.Durable(1 + n*2000)
			j.Work()
		}
	}
	small := event(51)
	small.Event.Payload = []byte{1}
	if _, err := put(j, m, limit, 1<<18, []rules.Entry{small}); err != nil { // what waits for the index, and does not count any more, takes no room
		t.Error(err)
	}
	_, err := put(j, m, 1000, 1<<20, keeps(51, 1, state))
	if err == nil || !strings.Contains(err.Error(), "raise limits.durable") {
		t.Error(err)
	}
	events := slices.DeleteFunc(keeps(51, 1, state), func(e rules.Entry) bool { return e.Kind != rules.EntryEvent })
	if _, err := put(j, m, limit, 1<<20, events); err == nil { // an event beside it has no room
		t.Error("more than there may be")
	}
}

// The index gives back what it had of states, also while there is always something to apply: 100,000 of them take what some need.
func TestTheIndexGivesStatesBack(t *testing.T) {
	const keys = 20
	n := thorough.SlowOf(30_000, 100_000)
	if testing.Short() {
		n = 10_000
	}
	j, err := Open(Options{Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	var members []*member
	for i := range keys {
		id := fmt.Sprintf("/user/a/%d", i)
		j.join(ref.Of(abi.Ref(uint64(i)<<20|1), "wasm://s"+id), &feed{}, 0)
		members = append(members, j.members[abi.Ref(uint64(i)<<20|1)])
	}
	dice := rand.New(rand.NewPCG(1, 1))
	at := uint64(1)
	used := int64(0)
	for i := range n {
		state := make([]byte, 1000)
		for k := range state {
			state[k] = byte(dice.Uint32())
		}
		m := members[i%keys]
		if _, err := put(j, m, 0, at, keeps(m.state.last, 1, append([]byte{0x59, 0x03, 0xe8}, state...))); err != nil {
			t.Fatal(err)
		}
		at += 2000
		j.Durable(at)
		if i%300 == 0 {
			j.step()
		}
		used = max(used, j.index.size())
	}
	j.Work()
	if err := j.index.flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d states of 1000 bytes: at most %d bytes of files, %d at the end", n, used, j.index.size())
	if used > 8<<20 {
		t.Errorf("the index had up to %d bytes", used)
	}
	for _, m := range members {
		if info, err := j.Info(m.id); err != nil || info.Last != uint64(n/keys) || info.Bytes > 1200 || info.Deleted != info.Last-1 {
			t.Errorf("%+v, %v", info, err)
		}
	}
}

// What is deleted in large numbers is removed although there is always something to apply.
func TestDeletedEventsAreRemovedUnderLoad(t *testing.T) {
	j := living(t)
	m := seat(t, j, "/user/a")
	at := uint64(1)
	do := func(list ...rules.Entry) {
		list[0].Event.Payload = []byte{1}
		if _, err := put(j, m, 0, at, list); err != nil {
			t.Fatal(err)
		}
		at += 1000
	}
	for range 4 * sweepEvery {
		for range 50 {
			do(event(m.state.last + 1))
		}
		do(rules.Entry{Kind: rules.EntryDeleteEvents, To: m.state.last})
		do(event(m.state.last + 1)) // there is always one more
		j.Durable(at - 1000)
		j.step()
	}
	if meta, err := j.index.meta(m.id); err != nil || meta.swept < meta.deleted/2 {
		t.Errorf("%+v, %v, %v", meta, err, j.Err())
	}
}
