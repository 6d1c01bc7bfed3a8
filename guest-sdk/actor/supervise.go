package actor

import "github.com/wasmactors/wasmactors/abi"

// Directive is what a supervisor decides about a failure.
type Directive uint8

// The directives. The limits and the backoff of the actor's strategy apply to a
// Restart.
const (
	DefaultDirective Directive = 0 // leave it to the host
	Resume           Directive = abi.DirectiveResume
	Restart          Directive = abi.DirectiveRestart
	StopChild        Directive = abi.DirectiveStop
	Escalate         Directive = abi.DirectiveEscalate
	Suspend          Directive = abi.DirectiveSuspend // until an operator decides
)

// Supervisor is an actor that decides itself on failures of its children for which its strategy says "ask". The child waits
// for the directive.
type Supervisor interface {
	Decide(ctx *Context, child Ref, f *abi.Failure) Directive
}

// PreRestarter is an actor that wants to know when its incarnation ends with a
// restart. What it sends still goes out. It is called only if the instance can still
// run: after an error that it has returned, or for a sibling's failure; not after a
// panic.
type PreRestarter interface {
	PreRestart(ctx *Context, reason string)
}

// Lifetime says after which kinds of end a child is restarted.
type Lifetime string

// The lifetimes.
const (
	Transient Lifetime = "transient" // after failures
	Permanent Lifetime = "permanent" // also after its own stop
	Temporary Lifetime = "temporary" // never
)

// SpawnOptions say how a child is supervised, and where its messages wait. The zero value is what Spawn
// does.
type SpawnOptions struct {
	Lifetime    Lifetime
	Significant bool
	// CrashedMessage says what becomes of a message whose turn fails: "drop",
	// "dead-letter", or how often it is delivered again.
	CrashedMessage string
	// Supervision is how the child treats its own children: a map with the keys of
	// a manifest's supervision, see docs/bundle.md. Without it the child uses its
	// parent's.
	Supervision Encoder
	// Mailbox is the child's mailbox, such as a Mailbox; nil is the usual one. A module
	// that sets it, or Dispatcher, says Need(abi.FeatureMailboxes).
	Mailbox Encoder
	// Dispatcher is how long the child's turns run at a time, such as a Dispatcher; nil means the
	// system's default.
	Dispatcher Encoder
	// Place is on which node of the cluster the child runs, such as OnRole("back"). The zero value is this one. The ref
	// of the spawn stands for the child: messages, asks, watches and stops go to it. What the child itself sends comes from another ref, its
	// own. A host that knows nothing of this makes the spawn fail.
	Place Place
}

// Place is on which node of the cluster a child runs; capabilities.spawn must have TYPE@ROLE. Of the nodes that take the child
// the host chooses one.
type Place struct {
	Role string // that the node has; empty: any
	Node string // the name of the node; empty: any
}

// OnRole is a node with a role.
func OnRole(role string) Place { return Place{Role: role} }

// OnNode is the node of a name.
func OnNode(name string) Place { return Place{Node: name} }

func (o *SpawnOptions) encode(w *abi.Writer) {
	texts := [...]struct{ key, value string }{{"lifetime", string(o.Lifetime)}, {"crashed-message", o.CrashedMessage}}
	maps := [...]struct {
		key   string
		value Encoder
	}{{"supervision", o.Supervision}, {"mailbox", o.Mailbox}, {"dispatcher", o.Dispatcher}}
	n := 1
	if o.Place != (Place{}) {
		n++
	}
	for _, f := range texts {
		if f.value != "" {
			n++
		}
	}
	for _, f := range maps {
		if f.value != nil {
			n++
		}
	}
	w.Map(n)
	w.Text("significant")
	w.Bool(o.Significant)
	for _, f := range texts {
		if f.value != "" {
			w.Text(f.key)
			w.Text(f.value)
		}
	}
	for _, f := range maps {
		if f.value != nil {
			w.Text(f.key)
			f.value.MarshalCBOR(w)
		}
	}
	if o.Place != (Place{}) {
		w.Text("place")
		w.Map(2 - btoi(o.Place.Role == "") - btoi(o.Place.Node == ""))
		for _, f := range [...][2]string{{"role", o.Place.Role}, {"node", o.Place.Node}} {
			if f[1] != "" {
				w.Text(f[0])
				w.Text(f[1])
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SpawnWith is Spawn with options. Options that are wrong make the spawn fail.
func (c *Context) SpawnWith(typ, name string, args Encoder, o SpawnOptions) Ref {
	var w abi.Writer
	o.encode(&w)
	return c.spawn(typ, name, args, w.Bytes())
}

// ResetBackoff makes the supervisor count this actor's failures from the beginning
// again: the next delay before a restart is the first one.
func (c *Context) ResetBackoff() { wrote(abi.AppendResetBackoff(appendix(usualHead))) }

// Confirm tells the parent that a message is done with, by its ID, which the actor keeps if it confirms in a
// later turn. It matters where the parent is a resender, which sends again what was not confirmed;
// elsewhere messages have no ID, and Confirm of "" does nothing. Call it in the turn that completes the
// work: a turn that fails has not confirmed.
func (c *Context) Confirm(id string) {
	if id == "" || c.start.Parent == 0 {
		return
	}
	headers := abi.AppendHeader(nil, abi.HeaderConfirm, id)
	wrote(abi.AppendSend(appendix(usualHead+len(headers)), c.start.Parent, "", 0, 0, headers, []byte{0xf6}))
}

// decide asks the actor about a child.
func decide(m *Message) error {
	s, ok := mem.ctx.current.(Supervisor)
	if !ok {
		return nil
	}
	var f abi.Failure
	if err := abi.DecodeFailure(&f, m.Payload()); err != nil {
		return err
	}
	if d := s.Decide(&mem.ctx, m.sender, &f); d != DefaultDirective {
		wrote(abi.AppendDecide(appendix(usualHead), uint8(d)))
	}
	return nil
}
