package gateway

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/box"
	"github.com/wasmactors/wasmactors/supervision"
)

// conn is a connection as an actor. Frames to the peer wait in an outbox, bounded in bytes; a
// goroutine that exists only while there are any empties it. Messages of the peer are handed
// over one at a time, as asks: the next one is read when the actor has handled it.
type conn struct {
	g       *Gateway
	most    int // bytes of the outbox
	timeout time.Duration
	kind    connKind
	end     chan struct{} // closed when it is over

	// Fixed before it is announced.
	op      string
	more    func(w *abi.Writer)
	request []byte // encoded

	mu      sync.Mutex
	ref     host.Ref
	target  host.Address
	state   []byte // of the actor's
	write   func(frame) error
	ended   func()
	out     []frame
	bytes   int // of out, and of what is being written
	waiting []*host.Reply
	writing bool // a goroutine empties the outbox
	idle    sync.Cond
	last    *frame // a close to be sent after the outbox
	closing bool   // and is being written
	over    bool
	why     ended
	told    bool // the actor has been told of the end, or cannot be

	poked  bool     // the actor must look at the following fields
	next   host.Raw // the next message of the peer
	handed chan string
	again  bool // the actor was restarted

	gap atomic.Bool // something for the peer was lost
	ask asking      // of the actor's turns
}

// connKind is what differs between connections.
type connKind interface {
	// frame is the frame that an op of a guest sends to the peer.
	frame(op string, args *abi.Reader) (frame, error)
}

// frame is something on its way to the peer.
type frame struct {
	kind byte // of the connection's
	code int
	b    []byte
}

// frameBytes is the size of a frame in addition to its bytes.
const frameBytes = 64

// frameClose ends every kind of connection.
const frameClose = 0xff

// ended says how a connection has ended. The codes are those of RFC 6455.
type ended struct {
	code   int
	reason string
}

// asking is what the connection's actor has asked the route's actor.
type asking struct {
	watches bool
	last    uint64 // correlation
	message uint64 // correlations of what is under way; 0: nothing
	open    uint64
	text    host.Raw
	tries   int
	retry   bool // a timer is set
	resume  bool // for an announcement, besides the message
	reopen  bool // the one under way may be answered by an actor that has ended
	closing bool // the message is the last,
	sent    bool // and it is the one under way
	late    int  // how often the last could not be delivered
}

const (
	askTries   = 3
	retryAfter = 100 * time.Millisecond
	retryKey   = 1
	mostLate   = 600
	heldAsks   = 16 // of guests that wait for room
)

func newConn(x *exchange, kind connKind) (*conn, error) {
	u := &x.route.Upgrade
	c := &conn{g: x.g, most: u.Outbox, timeout: x.route.Handler, kind: kind, end: make(chan struct{}), handed: make(chan string, 1)}
	c.idle.L = &c.mu
	props := host.Behave("connection", func() host.Behaviour { return connActor{c} }).
		WithLifetime(supervision.Temporary).
		WithMailbox(func(l host.MailboxLimits) host.Mailbox { return box.New(l, c.missed) }).
		WithLimits(host.Limits{Mailbox: 4096, MailboxBytes: int64(2*u.Outbox) + 64<<10, Replies: heldAsks, Watches: 4, Asks: 4, Timers: 2, Children: 1, Stash: 1})
	c.mu.Lock() // its first turn may be over before spawn has returned
	defer c.mu.Unlock()
	ref, err := x.spawn(props)
	c.ref = ref
	return c, err
}

// announced notes the actor that has accepted the connection: from now on it is notified of its end.
func (c *conn) announced(target host.Address, state []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.target = target; state != nil || c.state == nil {
		c.state = state
	}
	c.wake()
	c.g.conns.add(c)
}

// begin starts writing; ended, which may be nil, is called in a goroutine of its own when the
// connection is over.
func (c *conn) begin(write func(frame) error, ended func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		if ended != nil {
			executor.Go(c.g.clock, ended)
		}
		return
	}
	c.write, c.ended = write, ended
	c.flush()
}

// wake makes the actor look; it is called with the lock. A full mailbox does no harm: the actor looks
// after each message.
func (c *conn) wake() {
	c.poked = true
	_ = c.g.sys.Tell(c.ref, host.Raw{0xf6})
}

// missed is called when something did not get into the mailbox of the actor. If that was for the
// peer, there is a gap.
func (c *conn) missed() {
	if c.gap.CompareAndSwap(false, true) {
		executor.Go(c.g.clock, func() { c.finish(ended{codeTryLater, "the peer is too slow"}) })
	}
}

// deliver hands over a message of the peer, and returns when it was handled; false: the
// connection is over. tooLarge says that the actor cannot take it.
func (c *conn) deliver(m host.Raw) (tooLarge, ok bool) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return false, false
	}
	c.next = m
	c.wake()
	c.mu.Unlock()
	bad, which := executor.Take(c.g.clock, c.handed, c.end)
	return which == 0 && bad == host.ErrTooLarge.Error(), which == 0
}

// finish ends the connection: what waits in the outbox is dropped. Only the first call counts.
// It does not wait.
func (c *conn) finish(why ended) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finishLocked(why, true)
}

func (c *conn) finishLocked(why ended, stop bool) {
	if c.over {
		return
	}
	if c.closing && why.code == codeAbnormal {
		// The peer has hung up on the close, without an answer or before that was read.
		why = ended{c.last.code, string(c.last.b)}
	}
	c.over, c.why = true, why
	close(c.end)
	if c.ended != nil {
		executor.Go(c.g.clock, c.ended)
	}
	for _, r := range c.waiting {
		_ = r.Fail(connOver)
	}
	c.waiting, c.out = nil, nil
	announced := !c.target.To.IsZero()
	if announced {
		c.g.conns.drop(c)
	}
	switch {
	case stop && announced:
		c.wake() // the actor tells, and stops
	case stop:
		c.g.sys.Stop(c.ref)
	case announced && !c.told:
		if c.there() {
			_ = c.g.sys.TellFrom(c.ref, c.target.To, c.target.Message(c.closeMessage()))
		}
	}
}

// there reports whether the actor exists, or is not one that a keeper starts. No actor is started only for a notification.
// It is called with the lock.
func (c *conn) there() bool {
	_, ok := c.g.sys.Find(c.target)
	return ok || !c.target.Kept()
}

// closeMessage is the last message to the actor; it is called with the lock.
func (c *conn) closeMessage() host.Raw {
	op, _, _ := strings.Cut(c.op, ".")
	return closeMessage(op+".close", c.why.code, c.why.reason)
}

const connOver = "unavailable: the connection has ended"

// wait waits until nothing is written any more, and returns how the connection has ended.
func (c *conn) wait() ended {
	executor.Take(c.g.clock, c.end)
	executor.Await(c.g.clock, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.writing
	}, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for c.writing {
			c.idle.Wait()
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// push puts a frame into the outbox; the caller holds the lock.
func (c *conn) push(f frame) {
	c.out = append(c.out, f)
	c.bytes += len(f.b) + frameBytes
	c.flush()
}

// flush starts emptying the outbox; the caller holds the lock.
func (c *conn) flush() {
	if c.writing || c.write == nil || c.over || len(c.out) == 0 && c.last == nil {
		return
	}
	c.writing = true
	executor.Go(c.g.clock, c.empty)
}

// empty writes what is in the outbox.
func (c *conn) empty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over {
		frames := c.out
		c.out = nil
		if len(frames) == 0 {
			if c.last == nil {
				break
			}
			last := *c.last
			c.closing = true
			c.mu.Unlock()
			_ = c.write(last)
			c.mu.Lock()
			c.finishLocked(ended{last.code, string(last.b)}, true)
			break
		}
		for _, f := range frames {
			c.mu.Unlock()
			err := c.write(f)
			c.mu.Lock()
			if c.bytes -= len(f.b) + frameBytes; err != nil {
				c.finishLocked(ended{codeAbnormal, "the peer did not take what was written"}, true)
			}
			if c.over {
				break
			}
			if c.bytes <= c.most/2 {
				c.release()
			}
		}
	}
	c.writing = false
	c.idle.Broadcast()
}

// release answers the asks that wait for room.
func (c *conn) release() {
	for _, r := range c.waiting {
		_ = r.Send(host.Raw(abi.AppendUint(nil, uint64(c.most-c.bytes))))
	}
	c.waiting = nil
}

// restarted makes the connection announce itself again.
func (c *conn) restarted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.again = true
		c.wake()
	}
}

// connActor is the actor's side of a connection.
type connActor struct{ c *conn }

func (a connActor) Start(*host.Context, *abi.Failure) *abi.Failure { return nil }

func (a connActor) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		if !ok {
			return nil
		}
		switch m.Kind {
		case abi.KindMessage:
			if !m.Sender.IsZero() {
				a.request(ctx, m)
			}
		case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
			a.answered(ctx, m)
		case abi.KindTimer:
			a.c.ask.retry = false
			a.send(ctx)
		case abi.KindTerminated:
			a.c.mu.Lock()
			a.c.told = true
			a.c.finishLocked(ended{codeGoingAway, "the actor has ended"}, false)
			a.c.mu.Unlock()
			ctx.Stop(ctx.Self())
		}
		a.look(ctx)
	}
}

// look handles what the other goroutines have left to do.
func (a connActor) look(ctx *host.Context) {
	c := a.c
	c.mu.Lock()
	if !c.poked || c.target.To.IsZero() {
		c.mu.Unlock()
		return
	}
	next, again := c.next, c.again
	c.poked, c.next, c.again = false, nil, false
	var last host.Raw
	if c.over {
		last = c.closeMessage()
	}
	there := c.there()
	if last != nil && !there { // no actor is left that would have to forget it
		c.told = true
		c.mu.Unlock()
		ctx.Stop(ctx.Self())
		return
	}
	c.mu.Unlock()
	again = again && there // else it is announced to the next actor when that has begun
	s := &c.ask
	if !s.watches {
		s.watches = ctx.Watch(c.target.To) == nil
	}
	switch {
	case last != nil:
		s.resume, s.closing, s.text, s.tries = false, true, last, askTries
	case again && s.open == 0:
		s.resume = true
	case again:
		s.reopen = true
	}
	if next != nil && last == nil {
		s.text, s.tries = next, 0
	}
	a.send(ctx)
}

// send asks what is due: the announcement before the message.
func (a connActor) send(ctx *host.Context) {
	c, s := a.c, &a.c.ask
	if s.retry {
		return
	}
	ask := func(v host.Raw) uint64 {
		s.last++
		if err := ctx.Ask(c.target.To, c.target.Message(v), s.last, c.timeout); err != nil {
			return 0
		}
		return s.last
	}
	if s.resume && s.open == 0 {
		s.resume = false
		s.open = ask(c.opening(true))
	}
	if s.text != nil && s.message == 0 {
		s.message, s.sent = ask(s.text), s.closing
	}
}

// answered handles the outcome of an ask.
func (a connActor) answered(ctx *host.Context, m host.Message) {
	c, s := a.c, &a.c.ask
	reason := ""
	if m.Kind == abi.KindReplyError {
		reason = abi.NewReader(m.Payload).Text()
		if reason == "" {
			reason = "failed: no reason"
		}
	}
	later := reason == host.ErrMailboxFull.Error() || reason == host.ErrRestarting.Error()
	switch m.Correlation {
	case s.open:
		s.open = 0
		switch {
		case later:
			s.resume = true
		case m.Kind == abi.KindReply:
			a.resumed(m)
		}
		if s.reopen { // an actor that knows its connection ignores the repetition
			s.reopen, s.resume = false, !s.closing
		}
	case s.message:
		s.message = 0
		switch {
		case s.closing && s.sent:
			if s.late++; later && s.late < mostLate {
				break
			}
			c.mu.Lock()
			c.told = true
			c.mu.Unlock()
			ctx.Stop(ctx.Self())
			return
		case s.closing:
		case later:
		case strings.HasPrefix(reason, "not_found: ") && s.tries < askTries:
			// The actor does not know the connection: it was restarted, and this came first.
			s.tries++
			s.resume = s.open == 0
		default:
			s.text = nil
			select {
			case c.handed <- reason:
			default:
			}
		}
	default:
		return
	}
	if later {
		s.retry = true
		_ = ctx.After(retryKey, retryAfter, 0, nil)
		return
	}
	a.send(ctx)
}

// resumed reads the answer of a restarted actor to a connection that it does not know any more.
func (a connActor) resumed(m host.Message) {
	c := a.c
	r := abi.NewReader(m.Payload)
	if r.Peek() == abi.TypeArray {
		c.close(frame{kind: frameClose, code: codePolicy, b: []byte("no longer needed")})
		return
	}
	if got, p := decodeAccepted(r); p.status == 0 && got.state != nil {
		c.mu.Lock()
		c.state = got.state
		c.mu.Unlock()
	}
}

// close makes the connection close after what is in the outbox.
func (c *conn) close(f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(f)
}

func (c *conn) closeLocked(f frame) {
	if c.last == nil && !c.over {
		c.last = &f
		c.flush()
	}
}

// request is an op of a guest, or of anybody else with the ref. A tell that finds no room
// cuts the connection off: a peer that slow is not waited for. An ask is answered when
// there is room for more.
func (a connActor) request(ctx *host.Context, m host.Message) {
	asked := m.Correlation != 0
	answer, err := a.take(ctx, m, asked)
	switch {
	case !asked:
	case err != nil:
		_ = ctx.ReplyError(err.Error())
	case answer != nil:
		_ = ctx.Reply(answer)
	}
}

var errRequest = service.Errorf(service.BadRequest, "a request to a connection is [op, args]")

func (a connActor) take(ctx *host.Context, m host.Message, asked bool) (answer host.Raw, err error) {
	c := a.c
	r := abi.NewReader(m.Payload)
	if r.Array() != 2 || r.Peek() != abi.TypeText {
		return nil, errRequest
	}
	op := string(r.TextBytes())
	if op == "state" {
		state := append([]byte(nil), r.Raw()...)
		if r.Done() != nil || len(state) > maxState {
			return nil, service.Errorf(service.TooLarge, "the state of a connection is one item of at most %d bytes", maxState)
		}
		c.mu.Lock()
		c.state = state
		c.mu.Unlock()
		return host.Raw{0xf6}, nil
	}
	f, err := c.kind.frame(op, r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	size := len(f.b) + frameBytes
	switch {
	case c.over || c.last != nil:
		return nil, errors.New(connOver)
	case f.kind == frameClose:
		c.closeLocked(f)
		return host.Raw{0xf6}, nil
	case size > c.most:
		return nil, service.Errorf(service.TooLarge, "a message to the peer may have %d bytes", c.most-frameBytes)
	case c.bytes+size > c.most && asked:
		return nil, service.Errorf(service.Busy, "the peer is slow: %d bytes wait", c.bytes)
	case c.bytes+size > c.most:
		c.finishLocked(ended{codeTryLater, "the peer is too slow"}, true)
		return nil, nil
	}
	c.push(f)
	if !asked || c.bytes <= c.most/2 {
		return abi.AppendUint(nil, uint64(c.most-c.bytes)), nil
	}
	reply, err := ctx.Later()
	if err != nil {
		return abi.AppendUint(nil, uint64(c.most-c.bytes)), nil
	}
	c.waiting = append(c.waiting, reply)
	return nil, nil
}

func (a connActor) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

func (a connActor) CannotRewind() string { return "a connection cannot be resumed" }

func (a connActor) Rewind(*host.Context) bool { return false }

func (a connActor) End(*host.Context, host.End) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.c.finishLocked(ended{codeGoingAway, "the connection was stopped"}, false)
}
