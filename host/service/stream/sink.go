package stream

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// Sink is the world's side of a stream from a guest. It is an [io.Reader]: what the guest
// writes waits in the window, and its asks are answered as that is read. All methods may be
// called concurrently.
type Sink struct {
	half
	buf     buffer
	writes  []*host.Reply // that wait for room
	end     *host.Reply   // of the guest, which waits for the result
	ended   bool          // the guest has written everything
	closed  bool          // the world wants no more
	failure error         // with which it was closed
	result  host.Raw      // for end
	gap     bool          // something was lost on the way in
}

var _ io.ReadCloser = (*Sink)(nil)

// NewSink is an outgoing stream of a guest: the props of its actor, which must be
// spawned once, and the Sink that is read from. If the props are not spawned, call Abandon.
func NewSink(p Params) (host.Props, *Sink) {
	s := &Sink{}
	s.init(p)
	return props(s, "sink"), s
}

// Read reads what the guest has written; [io.EOF] after its end. The world then calls
// Finish.
//
// It fails with an error that wraps [ErrOver] if the stream is over before its end (an
// [*AbortError] if the guest has given up), [os.ErrDeadlineExceeded] at the deadline, and
// [io.ErrClosedPipe] after Close.
func (s *Sink) Read(b []byte) (int, error) { return s.ReadContext(context.Background(), b) }

// ReadContext is Read that fails with the cause of ctx when that is over.
func (s *Sink) ReadContext(ctx context.Context, b []byte) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	for {
		if err := s.late(ctx); err != nil {
			return 0, err
		}
		n, err := s.give(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		if err := s.wait(ctx); err != nil {
			return 0, err
		}
	}
}

func (s *Sink) give(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, io.ErrClosedPipe
	case s.buf.len() > 0:
		n := copy(b, s.buf.front(len(b)))
		s.buf.drop(n)
		s.release()
		return n, nil
	case s.ended:
		return 0, io.EOF
	case s.over:
		return 0, s.why
	}
	return 0, nil
}

// release answers the writes that wait, when half of the window is free.
func (s *Sink) release() {
	if len(s.writes) == 0 || s.buf.len() > s.p.Window/2 || s.over {
		return
	}
	room := s.room()
	for _, w := range s.writes {
		_ = w.Send(room)
	}
	s.writes = nil
	s.touch()
}

// room is what is left of the window.
func (s *Sink) room() host.Raw { return abi.AppendUint(nil, uint64(s.p.Window-s.buf.len())) }

// Finish says that the world is done, and how: the guest's end is answered with v, or with
// err if that is not nil. It may be called before the guest has ended; then the guest's
// writes fail from here on. Only the first call counts.
func (s *Sink) Finish(v any, err error) error {
	result, bad := host.Encode(v)
	if bad != nil && err == nil {
		err = bad
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.over {
		return nil
	}
	s.closed, s.failure, s.result = true, err, result
	s.buf.clear()
	s.rouse()
	told := false
	for _, w := range s.writes {
		told = w.Fail(text(s.refusal())) == nil || told
	}
	s.writes = nil
	if s.end != nil {
		told = s.answerEnd(s.end) || told
		s.end = nil
	}
	if told || s.ended {
		s.finish(err)
	}
	return bad
}

// answerEnd answers the guest's end.
func (s *Sink) answerEnd(end *host.Reply) bool {
	if s.failure != nil {
		return end.Fail(text(s.failure)) == nil
	}
	return end.Send(s.result) == nil
}

// refusal is the answer to writes when nothing more is wanted.
func (s *Sink) refusal() error {
	if s.failure != nil {
		return s.failure
	}
	return service.Errorf(service.Unavailable, "the other side of the stream has closed it")
}

// Close is Finish without a result.
func (s *Sink) Close() error { return s.Finish(nil, nil) }

// CloseWithError is Finish with an error; nil and [io.EOF] mean no error.
func (s *Sink) CloseWithError(err error) {
	if err == io.EOF {
		err = nil
	}
	_ = s.Finish(nil, err)
}

// Abandon ends the stream at once.
func (s *Sink) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(ErrStopped)
	s.finish(ErrStopped)
}

// SetReadDeadline bounds Read, even one that already waits; the zero time is no bound.
func (s *Sink) SetReadDeadline(at time.Time) error {
	s.deadline.set(s.p.Clock, at)
	return nil
}

func (s *Sink) common() *half { return &s.half }

func (s *Sink) waits() bool {
	s.writes = live(s.writes, func(r *host.Reply) *host.Reply { return r })
	if s.end != nil {
		select {
		case <-s.end.Gone():
			s.end = nil
		default:
		}
	}
	return len(s.writes) > 0 || s.end != nil
}

func (s *Sink) fail(why error) {
	if s.over {
		return
	}
	for _, w := range s.writes {
		_ = w.Fail(text(why))
	}
	if s.end != nil {
		_ = s.end.Fail(text(why))
	}
	s.writes, s.end = nil, nil
}

// lost notes that a request did not get into the mailbox. It may have been a part.
func (s *Sink) lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gap = true
}

// serve implements side.
func (s *Sink) serve(ctx *host.Context, m host.Message, op string, args *abi.Reader) error {
	switch op {
	case "write":
		part := args.ByteString()
		if args.Done() != nil {
			return service.Errorf(service.BadRequest, "write takes a byte string")
		}
		return s.write(ctx, m, part)
	case "end":
		if err := nothing(op, args); err != nil {
			return err
		}
		return s.finishWriting(ctx, m)
	case "abort":
		reason := args.Text()
		if args.Done() != nil {
			return service.Errorf(service.BadRequest, "abort takes a text")
		}
		return s.abort(ctx, m, reason)
	}
	return service.Errorf(service.BadRequest, "a sink knows write, end and abort")
}

// open says whether the guest may go on. What is refused here ends the stream.
func (s *Sink) open() error {
	switch {
	case s.over:
		return ErrOver
	case s.ended:
		return service.Errorf(service.BadRequest, "the stream has ended already")
	case s.gap:
		return s.overrun("too many requests are sent ahead")
	}
	s.touch()
	return nil
}

// overrun ends the stream: after a part that was not taken, no later part may be
// taken.
func (s *Sink) overrun(what string) error {
	s.fail(ErrOverrun)
	s.finish(ErrOverrun)
	return service.Errorf(service.Busy, "%s; the stream is broken off", what)
}

func (s *Sink) write(ctx *host.Context, m host.Message, part []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	switch {
	case s.closed:
		s.finish(s.failure)
		return s.refusal()
	case len(part) > s.p.largest():
		_ = s.overrun("")
		return service.Errorf(service.TooLarge, "a part may have %d bytes; the stream is broken off", s.p.largest())
	case len(part) > s.p.Window-s.buf.len():
		return s.overrun("there is room for " + strconv.Itoa(s.p.Window-s.buf.len()) + " bytes")
	}
	if len(part) > 0 {
		s.buf.push(part)
		s.rouse()
	}
	if !asked(m) {
		return nil
	}
	if s.buf.len() <= s.p.Window/2 || len(part) == 0 {
		return ctx.Reply(s.room())
	}
	if len(s.writes) >= s.p.Ahead && s.waits() && len(s.writes) >= s.p.Ahead {
		return s.overrun("too many parts are sent ahead")
	}
	reply, err := ctx.Later()
	if err != nil {
		return s.overrun("too many parts are sent ahead")
	}
	s.writes = append(s.writes, reply)
	return nil
}

// finishWriting is the guest's end.
func (s *Sink) finishWriting(ctx *host.Context, m host.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	s.ended = true
	s.rouse()
	if s.closed {
		s.finish(s.failure)
		if s.failure != nil {
			return s.failure
		}
		if asked(m) {
			return ctx.Reply(s.result)
		}
		return nil
	}
	if asked(m) {
		reply, err := ctx.Later()
		if err != nil {
			return s.overrun("too many requests are sent ahead")
		}
		s.end = reply
	}
	return nil
}

// abort is the guest's premature end.
func (s *Sink) abort(ctx *host.Context, m host.Message, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	s.fail(service.Errorf(service.Cancelled, "the stream was aborted"))
	s.buf.clear()
	s.finish(&AbortError{reason})
	if asked(m) {
		return ctx.Reply(nil)
	}
	return nil
}
