package flow

import "time"

// Stage is what happens between two links: elements A arrive, elements B leave. Every operator of this package with one
// source is a Stage, and so are those of users. Embed [Plain] for the methods that a stage has no need of.
//
// An error of OnElement goes to the decider; one of another method fails the stream. Handlers must not keep p.
type Stage[A, B any] interface {
	// OnElement handles an element that was pulled. It pushes, emits, or pulls the next one.
	OnElement(p *Pipe[A, B], v A) error
	// OnDemand is called when an element may be pushed, and nothing that was emitted waits.
	OnDemand(p *Pipe[A, B]) error
	// OnEnd is called behind the last element.
	OnEnd(p *Pipe[A, B]) error
	// OnFailure is called instead of OnEnd. Elements that were on the way may be lost.
	OnFailure(p *Pipe[A, B], err error) error
	// OnTimer is called when a timer of [Pipe.After] is due.
	OnTimer(p *Pipe[A, B], key int) error
}

// Starter is a stage with something to do when it starts, and after a restart. It cannot push yet.
type Starter[A, B any] interface{ OnStart(p *Pipe[A, B]) error }

// Closer is a stage that cleans up when it is over: at the end, after a failure, when nothing more is wanted, before a restart.
// It must not push.
type Closer interface{ OnClose() }

// Plain has the usual handlers: demand pulls, the end completes, a failure fails, timers do nothing.
type Plain[A, B any] struct{}

// OnDemand implements Stage.
func (Plain[A, B]) OnDemand(p *Pipe[A, B]) error { p.Pull(); return nil }

// OnEnd implements Stage.
func (Plain[A, B]) OnEnd(p *Pipe[A, B]) error { p.Complete(); return nil }

// OnFailure implements Stage.
func (Plain[A, B]) OnFailure(_ *Pipe[A, B], err error) error { return err }

// OnTimer implements Stage.
func (Plain[A, B]) OnTimer(*Pipe[A, B], int) error { return nil }

// Pipe is the place of a stage in a running graph, for the stage's handlers.
type Pipe[A, B any] struct {
	g      *Graph
	in     *link[A]
	out    *link[B]
	stage  Stage[A, B]
	fresh  func() Stage[A, B]
	decide Decider

	emitted  []B // that wait for demand, from first on
	first    int
	complete bool // behind what was emitted
	over     bool
	timers   map[int]*timer
}

// Via puts a stage behind a source. fresh makes the stage of each stream that is started, and another one at a restart.
func Via[A, B any](src Source[A], fresh func() Stage[A, B]) Source[B] {
	return Source[B]{func(g *Graph) *link[B] {
		p := &Pipe[A, B]{g: g, stage: fresh(), fresh: fresh, decide: g.decide}
		p.out = newLink[B](g, p)
		p.in = src.open(g)
		p.in.in = p
		p.start()
		return p.out
	}}
}

func (p *Pipe[A, B]) start() {
	if s, ok := p.stage.(Starter[A, B]); ok {
		p.check(s.OnStart(p))
	}
}

// Graph is the graph that the stage is a part of.
func (p *Pipe[A, B]) Graph() *Graph { return p.g }

// Now is the time of the present turn.
func (p *Pipe[A, B]) Now() time.Time { return p.g.now }

// Pull asks for the next element. It does nothing if one is asked for already.
func (p *Pipe[A, B]) Pull() { p.in.pull() }

// Wanted reports whether Push is allowed.
func (p *Pipe[A, B]) Wanted() bool { return p.out.wanted() && p.first == len(p.emitted) }

// Ended reports whether no more elements arrive.
func (p *Pipe[A, B]) Ended() bool { return !p.in.open() }

// Push answers the demand; without demand the stream fails with ErrNoDemand.
func (p *Pipe[A, B]) Push(v B) { p.out.push(v) }

// Emit pushes v, now or when there is demand. What is emitted waits in memory, so a stage emits only what an element of its
// own led to.
func (p *Pipe[A, B]) Emit(v B) {
	switch {
	case p.Wanted():
		p.out.push(v)
	case p.out.is&done == 0:
		p.emitted = append(p.emitted, v)
	}
}

// Complete ends the stage, behind what it has emitted, and takes nothing more.
func (p *Pipe[A, B]) Complete() {
	p.in.cancel()
	if p.complete = true; p.first == len(p.emitted) {
		p.finish()
		p.out.complete()
	}
}

// Fail ends the stage with an error at once, and takes nothing more.
func (p *Pipe[A, B]) Fail(err error) {
	p.in.cancel()
	p.emitted, p.first = nil, 0
	p.finish()
	p.out.fail(err)
}

// After calls OnTimer with the key when d has passed. It moves the timer that has this key.
func (p *Pipe[A, B]) After(key int, d time.Duration) {
	t := p.timers[key]
	if t == nil {
		t = newTimer(func() { p.check(p.stage.OnTimer(p, key)) })
		if p.timers == nil {
			p.timers = map[int]*timer{}
		}
		p.timers[key] = t
	}
	p.g.set(t, d)
}

// Cancel cancels the timer that has this key.
func (p *Pipe[A, B]) Cancel(key int) { p.g.unset(p.timers[key]) }

func (p *Pipe[A, B]) finish() {
	if c, ok := p.stage.(Closer); ok && !p.over {
		c.OnClose()
	}
	p.over = true
	for _, t := range p.timers {
		p.g.unset(t)
	}
	p.timers = nil
}

func (p *Pipe[A, B]) check(err error) {
	if err != nil {
		p.Fail(err)
	}
}

// element implements taker.
func (p *Pipe[A, B]) element(v A) {
	if err := p.stage.OnElement(p, v); err != nil {
		p.supervise(err)
	}
}

// supervise decides about an error of OnElement.
func (p *Pipe[A, B]) supervise(err error) {
	switch p.g.directive(p.decide, err) {
	case Restart:
		p.finish()
		p.stage, p.over = p.fresh(), false
		p.emitted, p.first = nil, 0
		p.start()
	case Resume:
	default:
		p.Fail(err)
		return
	}
	if p.Wanted() && p.in.open() {
		p.check(p.stage.OnDemand(p))
	}
}

func (g *Graph) directive(d Decider, err error) Directive {
	if d == nil {
		return Stop
	}
	return d(err)
}

// ended implements taker.
func (p *Pipe[A, B]) ended() { p.check(p.stage.OnEnd(p)) }

// failed implements taker.
func (p *Pipe[A, B]) failed(err error) { p.check(p.stage.OnFailure(p, err)) }

// demand implements giver.
func (p *Pipe[A, B]) demand() {
	if p.first < len(p.emitted) {
		v := p.emitted[p.first]
		var zero B
		p.emitted[p.first] = zero
		if p.first++; p.first == len(p.emitted) {
			p.emitted, p.first = p.emitted[:0], 0
		}
		p.out.push(v)
		if p.complete && p.first == len(p.emitted) {
			p.Complete()
		}
		return
	}
	if err := p.stage.OnDemand(p); err != nil {
		p.Fail(err)
	}
}

// cancelled implements giver.
func (p *Pipe[A, B]) cancelled() {
	p.in.cancel()
	p.emitted, p.first = nil, 0
	p.finish()
}
