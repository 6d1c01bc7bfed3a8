package window

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Engine is a system as a View sees it. Package host implements it.
type Engine interface {
	// Here is the actor of a ref, nil if it has stopped.
	Here(uid abi.Ref) Actor
	// User is /user.
	User() Actor
	// Each calls f for all actors that are there, and holds no lock that a message needs.
	Each(f func(Actor))
	// Away are the durable actors that have not returned; nil: there are none.
	Away() *dormant.Actors
	// Audience is who looks on.
	Audience() *look.Audience
	// Counts are the totals of the system.
	Counts() *look.Totals
	// AppendInfo appends what all actors are, those of Away included, but for those that a census does not count as living, if there
	// is one. It allocates nothing if there is room.
	AppendInfo(to []view.Info, c *look.Census) []view.Info
	// Figures are what is known without looking at an actor, but for the audience's part.
	Figures() view.Totals
	// Logs is the actor of this system that a guest's instance logs to, nil if it is none of this system.
	Logs(to sandbox.LogSink) Actor
}

// Actor is an actor as a View sees it. Any goroutine may call its methods, Details and Record only within a visit.
type Actor interface {
	// Ref is its handle.
	Ref() ref.Ref
	// Type is the type that its props state.
	Type() string
	// Guardian reports whether it is /user or /system.
	Guardian() bool
	// Stopped reports whether it has stopped.
	Stopped() bool
	// Info is all but the number of its children.
	Info() view.Info
	// Node is its part of a tree, without its children.
	Node() view.Node
	// Below is how many children it has.
	Below() int
	// Children calls f for its children, in the order of their start, until that is false.
	Children(f func(Actor) (more bool))
	// Tally is what it has done, Counted whether a census has met it.
	Tally() *look.Tally
	Counted() *look.Counted
	// Taps are its taps.
	Taps() *look.Taps
	// Held is what is held for it.
	Held() view.Held
	// Engine is what its guest's instances are made by; nil: it is no guest.
	Engine() *sandbox.Engine
	// Bounds fills in what it was made with.
	Bounds(x *view.Inspection)
	// Visit calls read where the actor's own run would, now or later.
	Visit(read func()) *look.Visit
	// Details fills in what only the actor knows, within a visit to it.
	Details(x *view.Inspection)
	// VisitAbove is Visit of its supervisor, whose strategy it fills in; nil: it has none.
	VisitAbove(x *view.Inspection, read func()) *look.Visit
	// Record fills in what its supervisor knows of it, within a visit to that.
	Record(x *view.Inspection)
}
