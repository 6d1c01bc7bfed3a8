package rebuild

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
)

// Logs of earlier releases do not say what becomes of a message whose turn fails. What became of it follows from later records.

// hadAgain are the places of the turns that have failed and whose message has had another one, and of those whose message has had none
// before later ones.
func hadAgain(records []record.Record) (again, dropped map[int]bool) {
	type failed struct {
		at       int
		position uint64
	}
	again, dropped = map[int]bool{}, map[int]bool{}
	all := map[abi.Ref][]failed{} // of which nothing is known yet
	for i := range records {
		e, of := records[i].Entry, records[i].Actor
		if s := records[i].Signal; s != nil && s.What == "message" {
			e = &record.Entry{Mail: []uint64{s.Position}, Done: 1} // the host has handled it
		}
		if e == nil || len(e.Mail) == 0 {
			continue
		}
		if waits := all[of]; len(waits) > 0 { // of few, and all records of a start come by here
			all[of] = slices.DeleteFunc(waits, func(x failed) bool {
				switch {
				case slices.Contains(e.Mail, x.position):
					again[x.at] = true
				case slices.Max(e.Mail) > x.position:
					dropped[x.at] = true
				default:
					return false // those had been put aside
				}
				return true
			})
		}
		if e.Failure != nil && e.Done < len(e.Mail) {
			all[of] = append(all[of], failed{i, e.Mail[e.Done]})
		}
	}
	return again, dropped
}
