package fsm

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Kind is what an event is.
type Kind uint8

// The kinds of events.
const (
	Received     Kind = iota + 1 // a message, or news from the host
	StateTimeout                 // nothing has come for the state's timeout
	Timer                        // a named timer has expired
	Fired                        // Machine.Fire
)

// String is the kind's name.
func (k Kind) String() string {
	return [...]string{"nothing", "received", "state timeout", "timer", "fired"}[min(k, 5)%5]
}

// Event is what a handler is called with.
type Event struct {
	Kind    Kind
	Name    string         // of the timer, or what was fired
	Message *actor.Message // the message that is handled; for Fired the one of the current turn
}

// ReasonKind is why a machine stops.
type ReasonKind uint8

// The reasons.
const (
	Normal   ReasonKind = iota // it has finished
	Shutdown                   // it was stopped from outside, or reports it so
	Failure                    // it could not go on
)

// Reason is why a machine stops, with a text for failures.
type Reason struct {
	Kind ReasonKind
	Text string
}

// Entry is an event of the log.
type Entry struct {
	State State
	Kind  Kind
	Name  string
}

// CurrentState is what a new subscriber gets: ["fsm.state", state].
type CurrentState struct{ State State }

// MarshalCBOR implements actor.Encoder.
func (c CurrentState) MarshalCBOR(w *abi.Writer) {
	w.Array(2)
	w.Text("fsm.state")
	w.Text(string(c.State))
}

// UnmarshalCBOR implements actor.Decoder.
func (c *CurrentState) UnmarshalCBOR(r *abi.Reader) {
	begins(r, 2, "fsm.state")
	c.State = State(r.Text())
}

// Transition is what subscribers get at each transition: ["fsm.transition", from, to].
type Transition struct{ From, To State }

// MarshalCBOR implements actor.Encoder.
func (t Transition) MarshalCBOR(w *abi.Writer) {
	w.Array(3)
	w.Text("fsm.transition")
	w.Text(string(t.From))
	w.Text(string(t.To))
}

// UnmarshalCBOR implements actor.Decoder.
func (t *Transition) UnmarshalCBOR(r *abi.Reader) {
	begins(r, 3, "fsm.transition")
	t.From, t.To = State(r.Text()), State(r.Text())
}

// begins reads the head of a message to subscribers.
func begins(r *abi.Reader, n int, name string) {
	if r.Array() != n || string(r.TextBytes()) != name {
		r.Fail(abi.ErrType)
	}
}
