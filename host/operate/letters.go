package operate

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Redeliver delivers a dead letter again, as it was: to the actor that it was for, or if that has stopped to
// the one that is at its path now, in the name of its sender. What is for an actor that a keeper keeps goes
// to the keeper, which starts it if it is not there; the ref is the keeper's then. A relative path is where
// it led when it was sent; a path with patterns names no actor. Then the letter is kept no more. Who had
// asked was told that there is no answer, so an answer to it is a dead letter. What cannot be delivered
// stays what it is, and nothing follows from it: ErrNotKept says that it is not kept whole or no message,
// ErrUnknown that no actor has the path, ErrMailboxFull and ErrRestarting that it was not taken.
func (o Operator[P, M]) Redeliver(id uint64) (ref.Ref, error) {
	letters := o.of.Letters()
	l, e, err := letters.Take(id)
	if err != nil {
		return ref.Ref{}, err
	}
	to, there, err := o.of.Take(l.Recipient, e)
	if there && err == nil {
		return to, nil
	}
	if !there || errors.Is(err, errs.ErrStopped) {
		now, name := o.of.Now(l)
		switch {
		case now == 0 || there && now == l.Recipient:
			err = nobodyFor(l)
		default:
			if name != "" {
				e.Attached = message.Below(e.Attached, name)
			}
			if to, there, err = o.of.Take(now, e); there && err == nil {
				return to, nil
			}
			if !there { // it has ended meanwhile
				err = errs.ErrStopped
			}
		}
	}
	e.Free()
	letters.GiveBack(id)
	if errors.Is(err, errs.ErrStopped) {
		err = fmt.Errorf("%w: %s has stopped", errs.ErrUnknown, l.To())
	}
	return ref.Ref{}, err
}

func nobodyFor(l *event.DeadLetter) error {
	return fmt.Errorf("%w: %s has stopped, and no actor is at its path", errs.ErrUnknown, l.To())
}

// CanRedeliver says why Redeliver would fail, nil if no reason is known. It
// changes nothing.
func (o Operator[P, M]) CanRedeliver(id uint64) error {
	letters := o.of.Letters()
	l, e, err := letters.Take(id)
	if err != nil {
		return err
	}
	e.Free()
	letters.GiveBack(id)
	if o.of.Here(l.Recipient) {
		return nil
	}
	if now, _ := o.of.Now(l); now == 0 {
		return nobodyFor(l)
	}
	return nil
}
