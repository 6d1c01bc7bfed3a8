package saved

import (
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Trial is what an actor has for going back to the code that it had: see swap.Trial. States are those of sandbox.AppendSnapshot.
type Trial struct {
	_       struct{} `cbor:",toarray"`
	Code    []byte   // fingerprint of the old code
	Since   int64    // ns since 1970
	Old     []byte   // state of the old code
	New     []byte   // state of the new code, from the same time
	Entries []TrialEntry
}

// TrialEntry is a swap.Entry.
type TrialEntry struct {
	_      struct{} `cbor:",toarray"`
	Now    int64
	First  uint64
	Mail   []TrialMail
	Outbox []byte
}

// TrialMail is a message of one.
type TrialMail struct {
	_           struct{} `cbor:",toarray"`
	Kind        abi.Kind
	Time        int64
	Sender      abi.Ref
	Correlation uint64
	Headers     []byte
	Payload     []byte
}

// TrialOf is a trial of an actor that runs an image now; nil: it has none, or there is no way back any more.
func TrialOf(t *swap.Trial, now *sandbox.Image) (*Trial, error) {
	if t == nil {
		return nil, nil
	}
	x, err := trialOf(t, now)
	if _, _, _, over := t.Kept(); over != "" {
		return nil, nil // perhaps meanwhile, and then its code may have been closed
	}
	return x, err
}

func trialOf(t *swap.Trial, now *sandbox.Image) (*Trial, error) {
	entries, old, begun, over := t.Kept()
	if over != "" {
		return nil, nil
	}
	sum, err := sandbox.Fingerprint(t.Old)
	if err != nil {
		return nil, err
	}
	x := &Trial{Code: sum[:], Since: t.Since}
	if x.Old, err = sandbox.AppendSnapshot(nil, t.Old, old); err != nil {
		return nil, err
	}
	if x.New, err = sandbox.AppendSnapshot(nil, now, begun); err != nil {
		return nil, err
	}
	for i := range entries {
		e := TrialEntry{Now: entries[i].Now, First: entries[i].First, Outbox: entries[i].Outbox}
		for _, m := range entries[i].Mail {
			e.Mail = append(e.Mail, TrialMail{Kind: m.Kind, Time: m.Time, Sender: m.Sender, Correlation: m.Correlation, Headers: m.Headers, Payload: m.Payload})
		}
		x.Entries = append(x.Entries, e)
	}
	return x, nil
}

// Bytes is what it adds to a checkpoint.
func (x *Trial) Bytes() (n int) {
	if x == nil {
		return 0
	}
	b, _ := Encoder.Marshal(x)
	return len(b)
}

// load is the inverse of TrialOf, with the images of the old code and of the new.
func (x *Trial) load(old, now *sandbox.Image) (*swap.Trial, error) {
	state, err := sandbox.DecodeSnapshot(old, x.Old, 0)
	if err != nil {
		return nil, fmt.Errorf("its state from before its upgrade: %w", err)
	}
	begun, err := sandbox.DecodeSnapshot(now, x.New, 0)
	if err != nil {
		return nil, fmt.Errorf("its state after its upgrade: %w", err)
	}
	t := swap.NewTrial(old, state, begun, swap.MostKept, nil)
	t.Since = x.Since
	for i := range x.Entries {
		e := swap.Entry{Now: x.Entries[i].Now, First: x.Entries[i].First, Outbox: x.Entries[i].Outbox}
		for _, m := range x.Entries[i].Mail {
			e.Mail = append(e.Mail, abi.Envelope{Kind: m.Kind, Time: m.Time, Sender: m.Sender, Correlation: m.Correlation, Headers: m.Headers, Payload: m.Payload})
		}
		t.Add(e)
	}
	return t, nil
}

// Trials are those of actors that come back. Its methods are for one goroutine.
type Trials struct {
	prober record.Prober // nil: there are none
	bytes  int64
}

// TrialsOf asks a recorder whether actors are on probation still.
func TrialsOf(r record.Recorder) (x Trials) {
	x.prober, _ = r.(record.Prober)
	return x
}

// Begin is the trial of an actor that goes over from one image to the state of another; nil: it has none. before copies its state.
func (x *Trials) Begin(old, image *sandbox.Image, state *sandbox.Snapshot, r *record.Record, before func() (*sandbox.Snapshot, error)) *swap.Trial {
	if x.prober == nil || old == image || !x.prober.Probes(r.Exchange.Code, r.Time) {
		return nil
	}
	was, err := before()
	if err != nil {
		return nil
	}
	t := swap.NewTrial(old, was, state.Clone(), swap.MostKept, nil)
	t.Since = r.Time
	return x.keep(t)
}

// Load is the trial of an actor of a checkpoint, which runs an image now; nil: it has none, or its upgrade is over. code finds the image
// of a fingerprint. The error says why it has none.
func (x *Trials) Load(t *Trial, image *sandbox.Image, code func([]byte) (*sandbox.Image, error)) (*swap.Trial, error) {
	if t == nil || x.prober == nil || image == nil {
		return nil, nil
	}
	now, err := sandbox.Fingerprint(image)
	if err != nil || !x.prober.Probes(now[:], t.Since) {
		return nil, err
	}
	old, err := code(t.Code)
	if err != nil {
		return nil, err
	}
	trial, err := t.load(old, image)
	if err != nil {
		return nil, err
	}
	return x.keep(trial), nil
}

// keep is a trial, or nil if those that there are take all the room.
func (x *Trials) keep(t *swap.Trial) *swap.Trial {
	if x.bytes += t.Bytes(); x.bytes > swap.MostTrials {
		t.End("there is no room for what is kept for going back")
		return nil
	}
	return t
}
