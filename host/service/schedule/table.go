package schedule

import (
	"container/heap"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/host"
)

// item is an entry of the table, with its progress.
type item struct {
	Entry
	owner   string // path of the actor that has set it; "" is the manifest
	grant   uint64 // grant of its owner, in this process; 0: not known
	created int64  // ns
	spec    *Spec

	last   int64          // the latest planned time that is done or in progress, in ns
	next   int64          // the next planned time, in ns; 0: none
	place  int            // in the heap, -1: not in it
	open   map[int64]*run // in progress, by planned time
	doneTo int64          // all planned times up to here are done, in ns
	gone   bool           // cancelled or replaced
	stats  outcome
}

// outcome counts an entry's runs so far, in this process.
type outcome struct {
	Runs    uint64 `cbor:"runs"`               // that are over
	Missed  uint64 `cbor:"missed"`             // planned times that did not get a run of their own
	Retries uint64 `cbor:"retries"`            // attempts after the first
	Error   string `cbor:"error,omitempty"`    // of the last attempt, if it has failed
	LastRun int64  `cbor:"last_run,omitempty"` // planned time of the last run that is over, ns since 1970
}

// target is the path of the actor that its runs are for.
func (x *item) target() string {
	if x.To != "" {
		return x.To
	}
	return x.owner
}

// dueHeap orders items by their next time, then by owner and name, so that nothing depends on the
// order of a map.
type dueHeap []*item

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if a.next != b.next {
		return a.next < b.next
	}
	if a.owner != b.owner {
		return a.owner < b.owner
	}
	return a.Name < b.Name
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *dueHeap) Push(v any) {
	x := v.(*item)
	x.place = len(*h)
	*h = append(*h, x)
}
func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	x.place = -1
	return x
}

// set inserts or moves an item by its next time, or removes it if it has none.
func (h *dueHeap) set(x *item) {
	switch {
	case x.next == 0 && x.place >= 0:
		heap.Remove(h, x.place)
	case x.next == 0:
	case x.place >= 0:
		heap.Fix(h, x.place)
	default:
		heap.Push(h, x)
	}
}

// record is the journal's form of an item.
type record struct {
	Kind    recordKind `cbor:"1,keyasint"`
	Owner   string     `cbor:"2,keyasint,omitempty"`
	Name    string     `cbor:"3,keyasint,omitempty"`
	Entry   *Entry     `cbor:"4,keyasint,omitempty"`
	Created int64      `cbor:"5,keyasint,omitempty"` // ns
	Seconds int64      `cbor:"6,keyasint,omitempty"` // DoneTo of earlier versions: all planned times of this second are done
	DoneTo  int64      `cbor:"7,keyasint,omitempty"` // all planned times up to this one are done, in ns

	Request *keptRecord `cbor:"8,keyasint,omitempty"` // of a durable actor, that has led to it
}

type recordKind uint8

const (
	wasSet recordKind = iota + 1
	wasCancelled
	wasDone
	wasKept // only the request is left of an earlier record
)

var recordDecoder = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 32,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return m
}()

func (r *record) encode() []byte {
	b, err := host.Encode(r)
	if err != nil {
		panic(err) // of texts, numbers and checked CBOR
	}
	return b
}

// decodeRecord reads a record and checks what it says.
func decodeRecord(payload []byte) (*record, error) {
	r := &record{}
	if err := recordDecoder.Unmarshal(payload, r); err != nil {
		return nil, err
	}
	switch {
	case r.Kind < wasSet || r.Kind > wasKept:
		return nil, fmt.Errorf("a record of kind %d", r.Kind)
	case r.Kind == wasKept && (r.Request == nil || r.Owner != "" || r.Name != "" || r.Entry != nil || r.Created != 0 || r.Seconds != 0 || r.DoneTo != 0):
		return nil, errors.New("a record of a request, with more or without it")
	case (r.Kind == wasSet) != (r.Entry != nil):
		return nil, fmt.Errorf("a record of kind %d with or without an entry", r.Kind)
	case r.Seconds < 0 || r.Seconds > lastSecond || r.DoneTo < 0 || r.DoneTo > lastTime:
		return nil, fmt.Errorf("a run at %d s, %d ns", r.Seconds, r.DoneTo)
	case r.Owner != "" && !cleanPath(r.Owner):
		return nil, fmt.Errorf("an owner %.80q", r.Owner)
	}
	if r.Request != nil {
		if err := r.Request.check(); err != nil || r.Kind == wasKept {
			return r, err
		}
	}
	if r.Kind == wasSet {
		r.Name = r.Entry.Name
		if err := r.Entry.check(); err != nil {
			return nil, err
		}
	}
	if !validName(r.Name) {
		return nil, fmt.Errorf("a name %.80q", r.Name)
	}
	if r.Seconds > 0 {
		r.DoneTo, r.Seconds = max(r.DoneTo, r.Seconds*second+second-1), 0
	}
	return r, nil
}

func (x *item) record() *record {
	e := x.Entry
	return &record{Kind: wasSet, Owner: x.owner, Entry: &e, Created: x.created, DoneTo: x.doneTo}
}

// runID names a run: it is the same for all attempts.
func runID(owner, name string, planned int64) string {
	if owner == "" {
		owner = "manifest"
	}
	return owner + ":" + name + "@" + stamp(planned)
}

// stamp is a time as texts have it.
func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
