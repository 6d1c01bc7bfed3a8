package abi

import "strconv"

// FailureKind says what sort of failure ended a turn.
type FailureKind uint8

// The kinds of failure.
const (
	FailureTrap          FailureKind = 1  // the wasm code trapped
	FailureGuestPanic    FailureKind = 2  // the guest's language panicked
	FailureGuestError    FailureKind = 3  // the turn ended with a fail command, or a native actor returned an error
	FailureFuel          FailureKind = 4  // the turn's fuel was spent
	FailureDeadline      FailureKind = 5  // the turn took longer than it may
	FailureMemoryLimit   FailureKind = 6  // it failed after more memory was refused to it
	FailureStackOverflow FailureKind = 7  // its calls nested too deeply
	FailureABIViolation  FailureKind = 8  // it broke the contract
	FailureExit          FailureKind = 9  // it ended the process
	FailureInit          FailureKind = 10 // the actor could not be started
	FailureKilled        FailureKind = 11 // it was killed from outside
	FailureDeathPact     FailureKind = 12 // it did not handle the end of an actor that it watches
	FailureHost          FailureKind = 13 // a bug of the host's, or resources that it lacks
	FailureNativePanic   FailureKind = 14 // a native actor panicked
	FailureTableLimit    FailureKind = 15 // it needed a larger table than it may have

	maxFailure = FailureTableLimit
)

var failureNames = [...]string{"unknown", "trap", "guest_panic", "guest_error", "fuel", "deadline", "memory_limit",
	"stack_overflow", "abi_violation", "exit", "init", "killed", "death_pact", "host_error", "native_panic", "table_limit"}

// String is the name that manifests and wasmactors.cddl use.
func (k FailureKind) String() string {
	if int(k) < len(failureNames) {
		return failureNames[k]
	}
	return failureNames[0]
}

// FailureKinds are all kinds, in order.
func FailureKinds() []FailureKind {
	kinds := make([]FailureKind, 0, maxFailure)
	for k := FailureTrap; k <= maxFailure; k++ {
		kinds = append(kinds, k)
	}
	return kinds
}

// ParseFailureKind is the inverse of String.
func ParseFailureKind(name string) (FailureKind, bool) {
	for k := FailureTrap; k <= maxFailure; k++ {
		if failureNames[k] == name {
			return k, true
		}
	}
	return 0, false
}

// Failure is why a turn failed, as data that can be decided upon, stored and sent.
type Failure struct {
	Kind       FailureKind
	Reason     string   // short and stable: "integer divide by zero", "exit code 3"
	Message    string   // the panic's text, at most MaxReason bytes; may be empty
	Stack      []string // wasm frames, innermost first, at most MaxFrames
	Turn       uint64   // number of the turn in the actor's life
	Fuel       uint64   // what the turn had spent
	GuestStack string   // the trace that the guest's language printed, at most MaxReason bytes
}

// MaxFrames bounds Failure.Stack.
const MaxFrames = 64

// Error is the failure in one line.
func (f *Failure) Error() string {
	s := f.Kind.String()
	if f.Reason != "" {
		s += ": " + f.Reason
	}
	if f.Message != "" {
		s += ": " + f.Message
	}
	return s
}

// AppendFailure appends the encoding of f.
func AppendFailure(dst []byte, f *Failure) []byte {
	dst = appendHead(dst, majorMap, 7)
	dst = appendHead(appendText(dst, "kind"), majorUint, uint64(f.Kind))
	dst = appendText(appendText(dst, "reason"), f.Reason)
	dst = appendText(appendText(dst, "message"), f.Message)
	dst = appendHead(appendText(dst, "stack"), majorArray, uint64(len(f.Stack)))
	for _, frame := range f.Stack {
		dst = appendText(dst, frame)
	}
	dst = appendHead(appendText(dst, "turn"), majorUint, f.Turn)
	dst = appendHead(appendText(dst, "fuel"), majorUint, f.Fuel)
	return appendText(appendText(dst, "guest_stack"), f.GuestStack)
}

var failureKeys = []string{"kind", "reason", "message", "stack", "turn", "fuel", "guest_stack"}

// DecodeFailure reads exactly one failure. Unknown keys are stepped over, all
// but kind may be absent. The error is an *At.
func DecodeFailure(f *Failure, src []byte) error {
	*f = Failure{}
	r := NewReader(src)
	seen := decodeMap(r, failureKeys, func(key int) {
		switch key {
		case 0:
			at := r.at
			k := r.Uint()
			if r.err == nil && (k == 0 || k > uint64(maxFailure)) {
				r.at, r.err = at, ErrRange
			}
			f.Kind = FailureKind(k)
		case 1:
			f.Reason = boundedText(r)
		case 2:
			f.Message = boundedText(r)
		case 3:
			f.Stack = readStack(r)
		case 4:
			f.Turn = r.Uint()
		case 5:
			f.Fuel = r.Uint()
		case 6:
			f.GuestStack = boundedText(r)
		}
	})
	if seen&1 == 0 {
		r.Fail(ErrMissing)
	}
	return r.Done()
}

func readStack(r *Reader) []string {
	n := r.Array()
	if r.err == nil && n > MaxFrames {
		r.Fail(ErrTooLong)
	}
	var frames []string
	for range n {
		frame := boundedText(r)
		if r.err != nil {
			return nil
		}
		frames = append(frames, frame)
	}
	return frames
}

func boundedText(r *Reader) string {
	s := r.TextBytes()
	if len(s) > MaxReason {
		r.Fail(ErrTooLong)
		return ""
	}
	return string(s)
}

// ExitReason is the reason of a FailureExit. Code 0 is a failure too, so its reason says
// how an actor should end itself.
func ExitReason(code uint32) string {
	if code == 0 {
		return "exit code 0: exiting in a turn is a failure; an actor ends itself with the command stop"
	}
	return "exit code " + strconv.FormatUint(uint64(code), 10)
}
