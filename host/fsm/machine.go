package fsm

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/fsm"
	"github.com/wasmactors/wasmactors/host"
)

// Machine is an actor that is in one of its definition's states. Its methods are for its own
// handlers, within their turn.
type Machine[D any] struct {
	def   *Definition[D]
	rules rules.Machine
	data  D

	ctx         *host.Context // of the present turn
	next        pending[D]
	subscribers []host.Ref
	log         []Entry
	oldest      int
	over        bool  // OnTermination was called
	old         State // of the transition that is observed
}

// pending is what the running handler has asked for.
type pending[D any] struct {
	step      rules.Step
	unhandled bool
	using     bool
	data      D
	reason    Reason
}

// Next is what follows from an event; see Handler.
type Next[D any] struct{ m *Machine[D] }

// Keys of timers: of the state timeout, and above it those of named timers. The actor's own must be lower.
const firstKey = 1 << 62

// MaxSubscribers bounds the subscribers of one machine.
const MaxSubscribers = 64

// Context is the context of the present turn.
func (m *Machine[D]) Context() *host.Context { return m.ctx }

// State is the present state; the old one while OnTransition is called.
func (m *Machine[D]) State() State {
	if m.old != "" {
		return m.old
	}
	return m.rules.State()
}

// Data is the present data; the old one while OnTransition is called. Only Using changes it.
func (m *Machine[D]) Data() D { return m.data }

// NextData is the data after the transition, while OnTransition is called.
func (m *Machine[D]) NextData() D {
	if m.next.using {
		return m.next.data
	}
	return m.data
}

// Stay goes on in the present state, which is not a transition.
func (m *Machine[D]) Stay() Next[D] { return m.say(rules.Step{Kind: rules.Stay}) }

// Goto goes to a state, by a transition that the present state's When declares. Going to the present
// state needs no declaration; it is a transition, too.
func (m *Machine[D]) Goto(s State) Next[D] { return m.say(rules.Step{Kind: rules.Goto, To: s}) }

// Stop stops the actor when the handler has returned. OnTermination gets the reason.
func (m *Machine[D]) Stop(r Reason) Next[D] {
	n := m.say(rules.Step{Kind: rules.Stop})
	m.next.reason = r
	return n
}

// Unhandled leaves the event to the next handler of the state, and after the last one to the
// definition's Unhandled.
func (m *Machine[D]) Unhandled() Next[D] {
	m.next = pending[D]{unhandled: true}
	return Next[D]{m}
}

func (m *Machine[D]) say(s rules.Step) Next[D] {
	m.next = pending[D]{step: s}
	return Next[D]{m}
}

// Using changes the data with the step.
func (n Next[D]) Using(data D) Next[D] {
	n.m.next.using, n.m.next.data = true, data
	return n
}

// ForMax sets this step's state timeout instead of the default; Forever: no timeout.
func (n Next[D]) ForMax(d time.Duration) Next[D] {
	n.m.next.step.Max = d
	return n
}

// Replying answers the current message with v.
func (n Next[D]) Replying(v any) Next[D] {
	_ = n.m.ctx.Reply(v)
	return n
}

// Started begins the machine: the transition into its initial state.
func (m *Machine[D]) Started(ctx *host.Context) error {
	m.ctx = ctx
	if m.def.data != nil {
		data, err := m.def.data(ctx)
		if err != nil {
			return err
		}
		m.data = data
	}
	m.next = pending[D]{}
	return m.carryOut(m.rules.Begin(m.def.first))
}

// Receive handles an event.
func (m *Machine[D]) Receive(ctx *host.Context, msg host.Message) error {
	m.ctx = ctx
	e := Event{Kind: Received, Message: msg}
	if key := msg.Correlation; msg.Kind == abi.KindTimer && key >= firstKey {
		if key == firstKey {
			if !m.rules.TimedOut() {
				return nil
			}
			e.Kind = StateTimeout
		} else {
			name, ok := m.rules.Rung(key - firstKey - 1)
			if !ok {
				return nil
			}
			e.Kind, e.Name = Timer, name
		}
	}
	return m.handle(e)
}

// Fire handles an event that the actor itself raises, at once: for an answer to an ask, for example. It must
// not be called by a handler.
func (m *Machine[D]) Fire(ctx *host.Context, name string, msg host.Message) error {
	m.ctx = ctx
	return m.handle(Event{Kind: Fired, Name: name, Message: msg})
}

// Stopped tells OnTermination of an end from outside, or by a restart, except after a panic.
func (m *Machine[D]) Stopped(ctx *host.Context) {
	m.ctx = ctx
	m.terminate(Reason{Kind: Shutdown})
}

func (m *Machine[D]) handle(e Event) error {
	if m.rules.Stopped() {
		return host.ErrUnhandled
	}
	m.note(e)
	state, unhandled := m.rules.State(), true
	for i := range m.def.clauses {
		if c := &m.def.clauses[i]; c.state == state {
			if err := m.ask(c.handle, e); err != nil {
				return err
			}
			if unhandled = m.next.unhandled; !unhandled {
				break
			}
		}
	}
	if unhandled && m.def.unhandled != nil {
		if err := m.ask(m.def.unhandled, e); err != nil {
			return err
		}
		unhandled = m.next.unhandled
	}
	if unhandled {
		m.next = pending[D]{step: rules.Step{Kind: rules.Stay}}
	}
	c, err := m.rules.Apply(m.next.step)
	if err != nil {
		return err
	}
	if err := m.carryOut(c); err != nil {
		return err
	}
	if unhandled {
		return host.ErrUnhandled
	}
	return nil
}

func (m *Machine[D]) ask(h Handler[D], e Event) error {
	m.next = pending[D]{}
	n, err := h(m, e)
	if n.m == nil {
		m.next = pending[D]{} // what it has made and not returned does not count
	}
	return err
}

// carryOut calls the observers, changes the data, and sets timeouts.
func (m *Machine[D]) carryOut(c rules.Change) error {
	if c.Fires {
		next := m.next // an observer may say nothing
		m.old = c.From
		for i := range m.def.observers {
			if o := &m.def.observers[i]; (o.from == Any || o.from == c.From) && (o.to == Any || o.to == c.To) {
				o.f(m, c.From, c.To)
				m.next = next
			}
		}
		m.old = ""
		for _, to := range m.subscribers {
			_ = m.ctx.Tell(to, Transition{What: "fsm.transition", From: c.From, To: c.To}) // one that has ended is a dead letter
		}
	}
	if m.next.using {
		m.data = m.next.data
	}
	switch {
	case c.Arm > 0:
		if err := m.ctx.After(firstKey, c.Arm, 0, nil); err != nil {
			return err
		}
	case c.Disarm:
		m.ctx.Cancel(firstKey)
	}
	if m.next.step.Kind == rules.Stop {
		m.terminate(m.next.reason)
		m.ctx.Stop(m.ctx.Self())
	}
	m.next = pending[D]{}
	return nil
}

func (m *Machine[D]) terminate(r Reason) {
	if m.over {
		return
	}
	m.over = true
	if m.def.terminated != nil {
		m.def.terminated(m, r)
	}
}

// SetStateTimeout changes a state's default timeout for this machine; 0: no timeout. It takes effect with
// the next step.
func (m *Machine[D]) SetStateTimeout(s State, d time.Duration) error { return m.rules.SetTimeout(s, d) }

// SetTimer makes an event of kind Timer come after a delay, with v as its message, once or
// repeatedly. A timer of the same name is replaced. Other events do not affect it.
func (m *Machine[D]) SetTimer(name string, v any, after time.Duration, repeat bool) error {
	slot, err := m.rules.SetTimer(name, repeat)
	if err != nil {
		return err
	}
	period := time.Duration(0)
	if repeat {
		period = after
	}
	return m.ctx.After(firstKey+1+uint64(slot), after, period, v)
}

// CancelTimer cancels a timer, even if its event already waits in the mailbox.
func (m *Machine[D]) CancelTimer(name string) {
	if slot, ok := m.rules.CancelTimer(name); ok {
		m.ctx.Cancel(firstKey + 1 + uint64(slot))
	}
}

// TimerActive reports whether a timer is set and has not expired, or repeats.
func (m *Machine[D]) TimerActive(name string) bool { return m.rules.TimerActive(name) }

// Subscribe sends an actor the present state, and every transition from now on. Subscribers that have
// ended are not removed: watch them, and Unsubscribe. It returns false if there are MaxSubscribers.
func (m *Machine[D]) Subscribe(to host.Ref) bool {
	_ = m.ctx.Tell(to, CurrentState{What: "fsm.state", State: m.rules.State()})
	for _, s := range m.subscribers {
		if s == to {
			return true
		}
	}
	if len(m.subscribers) == MaxSubscribers {
		return false
	}
	m.subscribers = append(m.subscribers, to)
	return true
}

// Unsubscribe ends a subscription.
func (m *Machine[D]) Unsubscribe(ref host.Ref) {
	for i, s := range m.subscribers {
		if s == ref {
			m.subscribers = append(m.subscribers[:i], m.subscribers[i+1:]...)
			return
		}
	}
}

func (m *Machine[D]) note(e Event) {
	if cap(m.log) == 0 {
		return
	}
	x := Entry{m.rules.State(), e.Kind, e.Name}
	if len(m.log) < cap(m.log) {
		m.log = append(m.log, x)
		return
	}
	m.log[m.oldest] = x
	m.oldest = (m.oldest + 1) % len(m.log)
}

// Log is the last events with the states in which they came, the oldest first; empty unless
// the definition has Log.
func (m *Machine[D]) Log() []Entry {
	return append(append([]Entry(nil), m.log[m.oldest:]...), m.log[:m.oldest]...)
}
