package breaker

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/breaker"
	"github.com/wasmactors/wasmactors/host"
)

// Values of [Header] in a message to a proxy. A question without it is asked through the breaker, and
// any other message is TellOnly.
const (
	Header      = rules.Header
	TellOnly    = rules.TellOnly    // passed on while the circuit is closed, else unhandled
	Passthrough = rules.Passthrough // passed on always, and not counted
)

// Refused is a question that a proxy has not asked; see [Proxy.WithOpenConverter].
type Refused struct {
	Remaining time.Duration // as in OpenError
	Message   host.Message  // valid during the call
}

// Proxy is an actor with a circuit breaker that stands before another actor, the target: the askers of the target
// ask the proxy instead. Values are immutable; each With method returns a changed copy.
type Proxy struct {
	target    host.Ref
	settings  Settings
	detector  func(host.Message) bool
	converter func(Refused) any
	listener  host.Ref
}

// NewProxy is a proxy before a target.
//
// A question (a message whose answer somebody waits for) is asked by the proxy, with the
// call timeout, and answered with the target's answer, or, if none comes, with an error at the
// timeout. While the circuit is open it is answered at once. Other messages are passed on with
// their senders, see [TellOnly].
func NewProxy(target host.Ref, s Settings) Proxy { return Proxy{target: target, settings: s} }

// WithFailureDetector sets which answers count as failures, errors included, also those of the host
// (the target has ended, its turn has failed); without it errors do. The answer is passed on in any case.
func (p Proxy) WithFailureDetector(f func(answer host.Message) bool) Proxy { p.detector = f; return p }

// WithOpenConverter sets the answer to refused questions; without it an error
// says how long the circuit is still open. An error that f returns is sent as an error answer.
func (p Proxy) WithOpenConverter(f func(Refused) any) Proxy { p.converter = f; return p }

// WithListener sets an actor that is notified of transitions: "breaker.open", "breaker.half-open" and
// "breaker.closed".
func (p Proxy) WithListener(ref host.Ref) Proxy { p.listener = ref; return p }

// Props makes the props of the actor. It begins closed, also after a restart. With settings that are not valid, or
// without a target, it cannot be spawned.
func (p Proxy) Props() host.Props {
	wrong := p.settings.Check()
	if p.target.IsZero() {
		wrong = errors.Join(wrong, errors.New("breaker: the proxy has no target"))
	}
	return host.Native(func() host.Actor { return &proxy{Proxy: p} }).WithError(wrong)
}

// tick is the key of the proxy's timer.
const tick = 1

// proxy is the actor. It uses the rules directly, within its turns, so that time is the turn's.
type proxy struct {
	Proxy
	ctx     *host.Context
	circuit rules.Circuit
	last    uint64
	open    map[uint64]question
}

type question struct {
	call  rules.Call
	reply *host.Reply
}

// Started implements host.Starter.
func (p *proxy) Started(*host.Context) error {
	p.open = map[uint64]question{}
	p.circuit = rules.New(p.settings, p.changed)
	return nil
}

// Stopped implements host.Stopper: waiting askers get an error.
func (p *proxy) Stopped(*host.Context) {
	for _, q := range p.open {
		_ = q.reply.Fail("breaker: the proxy has ended before an answer came")
	}
}

// changed carries out the effects of a transition.
func (p *proxy) changed(_, to State) {
	p.ctx.Cancel(tick)
	if to == Open { // periodic, although it counts once: nobody who waits until the system is idle waits for it
		d := p.circuit.Remaining(p.ctx.Now())
		_ = p.ctx.After(tick, d, d, nil)
	}
	if !p.listener.IsZero() {
		_ = p.ctx.Tell(p.listener, "breaker."+to.String())
	}
}

// Receive implements host.Actor.
func (p *proxy) Receive(ctx *host.Context, m host.Message) error {
	p.ctx = ctx
	switch m.Kind {
	case abi.KindTimer:
		p.circuit.Tick(ctx.Now())
		return nil
	case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
		p.answered(ctx, m)
		return nil
	case abi.KindMessage:
	default:
		return host.ErrUnhandled
	}
	how, marked := abi.FindHeader(m.Headers, Header)
	switch {
	case marked && string(how) == Passthrough:
		return ctx.Head().ForwardWithout(p.target, Header)
	case marked && string(how) != TellOnly:
		return ctx.ReplyError("breaker: the header " + Header + " must be " + TellOnly + " or " + Passthrough)
	case !marked && m.Correlation != 0 && !m.Sender.IsZero():
		return p.ask(ctx, m)
	case p.circuit.State(ctx.Now()) != Closed:
		ctx.Head().Refuse(&OpenError{p.circuit.Remaining(ctx.Now())})
		return nil
	case marked:
		return ctx.Head().ForwardWithout(p.target, Header)
	}
	return ctx.Head().Pass(p.target)
}

// ask asks the target, if the circuit lets it.
func (p *proxy) ask(ctx *host.Context, m host.Message) error {
	now := ctx.Now()
	call, ok := p.circuit.Begin(now)
	if !ok {
		return p.refuse(ctx, Refused{p.circuit.Remaining(now), m})
	}
	reply, err := ctx.Later()
	if err != nil {
		p.circuit.Forget(call)
		return ctx.ReplyError("breaker: too many questions are in progress")
	}
	p.last++
	if err := ctx.Ask(p.target, ctx.Head().Content(&m), p.last, min(p.circuit.Settings().CallTimeout, longest)); err != nil {
		p.circuit.Forget(call)
		return reply.Fail("breaker: " + err.Error())
	}
	p.open[p.last] = question{call, reply}
	return nil
}

func (p *proxy) refuse(ctx *host.Context, r Refused) error {
	if p.converter == nil {
		return ctx.ReplyError((&OpenError{r.Remaining}).Error())
	}
	v := p.converter(r)
	if err, ok := v.(error); ok {
		return ctx.ReplyError(err.Error())
	}
	return ctx.Reply(v)
}

// answered passes an answer on.
func (p *proxy) answered(ctx *host.Context, m host.Message) {
	q, ok := p.open[m.Correlation]
	if !ok {
		return
	}
	delete(p.open, m.Correlation)
	failed := m.Kind == abi.KindReplyError
	switch {
	case m.Kind == abi.KindAskTimeout:
		failed = true
		_ = q.reply.Fail("breaker: no answer within " + p.circuit.Settings().CallTimeout.String()) // an error says that nobody waits
	case m.Kind == abi.KindReplyError:
		var reason string
		if m.Decode(&reason) != nil {
			reason = "(not a text)"
		}
		_ = q.reply.Fail(reason)
	default:
		_ = q.reply.Send(host.Raw(m.Payload))
	}
	if p.detector != nil && m.Kind != abi.KindAskTimeout {
		failed = p.detector(m)
	}
	p.circuit.End(q.call, failed, ctx.Now())
}
