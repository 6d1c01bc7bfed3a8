// Package seldom has what few actors are made with. It stands behind one pointer in their props, which all actors have.
package seldom

import "github.com/wasmactors/wasmactors/host/queue"

// Props never change. A nil pointer is a valid value: nothing of it.
type Props struct {
	Wrong   error // why no actor can be made
	Mailbox func(queue.Limits) queue.Mailbox
	State   *[]byte // in which the first incarnation of a guest begins; nil: it is started
	Options *[]byte // of a guest's spawn, for a checkpoint; nil: none, or not kept
}

var none Props

// Get is p, to be read; never nil.
func (p *Props) Get() *Props {
	if p == nil {
		return &none
	}
	return p
}

// With is a changed copy.
func (p *Props) With(change func(*Props)) *Props {
	q := *p.Get()
	change(&q)
	return &q
}
