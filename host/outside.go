package host

import "github.com/wasmactors/wasmactors/host/internal/outside"

// What is outside of actors: asks, inboxes, reply handles, pipes. They are in host/internal/outside, which reaches the
// system through kernel.

type (
	// Inbox is a ref and a mailbox for code that is not an actor: it sends under its own ref, receives whatever it is sent,
	// and watches. All methods may be called concurrently:
	//
	//	Ref() Ref
	//	Tell(to Ref, v any) error
	//	Ask(to Ref, v any, correlation uint64) error   // ErrLimit while too many wait
	//	Forget(correlation uint64)                     // gives up an ask
	//	Receive(ctx context.Context) (Message, error)  // ErrTimeout with the error of ctx, or ErrClosed
	//	TryReceive() (Message, bool)
	//	Watch(to Ref)                                  // its end is a Message of KindTerminated
	//	Unwatch(to Ref)
	//	Identify(path string, correlation uint64) int  // how many were asked who they are
	//	Close()
	Inbox = outside.Inbox
	// Pending is an ask that was sent and may be answered. Its methods: Answer (a channel with the outcome of the ask, once;
	// [Message.Err] tells an answer from an error), Cancel (gives up waiting), Abandon (Cancel, and closes the channel unless
	// an answer is there).
	Pending = outside.Pending
	// Reply is an answer that an actor in Go gives later: after its turn, from any goroutine, once. All methods may be called
	// concurrently:
	//
	//	Send(v any) error          // ErrUsed the second time, ErrUnknown if the asker has given up, else as System.Tell
	//	Fail(reason string) error  // answers with an error
	//	Gone() <-chan struct{}     // closed when the asker no longer waits
	//	Context() context.Context  // ends with Gone, with the cause ErrGone; it has the values of Head.Values
	//	Trace(parent context.Context) context.Context  // as Head.Trace, for the turn that has made the handle
	Reply = outside.Reply
	// Pipe sends an actor results that come from outside of actors, as messages: what a goroutine returns, or the answer to
	// an ask. A failure becomes a [Failure]. What the actor does not take becomes a dead letter, and the sender gets an
	// error. It is immutable; all methods may be called concurrently: WithSender, WithIncarnation (to the present one only),
	// WithTimeout, Send, Go (runs a function in a goroutine of its own), Answer (waits for an ask).
	Pipe = outside.Pipe
	// Retry says how a question is asked again. It is immutable; the zero value is that of NewRetry. Its methods:
	// WithAttempts, WithPolicy, WithEach, WithOn, WithOnFunc, WithKey.
	Retry = outside.Retry
	// RetryError is the failure of a question that was asked as often as allowed: the fields are Attempts, and Err of the
	// last one.
	RetryError = outside.RetryError
	// TimeoutError is an ErrTimeout that says what was asked of which actor, and what that actor was doing when the time was
	// over: the fields are Target, Question, Waited, Info, Turn and AtLeast. It also wraps the error of the context, if that
	// has ended. It reveals the state of another actor: it is for Go, and is never sent to guests.
	TimeoutError = outside.TimeoutError
)

// How long an ask waits if its context has no deadline, how many messages an inbox keeps unless it is told otherwise, and
// how often a question is asked: by default, and at most.
const (
	DefaultAskTimeout = outside.DefaultTimeout
	DefaultInbox      = outside.DefaultInbox
	DefaultAttempts   = outside.DefaultAttempts
	MaxAttempts       = outside.MaxAttempts
)

// NewRetry asks up to DefaultAttempts times, after waits of 10 ms to 1 s that double and have full jitter, each
// attempt as long as all of them may take, after the failures of [NotHandled].
func NewRetry() Retry { return Retry{} }

// NotHandled reports whether an ask has failed so that the question was certainly not handled: the
// mailbox was full, or the actor waited for its restart.
func NotHandled(err error) bool { return outside.NotHandled(err) }
