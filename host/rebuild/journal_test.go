package rebuild

import (
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/record"
)

// journal is a log in memory with group commit: what has arrived is synced together, and a sync takes a while. A turn is
// answered when the sync that covers its record is done.
type journal struct {
	clock host.Clock
	sync  time.Duration

	mu      sync.Mutex
	log     [][]byte // CBOR
	durable int      // records of log that are synced
	waiting []*record.Turn
	syncing []*record.Turn // of the sync under way
	syncs   int
	seen    func(k int)  // for tests: a record was written, the kth
	entry   record.Entry // used again
	closed  bool         // for tests: everything is answered, and nothing written
}

func newJournal(c host.Clock, sync time.Duration) *journal { return &journal{clock: c, sync: sync} }

// Turn implements record.Recorder.
func (j *journal) Turn(t *record.Turn) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		t.Answer(nil)
		return
	}
	j.entry.Set(t)
	j.append(&record.Record{Kind: record.Turned, Actor: t.Actor, Time: t.Time, Entry: &j.entry})
	j.waiting = append(j.waiting, t)
	if !t.Waits {
		j.begin()
	}
	j.mu.Unlock()
	if t.Waits { // its worker does: a sync now
		j.flush()
	}
}

// Note implements record.Recorder.
func (j *journal) Note(r *record.Record) {
	j.mu.Lock()
	j.append(r)
	j.mu.Unlock()
}

func (j *journal) append(r *record.Record) {
	if j.closed {
		return
	}
	b, err := cbor.Marshal(r)
	if err != nil {
		panic(err)
	}
	j.log = append(j.log, b)
	if j.seen != nil {
		j.seen(len(j.log))
	}
}

// begin starts a sync of all that has arrived, unless one is under way.
func (j *journal) begin() {
	if len(j.syncing) > 0 || len(j.waiting) == 0 {
		return
	}
	j.syncing, j.waiting = j.waiting, nil
	upTo, number := len(j.log), j.syncs
	j.clock.AfterFunc(j.sync, func() {
		j.mu.Lock()
		if j.syncs != number { // it was not waited for
			j.mu.Unlock()
			return
		}
		group := j.syncing
		j.syncing = nil
		j.synced(upTo, group)
	})
}

// flush syncs all that has arrived, now; false if nothing waits.
func (j *journal) flush() bool {
	j.mu.Lock()
	group := append(j.syncing, j.waiting...)
	j.syncing, j.waiting = nil, nil
	j.synced(len(j.log), group)
	return len(group) > 0
}

// synced answers turns; j.mu is held, and free afterwards.
func (j *journal) synced(upTo int, group []*record.Turn) {
	if len(group) > 0 {
		j.durable, j.syncs = upTo, j.syncs+1
	}
	j.begin()
	j.mu.Unlock()
	for _, t := range group {
		t.Answer(nil)
	}
}

// read decodes the first k records: what a process that was killed after them has left.
func (j *journal) read(k int) ([]record.Record, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]record.Record, k)
	for i := range out {
		if err := cbor.Unmarshal(j.log[i], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
