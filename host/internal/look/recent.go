package look

import (
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/host/event"
)

// Recent keeps the last events, for those who ask after a failure. The zero value keeps none. It is safe for concurrent use,
// but for Keep.
type Recent struct {
	mu   sync.Mutex
	ring []event.Event
	n    uint64 // that were added
}

// mostRecentText bounds each text of an event that is kept, in bytes.
const mostRecentText = 500

// Keep has the last n events kept. It is called before there are any.
func (r *Recent) Keep(n int) { r.ring = make([]event.Event, n) }

func (r *Recent) kept() bool { return len(r.ring) > 0 }

// add keeps an event without payloads and stacks.
func (r *Recent) add(e *event.Event) {
	if !r.kept() {
		return
	}
	x := *e
	x.Note, x.Text, x.Trace, x.Mail = brief(x.Note), brief(x.Text), nil, nil
	if f := x.Failure; f != nil {
		own := *f
		own.Reason, own.Message, own.Stack, own.GuestStack = brief(f.Reason), brief(f.Message), nil, ""
		x.Failure = &own
	}
	if d := x.Dead; d != nil {
		own := *d
		own.Payload = nil
		x.Dead = &own
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ring[r.n%uint64(len(r.ring))] = x
	r.n++
}

// brief is a copy of the begin of a text, so that it does not hold what the text is a part of.
func brief(s string) string {
	return strings.Clone(s[:min(len(s), mostRecentText)])
}

// Events are those that are kept, the oldest first.
func (r *Recent) Events() (events []event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := uint64(len(r.ring))
	for k := r.n - min(r.n, n); k < r.n; k++ {
		events = append(events, r.ring[k%n])
	}
	return events
}
