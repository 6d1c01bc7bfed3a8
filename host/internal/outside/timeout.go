package outside

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// TimeoutError is an ErrTimeout that says what was asked of which actor, and what that actor was doing
// when the time was over. It also wraps the error of the context, if the context has ended.
// It reveals the state of another actor: it is for Go, and is never sent to guests.
type TimeoutError struct {
	Target ref.Ref
	// Question is the type of what was asked: a Go type, or what begins the CBOR.
	Question string
	// Waited is how long the caller has waited, by the system's clock.
	Waited time.Duration
	// Info is what the target was doing; nil: it had ended, or was not an actor.
	Info *view.Info
	// Turn is how long the target had been in its present spell of work, 0 if in none, or
	// in one too short to measure. With AtLeast it is longer than that.
	Turn    time.Duration
	AtLeast bool

	busy  bool // in a turn that has begun since, too short to measure
	cause error
}

// Error says all of it in one line.
func (e *TimeoutError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: asked %s", errs.ErrTimeout, e.Target.Path())
	if e.Info != nil && e.Info.Type != "" {
		fmt.Fprintf(&b, " (%s)", e.Info.Type)
	}
	fmt.Fprintf(&b, " for %s, %v ago; %s", e.Question, e.Waited.Round(time.Microsecond), e.Doing())
	if e.cause != nil {
		fmt.Fprintf(&b, ": %v", e.cause)
	}
	return b.String()
}

// Doing says what the target was doing.
func (e *TimeoutError) Doing() string {
	i := e.Info
	if i == nil {
		return "there is no such actor now"
	}
	what := ""
	switch i.State {
	case view.StateRunning, view.StateStarting, view.StateAsleep:
		switch {
		case e.Turn > 0 && e.AtLeast:
			what = fmt.Sprintf("it has been in a turn for more than %v", e.Turn.Round(time.Millisecond))
		case e.Turn > 0:
			what = fmt.Sprintf("it has been in a turn for %v", e.Turn.Round(time.Millisecond))
		case e.busy:
			what = "it is in a turn that has begun since"
		case i.State == view.StateStarting:
			what = "it has not started yet"
		case i.State == view.StateAsleep:
			what = "it is asleep"
		case i.Mailbox == 0:
			what = "it is idle: it has handled the question and not answered yet, or forwarded it"
		default:
			what = "it is between turns"
		}
	case view.StateStarved:
		what = "it waits for an instance"
	case view.StatePaused:
		what = "an operator has paused it"
	case view.StateSuspended:
		what = "it is suspended until its supervisor decides"
	case view.StateDelayed:
		what = "it waits for its restart"
		if i.Due > 0 {
			what += ", which is due in " + i.Due.Round(time.Millisecond).String()
		}
	case view.StateStopping:
		what = "it is about to stop"
	default:
		what = "it is " + i.State.String()
	}
	if i.Mailbox == 1 {
		return what + ", 1 message waits"
	}
	return what + ", " + strconv.Itoa(i.Mailbox) + " messages wait"
}

// Timeout is what net.Error and others ask.
func (e *TimeoutError) Timeout() bool { return true }

// Unwrap is ErrTimeout, and the context's error.
func (e *TimeoutError) Unwrap() []error {
	if e.cause == nil {
		return []error{errs.ErrTimeout}
	}
	return []error{errs.ErrTimeout, e.cause}
}

// TimedOut is the error of an ask that is given up now, with the state of the target. v is the question; cause is of the context.
func (t *Table) TimedOut(p *Pending, to ref.Ref, v any, cause error) error {
	return t.timedOut(p.p, to, v, cause)
}

func (t *Table) timedOut(p *Promise, to ref.Ref, v any, cause error) error {
	e := &TimeoutError{Target: to, Question: questionType(v), Waited: time.Duration(t.Time.Now() - p.patience.at), cause: cause}
	d, ok := t.kernel.Look(to.UID())
	if !ok {
		return e
	}
	e.Target, e.Info = d.Info.Ref, &d.Info
	if d.Since != 0 {
		e.Turn = time.Since(time.Unix(0, d.Since))
	} else if d.Running {
		if e.busy = d.Turns != p.turns; !e.busy {
			e.Turn, e.AtLeast = e.Waited, true
		}
	}
	return e
}

// questionType is the type of a question, for a person: it has nothing of its content except
// the text that begins an array, which names the operation of a service.
func questionType(v any) string {
	for {
		switch m := v.(type) {
		case message.Headed:
			v = m.Value
		case message.Marked:
			v = m.Value
		case message.Bound:
			v = m.Value
		case message.TracedIn:
			v = m.Value
		case message.Raw:
			return shape(m)
		case []any:
			if len(m) > 0 {
				if op, ok := m[0].(string); ok {
					return operation(op)
				}
			}
			return "[]interface {}"
		default:
			return fmt.Sprintf("%T", v)
		}
	}
}

// operation is how an array that begins with a text is shown.
func operation(op string) string { return "[" + strconv.Quote(printable.Clip(op, 40)) + ", ...]" }

// shape describes CBOR.
func shape(payload []byte) string {
	if len(payload) > 0 && payload[0]>>5 == 4 {
		r := abi.NewReader(payload)
		if n := r.Array(); n > 0 {
			if op := r.Text(); r.Err() == nil {
				return operation(op)
			}
		}
	}
	return fmt.Sprintf("%d bytes of CBOR", len(payload))
}
