// Package spawning has what is said of actors that are spawned: the module of a guest, what becomes of a message whose turn fails, and
// the options of a guest's spawn.
package spawning

import (
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/host/queue"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/supervision"
)

// Options are what a guest says about a child that it spawns. Zero fields mean the defaults. P are props, of package host.
type Options[P any] struct {
	Lifetime    supervision.Lifetime
	Significant bool
	Crashed     Crashed
	Supervision *supervision.Strategy // of the child's own children; nil: as its parent's

	Mailbox       func(queue.Limits) queue.Mailbox // nil: the usual one
	MailboxLimits queue.Limits                     // 0: as its parent's, which they must not exceed
	MailboxWait   time.Duration                    // for how long senders from Go may wait for it, at most MaxWait
	Dispatcher    workplace.Dispatcher

	// Held is how many bytes the host keeps of the options as long as the child lives: they are on the
	// child's account.
	Held int64

	Elsewhere *Elsewhere[P] // nil: the child runs here
}

// MaxWait bounds how long the mailbox of a child that a guest has spawned may make senders from
// Go wait.
const MaxWait = 10 * time.Second

// Elsewhere has a child that a guest spawns run on another node. In its place an actor in Go is the guest's child, with
// the name and the ref, and stands for it: see package remote of host/cluster.
type Elsewhere[P any] struct {
	// May reports whether the guest, with what Capabilities.Spawn says, may spawn the type there.
	May func(spawn []string, typ string) bool
	// Props makes the actor that stands for the child. It must not block.
	Props func(Spawning) (P, error)
}

// Spawning is a spawn of a guest whose child runs elsewhere. Args and Options are valid during the call.
type Spawning struct {
	Parent       ref.Ref
	Module       *Module // of the parent, and of the child
	Type         string
	Args         []byte      // CBOR; empty: none
	Options      []byte      // as the guest has written them
	Limits       view.Limits // that children of the guest have here
	Capabilities view.Capabilities
	Supervision  supervision.Strategy // of the guest, for its children
}

// May reports whether a guest with these capabilities may spawn the type, here or elsewhere.
func May[P any](o *Options[P], spawn []string, typ string) bool {
	if o.Elsewhere != nil {
		return o.Elsewhere.May(spawn, typ)
	}
	return glob.MatchAny(spawn, typ)
}

// Within reports an option that gives the child more than its parent has, which has these limits and handles so many messages before
// others run.
func Within[P any](o *Options[P], l *view.Limits, throughput int) error {
	d := o.Dispatcher
	switch {
	case o.MailboxLimits.Messages > l.Mailbox:
		return fmt.Errorf("mailbox.messages: %d, but the parent's own mailbox holds %d, see limits.mailbox", o.MailboxLimits.Messages, l.Mailbox)
	case o.MailboxLimits.Bytes > l.MailboxBytes:
		return fmt.Errorf("mailbox.bytes: %d, but the parent's own mailbox holds %d, see limits.mailbox-bytes", o.MailboxLimits.Bytes, l.MailboxBytes)
	case o.MailboxWait > MaxWait:
		return fmt.Errorf("mailbox.wait: %v, at most %v for the children of guests", o.MailboxWait, MaxWait)
	case d.Throughput() > throughput:
		return fmt.Errorf("dispatcher.throughput: %d, at most %d below this parent", d.Throughput(), throughput)
	}
	return nil
}
