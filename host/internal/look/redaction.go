package look

// Redaction is what a system hides of all that it shows. All methods may be called concurrently.
type Redaction struct{ secrets *Secrets }

// Redact is the Redaction of what hides secrets.
func Redact(s *Secrets) Redaction { return Redaction{s} }

// Hide makes the system hide secrets, of [redact.MinSecret] bytes or more, from now on. It
// cannot be undone, and what was shown before stays as it was. docs/services/config.md says what is
// found, and what is not. It fails, and hides none of them, if one is too
// short or there are too many.
func (r Redaction) Hide(secrets ...[]byte) error { return r.secrets.Add(secrets...) }

// Bytes is b without the hidden secrets: b itself if it contains none, else a copy of the same length. It is for code that
// shows what the system does not: answers, for example.
func (r Redaction) Bytes(b []byte) []byte { return r.secrets.Bytes(b) }

// Text is Bytes for a text.
func (r Redaction) Text(t string) string { return r.secrets.Text(t) }
