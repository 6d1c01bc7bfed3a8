// Package stash has the messages that an actor has put aside until it unstashes them.
package stash

import (
	"maps"
	"slices"

	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Stashed marks an envelope that was stashed: the work for its timer, ask or watch was done
// when it was handled for the first time.
type Stashed struct {
	Incarnation uint64 // in which it was stashed
	Lasting     bool   // it is valid in the next incarnation, too
	Path        string // of a terminated actor
}

// Stash is the stash of one actor. Only the actor's own run may use it. The zero value is empty.
type Stash struct {
	mail  []*mailbox.Envelope
	under map[string][]*mailbox.Envelope // what was put under a name
	n     int                            // in under
	bytes int
	aside int64 // see Hold
}

// Len is the number of envelopes in it.
func (s *Stash) Len() int { return len(s.mail) + s.n }

// Bytes is what they take.
func (s *Stash) Bytes() int { return s.bytes }

// Hold notes how many bytes the actor's own code keeps aside.
func (s *Stash) Hold(bytes int64) { s.aside = bytes }

// Held is the number that Hold has noted.
func (s *Stash) Held() int64 { return s.aside }

// Put adds an envelope.
func (s *Stash) Put(e *mailbox.Envelope) { s.PutFor("", e) }

// PutFor adds an envelope under a name; without a name it is Put.
func (s *Stash) PutFor(name string, e *mailbox.Envelope) {
	e.Fit()
	s.bytes += e.Size()
	if name == "" {
		s.mail = append(s.mail, e)
		return
	}
	at := mailbox.Attached{}
	if e.Attached != nil {
		at = *e.Attached
	}
	at.Kept = name
	e.Attached = &at
	if s.under == nil {
		s.under = map[string][]*mailbox.Envelope{}
	}
	s.under[name] = append(s.under[name], e)
	s.n++
}

// LenFor is the number of envelopes under a name.
func (s *Stash) LenFor(name string) int { return len(s.under[name]) }

// Remove takes an envelope out that was put last under a name, or without one. It does nothing if another is there.
func (s *Stash) Remove(name string, e *mailbox.Envelope) {
	mail := s.mail
	if name != "" {
		mail = s.under[name]
	}
	n := len(mail) - 1
	if n < 0 || mail[n] != e {
		return
	}
	mail[n] = nil
	s.bytes -= e.Size()
	switch {
	case name == "":
		s.mail = mail[:n]
	case n == 0:
		delete(s.under, name)
		s.n--
	default:
		s.under[name] = mail[:n]
		s.n--
	}
}

// PutBefore adds envelopes before all others of a name.
func (s *Stash) PutBefore(name string, mail []*mailbox.Envelope) {
	behind := s.TakeFor(name)
	for _, e := range mail {
		s.PutFor(name, e)
	}
	for _, e := range behind {
		s.PutFor(name, e)
	}
}

// TakeFor removes and returns what was put under a name, oldest first.
func (s *Stash) TakeFor(name string) []*mailbox.Envelope {
	mail := s.under[name]
	delete(s.under, name)
	s.n -= len(mail)
	for _, e := range mail {
		s.bytes -= e.Size()
	}
	return mail
}

// TakeAll empties the stash and returns what was in it, oldest first, and then what was put
// under names, in their order. The slice is valid until the next Put.
func (s *Stash) TakeAll() []*mailbox.Envelope {
	mail := s.mail
	if s.n > 0 {
		for _, name := range slices.Sorted(maps.Keys(s.under)) {
			mail = append(mail, s.under[name]...)
		}
	}
	s.mail, s.under, s.n, s.bytes = mail[:0], nil, 0, 0
	return mail
}

// Each looks at what is in it, in the order of TakeAll.
func (s *Stash) Each(f func(*mailbox.Envelope)) {
	for _, e := range s.mail {
		f(e)
	}
	for _, name := range slices.Sorted(maps.Keys(s.under)) {
		for _, e := range s.under[name] {
			f(e)
		}
	}
}
