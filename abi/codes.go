package abi

// Version of the contract. A host serves modules of exactly this version.
const Version = 1

// Module is the name that guests import host functions from.
const Module = "wasmactors"

// Kind says what an envelope is.
type Kind uint8

// The kinds of envelope. See docs/abi.md for what each carries.
const (
	KindMessage        Kind = 0
	KindStart          Kind = 1
	KindReply          Kind = 2
	KindReplyError     Kind = 3
	KindAskTimeout     Kind = 4
	KindTerminated     Kind = 5
	KindTimer          Kind = 6
	KindReceiveTimeout Kind = 7
	KindSpawnFailed    Kind = 8
	KindStop           Kind = 9
	KindPreRestart     Kind = 10
	KindChildFailed    Kind = 11
	KindSave           Kind = 12
	KindRecover        Kind = 13

	maxKind      = KindRecover
	reservedKind = 31 // up to here the numbers are kept for later
)

var kindNames = [...]string{"message", "start", "reply", "reply_error", "ask_timeout", "terminated", "timer",
	"receive_timeout", "spawn_failed", "stop", "pre_restart", "child_failed", "save", "recover"}

// String is the name that wasmactors.cddl uses.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Op says what a command asks for.
type Op uint8

// The operations. OpEnd is not a command but the marker that ends a turn.
const (
	OpSend           Op = 0
	OpForward        Op = 1
	OpAsk            Op = 2
	OpSpawn          Op = 3
	OpStop           Op = 4
	OpWatch          Op = 5
	OpUnwatch        Op = 6
	OpTimer          Op = 7
	OpCancel         Op = 8
	OpReceiveTimeout Op = 9
	OpStash          Op = 10
	OpUnstash        Op = 11
	OpFail           Op = 12
	OpUnhandled      Op = 13
	OpDecide         Op = 14
	OpResetBackoff   Op = 15
	OpCancelAsk      Op = 16
	OpSaved          Op = 17
	OpPersist        Op = 18

	maxOp      = OpPersist
	reservedOp = 31 // up to here the numbers are kept for later

	OpEnd Op = 255
)

var opNames = [...]string{"send", "forward", "ask", "spawn", "stop", "watch", "unwatch", "timer", "cancel",
	"receive_timeout", "stash", "unstash", "fail", "unhandled", "decide", "reset_backoff", "cancel_ask", "saved", "persist"}

// String is the name that wasmactors.cddl uses.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	if o == OpEnd {
		return "end"
	}
	return "unknown"
}

// Flags of a send.
const (
	FlagReply       uint64 = 1 // the envelope is a KindReply
	FlagReplyError  uint64 = 2 // the envelope is a KindReplyError
	FlagNoInfluence uint64 = 4 // it does not reset the receiver's receive timeout

	flagMask = FlagReply | FlagReplyError | FlagNoInfluence
)

// Directives of a decide.
const (
	DirectiveResume   = 1
	DirectiveRestart  = 2
	DirectiveStop     = 3
	DirectiveEscalate = 4
	DirectiveSuspend  = 5
)

// Headers that the host itself writes and reads. A message with HeaderID is kept by the parent
// until it gets a message with HeaderConfirm and the same value. A message with HeaderSuppressed,
// with any value, is a suppressed dead letter if it is not delivered.
const (
	HeaderID         = "wasmactors.id"
	HeaderConfirm    = "wasmactors.confirm"
	HeaderSuppressed = "wasmactors.suppressed"

	// HeaderRouter marks a message for the router itself; its value is the order. HeaderRouterKey
	// is the key of a message for consistent hashing.
	HeaderRouter    = "wasmactors.router"
	HeaderRouterKey = "wasmactors.key"
)

// Headers about asks.
const (
	// HeaderDeadline is when the asker gives up, in decimal, on the scale of Envelope.Time. The host
	// sets it for modules that need FeatureAsks, and removes what others have written there.
	// In the command ask the value DeadlineNone says that the question has no deadline.
	HeaderDeadline = "wasmactors.deadline"
	DeadlineNone   = "none"
	// HeaderFailure marks a message that stands for an answer that has not come, and says why.
	HeaderFailure = "wasmactors.failure"
	// HeaderAttempt is the number of an attempt, from 2, of a question that is asked again.
	HeaderAttempt = "wasmactors.attempt"
	// HeaderIdempotency is the same in all attempts of one question, and differs between
	// questions.
	HeaderIdempotency = "idempotency-key"
)

// Levels of the log import.
const (
	LogDebug = 0
	LogInfo  = 1
	LogWarn  = 2
	LogError = 3
)

// Bounds of what travels. Decoders refuse what exceeds them.
const (
	MaxNesting      = 32      // of generic CBOR
	MaxHeaders      = 16      // entries
	MaxHeaderKey    = 64      // bytes
	MaxHeaderValue  = 1024    // bytes
	MaxPath         = 4096    // bytes
	MaxName         = 255     // bytes
	MaxTypeName     = 128     // bytes
	MaxTypes        = 256     // in a description
	MaxServices     = 64      // in a start payload
	MaxServiceName  = 64      // bytes
	MaxNeeds        = 32      // in a description
	MaxDescription  = 65536   // bytes
	MaxDiagram      = 16384   // bytes
	MaxReason       = 16384   // bytes
	MaxTurnCommands = 65536   // in a turn
	MaxIdentities   = 1024    // in the answer for a path with patterns
	MaxOptions      = 16384   // bytes of encoded spawn options
	MinRing         = 1 << 10 // bytes, inbox and outbox
	MaxRing         = 16 << 20
	ControlSize     = 32 // bytes of the control block
	SeedSize        = 16 // bytes

	MinAskTimeout     = 1_000_000          // ns: 1 ms
	MaxAskTimeout     = 86_400_000_000_000 // ns: 24 h
	MinReceiveTimeout = 1_000_000          // ns: 1 ms
	MaxDuration       = 1<<63 - 1          // ns, of any delay
)
