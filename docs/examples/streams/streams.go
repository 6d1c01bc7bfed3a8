// Package streams has an actor in Go that takes a stream of words from a guest: see docs/guide/flow.md.
package streams

import (
	"time"

	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/host"
	hostflow "github.com/wasmactors/wasmactors/host/flow"
)

// Count is how often a word has come.
type Count struct {
	Word string
	N    int
}

// Counter takes words from a splitter, and tells an actor of how many there were of each, every second at most.
func Counter(splitter, to host.Ref) host.Props {
	words := flow.TakeFrom(splitter.UID(), "words", flow.Texts, flow.Window{})
	counts := flow.GroupBy(Changed(words), 1000, func(w string) string { return w }, counted)
	return hostflow.Props(flow.To(flow.GroupedWithin(counts, 100, time.Second), hostflow.Tell[[]Count](to, "over")))
}

// counted counts the elements of one word.
func counted(word string, src flow.Source[string]) flow.Source[Count] {
	n := flow.Scan(src, 0, func(n int, _ string) (int, error) { return n + 1, nil })
	return flow.Map(flow.Drop(n, 1), func(n int) Count { return Count{word, n} })
}

// Changed leaves out elements that are equal to the one before.
func Changed[T comparable](src flow.Source[T]) flow.Source[T] {
	return flow.Via(src, func() flow.Stage[T, T] { return &changed[T]{} })
}

type changed[T comparable] struct {
	flow.Plain[T, T]
	last T
	any  bool
}

// OnElement implements flow.Stage.
func (s *changed[T]) OnElement(p *flow.Pipe[T, T], v T) error {
	if s.any && v == s.last {
		p.Pull()
		return nil
	}
	s.last, s.any = v, true
	p.Push(v)
	return nil
}
