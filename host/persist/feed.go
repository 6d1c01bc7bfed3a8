package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/cockroachdb/pebble"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/ref"
	envelopes "github.com/wasmactors/wasmactors/internal/mailbox"
)

// feed is the mailbox of an actor that keeps events. At the start of each incarnation of a guest it hands out what the guest
// is fed, and nothing else before the guest has got to the end of it. So what others send meanwhile waits where it always
// waits, within the same bounds, and nobody has to stash it.
type feed struct {
	host.HostedMailbox
	journal *Journal
	member  *member
	limit   int64
	guest   bool
	broken  error // why the ID cannot be used

	mu     sync.Mutex
	at     stage
	cursor cursor
	shown  *host.Envelope // the next batch
	final  bool           // the batch that was handed out is the last one
	doomed error          // why the events cannot be had
	out    bool           // a batch was handed out, and its turn has not ended
}

// stage says what the mailbox hands out.
type stage uint8

const (
	silentStage stage = iota // nothing: the incarnation has not begun
	feeding
	passing // messages
	failed  // an order to stop
)

var _ host.WaitingMailbox = (*feed)(nil)

// Guest makes a guest keep its events in the journal. limit bounds the bytes of its events and snapshots; 0: none. box is its
// mailbox, of any kind but Custom.
func (j *Journal) Guest(p host.Props, box mailbox.Config, limit int64) host.Props {
	return p.WithEvents().WithMailbox(j.mailbox(box, limit, true))
}

func (j *Journal) mailbox(box mailbox.Config, limit int64, guest bool) func(host.MailboxLimits) host.Mailbox {
	return func(l host.MailboxLimits) host.Mailbox {
		f := &feed{HostedMailbox: box.Make(l).(host.HostedMailbox), journal: j, limit: limit, guest: guest}
		if !guest {
			f.at = passing // it is fed in its start
		}
		return f
	}
}

// Hosted implements host.HostedMailbox.
func (f *feed) Hosted(h host.MailboxHost) {
	f.HostedMailbox.Hosted(h)
	if x, ok := h.(interface{ Self() (abi.Ref, string) }); ok {
		f.journal.join(ref.Of(x.Self()), f, f.limit)
	}
}

// begin begins to feed an incarnation.
func (f *feed) begin(r Recovery) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.broken != nil:
		return f.broken
	case f.at == failed: // whoever cannot be fed once is not tried again
		return nil
	}
	f.at, f.shown, f.final, f.doomed, f.out = feeding, nil, false, nil, false
	f.cursor = cursor{journal: f.journal, id: f.member.id, state: f.member.state, recovery: r}
	return nil
}

// doom has the actor fail with its next turn, and stop.
func (f *feed) doom(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at != failed {
		f.at, f.shown, f.out, f.doomed = feeding, refusal(err), false, err
	}
}

// errInbox is why a guest is not fed what it cannot take.
var errInbox = fmt.Errorf("a batch of its events and snapshots does not fit its inbox, or limits.message: its module needs an inbox of %d bytes, and the feature large for events that are larger", batchBytes+8<<10)

// why is why the actor cannot be fed; nil: it can.
func (f *feed) why() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.doomed
}

// lost is the error of a message for an actor in Go that could not be fed: whoever has sent it is told why.
func (f *feed) lost(what string) error {
	return fmt.Errorf("persist: its %s cannot be had: %w", what, cmp.Or(f.why(), errors.New("it ends")))
}

// refusal says why the events cannot be had: its turn fails with that.
func refusal(err error) *host.Envelope {
	w := abi.NewWriter(nil)
	w.Text(err.Error())
	e := envelopes.New()
	e.Kind = abi.KindRecover
	e.SetPayload(w.Bytes())
	return e
}

// over is told of the end of a batch's turn.
func (f *feed) over(well bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at != feeding {
		return
	}
	f.out = false
	switch {
	case !well || f.doomed != nil:
		f.at = failed
	case f.final:
		f.at = passing
		f.cursor = cursor{}
	}
}

func (f *feed) passes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at == passing
}

// Peek implements host.Mailbox.
func (f *feed) Peek() *host.Envelope {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.at == passing:
		return f.HostedMailbox.Peek()
	case f.at == feeding && f.out && f.doomed == nil: // the host has dropped it: there is no room for it
		f.shown, f.doomed, f.out = refusal(errInbox), errInbox, false
	case f.at == feeding && f.out:
		f.at = failed
	case f.at == feeding && f.shown == nil:
		b, err := f.cursor.batch()
		if err != nil {
			f.shown, f.doomed = refusal(err), err
			break
		}
		f.shown = envelopes.New()
		f.shown.Kind = abi.KindRecover
		f.shown.SetPayload(rules.AppendBatch(nil, &b))
		f.final = b.Done
	}
	if f.at == failed && f.shown == nil {
		f.shown = envelopes.New()
		f.shown.Kind, f.shown.Flags = abi.KindRecover, mark.Poison|mark.ForGood
	}
	return f.shown
}

// Pop implements host.Mailbox.
func (f *feed) Pop() *host.Envelope {
	if f.passes() {
		return f.HostedMailbox.Pop()
	}
	e := f.Peek()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = nil
	f.out = f.at == feeding && e != nil
	return e
}

// PushFront implements host.Mailbox. A batch whose turn has failed does not come again.
func (f *feed) PushFront(es ...*host.Envelope) {
	kept := es[:0:0]
	for _, e := range es {
		if e.Kind == abi.KindRecover {
			e.Free()
		} else {
			kept = append(kept, e)
		}
	}
	f.HostedMailbox.PushFront(kept...)
}

// Failed implements host.HostedMailbox.
func (f *feed) Failed(e *host.Envelope) {
	if e.Kind != abi.KindRecover {
		f.HostedMailbox.Failed(e)
	}
}

// Len implements host.Mailbox.
func (f *feed) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.HostedMailbox.Len()
	if f.at == feeding && !f.out || f.at == failed {
		n++
	}
	return n
}

// Empty implements host.Mailbox.
func (f *feed) Empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.at {
	case passing:
		return f.HostedMailbox.Empty()
	case feeding, failed:
		return false
	}
	return true
}

// Close implements host.Mailbox.
func (f *feed) Close(drain func(*host.Envelope)) {
	f.HostedMailbox.Close(drain)
	if f.member != nil {
		f.journal.leave(f.member)
	}
}

// PushWait implements host.WaitingMailbox.
func (f *feed) PushWait(ctx context.Context, e *host.Envelope) error {
	if w, ok := f.HostedMailbox.(host.WaitingMailbox); ok {
		return w.PushWait(ctx, e)
	}
	return f.Push(e)
}

// Wait implements host.WaitingMailbox.
func (f *feed) Wait() (d time.Duration) {
	if w, ok := f.HostedMailbox.(host.WaitingMailbox); ok {
		return w.Wait()
	}
	return 0
}

// cursor is how far an incarnation has been fed.
type cursor struct {
	journal  *Journal
	id       string
	state    *state
	recovery Recovery

	begun bool
	next  uint64 // number of the next event
	to    uint64 // of the last one
	left  uint64 // how many more
	last  uint64
	over  bool
}

// batchBytes is about how much a guest is fed at a time. What is larger comes alone.
const batchBytes = 24 << 10

// batch is the next one.
func (c *cursor) batch() (b rules.Batch, err error) {
	if !c.begun {
		c.begun = true
		s, err := c.begin()
		if err != nil {
			return b, err
		}
		if b.Snapshot = s; s != nil && len(s.Payload) > batchBytes {
			b.Last, b.Done = c.last, c.over
			return b, nil
		}
	}
	b.Last = c.last
	if !c.over {
		if b.Events, err = c.events(); err != nil {
			return b, err
		}
	}
	b.Done = c.over
	return b, nil
}

// begin finds where to begin.
func (c *cursor) begin() (s *Snapshot, err error) {
	r := &c.recovery
	queue, last := c.queue()
	c.last, c.to, c.left = last, last, math.MaxUint64
	if r.To != 0 {
		c.to = min(c.to, r.To)
	}
	if r.Most != 0 {
		c.left = r.Most
	}
	if c.over = r.Off; r.Off {
		return nil, nil
	}
	c.next = 1
	if !r.NoSnapshot {
		most := c.to
		if r.SnapshotTo != 0 {
			most = min(most, r.SnapshotTo)
		}
		if s, err = c.journal.snapshot(c.id, queue, most, r.SnapshotVersion); err != nil {
			return nil, err
		}
		if s != nil {
			c.next = s.Number + 1
		}
	}
	m, err := c.journal.index.meta(c.id)
	if err != nil {
		return nil, err
	}
	deleted := m.deleted
	for _, t := range queue {
		for i := range t.entries {
			if e := &t.entries[i]; e.Kind == rules.EntryDeleteEvents {
				deleted = max(deleted, min(e.To, last))
			}
		}
	}
	c.next = max(c.next, deleted+1)
	c.over = c.next > c.to || c.left == 0
	return s, nil
}

// queue is what is stored and not in the index yet.
func (c *cursor) queue() ([]*taken, uint64) {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	return append([]*taken(nil), c.state.queue...), c.state.last
}

// events are the next ones.
func (c *cursor) events() (list []Event, err error) {
	queue, _ := c.queue() // before the index is read: what is in neither is in none
	list, more, err := c.journal.index.events(c.id, c.next, c.to, batchBytes)
	if err != nil {
		return nil, err
	}
	bytes := 0
	for i := range list {
		bytes += shownBytes(&list[i])
	}
	next := c.next + uint64(len(list))
	for k := 0; k < len(queue) && !more; k++ {
		for i := range queue[k].entries {
			e := queue[k].entries[i].Event
			if e.Number == 0 || e.Number < next || e.Number > c.to {
				continue
			}
			if bytes += shownBytes(&e); len(list) > 0 && bytes > batchBytes || len(list) >= chunkEvents {
				more = true
				break
			}
			e.Time = queue[k].time
			list, next = append(list, e), e.Number+1
		}
	}
	if uint64(len(list)) > c.left {
		list = list[:c.left]
	}
	for i := range list {
		if list[i].Number != c.next {
			return nil, fmt.Errorf("event %d of %s is missing", c.next, c.id)
		}
		c.next++
	}
	c.left -= uint64(len(list))
	if c.over = c.next > c.to || c.left == 0; !c.over && len(list) == 0 {
		return nil, fmt.Errorf("event %d of %s is missing", c.next, c.id)
	}
	return list, nil
}

// snapshot is the newest one up to a number, nil if there is none.
func (j *Journal) snapshot(id string, queue []*taken, most uint64, version uint16) (found *Snapshot, err error) {
	fits := func(s *Snapshot) bool { return s.Number <= most && s.Version >= version }
	dropped := func(n uint64, from, after int) bool { // by what is stored behind an entry of a record
		for k, t := range queue[from:] {
			for i := range t.entries {
				if e := &t.entries[i]; (k > 0 || i > after) && e.Kind == rules.EntryDeleteSnapshots && e.From <= n && n <= e.To {
					return true
				}
			}
		}
		return false
	}
	for k := len(queue) - 1; k >= 0 && found == nil; k-- {
		for i := range queue[k].entries { // the last one counts
			e := &queue[k].entries[i]
			if e.Kind == rules.EntrySnapshot && fits(&e.Snapshot) && !dropped(e.Snapshot.Number, k, i) {
				s := e.Snapshot
				s.Time, found = queue[k].time, &s
			}
		}
	}
	err = j.index.with(func(db *pebble.DB) error {
		return j.index.snapshots(db, id, 0, most, func(_ []byte, s *Snapshot) (bool, error) {
			if found != nil && found.Number >= s.Number {
				return false, nil
			}
			if fits(s) && !dropped(s.Number, 0, -1) {
				found = s
				return false, nil
			}
			return true, nil
		})
	})
	return found, err
}
