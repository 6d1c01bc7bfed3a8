package blackbox

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/onlook"
)

// Keeper keeps the turns of a guest through its incarnations, and writes a crash file of a failure. The zero value keeps
// nothing. Only the actor's own run may use it.
type Keeper struct {
	*Box        // nil: nothing is kept
	file string // of the last failure; empty: there is none
	hide Hidden
}

// Hidden says what a crash file must not show, and what it shows of others.
type Hidden interface {
	// Failure is a failure without known secrets.
	Failure(f *abi.Failure) *abi.Failure
	// Bytes are bytes without known secrets, in the same length; the bytes themselves if they have none.
	Bytes(b []byte) []byte
	// Events are the last events of the system, one a line.
	Events() []byte
}

// Open begins to keep the turns of an incarnation, without a crash file; false: r has no room for it.
func (k *Keeper) Open(r *Recorder, l *Life, h Hidden) bool {
	k.Drop()
	k.file = ""
	box, ok := r.NewBox(l)
	if ok {
		k.Box, k.hide = box, h
	}
	return ok
}

// Drop forgets what is kept.
func (k *Keeper) Drop() {
	if k.Box != nil {
		k.Box.Drop()
		k.Box = nil
	}
}

// Keeps reports whether turns are kept.
func (k *Keeper) Keeps() bool { return k.Box != nil }

// File is the path of the crash file of the last failure; empty if there is none.
func (k *Keeper) File() string { return k.file }

// Entry implements onlook.Onlooker.
func (k *Keeper) Entry(e *onlook.Entry) {
	b, x := k.Box, e.Instance
	if !e.Own {
		k.file = ""
		b.Forget("a turn was failed or taken back for a reason that is not its own")
		return
	}
	if e.IsOne() {
		if b.Turn(e.Now, e.Fuel, x.Outbox(1), e.Mail[0]) {
			b.Snapshot(x, e.Spawned)
		}
		return
	}
	run := Run{Now: e.Now, Pushed: len(e.Mail), Done: e.Done, Fuel: e.Fuel, Failed: e.Failure != nil, Outbox: x.Outbox(e.Done)}
	if e.Failure != nil {
		run.Ended, run.Cut = x.Ended(), x.Cut()
		if e.Judged {
			run.Outbox = x.Outbox(e.Done + 1)
		}
	}
	b.Begin(&run)
	for _, m := range e.Mail {
		b.Mail(m.Kind, m.Sender, m.Correlation, e.Headers(m), m.Payload)
	}
	switch {
	case e.Failure != nil:
		k.file = b.Crash(&Failure{
			Failure: k.hide.Failure(e.Failure), Time: e.Now, Judged: e.Judged, Keep: e.Done > 0, Mask: k.hide.Bytes, Events: k.hide.Events,
		})
	case b.Done():
		b.Snapshot(x, e.Spawned)
	}
}
