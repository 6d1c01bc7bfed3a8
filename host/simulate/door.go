package simulate

import (
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
)

// door stands between an actor and the senders to it.
type door struct {
	host.HostedMailbox
	r     *Run
	ref   host.Ref
	path  string
	host  host.MailboxHost
	plain bool // the mailbox is the usual one, which keeps the order

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
			inner = mailbox.New(mailbox.Bounded).Make(l)
		} else {
			inner = next(l)
		}
		m, ok := inner.(host.HostedMailbox)
		if !ok {
			return inner
		}
		d := &door{
			HostedMailbox: m, r: r, ref: ref, path: path, plain: next == nil, late: map[abi.Ref][]*host.Envelope{},
			stamps: map[*host.Envelope]stamp{}, sent: map[abi.Ref]uint64{}, popped: map[abi.Ref]uint64{},
		}
		r.mu.Lock()
		r.doors[ref.UID()] = d
		r.mu.Unlock()
		return d
	}
}

// Hosted implements host.HostedMailbox.
func (d *door) Hosted(h host.MailboxHost) {
	d.host = h
	d.HostedMailbox.Hosted(h)
}

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
	from := d.from(e)
	r.record('m', [3]string{from, d.path}, [5]uint64{uint64(e.Kind), uint64(e.Sender), e.Correlation, uint64(e.Flags), uint64(len(e.Headers))}, e.Payload)
	v, wait := passes, time.Duration(0)
	if host.IsMail(e) && !d.closed {
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
		return host.ErrMailboxFull
	case lost:
		e.Free()
		return nil
	case answered:
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
	return d.push(e)
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
		return d.HostedMailbox.Push(e)
	}
	r := d.r
	r.mu.Lock()
	d.sent[sender]++
	d.stamps[e] = stamp{sender, d.sent[sender]}
	r.mu.Unlock()
	err := d.HostedMailbox.Push(e)
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
	d.r.sys.Wake(d.ref)
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
	e := d.HostedMailbox.Pop()
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
	r.mu.Unlock()
	return d.HostedMailbox.Force(e)
}

// Close implements host.Mailbox.
func (d *door) Close(drain func(*host.Envelope)) {
	r := d.r
	r.mu.Lock()
	d.closed = true
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
	delete(r.doors, d.ref.UID())
	r.mu.Unlock()
	d.HostedMailbox.Close(drain)
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
