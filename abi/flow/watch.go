package flow

import (
	"errors"
	"time"
)

// ErrAborted is the failure of an Abort without a reason of its own.
var ErrAborted = errors.New("flow: aborted")

// Switch ends the streams that pass it; see [Killable]. The first call counts. It is for streams of one graph, or of several
// that one goroutine runs.
type Switch struct {
	off   bool
	err   error
	nodes []killable
}

type killable interface{ kill(err error) }

// Shutdown ends the streams: each completes behind its switch, and is cancelled before it.
func (s *Switch) Shutdown() { s.turn(nil) }

// Abort is Shutdown that lets the streams fail; nil is ErrAborted.
func (s *Switch) Abort(err error) {
	if err == nil {
		err = ErrAborted
	}
	s.turn(err)
}

func (s *Switch) turn(err error) {
	if s.off {
		return
	}
	s.off, s.err = true, err
	for _, n := range s.nodes {
		n.kill(err)
	}
	s.nodes = nil
}

// Switch is the graph's own switch, which the runner turns when it is told to.
func (g *Graph) Switch() *Switch { return &g.own }

// Killable passes elements on until the switch ends it; nil is the switch of the graph. A stream that starts behind a
// switch that was used ends at once.
func Killable[T any](src Source[T], s *Switch) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		x := &killing[T]{relay: newRelay[T](g), s: s}
		if s == nil {
			x.s = &g.own
		}
		x.follow(src.open(g), x)
		if x.s.off {
			x.kill(x.s.err)
		} else {
			x.s.nodes = append(x.s.nodes, x)
		}
		return x.out
	}}
}

type killing[T any] struct {
	relay[T]
	s *Switch
}

func (x *killing[T]) kill(err error) {
	x.in.cancel()
	if err != nil {
		x.out.fail(err)
	} else {
		x.out.complete()
	}
}

func (x *killing[T]) gone() {
	for i, n := range x.s.nodes {
		if n == killable(x) {
			x.s.nodes = append(x.s.nodes[:i], x.s.nodes[i+1:]...)
			return
		}
	}
}

func (x *killing[T]) ended()           { x.gone(); x.relay.ended() }
func (x *killing[T]) failed(err error) { x.gone(); x.relay.failed(err) }
func (x *killing[T]) cancelled()       { x.gone(); x.relay.cancelled() }

// ErrCancelled is told to [Watch] when nothing more was wanted.
var ErrCancelled = errors.New("flow: cancelled")

// Seen is what has passed a [Watch].
type Seen struct {
	Elements uint64
	At       time.Time // of the last one
	Over     bool
	Err      error // ErrCancelled, a failure, or nil for the end
}

// Watch notes in seen what passes, and calls end, if it is not nil, when the stream is over there.
func Watch[T any](src Source[T], seen *Seen, end func(error)) Source[T] {
	return Source[T]{func(g *Graph) *link[T] {
		if seen == nil {
			seen = &Seen{}
		}
		x := &watching[T]{relay: newRelay[T](g), seen: seen, end: end}
		x.follow(src.open(g), x)
		return x.out
	}}
}

type watching[T any] struct {
	relay[T]
	seen *Seen
	end  func(error)
}

func (x *watching[T]) over(err error) {
	x.seen.Over, x.seen.Err = true, err
	if x.end != nil {
		x.end(err)
	}
}

func (x *watching[T]) element(v T) {
	x.seen.Elements++
	x.seen.At = x.out.g.now
	x.relay.element(v)
}
func (x *watching[T]) ended()           { x.over(nil); x.relay.ended() }
func (x *watching[T]) failed(err error) { x.over(err); x.relay.failed(err) }
func (x *watching[T]) cancelled()       { x.over(ErrCancelled); x.relay.cancelled() }
