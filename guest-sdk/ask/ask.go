// Package ask is for what needs more than one question and one answer: deadlines that are passed on,
// questions to several actors at once, answers that are passed on, and questions that are asked again.
// All of it continues in later turns; nothing blocks. A restart forgets what is under way.
//
// A module that imports it needs a host with the feature asks (docs/abi.md).
package ask

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

func init() { actor.Need(abi.FeatureAsks) }

// Error is why there is no answer.
type Error struct {
	Kind   Kind
	Reason string // as given by the actor that was asked; for a timeout: which actor, and how long
}

// Kind is the sort of a failure.
type Kind uint8

// The kinds of failures.
const (
	Refused Kind = iota + 1 // the answer is an error, or the question was not delivered
	TimedOut
	GivenUp // nobody waits for it any longer, see Several
)

func (e *Error) Error() string {
	switch e.Kind {
	case TimedOut:
		return "no answer " + e.Reason
	case GivenUp:
		return "given up"
	}
	return e.Reason
}

// failure is nil for an answer. For a timeout it says only what the actor knew when it asked.
func failure(m *actor.Message, to actor.Ref, timeout time.Duration) *Error {
	switch m.Kind() {
	case actor.KindReply:
		return nil
	case actor.KindAskTimeout:
		return &Error{TimedOut, "of " + strconv.FormatUint(uint64(to), 10) + " within " + timeout.String()}
	}
	return &Error{Refused, m.Text()}
}

// Remaining is how long the asker of a message still waits, by the turn's clock; ok is false if that is not known: m is not
// a question, or it is Lasting. The host states the time, so no other actor can forge it.
func Remaining(ctx *actor.Context, m *actor.Message) (d time.Duration, ok bool) {
	at, err := strconv.ParseInt(m.Header(abi.HeaderDeadline), 10, 64)
	if err != nil {
		return 0, false
	}
	return max(0, time.Duration(at-ctx.Now().UnixNano())), true
}

// Within is d, or the remaining time of m if that is less: the timeout for a question whose answer is needed
// only to answer m. It is 1 ms at least, the shortest timeout.
func Within(ctx *actor.Context, m *actor.Message, d time.Duration) time.Duration {
	if left, ok := Remaining(ctx, m); ok {
		d = min(d, left)
	}
	return max(d, abi.MinAskTimeout)
}

// Lasting is the header of a question that is to be handled even if the asker has given up: ctx.AskWith(to, v, timeout,
// then, ask.Lasting).
var Lasting = actor.Header{Key: abi.HeaderDeadline, Value: abi.DeadlineNone}

// Failure reports whether a message of KindMessage stands for a result that did not come, and the reason. Any actor may send
// one.
func Failure(m *actor.Message) (reason string, failed bool) {
	if !m.HasHeader(abi.HeaderFailure) {
		return "", false
	}
	return m.Header(abi.HeaderFailure), true
}

// Fail sends another actor a failure instead of a result.
func Fail(ctx *actor.Context, to actor.Ref, reason string) {
	ctx.TellWith(to, actor.Text(reason), actor.Header{Key: abi.HeaderFailure, Value: clip(reason, abi.MaxHeaderValue)})
}

// clip shortens a text to n bytes, and cuts no character in two.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// Pipe asks an actor, and sends the answer, or a failure, on to another one as a message of this
// actor. It takes one turn in between, which the actor's Receive does not see.
func Pipe(ctx *actor.Context, to actor.Ref, question actor.Encoder, timeout time.Duration, into actor.Ref) {
	ctx.Ask(to, question, timeout, func(ctx *actor.Context, m *actor.Message) error {
		if err := failure(m, to, timeout); err != nil {
			Fail(ctx, into, err.Error())
			return nil
		}
		ctx.Tell(into, actor.Raw(m.Payload()))
		return nil
	})
}
