package tcp

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/box"
	"github.com/wasmactors/wasmactors/supervision"
)

// phase is where a connection stands.
type phase uint8

const (
	announcing phase = iota // its actor has to register
	open
	flushing  // it closes when what waits for the peer is written
	lingering // the peer has been told; what still comes is dropped
	half      // the peer has been told; what still comes is delivered
	over
)

// conn is a connection as an actor. A goroutine reads; what is written goes to the socket within the actor's turn, and what that
// does not take waits in the outbox, which a goroutine empties that exists only as long.
type conn struct {
	p    *provider
	h    *holder
	room *slot
	o    options
	nc   net.Conn
	raw  syscall.RawConn // nil: reads and writes block
	wake chan struct{}   // for the reader to look again
	gone chan struct{}   // closed when it is over
	last atomic.Int64    // ns since 1970, when something has come or gone
	from host.Ref        // the listener, the zero Ref if it was dialled

	mu       sync.Mutex
	ref      host.Ref
	handler  host.Ref
	state    []byte
	phase    phase
	resumed  bool
	how      string // it will have ended, if nothing else happens
	timer    interface{ Stop() bool }
	credit   int64
	paused   bool
	bounced  [][]byte // come back from an actor that does not know the connection
	ended    bool     // the peer writes no more
	out      []byte
	writing  bool   // a goroutine empties out
	queued   uint64 // bytes in all
	written  uint64 // of them
	acks     []ack
	refusing bool // writes, until the actor says otherwise
	owes     bool // it has, and there is no room yet
	final    host.Raw
	tries    int
}

// ack is an answer that is due when so many bytes are written.
type ack struct {
	at    uint64
	reply *host.Reply
}

const (
	mostAcks  = 64
	againIn   = 100 * time.Millisecond // a message that the actor had no room for
	mostTries = 600
	chunk     = 64 << 10 // bytes that the peer has to take within the time of a write
	lingers   = time.Second
	keptOut   = 512 // bytes of an empty outbox
)

func newConn(p *provider, h *holder, room *slot, o options, nc net.Conn, handler host.Ref) *conn {
	c := &conn{p: p, h: h, room: room, o: o, nc: nc, handler: handler, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetNoDelay(!o.Delay)
		switch {
		case o.Alive > 0:
			_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Duration(o.Alive), Interval: time.Duration(o.Alive)})
		case o.Alive < 0:
			_ = t.SetKeepAlive(false)
		}
	}
	if s, ok := nc.(syscall.Conn); ok && direct {
		c.raw, _ = s.SyscallConn()
	}
	return c
}

// spawner starts actors below the service's.
type spawner interface {
	Spawn(host.Props) (host.Ref, error)
}

// spawn starts the actor. After an error the connection is closed.
func (c *conn) spawn(by spawner) error {
	out := int(c.h.grant.Outbox)
	props := host.Behave("connection", func() host.Behaviour { return connActor{c} }).
		WithLifetime(supervision.Temporary).
		WithMailbox(func(l host.MailboxLimits) host.Mailbox { return box.New(l, c.missed) }).
		WithLimits(host.Limits{Mailbox: 4096, MailboxBytes: int64(2*out) + 64<<10, Replies: mostAcks, Watches: 2, Asks: 1, Timers: 1, Children: 1, Stash: 1})
	c.mu.Lock() // its first turn may come before Spawn has returned
	ref, err := by.Spawn(props)
	c.ref = ref
	c.mu.Unlock()
	if err == nil && !c.p.enter(c) {
		err = errClosing
	}
	if err != nil {
		_ = c.nc.Close()
		c.room.free()
		if !ref.IsZero() {
			c.p.env.System.Stop(ref)
		}
		return err
	}
	c.p.counts.open.Add(1)
	return nil
}

// begin waits for the actor to register, and reads.
func (c *conn) begin() {
	c.touch()
	c.mu.Lock()
	c.arm()
	if c.phase != over {
		c.p.returns.move(c, host.Ref{}, c.handler)
	}
	c.mu.Unlock()
	c.p.do(c.read)
}

func (c *conn) arm() {
	if c.phase == announcing && c.timer == nil {
		c.timer = c.p.env.Clock.AfterFunc(RegisterTimeout, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.phase == announcing {
				c.finish(HowError, "the actor has not registered within "+RegisterTimeout.String())
			}
		})
	}
}

func (c *conn) disarm() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

func (c *conn) touch() { c.last.Store(c.p.env.Clock.Now().UnixNano()) }

// idle is how much of the time is left in which nothing may come or go.
func (c *conn) idle() time.Duration {
	return time.Duration(c.o.Idle - (c.p.env.Clock.Now().UnixNano() - c.last.Load()))
}

func (c *conn) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// announce makes the actor register again: it was restarted, or is another one.
func (c *conn) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == open {
		c.announceLocked(true)
	}
}

func (c *conn) announceLocked(resumed bool) {
	c.phase, c.credit, c.resumed, c.tries = announcing, 0, resumed, 0
	c.arm()
	c.tellConnected()
}

// tellConnected announces the connection, again if the actor's mailbox is full.
func (c *conn) tellConnected() {
	err := c.tell(c.describe(Connected, c.resumed))
	if err != nil && c.phase == announcing {
		c.p.env.After(againIn, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.phase == announcing {
				c.tellConnected()
			}
		})
	}
}

// tell sends the actor a message; it is called with the lock.
func (c *conn) tell(m host.Raw) error { return c.p.env.System.TellFrom(c.ref, c.handler, m) }

// missed is called when something did not get into the mailbox. If that was for the peer, there is a gap.
func (c *conn) missed() {
	c.p.env.Go(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.finish(HowError, "busy: too much was sent to the connection at once")
	})
}

// finish ends the connection; it is called with the lock. Only the first call counts.
func (c *conn) finish(how, text string) {
	if c.phase == over {
		return
	}
	c.phase = over
	close(c.gone)
	c.disarm()
	for _, a := range c.acks {
		_ = a.reply.Fail("unavailable: the connection has ended")
	}
	c.acks, c.out, c.bounced = nil, nil, nil
	c.shut(how == HowAborted || how == HowError)
	c.p.returns.move(c, c.handler, host.Ref{})
	c.p.leave(c)
	c.p.counts.open.Add(-1)
	c.p.counts.ended(how)
	c.final, c.tries = endMessage(Closed, how, text), 0
	c.tellEnd()
	c.room.free()
}

// shut closes the socket. A reset tells the peer that something was lost.
func (c *conn) shut(reset bool) {
	nc := c.nc
	t, secure := nc.(interface{ NetConn() net.Conn })
	if reset {
		if secure {
			nc = t.NetConn()
		}
		if l, ok := nc.(interface{ SetLinger(int) error }); ok {
			_ = l.SetLinger(0)
		}
		_ = nc.Close()
		return
	}
	if secure {
		c.p.do(func() { _ = nc.Close() }) // which writes
		return
	}
	_ = nc.Close()
}

// tellEnd tells the actor, again if its mailbox is full, and then the connection's own actor stops. It is called with the lock.
func (c *conn) tellEnd() {
	err := c.tell(c.final)
	if c.tries++; c.tries < mostTries && (errors.Is(err, host.ErrMailboxFull) || errors.Is(err, host.ErrRestarting)) {
		c.p.env.After(againIn, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.tellEnd()
		})
		return
	}
	c.p.env.System.Stop(c.ref)
}

// drain implements ending.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.phase {
	case announcing, open, half:
		c.how, c.phase = HowClosed, flushing
		c.disarm()
		c.flush()
	}
}

// cut implements ending.
func (c *conn) cut(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finish(HowError, why)
}

// flush writes what waits, as much as the socket takes; the rest is written by a goroutine. It is called with the lock.
func (c *conn) flush() {
	if c.writing || c.phase == over {
		return
	}
	if c.raw != nil && len(c.out) > 0 {
		n, err := 0, error(nil)
		if e := c.raw.Write(func(fd uintptr) bool {
			n, err = tryWrite(fd, c.out)
			return true
		}); e != nil {
			err = e
		}
		if c.wrote(n); err != nil {
			c.finish(HowError, "failed: "+plain(err))
			return
		}
	}
	if len(c.out) > 0 {
		c.writing = true
		c.p.do(c.empty)
		return
	}
	c.flushed()
}

// wrote notes that the beginning of the outbox is with the peer's system.
func (c *conn) wrote(n int) {
	if n > 0 {
		c.touch()
		c.p.counts.sent.Add(uint64(n))
	}
	c.written += uint64(n)
	if c.out = c.out[n:]; len(c.out) == 0 && cap(c.out) > keptOut {
		c.out = nil
	}
	for len(c.acks) > 0 && c.acks[0].at <= c.written {
		_ = c.acks[0].reply.Send(host.Raw(abi.AppendUint(nil, uint64(c.space()))))
		c.acks = c.acks[1:]
	}
	if len(c.acks) == 0 {
		c.acks = nil
	}
	if c.owes && c.space() >= int(c.h.grant.Outbox)/2 && c.tell(simple(Writable)) == nil {
		c.owes, c.refusing = false, false
	}
}

// space is how many bytes the outbox has room for.
func (c *conn) space() int { return int(c.h.grant.Outbox) - len(c.out) }

// empty writes the outbox, however long the peer takes, but for a pause that is too long.
func (c *conn) empty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.phase != over && len(c.out) > 0 {
		b := c.out[:min(len(c.out), chunk)]
		c.mu.Unlock()
		_ = c.nc.SetWriteDeadline(executor.Machine.Now().Add(time.Duration(c.o.Write)))
		var n int
		var err error
		c.p.outside(func() { n, err = c.nc.Write(b) })
		c.mu.Lock()
		if c.phase == over {
			return
		}
		if c.wrote(n); err != nil {
			c.finish(HowError, c.ioError(err, "the peer has not taken what was written within "+time.Duration(c.o.Write).String()))
			return
		}
	}
	_ = c.nc.SetWriteDeadline(time.Time{})
	c.writing = false
	if c.phase != over {
		c.flushed()
	}
}

// flushed goes on with the end of a connection when nothing waits for the peer any more.
func (c *conn) flushed() {
	if c.phase != flushing {
		return
	}
	closer, ok := c.nc.(interface{ CloseWrite() error })
	if c.ended || !ok {
		c.finish(c.how, "")
		return
	}
	if c.phase = lingering; c.how == HowConfirmed {
		c.phase = half
	} else {
		// A socket that is closed before everything was read resets the connection, and the peer may lose what it was sent.
		_ = c.nc.SetReadDeadline(executor.Machine.Now().Add(lingers))
	}
	c.rouse()
	if c.raw != nil {
		_ = closer.CloseWrite()
		return
	}
	c.p.do(func() { _ = closer.CloseWrite() }) // TLS writes
}

// connActor is the actor's side of a connection.
type connActor struct{ c *conn }

// Start implements host.Behaviour.
func (a connActor) Start(ctx *host.Context, _ *abi.Failure) *abi.Failure {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.c.ref = ctx.Self()
	if err := ctx.Watch(a.c.handler); err != nil {
		return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
	}
	return nil
}

// Handle implements host.Behaviour.
func (a connActor) Handle(ctx *host.Context, _ int) *abi.Failure {
	c := a.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		m, ok := ctx.Head().Next()
		if !ok {
			c.flush() // what came together is written together
			return nil
		}
		switch m.Kind {
		case abi.KindMessage:
			a.take(ctx, m)
		case abi.KindTerminated:
			if m.Sender.UID() == c.handler.UID() {
				c.finish(HowAborted, "the actor has ended")
			}
		}
	}
}

// take does what the actor says. Nobody else may.
func (a connActor) take(ctx *host.Context, m host.Message) {
	c, asked := a.c, m.Correlation != 0 && !m.Sender.IsZero()
	o, err := readOrder(m.Payload)
	its := m.Sender.UID() == c.handler.UID()
	if !its {
		err = service.Errorf(service.Denied, "the connection is another actor's")
	}
	var answer any
	if err == nil {
		answer, err = c.do(ctx, &o, asked)
	}
	switch {
	case asked && err != nil:
		_ = ctx.ReplyError(err.Error())
	case asked && answer != later:
		_ = ctx.Reply(answer)
	case err != nil && its && c.phase != over:
		_ = c.tell(refusedMessage(&o, err))
	}
}

// later is no answer: it comes later.
var later any = struct{}{}

func (c *conn) do(ctx *host.Context, o *order, asked bool) (answer any, err error) {
	if c.phase == over {
		return nil, service.Errorf(service.Unavailable, "the connection has ended")
	}
	switch o.op {
	case "write":
		return c.write(ctx, o, asked)
	case "more":
		c.more(o.n)
	case "register":
		if c.phase == announcing {
			c.phase = open
			c.disarm()
			if !c.o.Pull {
				c.credit = int64(c.o.Window)
			}
			c.resend()
		}
	case "unknown":
		return nil, c.bounce(o.bytes)
	case "suspend", "resume":
		c.paused = o.op == "suspend"
		c.resend()
	case "resume-writing":
		if c.refusing {
			c.owes = true
			c.wrote(0)
		}
	case "state":
		c.state = o.state
	case "give":
		return nil, c.give(ctx, o.ref)
	case "close":
		return nil, c.close(o.how)
	}
	return nil, nil
}

// more adds to the credit, which is never more than the window.
func (c *conn) more(n uint64) {
	c.credit += int64(min(n, 2*c.o.Window))
	c.credit = min(c.credit, int64(c.o.Window))
	c.resend()
}

// bounce takes back what an actor could not do anything with: it was restarted, and does not know the connection. It comes
// again when the actor has registered.
func (c *conn) bounce(b []byte) error {
	if c.phase != open && c.phase != announcing {
		return nil
	}
	size := len(b)
	for _, x := range c.bounced {
		size += len(x) + Overhead
	}
	if size > int(c.o.Window)+MaxMessage {
		return service.Errorf(service.BadRequest, "more comes back than was sent")
	}
	c.bounced = append(c.bounced, append([]byte(nil), b...))
	if c.phase == open {
		c.announceLocked(true)
	}
	return nil
}

func (c *conn) write(ctx *host.Context, o *order, asked bool) (any, error) {
	switch {
	case c.phase > open:
		return nil, service.Errorf(service.Unavailable, "the connection is closing")
	case c.refusing:
		return nil, service.Errorf(service.Busy, "a write was refused before, and writing was not resumed")
	case len(o.bytes) > int(c.h.grant.Outbox):
		return nil, service.Errorf(service.TooLarge, "a write has at most %d bytes; outbox of the grant raises it", c.h.grant.Outbox)
	case len(o.bytes) > c.space():
		c.refusing = c.o.Suspend
		return nil, service.Errorf(service.Busy, "the peer is slow: %d bytes wait, which leaves room for %d", len(c.out), c.space())
	}
	var reply *host.Reply
	if asked {
		var err error
		if reply, err = ctx.Later(); err != nil {
			return nil, service.Errorf(service.Busy, "%d writes wait for their acknowledgement, which is the limit", mostAcks)
		}
	}
	was := len(c.out)
	out, err := c.o.Framing.wrap(c.out, o.bytes)
	if err != nil {
		if reply != nil {
			_ = reply.Fail(err.Error())
			return later, nil
		}
		return nil, err
	}
	c.out = out
	c.queued += uint64(len(out) - was)
	if reply != nil {
		c.acks = append(c.acks, ack{c.queued, reply})
		return later, nil
	}
	return nil, nil
}

// give hands the connection to another actor, which has to register.
func (c *conn) give(ctx *host.Context, uid abi.Ref) error {
	if c.phase > open {
		return service.Errorf(service.Unavailable, "the connection is closing")
	}
	to, err := ctx.System().RefOf(uid, c.handler)
	if err != nil {
		return service.Errorf(service.NotFound, "there is no actor to give it to")
	}
	if err := ctx.Watch(to); err != nil {
		return service.Errorf(service.NotFound, "the actor to give it to cannot be watched")
	}
	if to.UID() != c.handler.UID() {
		ctx.Unwatch(c.handler)
	}
	c.p.returns.move(c, c.handler, to)
	c.handler = to
	c.disarm()
	c.announceLocked(false)
	return nil
}

func (c *conn) close(how string) error {
	if how == "reset" {
		c.finish(HowAborted, "")
		return nil
	}
	if c.phase > open && !(c.phase == half && how == "flush") {
		return service.Errorf(service.Unavailable, "the connection is closing")
	}
	c.bounced = nil
	if c.how, c.phase = HowClosed, flushing; how == "half" {
		c.how = HowConfirmed
	}
	c.disarm()
	c.rouse()
	c.flush()
	return nil
}

// Decide implements host.Behaviour.
func (a connActor) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour.
func (a connActor) CannotRewind() string { return "a connection cannot be resumed" }

// Rewind implements host.Behaviour.
func (a connActor) Rewind(*host.Context) bool { return false }

// End implements host.Behaviour.
func (a connActor) End(*host.Context, host.End) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.c.finish(HowError, "the connection's actor was stopped")
}
