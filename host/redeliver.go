package host

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// deadLetters counts all dead letters and keeps the last ones.
type deadLetters struct {
	mu    sync.Mutex
	by    [len(deadNames)]uint64 // total by reason
	total uint64
	ring  []keptLetter // that of number n at (n-1) modulo its size, once it is full
	size  int
	most  int64 // bytes of what is kept beyond excerpts
	bytes int64
	shed  uint64 // the next letter to lose its bytes
}

// keptLetter is a dead letter with what it takes to deliver it again.
type keptLetter struct {
	DeadLetter
	correlation uint64
	flags       uint16
	senderPath  string
	attached    *mailbox.Attached
	headers     []byte
	whole       []byte // nil: the excerpt is the whole payload
	taken       bool   // it was delivered again
	order       bool   // it is something else that an actor wanted, and no message
}

// extra is how much of the bound on bytes the letter takes.
func (k *keptLetter) extra() int64 { return int64(len(k.whole) + len(k.headers)) }

func (d *deadLetters) init(size int, most int64) { d.size, d.most, d.shed = size, most, 1 }

// add enters a letter and gives it its number. The envelope stays the caller's.
func (d *deadLetters) add(l *DeadLetter, e *mailbox.Envelope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total++
	d.by[l.Reason]++
	if d.size == 0 {
		return
	}
	l.ID = d.total
	var at *keptLetter
	if len(d.ring) < d.size {
		d.ring = append(d.ring, keptLetter{})
		at = &d.ring[len(d.ring)-1]
	} else {
		at = d.at(l.ID)
		d.bytes -= at.extra()
	}
	*at = keptLetter{order: e.Flags&flagControl != 0}
	d.shed = max(d.shed, d.first())
	payload, extra := shown(e), int64(len(e.Headers))
	more := !bytes.Equal(payload, l.Payload) // it was cut or redacted
	if more {
		extra += int64(len(payload))
	}
	if l.Whole = extra <= d.most/4; l.Whole {
		d.makeRoom(extra, l.ID)
		d.bytes += extra
		at.correlation, at.flags, at.senderPath, at.attached = e.Correlation, e.Flags&flagNoInfluence, e.SenderPath, e.Attached
		if len(e.Headers) > 0 {
			at.headers = append([]byte(nil), e.Headers...)
		}
		if more {
			at.whole = append([]byte(nil), payload...)
		}
	}
	at.DeadLetter = *l
}

// first is the number of the oldest letter that is kept.
func (d *deadLetters) first() uint64 { return d.total - uint64(len(d.ring)) + 1 }

// at is where the letter of a number is.
func (d *deadLetters) at(id uint64) *keptLetter { return &d.ring[(id-1)%uint64(d.size)] }

// makeRoom drops the bytes of the oldest letters until there is room for more.
func (d *deadLetters) makeRoom(more int64, before uint64) {
	for ; d.bytes+more > d.most && d.shed < before; d.shed++ {
		k := d.at(d.shed)
		if k.extra() == 0 {
			continue
		}
		d.bytes -= k.extra()
		k.whole, k.headers, k.Whole = nil, nil, false
	}
}

// count is the number of dead letters in all.
func (d *deadLetters) count() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}

// reasons is the number of dead letters by the names of their reasons.
func (d *deadLetters) reasons() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]uint64, len(d.by)-1)
	for _, r := range DeadReasons() {
		out[r.Name()] = d.by[r]
	}
	return out
}

// snapshot is the kept letters, oldest first, and the number of letters in all.
func (d *deadLetters) snapshot() ([]DeadLetter, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]DeadLetter, 0, len(d.ring))
	for id := d.first(); id <= d.total && d.size > 0; id++ {
		if k := d.at(id); !k.taken {
			out = append(out, k.DeadLetter)
		}
	}
	return out, d.total
}

// get is a letter that is kept.
func (d *deadLetters) get(id uint64) (*keptLetter, error) {
	switch {
	case id == 0 || id > d.total:
		return nil, fmt.Errorf("%w: there was none with the number %d", ErrNotKept, id)
	case id < d.first():
		return nil, fmt.Errorf("%w: number %d is not kept any more", ErrNotKept, id)
	}
	k := d.at(id)
	if k.taken {
		return nil, fmt.Errorf("%w: number %d was delivered again already", ErrNotKept, id)
	}
	return k, nil
}

// take makes an envelope of a copy of a letter; no other caller gets the letter until it is returned.
func (d *deadLetters) take(id uint64) (*keptLetter, *mailbox.Envelope, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, err := d.get(id)
	switch {
	case err != nil:
		return nil, nil, err
	case k.Kind != abi.KindMessage:
		return nil, nil, fmt.Errorf("%w: number %d is a %s, not a message; nothing waits for it any more", ErrNotKept, id, k.Kind)
	case k.order:
		return nil, nil, fmt.Errorf("%w: number %d is not a message but a request to watch, stop or identify an actor", ErrNotKept, id)
	case !k.Whole:
		return nil, nil, fmt.Errorf("%w: of number %d only the first %d of %d bytes are kept; see Config.WithDeadLetterBytes", ErrNotKept, id, len(k.Payload), k.Size)
	}
	e := mailbox.New()
	e.Kind, e.Flags, e.Sender, e.SenderPath, e.Correlation, e.Attached = k.Kind, k.flags, k.Sender, k.senderPath, k.correlation, k.attached
	e.SetHeaders(k.headers)
	if k.whole != nil {
		e.SetPayload(k.whole)
	} else {
		e.SetPayload(k.Payload)
	}
	k.taken = true
	return &keptLetter{DeadLetter: k.DeadLetter}, e, nil
}

// giveBack undoes take.
func (d *deadLetters) giveBack(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id >= d.first() {
		d.at(id).taken = false
	}
}

// DeadLetter is a dead letter that is kept, with all of its payload if it is whole. It fails
// with ErrNotKept.
func (s *System) DeadLetter(id uint64) (DeadLetter, error) {
	d := &s.dead
	d.mu.Lock()
	defer d.mu.Unlock()
	k, err := d.get(id)
	if err != nil {
		return DeadLetter{}, err
	}
	l := k.DeadLetter
	if k.whole != nil {
		l.Payload = k.whole
	}
	return s.redactedLetter(l), nil
}

// Redeliver delivers a dead letter again, as it was: to the actor that it was for, or if that has stopped to
// the one that is at its path now, in the name of its sender. What is for an actor that a keeper keeps goes
// to the keeper, which starts it if it is not there; the ref is the keeper's then. A relative path is where
// it led when it was sent; a path with patterns names no actor. Then the letter is kept no more. Who had
// asked was told that there is no answer, so an answer to it is a dead letter. What cannot be delivered
// stays what it is, and nothing follows from it: ErrNotKept says that it is not kept whole or no message,
// ErrUnknown that no actor has the path, ErrMailboxFull and ErrRestarting that it was not taken.
func (o Operator) Redeliver(id uint64) (Ref, error) {
	l, e, err := o.sys.dead.take(id)
	if err != nil {
		return Ref{}, err
	}
	to := o.sys.here(l.Recipient)
	if to != nil {
		if _, err = to.accept(nil, e); err == nil {
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
				e.Attached = below(e.Attached, name)
			}
			if _, err = receiverNow.accept(nil, e); err == nil {
				return receiverNow.ref(), nil
			}
		}
	}
	e.Free()
	o.sys.dead.giveBack(id)
	if errors.Is(err, ErrStopped) {
		err = fmt.Errorf("%w: %s has stopped", ErrUnknown, l.To())
	}
	return Ref{}, err
}

// receiverNow is the actor that now gets messages to the path that a letter was for; see findDoor.
func (s *System) receiverNow(l *keptLetter) (to *actor, name string) {
	at, ok := s.parsePath(l.Path)
	if !ok {
		return nil, ""
	}
	if to, name = s.findDoor(at.elements); name != "" && !abi.ValidName([]byte(name)) {
		return nil, ""
	}
	return to, name
}

func nobodyFor(l *keptLetter) error {
	return fmt.Errorf("%w: %s has stopped, and no actor is at its path", ErrUnknown, l.To())
}

// CanRedeliver says why Redeliver would fail, nil if no reason is known. It
// changes nothing.
func (o Operator) CanRedeliver(id uint64) error {
	l, e, err := o.sys.dead.take(id)
	if err != nil {
		return err
	}
	e.Free()
	o.sys.dead.giveBack(id)
	if o.sys.here(l.Recipient) != nil {
		return nil
	}
	if receiverNow, _ := o.sys.receiverNow(l); receiverNow == nil {
		return nobodyFor(l)
	}
	return nil
}
