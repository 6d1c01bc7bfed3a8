// Package onlook has what those who look on at a guest's turns get to see: the black box, and the trial of exchanged code.
// They decide nothing, and are called only where there are any.
package onlook

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Entry is a call of a guest, before anything that its turns have asked for takes effect. It is valid until the onlooker
// returns.
type Entry struct {
	Instance *sandbox.Instance
	Now      int64                          // of all its turns, ns since 1970
	First    uint64                         // number of its first turn in the actor's life
	Mail     []*mailbox.Envelope            // one a turn, and then those that no turn has begun with
	Done     int                            // turns that count
	Failure  *abi.Failure                   // of the turn behind those; nil: there is none
	Own      bool                           // it has come to what its turns have led to, and not to what the host has made of them
	Judged   bool                           // the failing turn could not pay for what depends on other actors
	Fuel     uint64                         // that it has spent
	Spawned  uint64                         // children that the actor has asked for, these turns included
	Stated   func(*mailbox.Envelope) []byte // headers with the deadline that the guest is told; nil: it is told none
}

// Onlooker looks on at the turns of one guest, within the actor's run.
type Onlooker interface {
	Entry(e *Entry)
}

// Headers are those of a message as the guest gets them, valid until the next call.
func (e *Entry) Headers(m *mailbox.Envelope) []byte {
	if e.Stated != nil && (len(m.Headers) > 0 || m.Flags&mark.Due != 0) {
		return e.Stated(m)
	}
	return m.Headers
}

// IsOne reports whether the entry is one turn that has ended well, with the headers that its message has, as nearly all are.
func (e *Entry) IsOne() bool {
	return e.Done == 1 && len(e.Mail) == 1 && e.Failure == nil && e.Stated == nil
}
