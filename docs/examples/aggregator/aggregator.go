// Package aggregator collects what several others answer into one answer. Expectations come and go while it
// runs: the first one that takes a message, in the order in which they were added, handles it.
package aggregator

import (
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Expectation handles a message, or says that it does not expect it.
type Expectation func(ctx *host.Context, m host.Message) (taken bool, err error)

// Aggregator is an actor's Receive made of expectations. The zero value expects nothing.
type Aggregator struct {
	expected []*Expected
}

// Expected is an expectation that was added.
type Expected struct {
	f    Expectation
	once bool
	gone bool
}

// Expect adds an expectation that stays until Unexpect. What is added while a message is handled counts
// from the next one on.
func (a *Aggregator) Expect(f Expectation) *Expected { return a.add(&Expected{f: f}) }

// ExpectOnce adds one that goes with the first message that it takes.
func (a *Aggregator) ExpectOnce(f Expectation) *Expected { return a.add(&Expected{f: f, once: true}) }

// Unexpect removes one, at once; false if it has gone.
func (a *Aggregator) Unexpect(x *Expected) bool {
	was := !x.gone
	x.gone = true
	a.expected = slices.DeleteFunc(slices.Clone(a.expected), func(y *Expected) bool { return x == y })
	return was
}

func (a *Aggregator) add(x *Expected) *Expected {
	a.expected = append(slices.Clip(a.expected), x)
	return x
}

// Receive gives a message to the first expectation that takes it.
func (a *Aggregator) Receive(ctx *host.Context, m host.Message) error {
	for _, x := range a.expected { // the list of before: it is never changed in place
		if x.gone {
			continue
		}
		taken, err := x.f(ctx, m)
		if taken || err != nil {
			if x.once {
				a.Unexpect(x)
			}
			return err
		}
	}
	return host.ErrUnhandled
}

// Offers asks sellers what something costs, and answers with the offers of those that have answered within a
// time, the lowest first.
func Offers(within time.Duration, sellers ...host.Ref) host.Props {
	return host.Native(func() host.Actor {
		b := &buyer{within: within, sellers: sellers}
		b.Expect(b.begin)
		return b
	})
}

type buyer struct {
	Aggregator
	within  time.Duration
	sellers []host.Ref
	last    uint64
}

// begin takes a question, and expects what belongs to it.
func (b *buyer) begin(ctx *host.Context, m host.Message) (bool, error) {
	if m.Kind != abi.KindMessage {
		return false, nil
	}
	reply, err := ctx.Later()
	if err != nil {
		return true, ctx.ReplyError(err.Error())
	}
	payload := slices.Clone(m.Payload)
	first, open := b.last+1, len(b.sellers)
	b.last += uint64(open)
	last := b.last
	offers := []int{}
	var answers *Expected
	answers = b.Expect(func(_ *host.Context, m host.Message) (bool, error) {
		if m.Correlation < first || m.Correlation > last || m.Kind == abi.KindMessage {
			return false, nil
		}
		var offer int
		if m.Kind == abi.KindReply && m.Decode(&offer) == nil {
			offers = append(offers, offer)
		}
		if open--; open == 0 {
			b.Unexpect(answers)
			slices.Sort(offers)
			_ = reply.Send(offers) // an error says that nobody waits
		}
		return true, nil
	})
	for i, to := range b.sellers {
		if err := ctx.Ask(to, host.Raw(payload), first+uint64(i), b.within); err != nil {
			return true, err
		}
	}
	return true, nil
}
