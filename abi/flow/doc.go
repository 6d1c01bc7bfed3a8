// Package flow has streams: sources, stages and sinks, between which elements travel only on demand. Guests and actors in
// Go share it: guest-sdk/flow and host/flow run a [Stream] in an actor, and connect it with others.
//
//	squares := flow.Map(flow.Range(1, 10), func(n int) int { return n * n })
//	stream := flow.To(squares, flow.ForEach(func(n int) error { ... }))
//
// Sources and sinks are values: a stage is a function from one source to another, so stages compose as functions do. A value
// is a blueprint, of which any number of streams can be started. All that is started together is fused: it runs in one
// [Graph], which one goroutine at a time may use, and calls its handlers one after the other. The package has no clock,
// goroutines, locks or reflection; the runner passes time and messages in.
//
// docs/guide/flow.md tells the rest.
package flow
