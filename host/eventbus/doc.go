// Package eventbus delivers events to the subscribers of their kind. A bus is made with a classification, which defines the
// kinds:
//
//   - [Lookup]: a key of each event; subscribers of that key get it.
//   - [Subchannel]: a topic with dots, of a hierarchy; subscribers of orders get orders.eu, too.
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
// A subscriber from before the call of Publish that stays gets the event once. One that subscribes or unsubscribes during
// the call may get it or not. After Unsubscribe has returned no later Publish delivers to it.
//
// A bus has a limit of subscriptions; above it Subscribe fails with [ErrFull]. A bus keeps no events.
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
