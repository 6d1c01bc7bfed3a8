// Package stash is where an actor puts messages aside until it wants them back.
package stash

import (
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Stashed marks an envelope that was stashed: what its timer, ask or watch needed was done
// when it was handled for the first time.
type Stashed struct {
	Incarnation uint64 // in which it was stashed
	Lasting     bool   // it means something to the next incarnation, too
	Path        string // of a terminated actor
}

// Stash is an actor's. Only the actor's own run may use it. The zero value is empty.
type Stash struct {
	mail  []*mailbox.Envelope
	bytes int
	aside int64 // see Hold
}

// Len is the number of envelopes in it.
func (s *Stash) Len() int { return len(s.mail) }

// Bytes is what they take.
func (s *Stash) Bytes() int { return s.bytes }

// Hold notes how many bytes the actor's own code keeps aside, Held says so.
func (s *Stash) Hold(bytes int64) { s.aside = bytes }

// Held is what Hold has noted.
func (s *Stash) Held() int64 { return s.aside }

// Put takes an envelope.
func (s *Stash) Put(e *mailbox.Envelope) {
	s.mail = append(s.mail, e)
	s.bytes += e.Size()
}

// TakeAll empties the stash and returns what was in it, oldest first. The slice is
// valid until the next Put.
func (s *Stash) TakeAll() []*mailbox.Envelope {
	mail := s.mail
	s.mail, s.bytes = s.mail[:0], 0
	return mail
}

// Each looks at what is in it, oldest first.
func (s *Stash) Each(f func(*mailbox.Envelope)) {
	for _, e := range s.mail {
		f(e)
	}
}
