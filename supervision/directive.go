// Package supervision decides what happens to an actor that has failed.
//
// Everything here is pure: a [Strategy] is an immutable value, a [Child] the
// record that a supervisor keeps of each child, and the caller passes the time
// and the randomness in. Carrying decisions out is the host's business.
// docs/architecture/supervision.md has the rules as tables.
package supervision

import "github.com/wasmactors/wasmactors/abi"

// Directive is what a supervisor decides about a failure.
type Directive uint8

// The directives.
const (
	// Resume goes on with the state from before the failing turn. If the host
	// does not have that state, it restarts and says so.
	Resume Directive = iota + 1
	// Restart goes on with a fresh instance; ref and mailbox stay.
	Restart
	// Stop ends the actor.
	Stop
	// Escalate makes the supervisor itself fail with the same failure.
	Escalate
	// Suspend leaves the actor as it is, failed and with its mailbox, until an operator
	// decides otherwise.
	Suspend
	// Ask lets the supervising actor itself decide, in a turn of its own; if it
	// does not, [DefaultDirective] decides.
	Ask
)

var directiveNames = [...]string{"none", "resume", "restart", "stop", "escalate", "suspend", "ask"}

// String is the name that manifests use.
func (d Directive) String() string {
	if int(d) < len(directiveNames) {
		return directiveNames[d]
	}
	return directiveNames[0]
}

// Directives are all directives, in order.
func Directives() []Directive { return []Directive{Resume, Restart, Stop, Escalate, Suspend, Ask} }

// ParseDirective is the inverse of String.
func ParseDirective(name string) (Directive, bool) {
	for _, d := range Directives() {
		if d.String() == name {
			return d, true
		}
	}
	return 0, false
}

// DefaultDirective is the default decider: what a new instance cannot mend
// stops, bugs of the host escalate, everything else restarts. The
// source is Akka's default (initialisation and kill stop, other exceptions
// restart, other throwables escalate), with the death pact stopping as in later
// versions of Akka.
func DefaultDirective(kind abi.FailureKind) Directive {
	switch kind {
	case abi.FailureInit, abi.FailureKilled, abi.FailureDeathPact:
		return Stop
	case abi.FailureHost:
		return Escalate
	}
	return Restart
}
