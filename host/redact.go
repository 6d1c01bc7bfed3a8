package host

import (
	"errors"

	"github.com/wasmactors/wasmactors/host/internal/look"
)

// Secrets of actors must not appear where the host shows what actors do: events (and so logs, crash reports and everything
// made from events), dead letters, taps, traces, the last failure of an actor. All of these hide them; messages themselves,
// and what guests hold in their memory, stay as they are. Without secrets this costs one check of a pointer, and never on
// the path of a message.

// Redaction is what a system hides of all that it shows. All methods may be called concurrently:
//
//	Hide(secrets ...[]byte) error   // from now on, each of redact.MinSecret bytes or more; all, or none if it fails
//	Bytes(b []byte) []byte          // b without secrets: b itself if it contains none
//	Text(t string) string           // the same for a text
//
// What is hidden stays hidden, and what was shown before stays as it was. docs/services/config.md says what is found, and what is
// not.
type Redaction = look.Redaction

// Redaction is for whoever has secrets, or shows what may contain some.
func (s *System) Redaction() Redaction { return look.Redact(&s.audience.Secrets) }

// errTellingName is why an actor is not spawned: names are how actors are found, and are shown everywhere as they are.
var errTellingName = errors.New("host: the name contains a secret, and names are shown")
