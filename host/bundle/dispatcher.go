package bundle

import "github.com/wasmactors/wasmactors/host"

var dispatcherShape = object("for how long at a time the actor's turns run",
	optional("throughput", count("messages that it handles before others get their turn, and that it takes at once; default: 16", host.MaxThroughput)),
	optional("deadline", duration("after what time no further message begins before others had their turn; 0: none, the default. With it messages are taken one by one")),
)

// dispatcher reads an actor's dispatcher.
func (c *checker) dispatcher(v view) host.Dispatcher {
	return host.Dispatcher{}.WithThroughput(int(v.count("throughput", 0))).WithDeadline(v.duration("deadline", 0))
}
