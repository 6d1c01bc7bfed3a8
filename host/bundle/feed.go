package bundle

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Feed sends the lines of an NDJSON stream to actors and collects the answers.
//
// A line is {"to": "name or /user/path", "message": any}. With "ask": false it does not
// wait for an answer. {"wait": "idle"} waits until the system has handled everything that was
// sent. Empty lines and lines that begin with # are skipped.
type Feed struct {
	// Window bounds the messages that wait for their answers; default 4096.
	Window int
	// Stop ends the feed at the first invalid line, once the messages before it have been
	// handled; otherwise invalid lines are reported and skipped.
	Stop bool
	// Timeout is how long an answer may take; 0: until nothing is left to do, in a cluster DefaultSpreadTimeout: what is left
	// to do there is not known here.
	Timeout time.Duration
	// System is the system that a line is for; nil: the one of Run. It may wait until there is one, and its error ends the feed.
	System func(context.Context) (*host.System, error)
	// Paths are the paths of the bundle's actors. If one does not exist yet, because its parent
	// is about to start it, the feed waits for it.
	Paths []string
	// Answer is called for each line that has an outcome, one call at a time.
	Answer func(Answer)
	// Progress is called from time to time; may be nil.
	Progress func(FeedStats)
}

// Answer is the outcome of a line.
type Answer struct {
	Line    int
	To      string
	From    host.Ref // the actor that has answered
	Payload []byte   // the answer, if Err is nil
	Err     error    // *InputError, ErrNoAnswer, *host.ReplyError, or why it was not accepted
}

// DefaultSpreadTimeout is how long an answer may take in a cluster if nothing is said.
const DefaultSpreadTimeout = 30 * time.Second

// The kinds of answers.
const (
	KindReply      = "reply"      // the actor's answer
	KindError      = "error"      // the actor has answered with an error
	KindFailed     = "failed"     // the message was not accepted, or its turn has failed
	KindTimeout    = "timeout"    // no answer came in time
	KindUnanswered = "unanswered" // nothing is left to do, and no answer came
	KindInvalid    = "invalid"    // the line is wrong
)

// Kind is the kind of outcome.
func (a Answer) Kind() string {
	var bad *InputError
	var negative *host.ReplyError
	switch {
	case a.Err == nil:
		return KindReply
	case errors.As(a.Err, &bad):
		return KindInvalid
	case errors.As(a.Err, &negative):
		return KindError
	case errors.Is(a.Err, host.ErrTimeout):
		return KindTimeout
	case errors.Is(a.Err, ErrNoAnswer):
		return KindUnanswered
	}
	return KindFailed
}

// Reason says why there is no reply.
func (a Answer) Reason() string {
	var bad *InputError
	var negative *host.ReplyError
	switch {
	case a.Err == nil:
		return ""
	case errors.As(a.Err, &bad):
		return bad.Reason
	case errors.As(a.Err, &negative):
		return negative.Reason
	}
	return strings.TrimPrefix(a.Err.Error(), "host: ")
}

// ErrNoAnswer is the outcome of a message that was handled without an answer, or lost in a
// crash.
var ErrNoAnswer = errors.New("no answer")

// InputError is a line that cannot be sent.
type InputError struct {
	Line   int
	Reason string
	to     string
}

func (e *InputError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// FeedStats count lines.
type FeedStats struct {
	Sent     int // messages that left
	Answered int // replies
	// Errors were answered with an error; Failed were not accepted, or their turns have
	// failed; Timeouts and Unanswered got no answer; Invalid lines were not sent.
	Errors, Failed, Timeouts, Unanswered, Invalid int
}

// Of is how many lines had an outcome of a kind.
func (s FeedStats) Of(kind string) int {
	return map[string]int{KindReply: s.Answered, KindError: s.Errors, KindFailed: s.Failed, KindTimeout: s.Timeouts, KindUnanswered: s.Unanswered, KindInvalid: s.Invalid}[kind]
}

// Plus is the sum of both.
func (s FeedStats) Plus(t FeedStats) FeedStats {
	s.Sent += t.Sent
	s.Answered += t.Answered
	s.Errors += t.Errors
	s.Failed += t.Failed
	s.Timeouts += t.Timeouts
	s.Unanswered += t.Unanswered
	s.Invalid += t.Invalid
	return s
}

func (s *FeedStats) count(kind string) {
	switch kind {
	case KindReply:
		s.Answered++
	case KindError:
		s.Errors++
	case KindFailed:
		s.Failed++
	case KindTimeout:
		s.Timeouts++
	case KindUnanswered:
		s.Unanswered++
	case KindInvalid:
		s.Invalid++
	}
}

// MaxLine bounds a line of input, in bytes.
const MaxLine = 4 << 20

// progressEvery is the time between two calls of Feed.Progress.
const progressEvery = 200 * time.Millisecond

// Run feeds r to sys until its end and then waits until the system is idle. It
// returns early when ctx ends, or with the *InputError if Stop is set; a Read of r that is
// under way then goes on in the background.
func (f Feed) Run(ctx context.Context, sys *host.System, r io.Reader) (FeedStats, error) {
	if f.Window <= 0 {
		f.Window = 4096
	}
	x := &feeding{Feed: f, sys: sys, open: map[int]*host.Pending{}, gone: map[string]bool{}, spread: spreadOut(sys)}
	if x.spread && f.Timeout == 0 {
		x.Timeout = DefaultSpreadTimeout
	}
	done := make(chan struct{})
	var told sync.WaitGroup
	if f.Progress != nil {
		told.Go(func() { x.tell(done) })
	}
	err := x.read(ctx, r)
	var bad *InputError
	if err == nil || errors.As(err, &bad) {
		err = errors.Join(err, x.idle(ctx))
	}
	if !x.spread || ctx.Err() != nil {
		x.giveUp()
	}
	x.wg.Wait()
	close(done)
	told.Wait()
	if errors.As(err, &bad) {
		err = bad
	}
	return x.stats, err
}

// spreadOut reports whether a system is a node of a cluster, where messages may be on other nodes.
func spreadOut(sys *host.System) bool {
	user, err := sys.Lookup("/user")
	return err == nil && user.UID().Node() != 0
}

// idle waits until the system has nothing to do, if it is still there.
func (x *feeding) idle(ctx context.Context) error {
	err := x.sys.Idle(ctx)
	if x.spread && errors.Is(err, host.ErrClosed) {
		return nil // the node was lost
	}
	return err
}

// tell reports how far the feed is.
func (x *feeding) tell(done <-chan struct{}) {
	t := time.NewTicker(progressEvery)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
			x.mu.Lock()
			s := x.stats
			x.mu.Unlock()
			x.Progress(s)
		}
	}
}

type feeding struct {
	Feed
	sys    *host.System
	spread bool // over a cluster
	wg     sync.WaitGroup
	gone   map[string]bool // paths that were waited for in vain

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
			x.answer(Answer{Line: n, To: bad.to, Err: bad})
			if x.Stop {
				return bad
			}
		}
	}
	err := <-failed
	if errors.Is(err, bufio.ErrTooLong) {
		return &InputError{Line: n + 1, Reason: "longer than 4 MiB"}
	}
	return err
}

// scan reads r's lines in a goroutine of its own, so that the feed can end although a Read
// blocks, as on a terminal or a pipe. After ctx has ended, the goroutine ends when its Read
// returns. failed gets an error, or nil, after the last line.
func scan(ctx context.Context, r io.Reader) (lines <-chan []byte, failed <-chan error) {
	out, end := make(chan []byte, 64), make(chan error, 1)
	go func() {
		defer close(out)
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 64<<10), MaxLine)
		for s.Scan() {
			select {
			case out <- bytes.Clone(s.Bytes()):
			case <-ctx.Done():
				end <- ctx.Err() // whoever sees that there are no more lines waits for it
				return
			}
		}
		end <- s.Err()
	}()
	return out, end
}

// waitLine and exampleLine are examples of lines, for error texts.
const (
	waitLine    = `a line that waits is {"wait": "idle"}`
	exampleLine = `a line is {"to": name, "message": value}`
)

func (x *feeding) line(ctx context.Context, n int, text []byte) error {
	l, reason := parseLine(text)
	if reason != "" {
		return &InputError{n, reason, l.To}
	}
	if l.Wait != "" {
		return x.waitIdle(ctx)
	}
	if x.System != nil {
		sys, err := x.System(ctx)
		if err != nil {
			return err
		}
		if sys != x.sys {
			x.sys = sys
			clear(x.gone) // the node was lost: what had ended may be there again
		}
	}
	to, err := x.address(ctx, l.To)
	switch {
	case errors.Is(err, host.ErrUnknown):
		return &InputError{n, fmt.Sprintf("there is no actor %q%s", printable.Line(l.To, 100), x.suggestion(l.To)), l.To}
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		x.answer(Answer{Line: n, To: l.To, Err: err})
		return nil
	}
	payload, err := FromJSON(l.Message)
	if err != nil {
		return &InputError{n, "the message: " + err.Error(), l.To}
	}
	return x.send(ctx, n, l, to, payload)
}

func pathOf(to string) string {
	if strings.HasPrefix(to, "/") || strings.Contains(to, "://") {
		return to
	}
	return "/user/" + to
}

func (x *feeding) suggestion(to string) string {
	s := grammar.Suggest(pathOf(to), x.Paths)
	if !strings.HasPrefix(to, "/") {
		s = strings.ReplaceAll(s, "/user/", "")
	}
	return s
}

// address finds an actor by its name or path, or the keeper that starts it if it is not there. It is
// looked for at every line, since an actor that was started again with its parent has another ref.
func (x *feeding) address(ctx context.Context, to string) (host.Address, error) {
	path := pathOf(to)
	r, err := x.sys.AddressOf(path)
	if err == nil || !slices.Contains(x.Paths, path) || x.gone[path] {
		if err != nil && slices.Contains(x.Paths, path) {
			err = host.ErrStopped
		}
		return r, err
	}
	// The bundle has such an actor: its parent is about to start it, or it has ended.
	for until := time.Now().Add(patience); time.Now().Before(until); {
		short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
		idle := x.sys.Idle(short) == nil
		cancel()
		if r, err = x.sys.AddressOf(path); err == nil {
			return r, nil
		}
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if idle {
			break
		}
	}
	x.gone[path] = true
	return r, host.ErrStopped
}

// patience is how long the feed waits for an actor of the bundle's that does not exist.
const patience = 10 * time.Second

// send sends a message; if the mailbox is full it waits for room.
func (x *feeding) send(ctx context.Context, n int, l line, to host.Address, payload host.Raw) error {
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
			p, err = x.sys.TryRequest(to.To, to.Message(payload))
		} else {
			err = x.sys.TryTell(to.To, to.Message(payload))
		}
		if errors.Is(err, host.ErrMailboxFull) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
			continue
		}
		x.mu.Lock()
		x.stats.Sent++
		x.mu.Unlock()
		switch {
		case err != nil:
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
		var m host.Message
		var ok, late bool
		if x.Timeout > 0 {
			t := time.NewTimer(x.Timeout)
			select {
			case m, ok = <-p.Answer():
				t.Stop()
			case <-t.C:
				late = true
				p.Cancel()
			}
		} else {
			m, ok = <-p.Answer()
		}
		x.mu.Lock()
		delete(x.open, n)
		x.mu.Unlock()
		a := Answer{Line: n, To: to, From: m.Sender, Payload: m.Payload}
		switch {
		case late:
			a.Err = host.ErrTimeout
		case !ok:
			a.Err = ErrNoAnswer
		default:
			a.Err = m.Err()
		}
		x.answer(a)
	}()
}

// await waits until another question may be asked. Questions whose messages were lost end
// when the system is idle.
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
		if err == nil && x.spread {
			<-quick.Done() // they end with their time
		}
		cancel()
		if err == nil && !x.spread {
			x.giveUp()
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (x *feeding) waitIdle(ctx context.Context) error {
	if err := x.idle(ctx); err != nil {
		return err
	}
	if !x.spread {
		x.giveUp()
	}
	x.wg.Wait()
	return nil
}

// giveUp ends the questions that will not be answered.
func (x *feeding) giveUp() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.open {
		p.Abandon()
	}
}

// answer counts an outcome and reports it.
func (x *feeding) answer(a Answer) {
	x.mu.Lock()
	x.stats.count(a.Kind())
	x.mu.Unlock()
	if x.Answer != nil {
		x.calls.Lock()
		defer x.calls.Unlock()
		x.Answer(a)
	}
}
