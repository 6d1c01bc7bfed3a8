package observe

import (
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// State is what an actor is doing, the first of these that holds: stopping, delayed,
// suspended, paused, starved, asleep, starting, running.
type State string

// The states.
const (
	Starting  State = "starting"  // its first turn is still to come, or runs
	Running   State = "running"   // it handles messages, or waits for one
	Asleep    State = "asleep"    // a guest that is idle and has given its instance back
	Starved   State = "starved"   // a guest that needs an instance, and none is to be had
	Delayed   State = "delayed"   // between two incarnations: waits for the delay, its children or its turn in a group
	Suspended State = "suspended" // it, or an ancestor, has failed and waits for a decision
	Paused    State = "paused"    // an operator has paused it: its messages wait
	Stopping  State = "stopping"  // waits for its children to stop
)

// States are all states, in the order in which views list them.
func States() []State {
	return []State{Starting, Running, Asleep, Starved, Delayed, Suspended, Paused, Stopping}
}

func stateOf(s host.ActorState) State { return State(s.String()) }

// System is a system as a whole.
type System struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Bundle  string    `json:"bundle,omitempty"`
	Dir     string    `json:"dir,omitempty"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"`
	Ready   bool      `json:"ready"`           // every top-level actor has begun, all services serve, and the system does not end
	Ended   string    `json:"ended,omitempty"` // why the system has ended, or is about to

	Down []Outage `json:"down,omitempty"` // services that do not serve, by name, and the store of durable actors, if it has failed or is full

	Store *Store `json:"store,omitempty"` // of durable actors; nil: there is none

	Actors int           `json:"actors"` // living, /user and /system aside
	Asleep int           `json:"asleep"`
	States map[State]int `json:"states"` // those that occur

	Mailbox      int   `json:"mailbox"` // messages that wait, all actors
	MailboxBytes int64 `json:"mailbox_bytes"`
	OldestNS     int64 `json:"oldest_ns"` // of all messages that wait, as in Actor

	// Since the start, of actors that have stopped, too.
	Turns       uint64 `json:"turns"`
	Crashes     uint64 `json:"crashes"`
	Restarts    uint64 `json:"restarts"`
	DeadLetters uint64 `json:"dead_letters"`
	Fuel        uint64 `json:"fuel"`

	DeadReasons map[string]uint64 `json:"dead_reasons"` // dead_letters by reason, all reasons

	Held       int64 `json:"held"`       // bytes, as accounted for all actors
	HeldLimit  int64 `json:"held_limit"` // 0: no bound
	ActorLimit int64 `json:"actor_limit"`
	Goroutines int   `json:"goroutines"`
	Workers    int   `json:"workers"` // turns that run at a time

	Types []Type `json:"types"` // by name
	Codes []Code `json:"codes"` // of modules, by name, the oldest one first; empty where the observer was not told of them
}

// Code is a version of a module that actors run, or start with.
type Code struct {
	Module  string `json:"module"`
	Hash    string `json:"hash"`    // SHA-256 of the WebAssembly, in hexadecimal
	Actors  int    `json:"actors"`  // that run it
	Present bool   `json:"present"` // actors that start now run it
}

// Outage is the time in which a service does not serve.
type Outage struct {
	Service string    `json:"service"`
	Since   time.Time `json:"since"`
	Why     string    `json:"why"` // it may name files
}

// Type is the actors of one type.
type Type struct {
	Name     string `json:"name"`
	Actors   int    `json:"actors"`
	Asleep   int    `json:"asleep"`
	Turns    uint64 `json:"turns"`
	Crashes  uint64 `json:"crashes"`
	Restarts uint64 `json:"restarts"`
	Fuel     uint64 `json:"fuel"`
	Mailbox  int    `json:"mailbox"`
	Held     int64  `json:"held"`
}

// Actor is a row: what can be said of any actor at any time.
type Actor struct {
	Path         string    `json:"path"`
	Ref          string    `json:"ref"` // 16 hexadecimal digits
	Type         string    `json:"type"`
	Parent       string    `json:"parent"` // its path
	State        State     `json:"state"`
	Paused       bool      `json:"paused"` // also while State says something that goes first
	Incarnation  uint64    `json:"incarnation"`
	Mailbox      int       `json:"mailbox"`
	MailboxBytes int64     `json:"mailbox_bytes"`
	OldestNS     int64     `json:"oldest_ns"` // the oldest waiting message has waited at least so long; 0: none waits, or not known yet
	Turns        uint64    `json:"turns"`
	Fuel         uint64    `json:"fuel"`
	Crashes      uint64    `json:"crashes"`
	Restarts     uint64    `json:"restarts"`
	Held         int64     `json:"held"`
	Children     int       `json:"children"`
	Since        time.Time `json:"since"`            // the incarnation began; the zero time: none has
	DueNS        int64     `json:"due_ns,omitempty"` // delayed: time left until its restart
	Failure      string    `json:"failure,omitempty"`
}

// Page is a part of a list of actors.
type Page struct {
	Version int       `json:"version"`
	Now     time.Time `json:"now"`
	Total   int       `json:"total"` // that match
	Actors  []Actor   `json:"actors"`
}

// TreeNode is an actor and what is below it.
type TreeNode struct {
	Actor
	Nodes []TreeNode `json:"nodes,omitempty"`
	More  int        `json:"more,omitempty"` // children left out
	Below Aggregate  `json:"below"`          // the whole subtree, the actor included
}

// Aggregate sums up several actors.
type Aggregate struct {
	Actors   int            `json:"actors"`
	States   map[State]int  `json:"states,omitempty"` // left out of a single actor, as Types
	Types    map[string]int `json:"types,omitempty"`  // actors of each type, the 32 most frequent
	Mailbox  int            `json:"mailbox"`
	OldestNS int64          `json:"oldest_ns"`
	Turns    uint64         `json:"turns"`
	Fuel     uint64         `json:"fuel"`
	Crashes  uint64         `json:"crashes"`
	Restarts uint64         `json:"restarts"`
	Held     int64          `json:"held"`
}
