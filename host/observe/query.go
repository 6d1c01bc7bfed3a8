package observe

import "time"

// Bounds of queries.
const (
	MaxLimit     = 1000   // rows of a page, children of a node
	MaxTreeNodes = 10_000 // nodes of a tree
)

// Select selects actors: those that match every list that is not empty. The zero
// value selects all.
type Select struct {
	Paths  []string `json:"paths,omitempty"` // globs: "/user/pool-*", "/user/x/**" for all below
	Types  []string `json:"types,omitempty"` // globs
	States []State  `json:"states,omitempty"`
	Refs   []string `json:"refs,omitempty"` // as in Actor
}

// Empty reports whether all actors are selected.
func (s Select) Empty() bool {
	return len(s.Paths) == 0 && len(s.Types) == 0 && len(s.States) == 0 && len(s.Refs) == 0
}

// Query asks for a list of actors.
type Query struct {
	Select Select
	Search string // a part of the path or of the type
	Sort   string // path (the default) type state mailbox oldest turns fuel held restarts crashes since
	Desc   bool
	Offset int
	Limit  int // 1 to MaxLimit; 0 is 100
	// Now asks for the actors as they are now, and not as they were when somebody else has looked a moment ago: for
	// what is done to them.
	Now bool
}

// TreeQuery asks for a part of the tree.
type TreeQuery struct {
	Under string // a path; "" is /user
	Depth int    // levels below it; 0 is 3, at most 64
	Limit int    // children of each node, 1 to MaxLimit; 0 is 100
	Nodes int    // in all, 1 to MaxTreeNodes; 0 is 1000. The nodes of a level share what is left
	Sort  string // as in Query
	Desc  bool

	Offset int // children of the root to leave out
}

// EventQuery asks for events.
type EventQuery struct {
	Paths  []string // globs as in Select
	Types  []string
	Kinds  []string  // names as in the JSON of an event
	But    Except    // what is left out
	Level  string    // of log lines: this level and worse
	Since  time.Time // of the history; the zero time: all that is kept
	After  uint64    // of the history: those behind the event of this number
	Follow bool      // go on with events to come; else the stream ends with the history
	Buffer int       // events that may wait for a slow reader; 0 is 256, at most 65536
}

// Except leaves out events that match one of its lists: they have the same values as in [EventQuery].
type Except struct {
	Paths []string
	Types []string
	Kinds []string
}

// DeadQuery asks for dead letters.
type DeadQuery struct {
	IDs     []uint64 // these, nothing else; empty: all
	To      []string // globs on the recipient's path
	From    []string // globs on the sender's path
	Reasons []string // as in DeadLetter
	Offset  int
	Limit   int // 1 to MaxLimit; 0 is 100
}

// TraceOptions bound a trace.
type TraceOptions struct {
	Messages int           // ends after so many; 0 is no bound
	For      time.Duration // ends after that time; 0: when the reader closes it, at most an hour
	Payload  int           // bytes of a payload that are kept; 0 is 4 KiB, at most 64 KiB
	Buffer   int           // records that may wait for a slow reader; 0 is 256, at most 4096
}
