// Package eventbus delivers events to those that have subscribed to their kind. A bus is made with a
// classification, which defines what a kind is:
//
//   - [Lookup]: a key of each event; whoever has subscribed to that very key gets it.
//   - [Subchannel]: a topic with dots, of a hierarchy; whoever has subscribed to orders gets orders.eu, too.
//   - [Scanning]: a predicate that is asked for each subscription.
//   - [Actors]: the actor that an event is about; subscribers are actors, and ended ones are removed.
//
// It is for the parts of one program, and lives in its process. Guests have topics (host/service/pubsub)
// and the events of the system (host/service/events).
//
// # What all buses promise
//
// All methods are for any goroutine. Publish calls the bus's deliver function for each subscriber, one
// after the other, in the order in which they have subscribed, within the caller's goroutine and without a
// lock: deliver must not wait, and may itself publish, subscribe and unsubscribe. If deliver always publishes
// again, the recursion is endless. The events of one goroutine reach a subscriber in their order.
//
// A subscriber that was there before Publish was called, and stays, gets the event once. One that comes or goes
// meanwhile may get it or not; after Unsubscribe has returned no Publish that is called later delivers to it.
//
// A bus has a bound of subscriptions; beyond it Subscribe fails with [ErrFull]. Nothing else of a bus
// grows: events are not kept.
package eventbus

import "errors"

// DefaultMost is how many subscriptions a bus may have if 0 is given.
const DefaultMost = 100_000

// ErrFull says that the bus has as many subscriptions as it may have.
var ErrFull = errors.New("eventbus: the limit of subscriptions is reached")

func mostOr(most int) int {
	if most <= 0 {
		return DefaultMost
	}
	return most
}
