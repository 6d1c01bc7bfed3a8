package host

import "errors"

// Secrets of actors must not appear where the host shows what actors do: events (and so logs, crash reports and everything
// made from events), dead letters, taps, traces, the last failure of an actor. All of these hide them; messages themselves,
// and what guests hold in their memory, stay as they are. Without secrets this costs one check of a pointer, and never on
// the path of a message.

// Redaction is what a system hides of all that it shows. All methods may be called concurrently.
type Redaction struct{ sys *System }

// Redaction is for whoever has secrets, or shows what may contain some.
func (s *System) Redaction() Redaction { return Redaction{s} }

// Hide makes the system hide secrets, of [redact.MinSecret] bytes or more, from now on. It
// cannot be undone, and what was shown before stays as it was. docs/services/config.md says what is
// found, and what is not. It fails, and hides none of them, if one is too
// short or there are too many.
func (r Redaction) Hide(secrets ...[]byte) error { return r.sys.audience.Secrets.Add(secrets...) }

// Bytes is b without the hidden secrets: b itself if it contains none, else a copy of the same length. It is for code that
// shows what the system does not: answers, for example.
func (r Redaction) Bytes(b []byte) []byte { return r.sys.audience.Secrets.Bytes(b) }

// Text is Bytes for a text.
func (r Redaction) Text(t string) string { return r.sys.audience.Secrets.Text(t) }

// errTellingName is why an actor is not spawned: names are how actors are found, and are shown everywhere as they are.
var errTellingName = errors.New("host: the name contains a secret, and names are shown")
