package swap

import (
	"bytes"
	"slices"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/onlook"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Trial keeps what an actor does with its new code, so that the old code can be brought to where it would be without the
// exchange. The actor's run adds to it, any goroutine may read.
type Trial struct {
	Old   *sandbox.Image
	State *sandbox.Snapshot // of Old, from before the exchange
	New   *sandbox.Snapshot // of the new code, from then
	Since int64             // time of the exchange, ns since 1970

	most int

	mu      sync.Mutex
	failed  func(*abi.Failure) // nil: nobody has adopted it yet
	entries []Entry
	bytes   int
	over    string
	fails   *abi.Failure // failed was told
}

// Entry is what turns that were run together have taken in, and what they have asked for.
type Entry struct {
	Now    int64
	First  uint64         // turn
	Mail   []abi.Envelope // of the turns that ended well
	Outbox []byte         // of the same
}

// overhead of an entry and of a message, bytes.
const overhead = 160

// MostKept bounds the inputs of one actor that are kept for going back, in bytes; MostTrials all that is kept for all actors, unless an
// upgrade says otherwise.
const (
	MostKept   = 256 << 10
	MostTrials = 256 << 20
)

// NewTrial makes a trial that keeps at most most bytes. failed is called, within the actor's run, for a turn that has failed; the
// actor is held then, and the failure has not happened. It must not block, and not call the trial. nil: Adopt says it later.
func NewTrial(old *sandbox.Image, state, now *sandbox.Snapshot, most int, failed func(*abi.Failure)) *Trial {
	sandbox.Use(old) // an actor that is held runs it; until the trial ends
	return &Trial{Old: old, State: state, New: now, most: most, failed: failed}
}

// Add keeps an entry, which is the trial's from then on.
func (t *Trial) Add(e Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != "" {
		return
	}
	t.bytes += overhead + len(e.Outbox)
	for i := range e.Mail {
		m := &e.Mail[i]
		m.Headers, m.Payload = bytes.Clone(m.Headers), bytes.Clone(m.Payload)
		t.bytes += overhead + len(m.Headers) + len(m.Payload)
	}
	e.Outbox = bytes.Clone(e.Outbox)
	if t.entries = append(t.entries, e); t.bytes > t.most && t.fails == nil { // else it is the last one, and is needed
		t.end("more has come in since than is kept for going back")
	}
}

// Entry implements onlook.Onlooker: the turns that count are kept.
func (t *Trial) Entry(e *onlook.Entry) {
	x := Entry{Now: e.Now, First: e.First, Outbox: e.Instance.Outbox(e.Done)}
	for _, m := range e.Mail[:e.Done] {
		headers := slices.Clone(e.Headers(m)) // it may be the worker's, and Add copies only afterwards
		x.Mail = append(x.Mail, abi.Envelope{Kind: m.Kind, Time: e.Now, Sender: m.Sender, Correlation: m.Correlation, Headers: headers, Payload: m.Payload})
	}
	t.Add(x)
}

// Fail reports whether a failed turn is undone, because there is a way back.
func (t *Trial) Fail(f *abi.Failure) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != "" {
		return false
	}
	if t.fails = f; t.failed != nil {
		t.failed(f)
	}
	return true
}

// Adopt says what is called for a turn that fails, see NewTrial. Any goroutine may call it: a turn may have failed before.
func (t *Trial) Adopt(failed func(*abi.Failure)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed = failed; t.fails != nil && t.over == "" {
		failed(t.fails)
	}
}

// Bytes is about what the trial takes, without its inputs; 0: there is no way back any more.
func (t *Trial) Bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != "" {
		return 0
	}
	return int64(t.State.Bytes()+t.New.Bytes()) + MostKept/16
}

// EndIfWell is End, unless a turn has failed: then the actor is held, and waits to go back.
func (t *Trial) EndIfWell(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fails == nil {
		t.end(why)
	}
}

// Failure is that of the turn that was to be undone; nil: none has failed.
func (t *Trial) Failure() *abi.Failure {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fails
}

// End says why there is no way back any more. The first reason counts.
func (t *Trial) End(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(why)
}

func (t *Trial) end(why string) {
	if t.over == "" {
		t.over, t.entries, t.State, t.New = why, nil, nil, nil
		sandbox.Unuse(t.Old)
	}
}

// Kept is what has come in since the exchange; over says why there is no way back, if there is none.
func (t *Trial) Kept() (entries []Entry, state, now *sandbox.Snapshot, over string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[:len(t.entries):len(t.entries)], t.State, t.New, t.over
}
