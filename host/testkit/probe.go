package testkit

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// Probe is an actor that is played by the test: what it receives waits until the test expects it, and
// the test sends, answers, watches and spawns on its behalf. Messages wait in the order
// in which they came.
type Probe struct {
	k    *Kit
	t    testing.TB
	name string
	ref  host.Ref
	box  *probeBox

	mu      sync.Mutex
	queue   []Received
	ignored func(host.Message) bool
	pilot   Pilot
	decide  func(child host.Ref, f *abi.Failure) supervision.Directive

	last    *Received // that the test has taken
	asked   uint64    // correlations that were used
	within  []time.Time
	unended bool // Within does not check its end
}

// Received is a message that a probe has received.
type Received struct {
	host.Message
	At time.Time // by the system's clock

	env *host.Envelope // to answer and forward; nil if nobody has sent it
}

// maxProbe is how many messages may wait for a probe.
const maxProbe = 1_000_000

// Probe starts a probe at /user/name.
func (k *Kit) Probe(name string) *Probe {
	k.t.Helper()
	p := k.newProbe(name)
	ref, err := k.sys.Spawn(name, p.props())
	if err != nil {
		k.t.Fatalf("testkit: the probe %s: %v", name, err)
	}
	p.begin(ref)
	return p
}

func (k *Kit) newProbe(name string) *Probe {
	return &Probe{k: k, t: k.t, name: name}
}

func (p *Probe) props() host.Props {
	return host.Native(func() host.Actor { return (*probeActor)(p) }).WithMailbox(p.mailbox).
		WithSupervision(supervision.Default().WithOtherwise(supervision.Ask)).
		WithLimits(host.Limits{Mailbox: maxProbe, MailboxBytes: 1 << 30, Held: 4 << 30, Asks: maxProbe})
}

// begin is what follows the spawn.
func (p *Probe) begin(ref host.Ref) {
	p.t.Helper()
	p.ref = ref
	p.k.mu.Lock()
	p.k.probes = append(p.k.probes, p)
	p.k.mu.Unlock()
	p.k.Run()
}

// Ref is where the probe is reached.
func (p *Probe) Ref() host.Ref { return p.ref }

// Name is its name.
func (p *Probe) Name() string { return p.name }

// Ignore discards messages that match from now on: they do not wait, and no expectation
// sees them. A pilot does. nil ignores nothing.
func (p *Probe) Ignore(match func(host.Message) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ignored = match
}

// Pilot answers for a probe, within its turn, before the message waits for the test. It returns the
// pilot of the next message: itself, another, or nil for none.
type Pilot func(ctx *host.Context, m host.Message) Pilot

// Autopilot sets the pilot.
func (p *Probe) Autopilot(f Pilot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pilot = f
}

// probeActor is the probe as its system sees it.
type probeActor Probe

// Receive implements host.Actor.
func (a *probeActor) Receive(ctx *host.Context, m host.Message) error {
	p := (*Probe)(a)
	env, order := p.box.taken()
	if order != nil {
		order(ctx)
		p.k.tell()
		return nil
	}
	p.mu.Lock()
	pilot, ignored := p.pilot, p.ignored
	p.mu.Unlock()
	if pilot != nil {
		next := pilot(ctx, m)
		p.mu.Lock()
		p.pilot = next
		p.mu.Unlock()
	}
	if ignored != nil && ignored(m) {
		return nil
	}
	p.mu.Lock()
	if len(p.queue) >= maxProbe {
		p.mu.Unlock()
		return fmt.Errorf("%d messages wait for the test", maxProbe)
	}
	p.queue = append(p.queue, Received{Message: m.Clone(), At: ctx.Now(), env: env})
	p.mu.Unlock()
	p.k.tell()
	return nil
}

// Decide implements host.Supervisor.
func (a *probeActor) Decide(_ *host.Context, child host.Ref, f *abi.Failure) supervision.Directive {
	if a.decide == nil {
		return 0
	}
	return a.decide(child, f)
}

// do makes the probe do something in a turn of its own, with e as the current message, nil for none.
func (p *Probe) do(e *host.Envelope, what string, f func(ctx *host.Context) error) {
	p.t.Helper()
	var err error
	var mu sync.Mutex
	done := false
	order := func(ctx *host.Context) {
		mu.Lock()
		defer mu.Unlock()
		err, done = f(ctx), true
	}
	if refused := p.box.order(e, order); refused != nil {
		p.t.Fatalf("testkit: the probe %s cannot %s: %v%s", p.name, what, refused, p.k.waits())
	}
	p.k.sys.Wake(p.ref)
	finished := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return done
	}
	if p.k.virtual != nil {
		p.k.Run()
	} else {
		p.k.until(maxWait, finished)
	}
	mu.Lock()
	defer mu.Unlock()
	switch {
	case !done:
		p.t.Fatalf("testkit: the probe %s cannot %s: it does not run%s", p.name, what, p.k.waits())
	case err != nil:
		p.t.Fatalf("testkit: the probe %s cannot %s: %v%s", p.name, what, err, p.k.waits())
	}
}

// Tell sends a message from the probe.
func (p *Probe) Tell(to host.Ref, v any) {
	p.t.Helper()
	p.do(nil, "tell", func(ctx *host.Context) error { return ctx.Tell(to, v) })
}

// Ask sends a question from the probe. Its outcome comes as any other message: the
// answer, an error (abi.KindReplyError), or abi.KindAskTimeout after an hour.
func (p *Probe) Ask(to host.Ref, v any) { p.t.Helper(); p.AskFor(to, v, time.Hour) }

// AskFor is Ask with a timeout.
func (p *Probe) AskFor(to host.Ref, v any, timeout time.Duration) {
	p.t.Helper()
	p.asked++
	n := p.asked
	p.do(nil, "ask", func(ctx *host.Context) error { return ctx.Ask(to, v, n, timeout) })
}

// Sender is the sender of the message that the test has taken last.
func (p *Probe) Sender() host.Ref {
	p.t.Helper()
	return p.taken("a sender").Sender
}

func (p *Probe) taken(what string) *Received {
	p.t.Helper()
	if p.last == nil {
		p.t.Fatalf("testkit: the probe %s has no %s: the test has taken no message%s", p.name, what, p.k.waits())
	}
	return p.last
}

// Reply answers the message that the test has taken last: a question gets an answer, and the
// sender of any other message a message.
func (p *Probe) Reply(v any) {
	p.t.Helper()
	m := p.taken("message to answer")
	if m.env == nil || m.Correlation == 0 {
		p.Tell(m.Sender, v)
		return
	}
	p.do(copyOf(m.env), "answer", func(ctx *host.Context) error { return ctx.Reply(v) })
}

// ReplyError answers the question that the test has taken last with an error.
func (p *Probe) ReplyError(reason string) {
	p.t.Helper()
	m := p.taken("question")
	if m.env == nil {
		p.t.Fatalf("testkit: the probe %s cannot answer %v: nobody has asked", p.name, m)
	}
	p.do(copyOf(m.env), "answer", func(ctx *host.Context) error { return ctx.ReplyError(reason) })
}

// Forward sends on the message that the test has taken last, with its original sender.
func (p *Probe) Forward(to host.Ref) {
	p.t.Helper()
	m := p.taken("message to forward")
	if m.env == nil {
		p.t.Fatalf("testkit: the probe %s cannot forward %v: it is the host's", p.name, m)
	}
	p.do(copyOf(m.env), "forward", func(ctx *host.Context) error { return ctx.Forward(to) })
}

// Watch makes the probe watch an actor, see [Probe.ExpectTerminated].
func (p *Probe) Watch(ref host.Ref) {
	p.t.Helper()
	p.do(nil, "watch", func(ctx *host.Context) error { return ctx.Watch(ref) })
}

// Unwatch ends a watch.
func (p *Probe) Unwatch(ref host.Ref) {
	p.t.Helper()
	p.do(nil, "unwatch", func(ctx *host.Context) error { ctx.Unwatch(ref); return nil })
}

// Waiting are the messages that wait for the test, the oldest first.
func (p *Probe) Waiting() []Received {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.queue)
}
