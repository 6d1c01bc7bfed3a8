// Package signal has the signals that actors, asks and waiters send each other, in addition to messages. They are plain
// values about refs, and could be sent to another node.
package signal

import "github.com/wasmactors/wasmactors/abi"

// Kind is what a signal says. Its receiver is an actor, or another receiver with a ref.
type Kind uint8

// The kinds.
const (
	Watch      Kind = iota + 1 // From wants to know of the receiver's end
	Unwatch                    // From does not any more
	Terminated                 // From, which the receiver watches, has ended: Reason
	Unanswered                 // the receiver's ask Correlation that From was asked will not be answered: Reason
	Delegate                   // Other may answer the receiver's ask Correlation, as From may
	Observe                    // From wants to know when the receiver's ask Correlation is over
	Abandoned                  // the ask that the receiver observes is over
	Stop                       // stop after the current turn: Reason
	Kill                       // stop, and end the current turn now: Reason
	Strayed                    // the receiver has named From, which is a ref of nobody: a guess
	kinds
)

var names = [kinds]string{"", "watch", "unwatch", "terminated", "unanswered", "delegate", "observe", "abandoned", "stop", "kill", "strayed"}

// String is the kind's name.
func (k Kind) String() string {
	if k < kinds {
		return names[k]
	}
	return ""
}

// Bounds of Reason and Path, in bytes.
const (
	MaxReason = 512
	MaxPath   = 1 << 10
)

// Signal is one signal. Which fields it has depends on its kind; all others are zero.
type Signal struct {
	Kind        Kind
	Once        bool // Watch: From watches nobody else, and does so once
	Code        Code // Unanswered, when it comes from another node: what the error is
	From, Other abi.Ref
	Correlation uint64
	Reason      string
	Path        string // Terminated, and Unanswered with the code of a failed turn: the full path of From; empty: not known
	Err         error  // Unanswered, within a node: the error itself; Reason is empty then
}

// Text is why something has ended, or will not be answered.
func (s *Signal) Text() string {
	if s.Err != nil {
		return s.Err.Error()
	}
	return s.Reason
}

// Code says which error a signal stands for, so that it is the same error on another node. The meaning of codes below
// NodeLost is the host's.
type Code uint8

// NodeLost is the code of what is lost with its node. No host sends it: each finds out for itself.
const NodeLost Code = 12

// Failed is the code of a failed turn, with the kind of its failure added.
const Failed Code = 128

// FailureKind is the kind of the failed turn's failure; false if the code is another one.
func (c Code) FailureKind() (abi.FailureKind, bool) {
	return abi.FailureKind(c - Failed), c >= Failed
}
