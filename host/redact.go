package host

import (
	"errors"
)

// Secrets of actors must not appear where the host shows what actors do: events (and so logs, crash reports and everything
// made from events), dead letters, taps, traces, the last failure of an actor. All of these hide them; messages themselves,
// and what guests hold in their memory, stay as they are. Without secrets this costs one check of a pointer, and never on
// the path of a message.

// Redact makes the system hide secrets, of [redact.MinSecret] bytes or more, from now on. It
// cannot be undone, and what was shown before stays as it was. docs/services/config.md says what is
// found, and what is not. It fails, and hides none of them, if one is too
// short or there are too many. Any goroutine may call it.
func (s *System) Redact(secrets ...[]byte) error { return s.bus.Secrets.Add(secrets...) }

// Redacted is b without the secrets that [System.Redact] was given: b itself if it contains none,
// else a copy of the same length. It is for code that shows what the system does not: answers,
// for example.
func (s *System) Redacted(b []byte) []byte { return s.bus.Secrets.Bytes(b) }

// RedactedText is Redacted for a text.
func (s *System) RedactedText(t string) string { return s.bus.Secrets.Text(t) }

// errTellingName is why an actor is not spawned: names are how actors are found, and are shown everywhere as they are.
var errTellingName = errors.New("host: the name contains a secret, and names are shown")
