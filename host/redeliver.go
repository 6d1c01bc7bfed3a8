package host

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
)

// DeadLetter is a dead letter that is kept, with all of its payload if it is whole. It fails
// with ErrNotKept.
func (s *System) DeadLetter(id uint64) (DeadLetter, error) {
	l, err := s.audience.Letters.Get(id)
	if err != nil {
		return DeadLetter{}, err
	}
	return s.audience.Secrets.Letters(l)[0], nil
}

// Redeliver delivers a dead letter again, as it was: to the actor that it was for, or if that has stopped to
// the one that is at its path now, in the name of its sender. What is for an actor that a keeper keeps goes
// to the keeper, which starts it if it is not there; the ref is the keeper's then. A relative path is where
// it led when it was sent; a path with patterns names no actor. Then the letter is kept no more. Who had
// asked was told that there is no answer, so an answer to it is a dead letter. What cannot be delivered
// stays what it is, and nothing follows from it: ErrNotKept says that it is not kept whole or no message,
// ErrUnknown that no actor has the path, ErrMailboxFull and ErrRestarting that it was not taken.
func (o Operator) Redeliver(id uint64) (Ref, error) {
	l, e, err := o.sys.audience.Letters.Take(id)
	if err != nil {
		return Ref{}, err
	}
	to := o.sys.here(l.Recipient)
	if to != nil {
		if _, err = to.accept(nil, e, 0); err == nil {
			return to.ref(), nil
		}
	}
	if to == nil || errors.Is(err, ErrStopped) {
		receiverNow, name := o.sys.receiverNow(l)
		switch {
		case receiverNow == nil || receiverNow == to:
			err = nobodyFor(l)
		default:
			if name != "" {
				e.Attached = message.Below(e.Attached, name)
			}
			if _, err = receiverNow.accept(nil, e, 0); err == nil {
				return receiverNow.ref(), nil
			}
		}
	}
	e.Free()
	o.sys.audience.Letters.GiveBack(id)
	if errors.Is(err, ErrStopped) {
		err = fmt.Errorf("%w: %s has stopped", ErrUnknown, l.To())
	}
	return Ref{}, err
}

// receiverNow is the actor that now gets messages to the path that a letter was for; see findDoor.
func (s *System) receiverNow(l *DeadLetter) (to *actor, name string) {
	at, ok := s.parsePath(l.Path)
	if !ok {
		return nil, ""
	}
	if to, name = s.findDoor(at.Elements); name != "" && !abi.ValidName([]byte(name)) {
		return nil, ""
	}
	return to, name
}

func nobodyFor(l *DeadLetter) error {
	return fmt.Errorf("%w: %s has stopped, and no actor is at its path", ErrUnknown, l.To())
}

// CanRedeliver says why Redeliver would fail, nil if no reason is known. It
// changes nothing.
func (o Operator) CanRedeliver(id uint64) error {
	l, e, err := o.sys.audience.Letters.Take(id)
	if err != nil {
		return err
	}
	e.Free()
	o.sys.audience.Letters.GiveBack(id)
	if o.sys.here(l.Recipient) != nil {
		return nil
	}
	if receiverNow, _ := o.sys.receiverNow(l); receiverNow == nil {
		return nobodyFor(l)
	}
	return nil
}
