// Package stream carries what does not fit into a message between a guest and the outside world:
// the body of a request, a blob, the rows of a query.
//
// A stream is an actor of the host whose ref an actor gets in a message. Asks are
// the flow control: one ask, one part, so a guest that does not ask is not sent anything, and a
// reader outside that does not read is not written to.
//
//	props, body := stream.NewSource(stream.Params{Owner: guest}) // from the world to the guest
//	ref, err := r.Spawn(props)
//	go func() { _, err := io.Copy(body, file); body.CloseWithError(err) }()
//
// The guest asks a [Source] ["read", {"max": n}] and is answered with a byte string,
// or null at the end, or an error; ["close", null] ends it. It asks a [Sink] to take
// ["write", bytes] and is answered with the room that is left in the window;
// ["end", null] is answered with the result of [Sink.Finish], ["abort", text] with null.
//
// An error is "CODE: what is wrong". docs/services/streams.md lists the guarantees.
package stream
