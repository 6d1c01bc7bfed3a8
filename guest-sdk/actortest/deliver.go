//go:build !wasip1

package actortest

import (
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// entering is held during a turn: the SDK serves one actor at a time.
var entering sync.Mutex

// entry is the host of one turn.
type entry struct {
	begun    bool
	outbox   []byte
	logs     []Log
	panicked bool
	text     string
}

func (h *entry) Next(int) bool {
	first := !h.begun
	h.begun = true
	return first
}

func (h *entry) Flush(b []byte) { h.outbox = append(h.outbox, b...) }

func (h *entry) Log(level int, text []byte) { h.logs = append(h.logs, Log{level, string(text)}) }

func (h *entry) Panic(text []byte) { h.panicked, h.text = true, string(text) }

// deliver runs a turn of a living actor.
func (a *Actor) deliver(e abi.Envelope) *Turn {
	a.t.Helper()
	switch {
	case a.ended:
		a.t.Fatal("actortest: the actor has ended: nothing can be delivered")
	case a.failure != nil:
		a.t.Fatalf("actortest: the actor has failed and was not restarted: %v\n%s", a.failure, a.failure.GuestStack)
	}
	switch e.Kind {
	case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
		if e.Correlation == 0 {
			break
		}
		if a.asks[e.Correlation] == nil {
			a.t.Fatalf("actortest: the actor has no open question %d: it was answered, or its time is over", e.Correlation)
		}
		delete(a.asks, e.Correlation)
	}
	a.touch()
	turn := a.run(e)
	if turn.Stashed {
		a.stash = append(a.stash, e)
	}
	return turn
}

// usualMessage is how large a message may be if the manifest says nothing, in bytes.
const usualMessage = 1 << 20

// run enters the SDK with one envelope and carries out what the harness can.
func (a *Actor) run(e abi.Envelope) *Turn {
	a.t.Helper()
	a.turns++
	e.Time = a.now.UnixNano()
	turn := &Turn{t: a.t, question: e}
	apart := e.Payload
	if abi.EnvelopeSize(&e) > actor.InboxSize {
		e.Payload, e.Apart = nil, uint64(len(apart))
		if len(apart) > usualMessage {
			a.t.Logf("actortest: a message of %d bytes; a host takes it only with limits.message in the manifest", len(apart))
		}
	}
	cmds, failure := a.enter(turn, abi.AppendEnvelope(nil, &e), apart)
	e.Payload, e.Apart = apart, 0
	if failure == nil {
		failure = turn.take(a, cmds)
	}
	if failure == nil && a.world != nil {
		failure = a.world.crashes(a, e)
	}
	if failure != nil {
		failure.Turn = a.turns
		*turn = Turn{Failure: failure, Logs: turn.Logs, t: a.t, question: e}
		a.failure = failure
		return turn
	}
	a.keep(turn)
	last := e.Kind == abi.KindStop || e.Kind == abi.KindPreRestart
	if a.world != nil {
		a.world.took(a, turn, cmds, last)
	}
	a.carryOut(turn, cmds, last)
	return turn
}

// enter calls the SDK and decodes the commands.
func (a *Actor) enter(turn *Turn, envelope, apart []byte) ([]abi.Command, *abi.Failure) {
	a.t.Helper()
	h := &entry{}
	entering.Lock()
	func() {
		defer entering.Unlock()
		bridge.Current, bridge.Apart = h, apart
		var out []byte
		a.state, out = bridge.Loop.Turn(a.state, envelope)
		h.outbox = append(h.outbox, out...)
	}()
	turn.Logs = h.logs
	if h.panicked {
		text, stack, _ := strings.Cut(h.text, "\n\n")
		return nil, &abi.Failure{Kind: abi.FailureGuestPanic, Message: text, GuestStack: stack}
	}
	var cmds []abi.Command
	for data := h.outbox; len(data) > 0; {
		var c abi.Command
		n, err := abi.DecodeCommand(&c, data)
		if err != nil {
			return nil, &abi.Failure{Kind: abi.FailureABIViolation, Reason: c.Op.String() + ": " + err.Error()}
		}
		switch c.Op {
		case abi.OpFail:
			return nil, &abi.Failure{Kind: abi.FailureGuestError, Reason: string(c.Reason)}
		case abi.OpSend, abi.OpAsk, abi.OpSpawn, abi.OpTimer:
			if err := abi.Valid(c.Payload); len(c.Payload) > 0 && err != nil {
				a.t.Errorf("actortest: the payload of a %v is not one item of CBOR: %v: %x", c.Op, err, c.Payload)
			}
		}
		cmds = append(cmds, c)
		data = data[n:]
	}
	return cmds, nil
}

// take notes what the turn has asked for.
func (u *Turn) take(a *Actor, cmds []abi.Command) *abi.Failure {
	for _, c := range cmds {
		to := Target{c.ToRef, string(c.ToPath)}
		switch c.Op {
		case abi.OpSend:
			s := Sent{Target: to, From: a.Ref(), Correlation: c.Correlation, Payload: c.Payload, headers: c.Headers}
			switch {
			case c.Flags&abi.FlagReply != 0:
				s.Kind = Reply
			case c.Flags&abi.FlagReplyError != 0:
				s.Kind = ReplyError
			}
			u.Sent = append(u.Sent, s)
		case abi.OpAsk:
			s := Sent{Target: to, Kind: Ask, From: a.Ref(), Correlation: c.Correlation, Timeout: time.Duration(c.Delay), Payload: c.Payload, headers: c.Headers}
			if path, is := strings.CutPrefix(to.Path, abi.IdentifySign); is {
				s.Kind, s.Path, s.Payload, s.headers = Identify, path, nil, nil
			}
			u.Sent = append(u.Sent, s)
		case abi.OpForward:
			q := u.question
			from := q.Sender
			if from == 0 && q.Kind != abi.KindMessage && q.Kind != abi.KindReply && q.Kind != abi.KindReplyError {
				from = a.Ref() // a message of the host is forwarded with this actor as sender
			}
			u.Sent = append(u.Sent, Sent{Target: to, Kind: Forward, From: from, Correlation: q.Correlation, Payload: q.Payload, headers: q.Headers})
		case abi.OpSpawn:
			u.Spawned = append(u.Spawned, Spawned{Ref: c.Ref, Type: string(c.Type), Name: string(c.Name), Args: c.Payload, Options: c.Options})
		case abi.OpStop:
			u.Stopped = append(u.Stopped, to)
		case abi.OpWatch:
			u.Watched = append(u.Watched, to)
		case abi.OpUnwatch:
			u.Unwatched = append(u.Unwatched, to)
		case abi.OpTimer:
			u.Timers = append(u.Timers, Timer{c.Key, time.Duration(c.Delay), time.Duration(c.Period), c.Payload})
		case abi.OpCancel:
			u.Cancelled = append(u.Cancelled, c.Key)
		case abi.OpReceiveTimeout:
			d := time.Duration(c.Delay)
			u.ReceiveTimeout = &d
		case abi.OpStash:
			u.Stashed = true
		case abi.OpDecide:
			u.Decided = actor.Directive(c.Directive)
		case abi.OpCancelAsk:
			u.CancelledAsks = append(u.CancelledAsks, c.Correlation)
		case abi.OpResetBackoff:
			u.BackoffReset = true
		case abi.OpPersist:
			if err := u.persist(a, c.Payload); err != nil {
				return &abi.Failure{Kind: abi.FailureHost, Reason: "the turn could not be recorded: " + err.Error()}
			}
		case abi.OpUnhandled:
			if u.question.Kind == abi.KindTerminated {
				return &abi.Failure{Kind: abi.FailureDeathPact, Reason: "the end of a watched actor was not handled"}
			}
			u.Unhandled = true
		}
	}
	return nil
}

// carryOut does what concerns only the actor itself: its timers, its stash, its end.
func (a *Actor) carryOut(turn *Turn, cmds []abi.Command, last bool) {
	a.t.Helper()
	a.start.Spawned += uint64(len(turn.Spawned))
	unstash, end := false, false
	for _, c := range cmds {
		switch {
		case last:
		case c.Op == abi.OpAsk:
			a.asks[c.Correlation] = a.later(time.Duration(c.Delay), 0, abi.Envelope{Kind: abi.KindAskTimeout, Correlation: c.Correlation, Payload: []byte{0xf6}})
		case c.Op == abi.OpTimer:
			a.timers[c.Key] = a.later(time.Duration(c.Delay), time.Duration(c.Period), abi.Envelope{Kind: abi.KindTimer, Correlation: c.Key, Payload: c.Payload})
		case c.Op == abi.OpCancel:
			delete(a.timers, c.Key)
		case c.Op == abi.OpCancelAsk:
			delete(a.asks, c.Correlation)
		case c.Op == abi.OpReceiveTimeout:
			a.receive = nil
			if c.Delay > 0 {
				d := time.Duration(c.Delay)
				a.receive = a.later(d, d, abi.Envelope{Kind: abi.KindReceiveTimeout, Payload: []byte{0xf6}})
			}
		case c.Op == abi.OpUnstash:
			unstash = true
		case c.Op == abi.OpStop:
			end = end || c.ToRef == a.Ref()
		}
	}
	switch {
	case end:
		turn.Last = a.Stop()
	case unstash:
		a.unstash(turn)
	}
}

// unstash delivers what was put aside, until something fails or ends.
func (a *Actor) unstash(turn *Turn) {
	a.t.Helper()
	back := a.stash
	a.stash = nil
	for i, e := range back {
		if a.failure != nil || a.ended {
			a.stash = append(a.stash, back[i:]...)
			return
		}
		turn.Unstashed = append(turn.Unstashed, a.deliver(e))
	}
}
