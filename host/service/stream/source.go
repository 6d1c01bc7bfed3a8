package stream

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// Source is the world's side of a stream to a guest. It is an [io.Writer]: what is written
// waits in the window until the guest asks for it. All methods may be called concurrently;
// the bytes of one Write stay together.
type Source struct {
	half
	buf     buffer
	reads   []read // that wait, oldest first; none while buf has bytes
	closed  bool   // the world has written everything
	failure error  // with which it was closed
}

var _ io.WriteCloser = (*Source)(nil)

// read is an ask for a limited number of bytes.
type read struct {
	reply *host.Reply
	max   int
}

// NewSource is an incoming stream of a guest: the props of its actor, which must be
// spawned once, and the Source that is written to. If the props are not spawned, call Abandon.
func NewSource(p Params) (host.Props, *Source) {
	s := &Source{}
	s.init(p)
	return props(s, "source"), s
}

// Write writes the whole of b. It waits while the window is full.
//
// It fails with an error that wraps [ErrOver] if the stream is over, [os.ErrDeadlineExceeded]
// at the deadline, and [io.ErrClosedPipe] after Close.
func (s *Source) Write(b []byte) (int, error) { return s.WriteContext(context.Background(), b) }

// WriteContext is Write that fails with the cause of ctx when that is over.
func (s *Source) WriteContext(ctx context.Context, b []byte) (n int, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	for {
		if err := s.late(ctx); err != nil {
			return n, err
		}
		m, err := s.take(b[n:])
		if n += m; err != nil || n == len(b) {
			return n, err
		}
		if m > 0 {
			continue
		}
		if err := s.wait(ctx); err != nil {
			return n, err
		}
	}
}

// take takes some of b: first for reads that wait, then as much as there is room for.
func (s *Source) take(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over && s.why != nil:
		return 0, s.why
	case s.over, s.closed:
		return 0, io.ErrClosedPipe
	}
	for s.buf.len() == 0 && n < len(b) && len(s.reads) > 0 {
		n += s.hand(b[n:])
	}
	m := min(len(b)-n, s.p.Window-s.buf.len())
	if m > 0 {
		s.buf.push(b[n : n+m])
	}
	return n + m, nil
}

// hand answers the oldest read with the beginning of b, and returns its length: 0 if the asker has given up.
func (s *Source) hand(b []byte) int {
	r := s.reads[0]
	s.reads[0] = read{}
	if s.reads = s.reads[1:]; len(s.reads) == 0 {
		s.reads = nil
	}
	part := b[:min(len(b), r.max)]
	p := scratch.Get().(*[]byte)
	defer scratch.Put(p)
	*p = append(abi.AppendBytesHead((*p)[:0], len(part)), part...)
	if r.reply.Send(host.Raw(*p)) != nil {
		return 0
	}
	s.touch()
	return len(part)
}

// scratch is memory for one part.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Close says that everything is written: the guest is told once it has read what is in the
// window. It does not wait.
func (s *Source) Close() error { s.CloseWithError(nil); return nil }

// CloseWithError is Close; the guest's stream ends with err unless that is nil or [io.EOF]. A
// *service.Error keeps its code, other errors get one. Only the first call counts.
func (s *Source) CloseWithError(err error) {
	if err == io.EOF {
		err = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.over {
		return
	}
	s.closed, s.failure = true, err
	s.answer()
	s.rouse()
}

// Abandon ends the stream at once and drops the data in its window.
func (s *Source) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(ErrStopped)
	s.finish(ErrStopped)
}

// SetWriteDeadline bounds Write, even one that already waits; the zero time is no bound.
func (s *Source) SetWriteDeadline(at time.Time) error {
	s.deadline.set(s.p.Clock, at)
	return nil
}

func (s *Source) common() *half { return &s.half }
func (s *Source) waits() bool {
	s.reads = live(s.reads, func(r read) *host.Reply { return r.reply })
	return len(s.reads) > 0
}

func (s *Source) fail(why error) {
	if s.over {
		return
	}
	for _, r := range s.reads {
		_ = r.reply.Fail(text(why))
	}
	s.reads = nil
	s.buf.clear()
}

// serve implements side.
func (s *Source) serve(ctx *host.Context, m host.Message, op string, args *abi.Reader) error {
	switch op {
	case "read":
		n, err := s.most(args)
		if err != nil || !asked(m) {
			return err
		}
		return s.read(ctx, n)
	case "close":
		if err := nothing(op, args); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fail(service.Errorf(service.Cancelled, "the stream was closed"))
		s.finish(ErrClosed)
		if asked(m) {
			_ = ctx.Reply(nil)
		}
		return nil
	}
	return service.Errorf(service.BadRequest, "a source knows read and close")
}

// most reads how many bytes a read asks for.
func (s *Source) most(r *abi.Reader) (int, error) {
	if r.Peek() == abi.TypeNull {
		return s.p.largest(), nothing("read", r)
	}
	n, set := uint64(0), false
	for range r.Map() {
		if string(r.TextBytes()) != "max" || set {
			r.Fail(errKey)
		}
		n, set = r.Uint(), true
	}
	if err := r.Done(); err != nil || !set || n == 0 {
		return 0, service.Errorf(service.BadRequest, `read takes {"max": bytes}, 1 or more`)
	}
	return int(min(n, uint64(s.p.largest()))), nil
}

var errKey = &abi.Error{Reason: "unknown or repeated key"}

// read is an ask of the guest's for at most n bytes.
func (s *Source) read(ctx *host.Context, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return ErrOver
	}
	s.touch()
	if len(s.reads) >= s.p.Ahead && s.waits() && len(s.reads) >= s.p.Ahead {
		return service.Errorf(service.Busy, "too many reads are sent ahead")
	}
	reply, err := ctx.Later()
	if err != nil {
		return service.Errorf(service.Busy, "too many reads are sent ahead")
	}
	s.reads = append(s.reads, read{reply, n})
	s.answer()
	return nil
}

// answer answers reads as long as there is anything to answer them with.
func (s *Source) answer() {
	for len(s.reads) > 0 && s.buf.len() > 0 {
		s.buf.drop(s.hand(s.buf.front(s.p.largest())))
		s.rouse()
	}
	if !s.closed || s.buf.len() > 0 {
		return
	}
	told := false
	for _, r := range s.reads {
		if s.failure == nil {
			told = r.reply.Send(null) == nil || told
		} else {
			told = r.reply.Fail(text(s.failure)) == nil || told
		}
	}
	if s.reads = nil; told {
		s.finish(s.failure)
	}
}

var null = host.Raw{0xf6}
