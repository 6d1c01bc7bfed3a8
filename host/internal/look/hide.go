// Package look is what stands between the engine and its observers: events and their subscribers, dead letters that
// are kept, the log, samples of the flow of messages, durations of turns. It knows no actors. The engine hands it values,
// and asks first whether anybody looks.
package look

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/redact"
)

// Secrets hides secrets in what is shown. Without secrets each call costs one check of a pointer. It is safe for concurrent
// use; the zero value hides nothing.
type Secrets struct {
	set    atomic.Pointer[redact.Set] // nil: none
	adding sync.Mutex
}

// Add hides further secrets from now on. It fails, and adds none, if one is too short or there are too many.
func (h *Secrets) Add(secrets ...[]byte) error {
	h.adding.Lock()
	defer h.adding.Unlock()
	set, err := h.set.Load().With(secrets...)
	if err == nil {
		h.set.Store(set)
	}
	return err
}

// Set is the present set, for what must not be about two of them; nil: none.
func (h *Secrets) Set() *redact.Set { return h.set.Load() }

// Bytes is b without secrets: b itself if it contains none, else a copy of the same length.
func (h *Secrets) Bytes(b []byte) []byte { return h.set.Load().Mask(b) }

// Text is t without secrets, and without the beginning of one at its end.
func (h *Secrets) Text(t string) string { return h.set.Load().MaskCutText(t) }

// Finds reports whether a text contains a secret.
func (h *Secrets) Finds(t string) bool {
	set := h.set.Load()
	return set != nil && set.Finds(t)
}

// Excerpt is a copy of the part of a payload that a report has.
func (h *Secrets) Excerpt(payload []byte) []byte {
	cut := h.set.Load().Cut(payload, min(len(payload), event.MaxDeadPayload))
	return append([]byte(nil), cut...)
}

// Failure is a failure as others see it: f itself if there is nothing to hide.
func (h *Secrets) Failure(f *abi.Failure) *abi.Failure { return redactedFailure(h.set.Load(), f) }

// Letters hides secrets in dead letters.
func (h *Secrets) Letters(letters ...event.DeadLetter) []event.DeadLetter {
	if set := h.set.Load(); set != nil {
		for i := range letters {
			redactLetter(set, &letters[i])
		}
	}
	return letters
}

// Letter is a message that was not delivered, with an excerpt of what may be shown of it.
func (h *Secrets) Letter(reason event.DeadReason, to abi.Ref, path string, e *mailbox.Envelope) event.DeadLetter {
	return event.DeadLetter{
		Reason: reason, Kind: e.Kind, Sender: e.Sender, Recipient: to, Path: path,
		Payload: h.Excerpt(mark.Shown(e)), Size: len(e.Payload), Type: header.Type(e.Headers),
	}
}

// Error is an error as others see it: its text has no secrets, errors.Is still works.
func (h *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	var f *abi.Failure
	switch text := err.Error(); {
	case h.Text(text) == text:
		return err
	case errors.As(err, &f) && f == err: // itself, not what it wraps
		return h.Failure(f)
	default:
		return &maskedError{h.Text(text), err}
	}
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

// Is implements errors.Is. Nothing gets at the error itself.
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }

func redactedFailure(set *redact.Set, f *abi.Failure) *abi.Failure {
	if set == nil || f == nil {
		return f
	}
	own := *f
	own.Reason, own.Message, own.GuestStack = set.MaskCutText(f.Reason), set.MaskCutText(f.Message), set.MaskCutText(f.GuestStack)
	own.Stack = make([]string, len(f.Stack))
	for i, frame := range f.Stack {
		own.Stack[i] = set.MaskCutText(frame)
	}
	return &own
}

// redactEvent hides secrets in an event; what it shares with others it copies.
func redactEvent(set *redact.Set, e *event.Event) {
	e.Note, e.Text = set.MaskCutText(e.Note), set.MaskCutText(e.Text)
	e.Failure = redactedFailure(set, e.Failure)
	if m := e.Mail; m != nil {
		own := *m
		own.Payload = set.Mask(m.Payload)
		e.Mail = &own
	}
	if e.Dead != nil {
		own := *e.Dead
		redactLetter(set, &own)
		e.Dead = &own
	}
	if r := e.Refused; r != nil {
		own := *r
		own.Type, own.Name, own.Reason = set.MaskCutText(r.Type), set.MaskCutText(r.Name), set.MaskCutText(r.Reason)
		e.Refused = &own
	}
	if t := e.Trace; t != nil && t.State != "" {
		own := *t
		own.State = set.MaskText(t.State)
		e.Trace = &own
	}
}

func redactLetter(set *redact.Set, d *event.DeadLetter) {
	d.Payload = set.Mask(d.Payload)
	d.Path, d.From, d.Type = set.MaskCutText(d.Path), set.MaskCutText(d.From), set.MaskText(d.Type)
}
