package router

import "github.com/wasmactors/wasmactors/host"

// fifo is a queue of envelopes. The zero value is empty.
type fifo struct {
	ring  []*host.Envelope
	at, n int
	bytes int64
}

func (f *fifo) push(e *host.Envelope) {
	f.grow()
	f.ring[(f.at+f.n)%len(f.ring)] = e
	f.n++
	f.bytes += int64(e.Size())
}

func (f *fifo) pushFront(e *host.Envelope) {
	f.grow()
	f.at = (f.at + len(f.ring) - 1) % len(f.ring)
	f.ring[f.at] = e
	f.n++
	f.bytes += int64(e.Size())
}

func (f *fifo) grow() {
	if f.n < len(f.ring) {
		return
	}
	larger := make([]*host.Envelope, max(8, 2*len(f.ring)))
	for i := range f.n {
		larger[i] = f.ring[(f.at+i)%len(f.ring)]
	}
	f.ring, f.at = larger, 0
}

func (f *fifo) front() *host.Envelope {
	if f.n == 0 {
		return nil
	}
	return f.ring[f.at]
}

func (f *fifo) pop() *host.Envelope {
	if f.n == 0 {
		return nil
	}
	e := f.ring[f.at]
	f.ring[f.at] = nil
	f.at = (f.at + 1) % len(f.ring)
	f.bytes -= int64(e.Size())
	if f.n--; f.n == 0 && len(f.ring) > 1024 {
		f.ring, f.at = nil, 0 // it was long once
	}
	return e
}

// room reports whether one more fits within limits.
func (f *fifo) room(e *host.Envelope, l host.MailboxLimits) bool {
	return f.n < l.Messages && f.bytes+int64(e.Size()) <= l.Bytes
}
