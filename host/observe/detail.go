package observe

import "time"

// Detail is one actor in full.
type Detail struct {
	Version int `json:"version"`
	Actor

	// Busy: the actor, or its supervisor, is in the middle of a long turn, so what only they
	// know (the counts, the supervisor's record) is missing.
	Busy  bool `json:"busy"`
	Grace bool `json:"grace"` // messages are held back for a while after a delayed restart

	HeldParts    Held         `json:"held_parts"`
	Limits       Limits       `json:"limits"`
	Capabilities Capabilities `json:"capabilities"`
	Lifetime     string       `json:"lifetime"`
	Supervisor   string       `json:"supervisor"`         // path of the actor that decides about it
	Strategy     *Strategy    `json:"strategy,omitempty"` // of its supervisor
	Record       *Record      `json:"record,omitempty"`
	LastFailure  *Failure     `json:"last_failure,omitempty"`
	Module       string       `json:"module,omitempty"` // of a guest
	Code         string       `json:"code,omitempty"`   // SHA-256 of the module that it runs, in hexadecimal; an upgrade may leave an actor with another one than its module has
	Counts       *Counts      `json:"counts,omitempty"`
}

// Held is what the host holds for an actor, in bytes.
type Held struct {
	Base     int64 `json:"base"`
	Memory   int64 `json:"memory"`
	Mailbox  int64 `json:"mailbox"`
	Stash    int64 `json:"stash"`
	Timers   int64 `json:"timers"`
	Asks     int64 `json:"asks"`
	Watches  int64 `json:"watches"`
	Snapshot int64 `json:"snapshot"`
}

// Limits are what an actor may use; 0 is no bound of its own.
type Limits struct {
	Mailbox      int    `json:"mailbox"`
	MailboxBytes int64  `json:"mailbox_bytes"`
	Fuel         uint64 `json:"fuel"`
	DeadlineNS   int64  `json:"deadline_ns"`
	Memory       uint64 `json:"memory"`
	Outbox       uint64 `json:"outbox"`
	Message      int64  `json:"message"`
	Children     int    `json:"children"`
	Timers       int    `json:"timers"`
	Watches      int    `json:"watches"`
	Asks         int    `json:"asks"`
	Stash        int    `json:"stash"`
	Replies      int    `json:"replies"`
	Held         int64  `json:"held"`
	TreeActors   int    `json:"tree_actors"`
	TreeMemory   int64  `json:"tree_memory"`
}

// Capabilities are what a guest may do.
type Capabilities struct {
	Send  []string `json:"send,omitempty"`
	Spawn []string `json:"spawn,omitempty"`
	Stop  []string `json:"stop,omitempty"`
}

// Strategy is how a supervisor treats the actor.
type Strategy struct {
	Kind        string   `json:"kind"`
	MaxRestarts int      `json:"max_restarts"` // -1: no limit
	WithinNS    int64    `json:"within_ns"`    // 0: in the child's life
	Sliding     bool     `json:"sliding"`
	Shared      bool     `json:"shared"` // one window for all children
	Exceeded    string   `json:"exceeded"`
	Backoff     *Backoff `json:"backoff,omitempty"`
}

// Backoff is how long a supervisor waits before a restart.
type Backoff struct {
	// Curve are the delays of the first failures, without jitter: of attempt 1, 2, ...
	Curve       []Point `json:"curve"`
	MaxFailures int     `json:"max_failures"` // 0: no limit
	GiveUp      string  `json:"give_up"`
	GraceNS     int64   `json:"grace_ns"`
	Meanwhile   string  `json:"meanwhile"`
}

// Point is a point of the backoff curve: the delay before the restart after this failure
// lies between these two.
type Point struct {
	Attempt int   `json:"attempt"`
	DelayNS int64 `json:"delay_ns"` // the longest
	LeastNS int64 `json:"least_ns"` // the shortest; the same without jitter
}

// Record is what its supervisor has noted about an actor.
type Record struct {
	Failures         int   `json:"failures"`           // since the count was reset: the present point of the curve
	Total            int   `json:"total"`              // in its life
	RestartsInWindow int   `json:"restarts_in_window"` // that count now
	LastDelayNS      int64 `json:"last_delay_ns"`
	Left             bool  `json:"left"` // it was left suspended for an operator to decide
}

// Failure is why a turn failed.
type Failure struct {
	Kind       string    `json:"kind"`
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"`
	Stack      []string  `json:"stack,omitempty"` // innermost first
	GuestStack string    `json:"guest_stack,omitempty"`
	Turn       uint64    `json:"turn"`
	At         time.Time `json:"at"`
}

// Counts are what an actor has at the moment.
type Counts struct {
	Timers   int `json:"timers"`
	Asks     int `json:"asks"`
	Watches  int `json:"watches"`
	Watchers int `json:"watchers"`
	Stash    int `json:"stash"`
	Replies  int `json:"replies"` // open handles to answer later
}
