package recorder

import (
	"bytes"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A known secret that a guest is handed is masked. From that entry on the record is not exact, and says so: a repetition hands the
// guest the mask, of the same length, and does not compare. So that nobody can try secrets with the file until one fits, no hash
// is written of what such a guest does, nor what a failure of it has cost. What it sends is written whole, and masked, so that
// those who get it stay exact unless they get a secret, too. Its state is never written: it may have the secret in any form.

// mask hides known secrets.
type mask struct {
	bytes func([]byte) []byte
	text  func(string) string
}

// Hide has r mask known secrets in all that comes from outside. inBytes is given bytes, and returns the same slice if they have
// none, otherwise a copy of the same length without them; inText is given texts, which may have been cut off. They must be safe
// for concurrent use. It is for the system, before it has actors.
func (r *Recorder) Hide(inBytes func([]byte) []byte, inText func(string) string) {
	r.hides.Store(&mask{inBytes, inText})
}

// finds reports whether bytes have a secret. A nil mask hides nothing.
func (m *mask) finds(b []byte) bool { return m != nil && !bytes.Equal(m.bytes(b), b) }

func (m *mask) inBytes(b []byte) []byte {
	if m == nil {
		return b
	}
	return m.bytes(b)
}

func (m *mask) inText(t string) string {
	if m == nil {
		return t
	}
	return m.text(t)
}

// refuses says why guests of an image are not recorded; empty: they are.
func (m *mask) refuses(image *sandbox.Image, x *Incarnation) string {
	cfg := sandbox.ConfigOf(image)
	if len(cfg.Dirs) > 0 {
		return "its module has directories, and what it reads there is not recorded"
	}
	if m == nil {
		return ""
	}
	for _, kv := range cfg.Env {
		if m.finds([]byte(kv)) {
			return "its module's environment has a known secret"
		}
	}
	switch {
	case m.inText(x.Path) != x.Path:
		return "its name has a known secret"
	case m.finds(x.Snapshot):
		return "its state has a known secret"
	}
	return ""
}

// hidden reports whether what is to be written of an entry has a secret.
func (l *Lane) hidden(m *mask, f *abi.Failure, mail []*mailbox.Envelope) bool {
	if m == nil {
		return false
	}
	if f != nil && m.text(f.Reason) != f.Reason {
		return true
	}
	for _, e := range mail {
		if m.finds(e.Headers) || l.inline(e) && m.finds(e.Payload) {
			return true
		}
	}
	return false
}

// inline reports whether a message is written down whole.
func (l *Lane) inline(e *mailbox.Envelope) bool {
	rel := e.Origin>>(commandBits+recordBits) - l.gen.firstLane
	return e.Origin == 0 || rel >= uint64(len(l.seen)) && !l.meet(rel)
}
