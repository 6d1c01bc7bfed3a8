package persist

import (
	"fmt"
	"maps"

	rules "github.com/wasmactors/wasmactors/abi/persist"
)

// Kept is what records have of an ID, without their contents.
type Kept struct {
	Last      uint64 `json:"last"`      // number of the last event
	Events    int    `json:"events"`    // that are not deleted
	Snapshots int    `json:"snapshots"` // those that count
}

// Describe says what a record of all (see [Journal.Whole]; nil: there is none) and the records after it have of an ID. The error says what
// no journal has written.
func Describe(id string, whole []byte, records [][]byte) (k Kept, err error) {
	w, err := decodeWhole(id, whole)
	if err != nil {
		return k, err
	}
	deleted := uint64(0)
	snapshots := map[uint64]bool{}
	if w != nil {
		k.Last, deleted = w.last, w.deleted
		for i := range w.entries {
			if e := &w.entries[i].entry; e.Kind == rules.EntrySnapshot {
				snapshots[e.Snapshot.Number] = true
			}
		}
	}
	for i, b := range records {
		t, err := decodeTaken(b)
		if err != nil {
			return k, fmt.Errorf("record %d: %w", i, err)
		}
		for j := range t.entries {
			switch e := &t.entries[j]; e.Kind {
			case rules.EntryEvent:
				k.Last = e.Event.Number
			case rules.EntrySnapshot:
				snapshots[e.Snapshot.Number] = true
			case rules.EntryDeleteEvents:
				deleted = max(deleted, min(e.To, k.Last))
			case rules.EntryDeleteSnapshots:
				maps.DeleteFunc(snapshots, func(n uint64, _ bool) bool { return n >= e.From && n <= e.To })
			}
		}
	}
	k.Events, k.Snapshots = int(k.Last-deleted), len(snapshots)
	return k, nil
}

// Nothing is a record of all of an ID that has nothing.
func Nothing(id string) []byte { return (&whole{id: id}).encode() }
