package observe

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// RawJSON is JSON as it is.
type RawJSON = json.RawMessage

// Record is a message of a traced actor.
type TraceRecord struct {
	Time        time.Time `json:"time"`
	Actor       string    `json:"actor"`
	Incarnation uint64    `json:"incarnation"`
	Turn        uint64    `json:"turn"`
	Direction   string    `json:"direction"` // in, out
	Kind        string    `json:"kind"`      // as in the ABI; of what goes out also forward, ask, spawn, stop, ...
	Peer        string    `json:"peer,omitempty"`
	PeerRef     string    `json:"peer_ref,omitempty"`
	Correlation uint64    `json:"correlation,omitempty"`
	Size        int       `json:"size"`
	Payload     RawJSON   `json:"payload,omitempty"` // absent if it was cut off, or is no JSON
	Cut         bool      `json:"cut,omitempty"`
	Failed      string    `json:"failed,omitempty"` // in: its turn has failed, with that
}

// Flow is who has sent what to whom.
type Flow struct {
	Version    int       `json:"version"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	DurationNS int64     `json:"duration_ns"`
	Sampled    uint64    `json:"sampled"` // turns that were looked at
	Edges      []Edge    `json:"edges"`   // the most frequent first
	Left       uint64    `json:"left"`    // messages of edges that did not fit
}

// Edge is messages from one actor to another, of a kind. The numbers are estimates if
// messages were sampled.
type Edge struct {
	From  string `json:"from"` // path; "" is nobody
	To    string `json:"to"`
	Kind  string `json:"kind"`
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
	OneIn uint64 `json:"one_in"` // one message in so many was looked at
}

// Profile is where fuel went.
type Profile interface {
	// Write writes it as pprof reads it, compressed.
	Write(w io.Writer) error
}

// traces are those under way.
type traces struct{}

func (t *traces) close() {}

var errNotYet = errors.New("observe: not there yet")

// Trace follows the messages of the actor at a path.
func (o *Observer) Trace(path string, t TraceOptions) (*Stream[TraceRecord], error) {
	return nil, errNotYet
}

// Flow samples who sends what to whom for a while, at most a minute.
func (o *Observer) Flow(ctx context.Context, d time.Duration) (Flow, error) {
	return Flow{}, errNotYet
}

// Profile samples where fuel goes for a while, at most a minute.
func (o *Observer) Profile(ctx context.Context, d time.Duration, sel Select) (Profile, error) {
	return nil, errNotYet
}
