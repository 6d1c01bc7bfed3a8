package bundle

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// Feed sends the lines of an NDJSON stream to actors and collects the answers.
//
// A line is {"to": "name or /user/path", "message": any}. With "ask": false no
// answer is waited for. {"wait": "idle"} waits until all that was sent has been
// dealt with before it goes on. Empty lines and lines that begin with # are
// skipped.
type Feed struct {
	// Window bounds the messages that wait for their answers; default 4096.
	Window int
	// Stop ends the feed at the first line that is wrong; otherwise it is reported
	// and skipped.
	Stop bool
	// Answer is called for each line that has an outcome, one call at a time.
	Answer func(Answer)
}

// Answer is what became of a line.
type Answer struct {
	Line    int
	To      string
	From    host.Ref // who has answered
	Payload []byte   // the answer, if Err is nil
	Err     error    // *InputError, ErrNoAnswer, *host.ReplyError, or why it was not accepted
}

// ErrNoAnswer is the outcome of a message that was handled, or lost with a crash,
// without an answer.
var ErrNoAnswer = errors.New("no answer")

// InputError is a line that cannot be sent.
type InputError struct {
	Line   int
	Reason string
}

func (e *InputError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// FeedStats count lines.
type FeedStats struct {
	Sent, Answered, Errors, Unanswered, Invalid int
}

// maxLine bounds a line of input, in bytes.
const maxLine = 4 << 20

type line struct {
	To      string          `json:"to"`
	Message json.RawMessage `json:"message"`
	Ask     *bool           `json:"ask"`
	Wait    string          `json:"wait"`
}

// Run feeds r to sys until its end and then waits until the system is idle. It
// returns early when ctx ends, or with the *InputError if Stop is set; a Read of r
// that is under way then is left behind.
func (f Feed) Run(ctx context.Context, sys *host.System, r io.Reader) (FeedStats, error) {
	if f.Window <= 0 {
		f.Window = 4096
	}
	x := &feeding{Feed: f, sys: sys, refs: map[string]host.Ref{}, open: map[int]*host.Pending{}}
	err := x.read(ctx, r)
	if err == nil {
		err = sys.Idle(ctx)
	}
	x.giveUp()
	x.wg.Wait()
	return x.stats, err
}

type feeding struct {
	Feed
	sys  *host.System
	refs map[string]host.Ref
	wg   sync.WaitGroup

	mu    sync.Mutex
	open  map[int]*host.Pending // by line
	stats FeedStats
	calls sync.Mutex
}

func (x *feeding) read(ctx context.Context, r io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines, failed := scan(ctx, r)
	n := 0
	for {
		var text []byte
		var more bool
		select {
		case text, more = <-lines:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !more {
			break
		}
		n++
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		if err := x.line(ctx, n, text); err != nil {
			var bad *InputError
			if !errors.As(err, &bad) {
				return err
			}
			x.count(func(s *FeedStats) { s.Invalid++ })
			x.answer(Answer{Line: n, Err: bad})
			if x.Stop {
				return bad
			}
		}
	}
	err := <-failed
	if errors.Is(err, bufio.ErrTooLong) {
		return &InputError{n + 1, "longer than 4 MiB"}
	}
	return err
}

// scan reads r's lines in a goroutine of its own, so that nobody waits for input
// that does not come: a terminal's, a pipe's. The goroutine ends with the Read that
// it is in when ctx ends. failed gets the error, or nil, after the last line.
func scan(ctx context.Context, r io.Reader) (lines <-chan []byte, failed <-chan error) {
	out, end := make(chan []byte, 64), make(chan error, 1)
	go func() {
		defer close(out)
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 64<<10), maxLine)
		for s.Scan() {
			select {
			case out <- bytes.Clone(s.Bytes()):
			case <-ctx.Done():
				return
			}
		}
		end <- s.Err()
	}()
	return out, end
}

func (x *feeding) line(ctx context.Context, n int, text []byte) error {
	var l line
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return &InputError{n, "not a message: " + strings.TrimPrefix(err.Error(), "json: ")}
	}
	if _, err := d.Token(); err != io.EOF {
		return &InputError{n, "more than one value in the line"}
	}
	if l.Wait != "" {
		if l.Wait != "idle" || l.To != "" {
			return &InputError{n, `a line that waits is {"wait": "idle"}`}
		}
		return x.waitIdle(ctx)
	}
	if l.To == "" || l.Message == nil {
		return &InputError{n, `a line is {"to": name, "message": value}`}
	}
	ref, err := x.ref(l.To)
	if err != nil {
		return &InputError{n, fmt.Sprintf("there is no actor %q", l.To)}
	}
	payload, err := FromJSON(l.Message)
	if err != nil {
		return &InputError{n, "the message: " + err.Error()}
	}
	return x.send(ctx, n, l, ref, payload)
}

// ref finds an actor by its name or path, and again when it has ended.
func (x *feeding) ref(to string) (host.Ref, error) {
	if r, ok := x.refs[to]; ok {
		return r, nil
	}
	path := to
	if !strings.HasPrefix(path, "/") && !strings.Contains(path, "://") {
		path = "/user/" + to
	}
	r, err := x.sys.Lookup(path)
	if err == nil {
		x.refs[to] = r
	}
	return r, err
}

// send waits for room rather than to overflow a mailbox.
func (x *feeding) send(ctx context.Context, n int, l line, ref host.Ref, payload host.Raw) error {
	ask := l.Ask == nil || *l.Ask
	if ask {
		if err := x.await(ctx); err != nil {
			return err
		}
	}
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		var p *host.Pending
		var err error
		if ask {
			p, err = x.sys.TryRequest(ref, payload)
		} else {
			err = x.sys.TryTell(ref, payload)
		}
		if errors.Is(err, host.ErrMailboxFull) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
			continue
		}
		x.count(func(s *FeedStats) { s.Sent++ })
		switch {
		case err != nil:
			delete(x.refs, l.To)
			x.count(func(s *FeedStats) { s.Errors++ })
			x.answer(Answer{Line: n, To: l.To, Err: err})
		case ask:
			x.follow(n, l.To, p)
		}
		return nil
	}
}

// follow takes the answer to a line when it comes.
func (x *feeding) follow(n int, to string, p *host.Pending) {
	x.mu.Lock()
	x.open[n] = p
	x.mu.Unlock()
	x.wg.Add(1)
	go func() {
		defer x.wg.Done()
		m, ok := <-p.Answer()
		x.mu.Lock()
		delete(x.open, n)
		switch {
		case !ok:
			x.stats.Unanswered++
		case m.Err() != nil:
			x.stats.Errors++
		default:
			x.stats.Answered++
		}
		x.mu.Unlock()
		a := Answer{Line: n, To: to, From: m.Sender, Payload: m.Payload, Err: m.Err()}
		if !ok {
			a.Err = ErrNoAnswer
		}
		x.answer(a)
	}()
}

// await waits until a question more may be open. Questions whose messages were
// lost are found out when the system is idle.
func (x *feeding) await(ctx context.Context) error {
	for {
		x.mu.Lock()
		full := len(x.open) >= x.Window
		x.mu.Unlock()
		if !full {
			return nil
		}
		quick, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		err := x.sys.Idle(quick)
		cancel()
		if err == nil {
			x.giveUp()
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (x *feeding) waitIdle(ctx context.Context) error {
	if err := x.sys.Idle(ctx); err != nil {
		return err
	}
	x.giveUp()
	x.wg.Wait()
	return nil
}

// giveUp ends the questions that nobody will answer.
func (x *feeding) giveUp() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.open {
		p.Abandon()
	}
}

func (x *feeding) count(f func(*FeedStats)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f(&x.stats)
}

func (x *feeding) answer(a Answer) {
	if x.Answer != nil {
		x.calls.Lock()
		defer x.calls.Unlock()
		x.Answer(a)
	}
}
