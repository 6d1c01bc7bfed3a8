package durable

import (
	"bytes"
	"errors"

	"github.com/wasmactors/wasmactors/host/record"
)

// An upgrade whose actors can go back is in the log: how far it is, whenever that changes. Each checkpoint is followed by the last of
// these records, so that the log before can be given back. What the actors are before and after follows from their own records, and
// from the checkpoint.

// tagProbation is that of a record.Probation.
const tagProbation = 8

// decodeProbation reads one.
func decodeProbation(b []byte) (*record.Probation, error) {
	p := &record.Probation{}
	if err := decoder.Unmarshal(b, p); err != nil {
		return nil, err
	}
	if why := p.Wrong(); why != "" {
		return nil, errors.New(why)
	}
	return p, nil
}

// Remember has the store keep how far an upgrade is: what is recorded later comes after it. A process that ends before the upgrade is
// over finds it in Store.Probation. It fails when the store is closing, or has failed; any goroutine may call it.
func (s *Store) Remember(p *record.Probation) error {
	if why := p.Wrong(); why != "" {
		return errors.New("durable: " + why)
	}
	now := *p
	s.mu.Lock()
	defer s.mu.Unlock() // else a checkpoint could come in between
	if s.err != nil || s.frozen.Load() {
		return errors.Join(ErrClosing, s.err)
	}
	if err := s.noteProbation(&now); err != nil {
		return err
	}
	s.probation = &now
	return nil
}

// noteProbation writes a record. The caller holds the lock.
func (s *Store) noteProbation(p *record.Probation) error {
	b, err := encode(tagProbation, p)
	if err == nil {
		_, err = s.append(b)
	}
	return err
}

// Probation is the upgrade that goes on, as far as the log says when Store.Prepare has read it, or as it was remembered since; nil:
// there is none. It is to be given to upgrade.Resume after Starting.Release, or remembered with Over before Starting.Recover: an actor
// whose new code has crashed is held until then, and there is no checkpoint. Any goroutine may call it.
func (s *Store) Probation() *record.Probation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probation == nil || s.probation.Over {
		return nil
	}
	p := *s.probation
	return &p
}

// Probes implements record.Prober.
func (s *Store) Probes(code []byte, at int64) bool {
	p := s.Probation()
	return p != nil && at >= p.Began && bytes.Equal(code, p.To)
}
