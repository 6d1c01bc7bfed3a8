package flow

import (
	"errors"
	"time"
)

// Errors of streams.
var (
	// ErrNoDemand: a stage has pushed an element that nobody had asked for.
	ErrNoDemand = errors.New("flow: an element was pushed without demand")
	// ErrEmpty: a stream has ended without the element that its sink needs.
	ErrEmpty = errors.New("flow: the stream had no element")
	// ErrEnough is no failure: a sink's function returns it when it needs no further elements.
	ErrEnough = errors.New("flow: no more elements are needed")
	// ErrLimit: there is more than the stream was given room for.
	ErrLimit = errors.New("flow: more elements than allowed")
)

// Directive says what happens after an error of a stage.
type Directive uint8

// The directives, numbered as those of supervisors.
const (
	Resume  Directive = iota + 1 // the element is dropped
	Restart                      // the element is dropped, and the stage begins anew
	Stop                         // the stream fails; the default
)

// Decider chooses a directive for an error of a stage. Junctions, sources and ends of stages always fail.
type Decider func(error) Directive

// Graph is a running stream whose stages are fused. It is for one goroutine at a time.
type Graph struct {
	mail   Mail
	now    time.Time
	decide Decider // of what is being built
	own    Switch  // see Killable
	ports  ports
	timers timers

	next    runner   // handled before the ring
	ring    []runner // at is the first of n
	at, n   int
	live    int // links that are open
	err     error
	moved   Moved
	shuffle func(n int) int // chooses the next event, in tests
}

// Moved are the elements that a graph has given to other actors, and taken from them.
type Moved struct{ Given, Taken uint64 }

// Moved is what has moved so far.
func (g *Graph) Moved() Moved { return g.moved }

// runner is something with an event to handle.
type runner interface{ run() }

// Stream is a blueprint without open ends. The zero value ends at once.
type Stream struct{ build func(g *Graph) }

// Together is several streams that run in one graph. It ends when all have ended.
func Together(streams ...Stream) Stream {
	return Stream{func(g *Graph) {
		for _, s := range streams {
			g.add(s)
		}
	}}
}

// SuperviseAll sets the decider of all stages of a stream and of its sinks.
func SuperviseAll(s Stream, d Decider) Stream {
	return Stream{func(g *Graph) { g.deciding(d, func() { g.add(s) }) }}
}

// Supervise sets the decider of the stages that lead to src, except where an inner Supervise sets another one.
func Supervise[T any](src Source[T], d Decider) Source[T] {
	return Source[T]{func(g *Graph) (l *link[T]) {
		g.deciding(d, func() { l = src.open(g) })
		return l
	}}
}

func (g *Graph) deciding(d Decider, build func()) {
	outer := g.decide
	g.decide = d
	build()
	g.decide = outer
}

func (g *Graph) add(s Stream) {
	if s.build != nil {
		s.build(g)
	}
}

// Start makes a graph of the stream; its first events are handled by [Graph.Run]. mail connects it with other actors; nil
// if it is not connected.
func (s Stream) Start(mail Mail, now time.Time) *Graph {
	g := &Graph{mail: mail, now: now}
	g.add(s)
	return g
}

// Run handles events, at most limit, and reports whether there are more. After each call the runner sets its timer to
// [Graph.Next]. now must not go back.
func (g *Graph) Run(now time.Time, limit int) bool {
	g.now = now
	g.timers.ring(now)
	for ; limit > 0; limit-- {
		r := g.next
		g.next = nil
		if r != nil && (limit&63 == 0 || g.shuffle != nil) { // others get their turn
			g.put(r)
			r = nil
		}
		if r == nil {
			if g.n == 0 {
				break
			}
			r = g.take()
		}
		r.run()
	}
	g.ports.flush()
	return g.n > 0 || g.next != nil
}

// Next is when a timer is due; false if there is none.
func (g *Graph) Next() (time.Time, bool) { return g.timers.next() }

// Now is the time of the present call of Run.
func (g *Graph) Now() time.Time { return g.now }

// Mail is what was given to Start.
func (g *Graph) Mail() Mail { return g.mail }

// Over reports whether all parts of the stream have ended, and the first failure of a sink.
func (g *Graph) Over() (over bool, err error) {
	return g.live == 0 && g.n == 0 && g.next == nil, g.err
}

func (g *Graph) failed(err error) {
	if g.err == nil {
		g.err = err
	}
}

// put queues an event. Each link is queued once at most, so the ring never outgrows the graph.
func (g *Graph) put(r runner) {
	if g.n == len(g.ring) {
		larger := make([]runner, max(8, 2*len(g.ring)))
		for i := 0; i < g.n; i++ {
			larger[i] = g.ring[(g.at+i)&(len(g.ring)-1)]
		}
		g.ring, g.at = larger, 0
	}
	g.ring[(g.at+g.n)&(len(g.ring)-1)] = r
	g.n++
}

func (g *Graph) take() runner {
	mask := len(g.ring) - 1
	if g.shuffle != nil {
		i := (g.at + g.shuffle(g.n)) & mask
		g.ring[g.at&mask], g.ring[i] = g.ring[i], g.ring[g.at&mask]
	}
	r := g.ring[g.at&mask]
	g.ring[g.at&mask] = nil
	g.at++
	g.n--
	return r
}
