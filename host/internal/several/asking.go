package several

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/message"
)

// Canceller is what an ask of an actor needs of the actor's context.
type Canceller interface{ CancelAsk(correlation uint64) }

// Asking is an ask of several actors by an actor in Go, whose questions have correlations in a row. C is its context.
type Asking[C Canceller] struct {
	tally *Tally
	first uint64
}

// NewAsking is an ask whose questions were sent, with the correlations from first on.
func NewAsking[C Canceller](t *Tally, first uint64) *Asking[C] { return &Asking[C]{t, first} }

// Take takes an answer to one of the questions, and ignores everything else. over says that it was the one
// that ends the ask: the others are given up. Results are all outcomes, in the order of the
// targets; the error is a *SeveralError.
func (s *Asking[C]) Take(c C, m message.Message) (results []Asked, over bool, err error) {
	i := m.Correlation - s.first
	if i >= uint64(len(s.tally.Results)) || s.tally.Ended {
		return nil, false, nil
	}
	err = m.Err()
	switch m.Kind {
	case abi.KindReply, abi.KindReplyError:
		m = m.Clone()
	case abi.KindAskTimeout:
		err = errs.ErrTimeout
	default:
		return nil, false, nil
	}
	if !s.tally.Put(int(i), m, err) {
		return nil, false, nil
	}
	for j, done := range s.tally.Done {
		if !done {
			c.CancelAsk(s.first + uint64(j))
		}
	}
	return s.tally.Results, true, s.tally.Err()
}
