package actor

// Behaviors lets an actor change how it handles messages: a stack of functions, of which the top one
// is called. The zero value handles nothing. It is a field of an actor, which calls its
// Receive; after a restart it starts over with the actor.
type Behaviors struct {
	stack []Behavior
}

// Behavior handles messages as Actor.Receive does.
type Behavior = func(ctx *Context, msg *Message) error

// MaxBehaviors bounds the stack; BecomeStacked beyond it panics.
const MaxBehaviors = 1024

// Become replaces the top behavior, from the next message on.
func (b *Behaviors) Become(f Behavior) {
	if n := len(b.stack); n > 0 {
		b.stack[n-1] = f
		return
	}
	b.stack = append(b.stack, f)
}

// BecomeStacked puts a behavior on top of the present one, which Unbecome brings back.
func (b *Behaviors) BecomeStacked(f Behavior) {
	if len(b.stack) == MaxBehaviors {
		panic("actor: BecomeStacked without Unbecome")
	}
	b.stack = append(b.stack, f)
}

// Unbecome goes back to the behavior below. The lowest one stays.
func (b *Behaviors) Unbecome() {
	if n := len(b.stack); n > 1 {
		b.stack[n-1] = nil
		b.stack = b.stack[:n-1]
	}
}

// Receive calls the top behavior with a message.
func (b *Behaviors) Receive(ctx *Context, msg *Message) error {
	if n := len(b.stack); n > 0 {
		return b.stack[n-1](ctx, msg)
	}
	return ErrUnhandled
}
