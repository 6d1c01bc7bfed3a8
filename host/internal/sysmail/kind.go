package sysmail

// Kind is what a system message asks of an actor.
type Kind uint8

const (
	Start        Kind = iota // begin the first incarnation
	Stop                     // stop for good
	Quit                     // stop, as the actor itself asks
	Suspend                  // an ancestor has failed
	Unsuspend                // it goes on
	Resume                   // go on after its own failure
	Restart                  // begin another incarnation
	Begin                    // begin the incarnation that was held back
	RestartDue               // the delay before it has passed
	GraceOver                // a delayed restart has held
	ChildFailed              // a child waits for a decision
	ChildEnded               // a permanent child has stopped itself and waits for one
	ChildHalted              // a child has ended its incarnation and waits for Begin
	ChildBegun               // it has begun the next one
	ChildStopped             // a child has gone
	Decide                   // an operator's decision about a child
	Renew                    // an operator wants a child restarted
	AwaitRenewal             // an operator tells the supervisor to restart it
	Renewed                  // the supervisor has dealt with that
	Pause                    // an operator holds back the actor's messages
	Unpause                  // and lets them in again
	Crash                    // an operator makes it fail
	Look                     // somebody looks at what only the actor knows
	ResetBackoff             // count the failures of a child anew
	Signal                   // what others tell it, see signal.go
	Born                     // an actor that it looks out for was started
	Sleep                    // give the instance back, if nothing is to be done
	Instance                 // there may be an instance again
	Stray                    // it has sent to too many refs that nobody has
)

// Urgent reports whether a message does not wait behind long turns: the life of an actor
// does not.
func (k Kind) Urgent() bool {
	switch k {
	case Signal, Born, Sleep, Look:
		return false
	}
	return true
}
