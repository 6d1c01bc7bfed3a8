// Package record has what a system tells its recorder (host.Config.WithRecorder), and the plain values of it that can
// be written down. host/rebuild makes a system from such values again.
//
// What an actor does follows from what it takes in: the messages of its turns, with their framing and time, and orders and
// signals. These are recorded, in the order in which they count. What follows from them is not.
package record

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Recorder hears of all that the actors of a system take in. Its methods are called by workers and by any other goroutine,
// also at the same time; they must not block, nor call the system. What one actor does is told in order. A message is told
// before the turn that takes it, a turn before anything that follows from it, and a signal before what it leads to.
type Recorder interface {
	// Turn is told of every turn, also of one that has failed or was cut, before anything of it takes effect. It calls
	// t.Answer once, then or later, from any goroutine. Until then the actor does nothing else; its worker goes on. If
	// Answer is never called the actor is never heard of again, and closing the system waits for it until the context
	// of Close ends, and then for ever: a recorder that gives up answers with an error. An error fails the turn, and
	// nothing of it takes effect; a failure that was its own stays what it is. The turn of the end of an incarnation and a
	// decision about a child wait on their worker, which lets others run (Turn.Waits); in a manual system they must be
	// answered at once, because nobody else runs there.
	//
	// t's fields may be read until Answer is called. See Entry for what can be kept.
	Turn(t *Turn)
	// Note is told of everything else. r and what it refers to are valid until Note returns. Nothing waits for an answer:
	// whoever writes records in order has written this one before the next turn's answer.
	Note(r *Record)
}

// Unrecorded begins the reason of the failure of a turn that [Turn.Answer] was given an error for, which follows. The failure is of
// abi.FailureHost, unless [Refuse] has made the error.
const Unrecorded = "the turn could not be recorded: "

// Refuse makes the error of a recorder about a turn whose actor has asked for what it cannot have. The turn fails as kind, for the
// reason err: it is the actor that has failed, and not the host, whose failures escalate.
func Refuse(kind abi.FailureKind, err error) error { return &refusal{err, kind} }

type refusal struct {
	error
	kind abi.FailureKind
}

func (r *refusal) Unwrap() error { return r.error }

// FailureOf is the failure of a turn that was answered with an error.
func FailureOf(err error, turn uint64) *abi.Failure {
	var r *refusal
	if errors.As(err, &r) {
		return &abi.Failure{Kind: r.kind, Reason: r.Error(), Turn: turn}
	}
	return &abi.Failure{Kind: abi.FailureHost, Reason: Unrecorded + err.Error(), Turn: turn}
}

// Turn is an entry of a guest, which has a turn for each message, or one turn of an actor in Go.
type (
	Turn     = turn.Turn
	Effect   = turn.Effect
	ID       = turn.ID     // of an effect
	Ending   = turn.Ending // who has ended an entry
	Envelope = mailbox.Envelope
	Cut      = sandbox.Cut // where something from outside has ended a turn
)

// The endings.
const (
	All       = turn.All
	ByGuest   = turn.ByGuest
	ByHost    = turn.ByHost
	ByFailure = turn.ByFailure
)

// Gate is a recorder that may have no room for a message. It is asked before a mailbox takes the message in; what it
// refuses is not told, and its sender gets the error.
type Gate interface {
	// Admit is called with the bytes of the message's headers and payload. It must not block.
	Admit(bytes int) error
	// AdmitAll is Admit for several records that come at once, with bytes in all.
	AdmitAll(bytes int64) error
}

// Outputs is a recorder of durable actors that answers turns before their records are durable (Turn.After). What such a turn
// sends to a receiver that is not durable waits for it.
type Outputs interface {
	// Later calls f when what was recorded up to a turn's After is durable, or with an error if it never will be: functions of
	// lesser positions first, and of one position in the order of the calls. f is short; bytes is what it holds. When much
	// waits the recorder answers further turns later.
	Later(after uint64, bytes int, f func(error))
}

// Codes is a recorder that has the code that actors run, also where no module has it any more.
type Codes interface {
	// Code is an image with a fingerprint that records name. It may be called by any goroutine, also several times.
	Code(fingerprint []byte) (*sandbox.Image, error)
}

// Historian is a recorder that has what actors took in, also what no start needs any more.
type Historian interface {
	// History calls each with all records behind a place that are there, in their order, and returns the place behind the last one that
	// each was called with, also with an error. The zero value is before the first record that is kept. It ends with ctx, with an error of each, and where records behind the place are
	// missing. Records that were told lately may not be there yet. It may be called by any goroutine; r is each's.
	History(ctx context.Context, behind Place, each func(r *Record) error) (Place, error)
}

// Place is where in a recorder's records somebody has come to.
type Place struct {
	Batch, Last uint64 // positions: of the first record of those that were written together, and of the last one of them that was read
}

// Stepper is a recorder that may be part of a simulation.
type Stepper interface {
	// Steps reports whether the recorder does nothing by itself.
	Steps() bool
	// Work has such a recorder do what is due, and reports whether there was anything to do.
	Work() bool
}

// Freezer is a recorder of durable actors that is told of the end of their system.
type Freezer interface {
	// Resting is called before an orderly end, when all recorded actors are at rest: none handles anything.
	Resting()
	// Freeze is called when the actors are about to be stopped, because their process ends and not because their lives
	// do. What the recorder is told from now on must not be recorded, and turns are answered with an error.
	Freeze()
}

// Kind says what a record is about.
type Kind uint8

// The kinds. Each has one of the record's pointers.
const (
	Began     Kind = iota + 1 // Life: an actor was spawned
	Restarted                 // Life: its next incarnation begins
	Ended                     // Life: it has stopped for good
	Accepted                  // Message: it is in the actor's mailbox
	Took                      // Signal: the actor begins to deal with it
	Turned                    // Entry
	Refused                   // Message, see Refusal: the actor was sent it and has not taken it in
	Changed                   // Life: its limits or rules are other ones from now on
	Exchanged                 // Exchange: it goes on with other code
	Decided                   // Decision: what a strategy has said about the signal that the actor took last
)

var kinds = [...]string{"", "began", "restarted", "ended", "accepted", "took", "turned", "refused", "changed", "exchanged", "decided"}

// String is the kind's name.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return ""
}

// Record is one thing that an actor has taken in, or a change of its life, as a plain value: it can be encoded by
// fxamacker/cbor or encoding/json.
type Record struct {
	Kind  Kind    `cbor:"1,keyasint"`
	Actor abi.Ref `cbor:"2,keyasint"`
	Time  int64   `cbor:"3,keyasint"` // by the system's clock, ns since 1970; of a guest's turn: what its header says; of what a recorded turn has sent: the turn's

	Life    *Life    `cbor:"4,keyasint,omitempty"`
	Message *Message `cbor:"5,keyasint,omitempty"`
	Signal  *Signal  `cbor:"6,keyasint,omitempty"`
	Entry   *Entry   `cbor:"7,keyasint,omitempty"`

	Exchange *Exchange `cbor:"8,keyasint,omitempty"`
	Decision *Decision `cbor:"9,keyasint,omitempty"`
}

// Life is an actor. Its strategy is its props', which are not recorded: see Decision for what it has said.
type Life struct {
	Path        string  `cbor:"1,keyasint"` // with scheme and system
	Type        string  `cbor:"2,keyasint"` // of its props
	Args        []byte  `cbor:"3,keyasint"` // CBOR; of Ended also empty: it has not begun, as its parent could not start it
	Parent      abi.Ref `cbor:"4,keyasint"`
	Incarnation uint64  `cbor:"5,keyasint"`           // 0: the first
	Code        []byte  `cbor:"6,keyasint,omitempty"` // identifies a guest's image; only where a life begins

	// Only where a life begins, or they change; nil: they are not known. Rules come with Limits, as earlier releases have only these.
	Limits *view.Limits `cbor:"7,keyasint,omitempty"`
	Rules  *Rules       `cbor:"8,keyasint,omitempty"`
}

// Message is a message as the mailbox has taken it in. What travels beside it within a process (values of Go, grants,
// the context of an ask) is left out.
type Message struct {
	Position    uint64   `cbor:"1,keyasint"` // among all that the actor was sent, from 1
	Kind        abi.Kind `cbor:"2,keyasint"`
	Flags       uint16   `cbor:"3,keyasint,omitempty"` // the host's
	Sender      abi.Ref  `cbor:"4,keyasint,omitempty"`
	SenderPath  string   `cbor:"5,keyasint,omitempty"`
	Correlation uint64   `cbor:"6,keyasint,omitempty"`
	Due         int64    `cbor:"7,keyasint,omitempty"` // when the asker gives up, ns since 1970, or an incarnation: see Flags; of an alarm: when it was due
	Headers     []byte   `cbor:"8,keyasint,omitempty"`
	Payload     []byte   `cbor:"9,keyasint,omitempty"`
}

// Set takes over an envelope. The bytes stay the envelope's.
func (m *Message) Set(e *Envelope) {
	*m = Message{
		Position: e.Position, Kind: e.Kind, Flags: e.Flags, Sender: e.Sender, SenderPath: e.SenderPath, Correlation: e.Correlation,
		Due: e.Due, Headers: e.Headers, Payload: e.Payload,
	}
}

// Refusal is a message that its receiver has refused. It is told only of what was sent in the turn of a recorded actor: those
// are sent again when the turn is repeated. It has what tells the message from others of its sender, and a checksum as payload.
func Refusal(e *Envelope) Message {
	return Message{Kind: e.Kind, Sender: e.Sender, Correlation: e.Correlation, Payload: checksumOf(e)}
}

// IsRefusal reports whether m is the refusal of e.
func (m *Message) IsRefusal(e *Envelope) bool {
	return e.Kind == m.Kind && e.Sender == m.Sender && e.Correlation == m.Correlation && bytes.Equal(m.Payload, checksumOf(e))
}

func checksumOf(e *Envelope) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.Update(crc32.Checksum(e.Headers, castagnoli), castagnoli, e.Payload))
}

// Signal is an order, a report or a signal that an actor deals with, or a message that is for the host (a poison pill, a
// question whose asker has given up). Which fields count depends on What.
type Signal struct {
	What        string       `cbor:"1,keyasint"`           // start, stop, child-failed, watch, terminated, ...
	From        abi.Ref      `cbor:"2,keyasint,omitempty"` // the child, or the actor that it is about
	Other       abi.Ref      `cbor:"3,keyasint,omitempty"`
	Correlation uint64       `cbor:"4,keyasint,omitempty"`
	How         uint16       `cbor:"5,keyasint,omitempty"` // the host's
	Directive   uint8        `cbor:"6,keyasint,omitempty"`
	Delay       int64        `cbor:"7,keyasint,omitempty"` // ns
	Reason      string       `cbor:"8,keyasint,omitempty"`
	Failure     *abi.Failure `cbor:"9,keyasint,omitempty"`
	Position    uint64       `cbor:"10,keyasint,omitempty"` // of a message for the host
}
