package host

// Head is what actors need that stand for others or keep them, as routers, keyed actors, throttles, services and
// behaviours of other packages do: messages passed on whole, what the host has attached to them, children that
// are kept, bytes on the actor's account. It is used as its [Context] is.
type Head struct{ ctx *Context }

// Head gives what only actors need that stand for others.
func (c *Context) Head() Head { return Head{c} }
