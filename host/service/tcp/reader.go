package tcp

import (
	"crypto/tls"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// outside runs f, which waits for the world. In a simulation others go on meanwhile.
func (p *provider) outside(f func()) { executor.Outside(p.env.Clock, f) }

// readSize is how much is read at once, in bytes. A message with it fits into the inbox of a guest of our SDK.
const readSize = 32 << 10

// buffers are for what is read. A connection has one only while something is there.
var buffers = sync.Pool{New: func() any { b := make([]byte, headRoom+readSize); return &b }}

// turn is what the reader may do next.
type turn uint8

const (
	ends    turn = iota
	deliver      // read, and deliver what has come
	discard      // read, and drop it
)

// ready waits until the reader may read: until the actor has registered, has again what has come back from it, and wants more.
// most is how many bytes of a message may be sent.
func (c *conn) ready() (t turn, most int) {
	for {
		c.mu.Lock()
		switch c.phase {
		case over:
			c.mu.Unlock()
			return ends, 0
		case lingering:
			c.mu.Unlock()
			return discard, 0
		case open, half, flushing:
			if c.phase == flushing && c.how != HowConfirmed || c.paused || c.credit <= 0 || len(c.bounced) > 0 {
				break
			}
			most = int(min(max(c.credit-Overhead, 1), readSize))
			c.mu.Unlock()
			return deliver, most
		}
		c.mu.Unlock()
		c.rest()
	}
}

// resend sends again what has come back from the actor, as far as it wants more. It is called with the lock.
func (c *conn) resend() {
	for c.phase == open && !c.paused && c.credit > 0 && len(c.bounced) > 0 {
		b := c.bounced[0]
		w := abi.NewWriter(nil)
		w.Array(2)
		w.Text(Data)
		w.ByteString(b)
		if c.tell(w.Bytes()) != nil {
			c.p.env.After(againIn, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.resend()
			})
			return
		}
		c.credit -= int64(len(b)) + Overhead
		if c.bounced = c.bounced[1:]; len(c.bounced) == 0 {
			c.bounced = nil
		}
	}
	c.rouse()
}

// rest waits for a change, at most as long as nothing may come or go.
func (c *conn) rest() {
	left := c.idle()
	if left <= 0 {
		c.fail("timeout: nothing has come or gone for " + time.Duration(c.o.Idle).String())
		return
	}
	due := make(chan struct{})
	t := c.p.env.Clock.AfterFunc(left, func() { close(due) })
	executor.Take(c.p.env.Clock, c.wake, c.gone, due)
	t.Stop()
}

func (c *conn) fail(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finish(HowError, text)
}

// settle is how long nothing has come before a reader goes on in a goroutine whose stack has not grown: while it waits it takes
// half of the memory. Tests shorten it.
var settle = time.Second

// reader is the state of the goroutine that reads.
type reader struct {
	c      *conn
	d      decoder
	in     []byte    // the beginning of a message
	since  time.Time // when that has come; zero: in is empty
	heard  bool      // something has come in this goroutine
	failed error     // of reading

	buf  *[]byte // of try
	most int
	n    int
	err  error
}

// read delivers what the peer sends, until the connection is over.
func (c *conn) read() {
	r := &reader{c: c, d: decoder{f: &c.o.Framing}, heard: true}
	r.arm()
	r.run()
}

// arm sets the time at which the reader looks at what has become late.
func (r *reader) arm() {
	left := r.c.idle()
	if !r.since.IsZero() {
		left = min(left, time.Duration(r.c.o.Frame)-executor.Machine.Now().Sub(r.since))
	}
	if r.heard && r.c.raw != nil {
		left = min(left, settle)
	}
	_ = r.c.nc.SetReadDeadline(executor.Machine.Now().Add(left))
}

// run reads until the connection is over, or nothing has come for some time. Its frames are small: most readers wait below it.
func (r *reader) run() {
	for {
		t, most := r.c.ready()
		if t == ends {
			return
		}
		if t == deliver && r.c.o.Framing.Kind != "" || t == discard {
			most = readSize
		}
		if r.fill(most) {
			if !r.filled(t) {
				return
			}
			continue
		}
		if r.late() {
			continue
		}
		if r.failed == nil {
			r.heard = false
			r.c.p.counts.settled.Add(1)
			r.arm()
			r.c.p.do(r.run)
			return
		}
		break
	}
	for r.in = nil; ; r.c.rest() { // the actor may still write
		select {
		case <-r.c.gone:
			return
		default:
		}
	}
}

// filled handles what was read; false: the connection is over.
func (r *reader) filled(t turn) bool {
	buf, n := r.buf, r.n
	r.buf = nil
	defer buffers.Put(buf)
	r.c.touch()
	r.c.p.counts.received.Add(uint64(n))
	if !r.heard {
		r.heard = true
		r.arm()
	}
	if t == discard {
		r.in = nil
		return true
	}
	if err := r.take(buf, n); err != nil {
		r.c.fail("failed: " + err.Error())
		return false
	}
	return true
}

// fill reads into a buffer, behind its head room; false: nothing was read, for the reason in err.
func (r *reader) fill(most int) bool {
	r.buf, r.most, r.n, r.err = nil, most, 0, nil
	if r.c.raw == nil {
		r.buf = buffers.Get().(*[]byte)
		r.c.p.outside(func() { r.n, r.err = r.c.nc.Read((*r.buf)[headRoom : headRoom+most]) })
	} else {
		r.c.p.outside(r.wait)
	}
	if r.n > 0 {
		return true // an error comes again
	}
	if r.buf != nil {
		buffers.Put(r.buf)
		r.buf = nil
	}
	if r.err == nil {
		r.err = io.EOF
	}
	return false
}

func (r *reader) wait() {
	if err := r.c.raw.Read(r.try); err != nil && r.err == nil {
		r.err = err
	}
}

// try reads once. Without a buffer as long as there is nothing to read, an idle connection is small.
func (r *reader) try(fd uintptr) (done bool) {
	buf := buffers.Get().(*[]byte)
	n, again, err := tryRead(fd, (*buf)[headRoom:headRoom+r.most])
	if again {
		buffers.Put(buf)
		return false
	}
	r.buf, r.n, r.err = buf, n, err
	return true
}

// take delivers what was read. An error is about the framing.
func (r *reader) take(buf *[]byte, n int) error {
	c := r.c
	if c.o.Framing.Kind == "" {
		r.deliver(dataMessage(*buf, n), n)
		return nil
	}
	r.in = append(r.in, (*buf)[headRoom:headRoom+n]...)
	from := 0
	for {
		message, used, err := r.d.next(r.in[from:])
		if err != nil {
			return err
		}
		if used == 0 {
			break
		}
		copy((*buf)[headRoom:], message)
		if len(message) > readSize {
			big := make([]byte, headRoom+len(message))
			copy(big[headRoom:], message)
			r.deliver(dataMessage(big, len(message)), len(message))
		} else {
			r.deliver(dataMessage(*buf, len(message)), len(message))
		}
		from += used
	}
	r.keep(from)
	return nil
}

// keep keeps the beginning of a message, which has to be complete in time.
func (r *reader) keep(from int) {
	had := !r.since.IsZero()
	rest := r.in[from:]
	if len(rest) == 0 {
		if r.in = nil; had {
			r.since = time.Time{}
			r.arm()
		}
		return
	}
	if r.in = append(r.in[:0], rest...); !had || from > 0 {
		r.since = executor.Machine.Now()
		r.arm()
	}
}

// deliver sends the actor a message of n bytes of the peer's. It waits until the actor has room for it.
func (r *reader) deliver(m host.Raw, n int) {
	c := r.c
	for wait := time.Millisecond; ; wait = min(2*wait, againIn) {
		if t, _ := c.ready(); t != deliver {
			return
		}
		c.mu.Lock()
		if c.credit <= 0 || c.paused || c.phase == announcing || len(c.bounced) > 0 {
			c.mu.Unlock()
			continue
		}
		err := c.tell(m)
		if err == nil {
			c.credit -= int64(n) + Overhead
		} else if errors.Is(err, host.ErrTooLarge) {
			c.finish(HowError, "too_large: a message is larger than the actor can take")
		}
		c.mu.Unlock()
		if err == nil {
			return
		}
		executor.Pause(c.p.env.Clock, wait, c.gone)
	}
}

// late handles the reason for which nothing was read, and reports whether the reader goes on. It ends with failed set; else it is
// to go on in another goroutine.
func (r *reader) late() bool {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(r.err, os.ErrDeadlineExceeded) && c.phase != over && c.phase != lingering {
		switch quiet := time.Duration(c.o.Idle) - c.idle(); {
		case !r.since.IsZero() && executor.Machine.Now().Sub(r.since) >= time.Duration(c.o.Frame):
			c.finish(HowError, "timeout: a message of the peer was not complete in time")
		case c.idle() <= 0:
			c.finish(HowError, "timeout: nothing has come or gone for "+time.Duration(c.o.Idle).String())
		case r.heard && c.raw != nil && quiet >= settle/2:
			return false
		default:
			r.arm()
			return true
		}
	}
	r.failed = r.err
	c.stopped(r.err, r.d.rest(r.in))
	return false
}

// stopped handles the end of what the peer sends; it is called with the lock. rest is io.EOF, or the error of an end within a
// message.
func (c *conn) stopped(err, rest error) {
	switch {
	case c.phase == over:
	case c.phase == lingering:
		c.finish(c.how, "")
	case err != io.EOF:
		c.finish(HowError, c.ioError(err, ""))
	case c.phase == half:
		c.ended = true
		c.finish(c.how, "")
	case rest != io.EOF:
		c.finish(HowError, "failed: "+rest.Error())
	case c.phase == flushing:
		c.ended = true
	case c.o.KeepOpen:
		c.ended = true
		c.tellPeerClosed()
	default:
		c.ended, c.how, c.phase = true, HowPeer, flushing
		c.flush()
	}
}

// tellPeerClosed tells the actor, again if its mailbox is full; it is called with the lock.
func (c *conn) tellPeerClosed() {
	if c.phase == over || c.tell(simple(PeerClosed)) == nil {
		return
	}
	c.p.env.After(againIn, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tellPeerClosed()
	})
}

// ioError is an error of the socket, for the actor; late is what it means that time is over.
func (c *conn) ioError(err error, late string) string {
	if late != "" && errors.Is(err, os.ErrDeadlineExceeded) {
		return "timeout: " + late
	}
	var alert tls.AlertError
	if errors.As(err, &alert) {
		return "failed: " + alert.Error()
	}
	return "failed: " + plain(err)
}
