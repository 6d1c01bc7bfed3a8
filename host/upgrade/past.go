package upgrade

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// mostPast bounds what is read of the past of a batch, bytes.
const mostPast = 256 << 20

// overhead is about what an entry or a message takes besides its bytes.
const overhead = 200

// pasts are what the actors of a batch have taken in, each since its last incarnation began. All methods may be called at the same time.
type pasts struct {
	mu    sync.Mutex
	by    map[abi.Ref]*past
	at    record.Place
	bytes int64
	err   error // of the first reading
}

// past is what one actor has taken in.
type past struct {
	all *pasts

	// With the lock of all.
	incarnation uint64 // that has begun last
	known       bool   // its beginning is kept
	reason      string // of its beginning
	failed      string // what the last turn has failed with
	mail        map[uint64]*record.Message
	entries     []pastEntry
}

// pastEntry is an entry, and the time in its header.
type pastEntry struct {
	*record.Entry
	time int64
}

// end is the number of the turn after it.
func (e *pastEntry) end() uint64 {
	n := e.First + uint64(e.Done)
	if e.Failure != nil {
		n++
	}
	return n
}

// read reads what the actors of a batch have taken in that handle it again; nil: there are none.
func (u *run) read(batch []*Actor) *pasts {
	all := &pasts{by: map[abi.Ref]*past{}}
	for _, a := range batch {
		if a.Way == Replay {
			all.by[a.ref.UID()] = &past{all: all, mail: map[uint64]*record.Message{}}
		}
	}
	if len(all.by) == 0 {
		return nil
	}
	all.err = all.readOn(u.ctx, u.sys)
	return all
}

// readOn reads what has been recorded since.
func (p *pasts) readOn(ctx context.Context, sys *host.System) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, err = swap.History(ctx, sys, p.at, p.add)
	return err
}

// of is the past of an actor. The error is that of the first reading.
func (p *pasts) of(ref abi.Ref) (*past, error) { return p.by[ref], p.err }

// add takes a record.
func (p *pasts) add(r *record.Record) error {
	x := p.by[r.Actor]
	if x == nil {
		return nil
	}
	switch r.Kind {
	case record.Began, record.Restarted:
		x.begins(r.Life.Incarnation)
		x.known = true
	case record.Accepted:
		x.mail[r.Message.Position] = r.Message
		p.bytes += overhead + int64(len(r.Message.Headers)+len(r.Message.Payload))
	case record.Turned:
		if r.Entry.Incarnation != x.incarnation {
			x.begins(r.Entry.Incarnation)
		}
		switch f := r.Entry.Failure; {
		case len(r.Entry.Mail) > 0 && f == nil:
			x.failed = ""
		case f != nil && x.failed == "": // else the last turn of an incarnation that has failed has failed, too
			x.failed = printable.Clip(f.Error(), message.MaxRestartReason)
		}
		x.entries = append(x.entries, pastEntry{r.Entry, r.Time})
		p.bytes += overhead + int64(8*len(r.Entry.Mail)+4*len(r.Entry.Outbox))
	}
	if p.bytes > mostPast {
		return fmt.Errorf("the actors of the batch have taken in more than the %d bytes that are read: make --batch smaller", mostPast)
	}
	return nil
}

// begins has what came before an incarnation not count. Its messages may still wait, or be put aside.
func (x *past) begins(incarnation uint64) {
	if incarnation != x.incarnation {
		x.known = false
	}
	x.incarnation, x.entries, x.reason, x.failed = incarnation, nil, x.failed, ""
}

// from are the entries behind some, and their incarnation.
func (x *past) from(n int) (entries []pastEntry, incarnation uint64, err error) {
	x.all.mu.Lock()
	defer x.all.mu.Unlock()
	if !x.known {
		return nil, 0, errors.New("the beginning of its incarnation is not kept any more; store.keep says how long records are")
	}
	return x.entries[min(n, len(x.entries)):], x.incarnation, nil
}

// message is one that the actor has got; nil: it is not kept.
func (x *past) message(position uint64) *record.Message {
	x.all.mu.Lock()
	defer x.all.mu.Unlock()
	return x.mail[position]
}
