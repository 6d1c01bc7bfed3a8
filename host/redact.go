package host

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/redact"
)

// Secrets of actors must not appear where the host shows what actors do: events (and so logs, crash reports and everything
// made from events), dead letters, taps, traces, the last failure of an actor. All of these hide them; messages themselves,
// and what guests hold in their memory, stay as they are. Without secrets this costs one check of a pointer, and never on
// the path of a message.

// Redact makes the system hide secrets, of [redact.MinSecret] bytes or more, from now on. It
// cannot be undone, and what was shown before stays as it was. docs/services/config.md says what is
// found, and what is not. It fails, and hides none of them, if one is too
// short or there are too many. Any goroutine may call it.
func (s *System) Redact(secrets ...[]byte) error {
	s.redacting.Lock()
	defer s.redacting.Unlock()
	set, err := s.bus.secrets.Load().With(secrets...)
	if err == nil {
		s.bus.secrets.Store(set)
	}
	return err
}

// Redacted is b without the secrets that [System.Redact] was given: b itself if it contains none,
// else a copy of the same length. It is for code that shows what the system does not: answers,
// for example.
func (s *System) Redacted(b []byte) []byte { return s.bus.secrets.Load().Mask(b) }

// RedactedText is Redacted for a text.
func (s *System) RedactedText(t string) string { return s.bus.secrets.Load().MaskCutText(t) }

// excerpt is the part of a payload that a report has.
func (s *System) excerpt(payload []byte) []byte {
	cut := s.bus.secrets.Load().Cut(payload, min(len(payload), MaxDeadPayload))
	return append([]byte(nil), cut...)
}

// redacted is a failure as others see it: f itself if there is nothing to hide.
func (s *System) redacted(f *abi.Failure) *abi.Failure {
	return redactedFailure(s.bus.secrets.Load(), f)
}

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

// redact hides secrets in an event; what it shares with others it copies.
func (e *Event) redact(set *redact.Set) {
	e.Note, e.Text = set.MaskCutText(e.Note), set.MaskCutText(e.Text)
	e.Failure = redactedFailure(set, e.Failure)
	if m := e.Mail; m != nil {
		own := *m
		own.Payload = set.Mask(m.Payload)
		e.Mail = &own
	}
	if e.Dead != nil {
		own := *e.Dead
		own.redact(set)
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

func (d *DeadLetter) redact(set *redact.Set) {
	d.Payload = set.Mask(d.Payload)
	d.Path, d.From, d.Type = set.MaskCutText(d.Path), set.MaskCutText(d.From), set.MaskText(d.Type)
}

// redactedLetter is a dead letter as it is shown.
func (s *System) redactedLetter(l DeadLetter) DeadLetter {
	if set := s.bus.secrets.Load(); set != nil {
		l.redact(set)
	}
	return l
}

// tells reports whether a name that a guest gives an actor contains a secret: names are
// how actors are found, and are shown everywhere as they are.
func (s *System) tells(name []byte) bool {
	set := s.bus.secrets.Load()
	return set != nil && set.Finds(string(name))
}

// letter is a message that was not delivered, with an excerpt of what may be shown of it.
func (s *System) letter(reason DeadReason, to abi.Ref, path string, e *mailbox.Envelope) DeadLetter {
	return DeadLetter{
		Reason: reason, Kind: e.Kind, Sender: e.Sender, Recipient: to, Path: path,
		Payload: s.excerpt(shown(e)), Size: len(e.Payload), Type: claimed(e.Headers),
	}
}

// errTellingName is why an actor is not spawned.
var errTellingName = errors.New("host: the name contains a secret, and names are shown")

// redactedError is an error as others see it: its text is redacted, errors.Is still works.
func (s *System) redactedError(err error) error {
	if err == nil {
		return nil
	}
	var f *abi.Failure
	switch text := err.Error(); {
	case s.RedactedText(text) == text:
		return err
	case errors.As(err, &f) && f == err: // itself, not what it wraps
		return s.redacted(f)
	default:
		return &maskedError{s.RedactedText(text), err}
	}
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

// Is implements errors.Is. Nothing gets at the error itself.
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }
