package observe

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// RawJSON is JSON as it is.
type RawJSON = json.RawMessage

// TraceRecord is a message of a traced actor: one that it has taken, or one that such a turn
// sends. Messages that a failed turn would have sent are not reported.
type TraceRecord struct {
	Time        time.Time `json:"time"`
	Actor       string    `json:"actor"`
	Incarnation uint64    `json:"incarnation"`
	Turn        uint64    `json:"turn"`
	Direction   string    `json:"direction"` // in, out
	Kind        string    `json:"kind"`      // of the message, as in the ABI
	Forward     bool      `json:"forward,omitempty"`
	Peer        string    `json:"peer,omitempty"` // path, or as the actor has written it; absent: nobody
	PeerRef     string    `json:"peer_ref,omitempty"`
	Correlation uint64    `json:"correlation,omitempty"`
	Size        int       `json:"size"`
	Payload     RawJSON   `json:"payload,omitempty"` // absent if it was cut off, or is not JSON
	Cut         bool      `json:"cut,omitempty"`
	Failed      string    `json:"failed,omitempty"` // in: why its turn has failed
}

// Bounds of traces.
const (
	MaxTraces      = 16 // at a time
	MaxTraceTime   = time.Hour
	maxTraceBuffer = 4096
	defaultPayload = 4 << 10
)

// traces are those under way.
type traces struct {
	mu     sync.Mutex
	open   map[*Stream[TraceRecord]]bool
	closed bool
}

func (t *traces) close() {
	t.mu.Lock()
	t.closed = true
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for s := range open {
		s.end("the system is observed no more")
	}
}

// Trace follows the messages of the actor at a path, in the order of its turns, through its
// restarts, until it has stopped, the bounds are reached or the stream is closed. If the reader is
// too slow, the newest are lost. At most MaxTraces are open: ErrBusy.
func (o *Observer) Trace(path string, t TraceOptions) (*Stream[TraceRecord], error) {
	payload, buffer, lasts := t.Payload, t.Buffer, t.For
	if payload == 0 {
		payload = defaultPayload
	}
	if buffer == 0 {
		buffer = 256
	}
	if lasts == 0 {
		lasts = MaxTraceTime
	}
	if payload < 0 || payload > mostPayload || buffer < 0 || buffer > maxTraceBuffer || t.Messages < 0 || lasts < 0 || lasts > MaxTraceTime {
		return nil, invalid("a trace keeps at most %d bytes of a payload and %d records, and lasts at most %v", mostPayload, maxTraceBuffer, MaxTraceTime)
	}
	ref, err := o.sys.Lookup(path)
	if err != nil {
		return nil, noActor(path)
	}
	s := newStream[TraceRecord](buffer)
	if err := o.traces.add(s); err != nil {
		return nil, err
	}
	left := atomic.Int64{}
	left.Store(int64(t.Messages))
	stop, err := o.sys.View().Tap(ref, payload, func(m *host.Tapped) {
		if t.Messages > 0 && left.Add(-1) < 0 {
			return
		}
		s.put(recordOf(m))
		if t.Messages > 0 && left.Load() == 0 {
			s.end("as many messages as were asked for")
		}
	}, func() { s.end("the actor has stopped") })
	if err != nil {
		o.traces.remove(s)
		return nil, noActor(path)
	}
	timer := o.sys.Clock().AfterFunc(lasts, func() { s.end("the time is over") })
	s.onEnd(func() {
		timer.Stop()
		stop()
		o.traces.remove(s)
	})
	return s, nil
}

func (t *traces) add(s *Stream[TraceRecord]) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return ErrClosed
	case len(t.open) >= MaxTraces:
		return ErrBusy
	case t.open == nil:
		t.open = map[*Stream[TraceRecord]]bool{}
	}
	t.open[s] = true
	return nil
}

func (t *traces) remove(s *Stream[TraceRecord]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, s)
}

func recordOf(m *host.Tapped) TraceRecord {
	r := TraceRecord{
		Time: m.Time.UTC(), Actor: m.Actor.Path(), Incarnation: m.Incarnation, Turn: m.Turn, Direction: "in", Kind: m.Kind.String(),
		Forward: m.Forward, Correlation: m.Correlation, Size: m.Size, Cut: len(m.Payload) < m.Size,
	}
	if m.Out {
		r.Direction = "out"
	}
	if m.Path != "" {
		r.Peer = line(m.Path)
	} else if !m.Peer.IsZero() {
		r.Peer, r.PeerRef = m.Peer.Path(), refText(m.Peer)
	}
	if !r.Cut {
		r.Payload = payloadJSON(m.Payload)
	}
	if m.Failure != nil {
		r.Failed = line(m.Failure.Error())
	}
	return r
}
