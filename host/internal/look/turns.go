package look

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Turns are turns of one actor that ended well, as taps and samples see them before they are carried out.
type Turns struct {
	Actor       ref.Ref
	Incarnation uint64
	First       uint64 // number of the first one in the actor's life
	Now         int64
	Mail        []*mailbox.Envelope // an envelope a turn
	Commands    func(turn int) []abi.Command
	Effects     []turn.Effect // of an actor in Go
}

// Directory finds actors.
type Directory interface {
	// RefOf is the full ref of a living actor. The path of any other is that of receivers that are no actors.
	RefOf(uid abi.Ref) ref.Ref
	// Lives reports whether an actor of this system has the ref.
	Lives(uid abi.Ref) bool
}

// sender is the sender of an envelope, even if it has stopped since.
func sender(d Directory, e *mailbox.Envelope) ref.Ref {
	if e.SenderPath != "" {
		return ref.Of(e.Sender, e.SenderPath)
	}
	return d.RefOf(e.Sender)
}

// kindOf is the kind of message that a guest sends.
func kindOf(cmd *abi.Command) abi.Kind {
	switch {
	case cmd.Flags&abi.FlagReply != 0:
		return abi.KindReply
	case cmd.Flags&abi.FlagReplyError != 0:
		return abi.KindReplyError
	}
	return abi.KindMessage
}
