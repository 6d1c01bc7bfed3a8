package recorder

import (
	"bytes"

	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/redact"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A known secret that a guest is handed is masked. From that entry on the record is not exact, and says so: a repetition hands the
// guest the mask, of the same length, and does not compare. So that nobody can try secrets with the file until one fits, no hash
// is written of what such a guest does, nor what a failure of it has cost. What it sends is written whole, and masked, so that
// those who get it stay exact unless they get a secret, too. Its state is never written: it may have the secret in any form.

// Hide has r mask known secrets in all that comes from outside. secrets is the present set, nil while there are none; it must be
// safe for concurrent use. What is asked for once is used for the whole of a record, so that it is exact if nothing in it is masked.
// It is for the system, before it has actors.
func (r *Recorder) Hide(secrets func() *redact.Set) { r.hides.Store(&secrets) }

// secrets is the present set.
func (r *Recorder) secrets() *redact.Set {
	if f := r.hides.Load(); f != nil {
		return (*f)()
	}
	return nil
}

// finds reports whether bytes have a secret.
func finds(s *redact.Set, b []byte) bool { return !bytes.Equal(s.Mask(b), b) }

// findsText reports whether a text, which may have been cut off, has a secret.
func findsText(s *redact.Set, t string) bool { return s.MaskCutText(t) != t }

// refuses says why guests of an image are not recorded; empty: they are.
func refuses(s *redact.Set, image *sandbox.Image, x *Incarnation) string {
	cfg := sandbox.ConfigOf(image)
	if len(cfg.Dirs) > 0 {
		return "its module has directories, and what it reads there is not recorded"
	}
	if s == nil {
		return ""
	}
	for _, kv := range cfg.Env {
		if finds(s, []byte(kv)) {
			return "its module's environment has a known secret"
		}
	}
	switch {
	case findsText(s, x.Path):
		return "its name has a known secret"
	case finds(s, x.Snapshot):
		return "its state has a known secret"
	}
	return ""
}

// hidden reports whether what is to be written of an entry has a secret.
func (l *Lane) hidden(s *redact.Set, x *Run, mail []*mailbox.Envelope, headers func(*mailbox.Envelope) []byte) bool {
	if s == nil {
		return false
	}
	if x.Failure != nil && findsText(s, x.Failure.Reason) || x.Cut != nil && findsText(s, x.Cut.Reason) {
		return true
	}
	for _, e := range mail {
		if finds(s, handed(e, headers)) || l.inline(e) && finds(s, e.Payload) {
			return true
		}
	}
	return false
}

// handed are the headers of a message as the guest has got them.
func handed(e *mailbox.Envelope, headers func(*mailbox.Envelope) []byte) []byte {
	if headers != nil {
		return headers(e)
	}
	return e.Headers
}

// inline reports whether a message is written down whole.
func (l *Lane) inline(e *mailbox.Envelope) bool {
	rel := e.Origin>>(commandBits+recordBits) - l.gen.firstLane
	return e.Origin == 0 || rel >= uint64(len(l.seen)) && !l.meet(rel)
}
