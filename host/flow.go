package host

import (
	"errors"

	"github.com/wasmactors/wasmactors/host/internal/look"
)

// Flowed is a message that was sampled: From, To, Kind, Size, OneIn (it stands for so many messages) and First (of its turn).
// It is reported when the turn that has taken it ends. A message to no actor of the tree (an answer to the outside) is
// sampled when the turn that sends it ends.
type Flowed = look.Flowed

// ErrSampling says that another sample is already running.
var ErrSampling = errors.New("host: the flow is being sampled already")

// SampleFlow calls f for the messages of some turns until stop is called: of every turn at
// first, and of half as many whenever most messages were sampled. So the sum of Flowed.OneIn
// is an unbiased estimate of how many messages there were. f is called by workers, also at
// the same time: it must be quick. Only one caller may sample at a time: ErrSampling.
func (s *System) SampleFlow(most int, f func(*Flowed)) (stop func(), err error) {
	x := look.NewSampler(most, f)
	if !s.sampler.CompareAndSwap(nil, x) {
		return nil, ErrSampling
	}
	s.looks.Or(lookFlow)
	return func() {
		if s.sampler.CompareAndSwap(x, nil) {
			s.looks.And(^lookFlow)
		}
	}, nil
}
