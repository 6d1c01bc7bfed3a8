package look

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// ErrNotKept says that a dead letter cannot be delivered again.
var ErrNotKept = errors.New("host: the dead letter cannot be delivered again")

// Letters counts all dead letters and keeps the last ones.
type Letters struct {
	mu    sync.Mutex
	by    [event.DeadRefused + 1]uint64 // total by reason
	total uint64
	ring  []keptLetter // that of number n at (n-1) modulo its size, once it is full
	size  int
	most  int64 // bytes of what is kept beyond excerpts
	bytes int64
	shed  uint64 // the next letter to lose its bytes
}

// keptLetter is a dead letter with what it takes to deliver it again.
type keptLetter struct {
	event.DeadLetter
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

func (d *Letters) Init(size int, most int64) { d.size, d.most, d.shed = size, most, 1 }

// Add enters a letter and gives it its number. The envelope stays the caller's.
func (d *Letters) Add(l *event.DeadLetter, e *mailbox.Envelope) {
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
	*at = keptLetter{order: e.Flags&mark.Control != 0}
	d.shed = max(d.shed, d.first())
	payload, extra := mark.Shown(e), int64(len(e.Headers))
	more := !bytes.Equal(payload, l.Payload) // it was cut or redacted
	if more {
		extra += int64(len(payload))
	}
	if l.Whole = extra <= d.most/4; l.Whole {
		d.makeRoom(extra, l.ID)
		d.bytes += extra
		at.correlation, at.flags, at.senderPath, at.attached = e.Correlation, e.Flags&mark.NoInfluence, e.SenderPath, e.Attached
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
func (d *Letters) first() uint64 { return d.total - uint64(len(d.ring)) + 1 }

// At is where the letter of a number is.
func (d *Letters) at(id uint64) *keptLetter { return &d.ring[(id-1)%uint64(d.size)] }

// makeRoom drops the bytes of the oldest letters until there is room for more.
func (d *Letters) makeRoom(more int64, before uint64) {
	for ; d.bytes+more > d.most && d.shed < before; d.shed++ {
		k := d.at(d.shed)
		if k.extra() == 0 {
			continue
		}
		d.bytes -= k.extra()
		k.whole, k.headers, k.Whole = nil, nil, false
	}
}

// N is the number of dead letters in all.
func (d *Letters) N() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}

// Reasons is the number of dead letters by the names of their reasons.
func (d *Letters) Reasons() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]uint64, len(d.by)-1)
	for _, r := range event.DeadReasons() {
		out[r.Name()] = d.by[r]
	}
	return out
}

// All is the kept letters, oldest first, and the number of letters in all.
func (d *Letters) All() ([]event.DeadLetter, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]event.DeadLetter, 0, len(d.ring))
	for id := d.first(); id <= d.total && d.size > 0; id++ {
		if k := d.at(id); !k.taken {
			out = append(out, k.DeadLetter)
		}
	}
	return out, d.total
}

// find is a letter that is kept.
func (d *Letters) find(id uint64) (*keptLetter, error) {
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

// Take makes an envelope of a copy of a letter; no other caller gets the letter until it is returned.
func (d *Letters) Take(id uint64) (*event.DeadLetter, *mailbox.Envelope, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, err := d.find(id)
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
	l := k.DeadLetter
	return &l, e, nil
}

// Get is a letter that is kept, with all of its payload if that is kept.
func (d *Letters) Get(id uint64) (event.DeadLetter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, err := d.find(id)
	if err != nil {
		return event.DeadLetter{}, err
	}
	l := k.DeadLetter
	if k.whole != nil {
		l.Payload = k.whole
	}
	return l, nil
}

// GiveBack undoes take.
func (d *Letters) GiveBack(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id >= d.first() {
		d.at(id).taken = false
	}
}
