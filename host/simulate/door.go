package simulate

import (
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// door stands between an actor and the senders to it.
type door struct {
	host.Mailbox
	r     *Run
	ref   host.Ref
	path  string
	host  host.MailboxHost
	plain bool // the mailbox keeps the order
	kept  bool // the actor is durable

	// Under the run's lock.
	late   map[abi.Ref][]*host.Envelope // by sender, in order: the first is due next
	loose  []*host.Envelope             // that others overtake
	closed bool
	stamps map[*host.Envelope]stamp
	sent   map[abi.Ref]uint64 // numbers of the messages, by sender
	popped map[abi.Ref]uint64
}

// stamp is the number of a message among those of its sender.
type stamp struct {
	sender abi.Ref
	n      uint64
}

// mailbox is Config.WithMailboxes.
func (r *Run) mailbox(ref host.Ref, next func(host.MailboxLimits) host.Mailbox) func(host.MailboxLimits) host.Mailbox {
	path := ref.Path()
	return func(l host.MailboxLimits) host.Mailbox {
		var inner host.Mailbox
		if next == nil {
			inner = host.UsualMailbox(l)
		} else {
			inner = next(l)
		}
		m, hosted := inner.(host.HostedMailbox)
		d := &door{
			Mailbox: inner, r: r, ref: ref, path: path, plain: next == nil, late: map[abi.Ref][]*host.Envelope{},
			stamps: map[*host.Envelope]stamp{}, sent: map[abi.Ref]uint64{}, popped: map[abi.Ref]uint64{},
		}
		r.mu.Lock()
		r.doors[ref.UID()] = d
		r.mu.Unlock()
		if hosted {
			return &hostedDoor{d, m}
		}
		return d
	}
}

// hostedDoor is the door of a mailbox that works with its actor. That of a durable actor does not: its recorder stands
// between the two.
type hostedDoor struct {
	*door
	inner host.HostedMailbox
}

// Hosted implements host.HostedMailbox.
func (d *hostedDoor) Hosted(h host.MailboxHost) {
	d.host = h
	d.inner.Hosted(h)
}

// EndRun implements host.HostedMailbox.
func (d *hostedDoor) EndRun() { d.inner.EndRun() }

// Order implements host.HostedMailbox.
func (d *hostedDoor) Order() (before, came uint64) { return d.inner.Order() }

// Trim implements host.HostedMailbox.
func (d *hostedDoor) Trim(most int) { d.inner.Trim(most) }

// Failed implements host.HostedMailbox.
func (d *hostedDoor) Failed(e *host.Envelope) { d.inner.Failed(e) }

// Before is told which actor it stands before, if that is recorded.
func (d *door) Before(h host.MailboxHost) { d.host, d.plain, d.kept = h, true, true }

// verdict is what happens to a message.
type verdict uint8

const (
	passes verdict = iota
	refused
	lost
	held    // with all that follow from its sender
	loosely // and others overtake it
	doubled
	answered // with an error
)

// Push implements host.Mailbox.
func (d *door) Push(e *host.Envelope) error {
	r := d.r
	r.mu.Lock()
	if r.still() {
		by := r.phase == releases && r.keeps(e, d)
		r.mu.Unlock()
		return d.arrives(e, nil, by)
	}
	from := d.from(e)
	r.record('m', [3]string{from, d.path}, [5]uint64{uint64(e.Kind), uint64(e.Sender), e.Correlation, uint64(e.Flags), uint64(len(e.Headers))}, e.Payload)
	var s *sent
	kept := r.keeps(e, d) && r.keeping()
	if kept {
		s = r.once.sends(e, d.ref.UID())
	} else if by := r.doors[e.Sender]; by != nil && by.kept && r.once.by == e.Sender && host.IsMail(e) {
		r.violate("what leaves is durable", "%s has got a message of %s before the turn was durable", d.path, from)
	}
	v, wait := passes, time.Duration(0)
	if host.IsMail(e) && !d.closed && d.host != nil {
		if v, wait = d.judge(e, from); v == passes && len(d.late[e.Sender]) > 0 {
			d.late[e.Sender] = append(d.late[e.Sender], e) // it keeps its place behind what is late
			r.held += e.Size()
			r.mu.Unlock()
			return nil
		}
	}
	switch v {
	case held:
		d.late[e.Sender] = append(d.late[e.Sender], e)
		r.held += e.Size()
		sender := e.Sender
		first := len(d.late[sender]) == 1
		r.mu.Unlock()
		if first {
			r.virtual.AfterFunc(wait, func() { d.release(sender) })
		}
		return nil
	case loosely:
		d.loose = append(d.loose, e)
		r.held += e.Size()
		r.mu.Unlock()
		r.virtual.AfterFunc(wait, func() { d.overtaken(e) })
		return nil
	}
	r.mu.Unlock()
	switch v {
	case refused:
		r.refused(e, d, s)
		return host.ErrMailboxFull
	case lost:
		r.refused(e, d, s)
		e.Free()
		return nil
	case answered:
		r.refused(e, d, s)
		d.host.Dropped(e, host.DeadDropped)
		return nil
	case doubled:
		twin := copyOf(e)
		if err := d.push(e); err != nil {
			return err
		}
		d.late1(twin)
		return nil
	}
	return d.arrives(e, s, kept)
}

// keeping reports whether a durable actor runs. The run's lock is held.
func (r *Run) keeping() bool {
	by := r.doors[r.once.by]
	return by != nil && by.kept && !r.disk.failed()
}

// keeps reports whether a message is one of a durable actor to another. The run's lock is held.
func (r *Run) keeps(e *host.Envelope, to *door) bool {
	if !to.kept || !host.IsMail(e) || r.disk == nil {
		return false
	}
	from := r.doors[e.Sender]
	return from != nil && from.kept
}

// refused forgets a message that was refused, or dropped.
func (r *Run) refused(e *host.Envelope, to *door, s *sent) {
	if s != nil {
		r.mu.Lock()
		r.once.takes(link{e.Sender, to.ref.UID()}, taken{}, s, true)
		r.mu.Unlock()
	}
}

// arrives is push that notes a message of a durable actor to another.
func (d *door) arrives(e *host.Envelope, s *sent, kept bool) error {
	if !kept {
		return d.push(e)
	}
	l, sum, text := link{e.Sender, d.ref.UID()}, sumOf(e), shown(e)
	err := d.push(e)
	d.r.mu.Lock()
	d.r.once.takes(l, taken{e.Position, sum, text}, s, err != nil)
	d.r.mu.Unlock()
	return err
}

// from is the path of a sender.
func (d *door) from(e *host.Envelope) string {
	if s := d.r.doors[e.Sender]; s != nil {
		return s.path
	}
	if _, rest, ok := strings.Cut(e.SenderPath, "://"); ok {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
	}
	return e.SenderPath
}

// judge draws what happens to a message. The run's lock is held.
func (d *door) judge(e *host.Envelope, from string) (verdict, time.Duration) {
	r := d.r
	service := strings.HasPrefix(d.path, "/system/")
	fromService := strings.HasPrefix(from, "/system/")
	wait := func(arg uint64) time.Duration { return time.Duration(1+arg%uint64(MostDelay)) >> (arg >> 40 % 12) }
	link := from + ">" + d.path
	switch {
	case r.betweenSystems(from, d.path):
	case service && e.Kind == abi.KindMessage:
		if e.Correlation != 0 {
			if _, yes := r.strikes(ServiceFails, from, link); yes {
				return answered, 0
			}
		}
		if arg, yes := r.strikes(ServiceSlow, from, link); yes {
			return held, wait(arg)
		}
	case fromService:
		if e.Kind != abi.KindReply && e.Kind != abi.KindReplyError {
			break
		}
		if arg, yes := r.strikes(ServiceSlow, d.path, link); yes {
			return held, wait(arg)
		}
		if _, yes := r.strikes(ServiceLost, d.path, link); yes {
			return lost, 0
		}
		if _, yes := r.strikes(ServiceTwice, d.path, link); yes {
			return doubled, 0
		}
	case !service:
		if e.Kind == abi.KindMessage {
			if _, yes := r.strikes(Full, d.path, link); yes {
				return refused, 0
			}
		}
		if r.keeps(e, d) { // else it is in the mailbox before the sender goes on, and not lost
			break
		}
		if _, yes := r.strikes(Drop, d.path, link); yes {
			return lost, 0
		}
		if arg, yes := r.strikes(Late, d.path, link); yes {
			return held, wait(arg)
		}
		if r.places.Lossy == nil || !r.places.Lossy(d.path) || e.Kind != abi.KindMessage {
			break
		}
		if _, yes := r.strikes(Twice, d.path, link); yes {
			return doubled, 0
		}
		if arg, yes := r.strikes(Overtaken, d.path, link); yes {
			return loosely, wait(arg)
		}
	}
	return passes, 0
}

// push gives a message to the mailbox, with a number.
func (d *door) push(e *host.Envelope) error {
	mail, sender := host.IsMail(e), e.Sender // the mailbox that takes e may free it
	if !d.plain || !mail {
		return d.Mailbox.Push(e)
	}
	r := d.r
	r.mu.Lock()
	d.sent[sender]++
	d.stamps[e] = stamp{sender, d.sent[sender]}
	r.mu.Unlock()
	err := d.Mailbox.Push(e)
	if err != nil {
		d.forget(e)
	}
	return err
}

// late1 delivers a message that was held back, or the second one of two.
func (d *door) late1(e *host.Envelope) {
	d.r.mu.Lock()
	closed := d.closed
	d.r.mu.Unlock()
	if closed || d.push(e) != nil {
		d.host.Dropped(e, host.DeadDropped)
		return
	}
	d.r.wake(d.ref)
}

// release delivers what is late of a sender, in order.
func (d *door) release(sender abi.Ref) {
	r := d.r
	r.mu.Lock()
	es := d.late[sender]
	delete(d.late, sender)
	for _, e := range es {
		r.held -= e.Size()
	}
	r.mu.Unlock()
	for _, e := range es {
		d.late1(e)
	}
}

// overtaken delivers a message that others have overtaken.
func (d *door) overtaken(e *host.Envelope) {
	r := d.r
	r.mu.Lock()
	i := slices.Index(d.loose, e)
	if i >= 0 {
		d.loose = slices.Delete(d.loose, i, i+1)
		r.held -= e.Size()
	}
	r.mu.Unlock()
	if i >= 0 {
		d.late1(e)
	}
}

// releaseAll delivers all that was held back.
func (d *door) releaseAll() {
	r := d.r
	r.mu.Lock()
	var senders []abi.Ref
	for s := range d.late {
		senders = append(senders, s)
	}
	slices.Sort(senders)
	loose := slices.Clone(d.loose)
	r.mu.Unlock()
	for _, s := range senders {
		d.release(s)
	}
	for _, e := range loose {
		d.overtaken(e)
	}
}

// forget forgets the number of a message that leaves.
func (d *door) forget(e *host.Envelope) (stamp, bool) {
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	s, ok := d.stamps[e]
	delete(d.stamps, e)
	return s, ok
}

// Pop implements host.Mailbox, and checks the order.
func (d *door) Pop() *host.Envelope {
	e := d.Mailbox.Pop()
	if e == nil || !d.plain {
		return e
	}
	if s, ok := d.forget(e); ok {
		d.r.mu.Lock()
		if last := d.popped[s.sender]; s.n <= last {
			d.r.violate("order", "%s takes message %d of %s after message %d", d.path, s.n, d.from(e), last)
		}
		d.popped[s.sender] = s.n
		d.r.mu.Unlock()
	}
	return e
}

// Force implements host.Mailbox.
func (d *door) Force(e *host.Envelope) bool {
	r := d.r
	r.mu.Lock()
	r.record('f', [3]string{d.path}, [5]uint64{uint64(e.Kind), uint64(e.Sender), e.Correlation}, e.Payload)
	var s *sent
	kept := r.keeps(e, d) && (r.phase == releases || r.phase == runs && r.keeping())
	if kept && !r.still() {
		s = r.once.sends(e, d.ref.UID())
	}
	r.mu.Unlock()
	l, sum, text := link{e.Sender, d.ref.UID()}, sumOf(e), shown(e)
	there := d.Mailbox.Force(e)
	if kept {
		r.mu.Lock()
		r.once.takes(l, taken{e.Position, sum, text}, s, !there)
		r.mu.Unlock()
	}
	return there
}

// Close implements host.Mailbox.
func (d *door) Close(drain func(*host.Envelope)) {
	r := d.r
	r.mu.Lock()
	d.closed = true
	if !r.still() && !r.disk.failed() { // else they end with the process
		r.once.ends(d.ref.UID())
	}
	var senders []abi.Ref
	for s := range d.late {
		senders = append(senders, s)
	}
	slices.Sort(senders)
	es := d.loose
	for _, s := range senders {
		es = append(es, d.late[s]...)
	}
	d.late, d.loose = map[abi.Ref][]*host.Envelope{}, nil
	for _, e := range es {
		r.held -= e.Size()
	}
	clear(d.stamps)
	if r.doors[d.ref.UID()] == d {
		delete(r.doors, d.ref.UID())
	}
	r.mu.Unlock()
	d.Mailbox.Close(drain)
	for _, e := range es {
		drain(e)
	}
}

// copyOf is a copy of a message.
func copyOf(e *host.Envelope) *host.Envelope {
	c := &host.Envelope{
		Kind: e.Kind, Flags: e.Flags, Due: e.Due, Sender: e.Sender, SenderPath: e.SenderPath, Correlation: e.Correlation, Value: e.Value, Attached: e.Attached,
	}
	c.SetPayload(e.Payload)
	if len(e.Headers) > 0 {
		c.SetHeaders(e.Headers)
	}
	return c
}
