package fsm

import "github.com/wasmactors/wasmactors/host"

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
	Name    string       // of the timer, or what was fired
	Message host.Message // the message that is handled; for Fired the one of the current turn
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

// CurrentState is what a new subscriber gets: ["fsm.state", state], as a guest's machine sends it.
type CurrentState struct {
	_     struct{} `cbor:",toarray"`
	What  string   // "fsm.state"
	State State
}

// Transition is what subscribers get at each transition: ["fsm.transition", from, to].
type Transition struct {
	_        struct{} `cbor:",toarray"`
	What     string   // "fsm.transition"
	From, To State
}
