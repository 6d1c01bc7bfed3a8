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

// read delivers what the peer sends, until the connection is over.
func (c *conn) read() {
	_ = c.nc.SetReadDeadline(executor.Machine.Now().Add(c.idle()))
	var r reader
	r.c, r.d.f = c, &c.o.Framing
	for {
		t, most := c.ready()
		if t == ends {
			return
		}
		if t == deliver && c.o.Framing.Kind != "" {
			most = readSize
		}
		if t == discard {
			r.in, most = nil, readSize
		}
		buf, n, err := r.fill(most)
		if n > 0 {
			c.touch()
			c.p.counts.received.Add(uint64(n))
			if t == deliver {
				if why := r.take(buf, n); why != nil {
					buffers.Put(buf)
					c.fail("failed: " + why.Error())
					return
				}
			}
		}
		if buf != nil {
			buffers.Put(buf)
		}
		if err != nil && c.stopped(err, r.d.rest(r.in)) {
			break
		}
	}
	for r.in = nil; ; c.rest() { // the actor may still write
		select {
		case <-c.gone:
			return
		default:
		}
	}
}

// reader is the state of the goroutine that reads.
type reader struct {
	c     *conn
	d     decoder
	in    []byte    // the beginning of a message
	since time.Time // when that has come; zero: in is empty

	buf  *[]byte // of try
	most int
	n    int
	err  error
}

// fill reads into a buffer, behind its head room; nil: nothing was read.
func (r *reader) fill(most int) (buf *[]byte, n int, err error) {
	c := r.c
	if c.raw == nil {
		buf = buffers.Get().(*[]byte)
		c.p.outside(func() { n, err = c.nc.Read((*buf)[headRoom : headRoom+most]) })
		return buf, n, err
	}
	r.most, r.buf, r.n, r.err = most, nil, 0, nil
	c.p.outside(func() { err = c.raw.Read(r.try) })
	switch {
	case err != nil:
	case r.err != nil:
		err = r.err
	case r.n == 0:
		err = io.EOF
	}
	return r.buf, r.n, err
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
			_ = r.c.nc.SetReadDeadline(executor.Machine.Now().Add(r.c.idle()))
		}
		return
	}
	if r.in = append(r.in[:0], rest...); !had || from > 0 {
		r.since = executor.Machine.Now()
		_ = r.c.nc.SetReadDeadline(r.since.Add(min(time.Duration(r.c.o.Frame), r.c.idle())))
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

// stopped handles the end of what the peer sends, and reports whether the reader ends. rest is io.EOF, or the error of an end
// within a message.
func (c *conn) stopped(err, rest error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case c.phase == over:
	case c.phase == lingering:
		c.finish(c.how, "")
	case late && rest != io.EOF:
		c.finish(HowError, "timeout: a message of the peer was not complete in time")
	case late && c.idle() > 0:
		_ = c.nc.SetReadDeadline(executor.Machine.Now().Add(c.idle()))
		return false
	case late:
		c.finish(HowError, "timeout: nothing has come or gone for "+time.Duration(c.o.Idle).String())
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
	return true
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
