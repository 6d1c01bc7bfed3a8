package host

import (
	"context"

	"github.com/wasmactors/wasmactors/host/internal/message"
)

// Messages, and what a value may be wrapped in when it is sent. The comment of each name lists what it has.
type (
	// Message is what an actor in Go receives, or the answer to an ask. The payload is valid until Receive returns;
	// Clone keeps it.
	//
	// It has the fields Kind, Sender, Correlation, Headers (an encoded map of text to text, nil for none) and Payload
	// (CBOR), and the methods:
	//
	//	Decode(v any) error                                  // types by guest-sdk/gen read themselves
	//	DecodeTyped(v any) error                             // an older version is converted; abi.ErrMessageType
	//	Type() (name string, version uint16, ok bool)        // a claim of the sender's
	//	Err() error                                          // why an ask has no answer, nil for an answer
	//	Failure() (reason string, failed bool)               // it stands for a result that has not come
	//	ID() uint64                                          // the number that a Resender has given it
	//	Clone() Message
	Message = message.Message
	// Raw is a payload that is CBOR already.
	Raw = message.Raw
	// Headed is a message with headers: Tell(to, host.Headed{Value: v, Headers: ...}). A mailbox may use them
	// (host/mailbox), and the receiver may read them. There are abi.MaxHeaders at most, of abi.MaxHeaderKey and
	// abi.MaxHeaderValue bytes of UTF-8.
	Headed = message.Headed
	// Marked is a message with marks: Tell(to, host.Marked{Value: v, Marks: host.Suppressed}).
	Marked = message.Marked
	// Mark is a special property of a message; see [Marked].
	Mark = message.Mark
	// OnBehalf is a message that an actor sends on behalf of another: the fields are Value and Of.
	OnBehalf = message.OnBehalf
	// Bound is a question whose ask ends at once if the incarnation that has taken it ends: Request(to,
	// host.Bound{Value: v}). Its ask ends with a *TurnError if that incarnation has failed, else with ErrEnded. Bound
	// affects only questions from Go, and has no effect once a question was forwarded.
	Bound = message.Bound
	// Failure is a message that stands for a result that has not come: Tell(to, host.Failure{Reason: "..."}). It has the
	// header wasmactors.failure, and the reason as its payload, too. The receiver asks Message.Failure. Anybody may send
	// one.
	Failure = message.Failure
	// ReplyError is an error that the asked actor has sent as its answer; its field is Reason.
	ReplyError = message.ReplyError
)

// The marks.
const (
	// NoInfluence: the message does not restart the receiver's receive timeout.
	NoInfluence = message.NoInfluence
	// Suppressed: it does not matter if the message is not delivered. It is neither kept nor
	// counted as a dead letter, and its event is EventSuppressed.
	Suppressed = message.Suppressed
	// Lasting: a question is handled even if the asker has given up. It is for questions that ask
	// for an action, not only for information.
	Lasting = message.Lasting
)

// Encode turns a value into a payload: CBOR is taken as it is ([]byte would be a
// byte string; see [Raw]), types with methods by guest-sdk/gen write themselves, and everything else is
// encoded as by fxamacker/cbor.
func Encode(v any) ([]byte, error) { return message.Encode(v) }

// Traced is a message that belongs to the trace of a Go context: Tell(to,
// host.Traced(ctx, v)). [System.Ask] has a context and does not need it. It may contain a
// [Marked], or be in one. Without [Config.WithTracer] it is v.
func Traced(ctx context.Context, v any) any { return message.Traced(ctx, v) }

// Typed is a message with its type in the header abi.HeaderType, if the value has a method MessageType, as structs with
// //wasmactors:message have; other values are returned as they are.
func Typed(v any) any { return message.Typed(v) }
