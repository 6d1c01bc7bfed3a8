// Package service is the framework for guests' access to the outside world. A service is an actor below /system that answers
// requests of actors with a grant.
//
// A service is made with [Define] from its grant, its settings and a [Provider]; a manifest grants it under capabilities and
// configures it under services, a Go program with [Kind.Start] and host.Props.WithGrant. The framework checks grants, limits
// the requests in progress, ends work whose asker has given up, and answers. docs/services has a page for each of our
// services. They use only this public API.
package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Definition is what makes a service: S are its settings, G is what it grants; both are structs
// whose fields have tags, see [ShapeOf], or struct{}.
type Definition[S, G any] struct {
	// Name is the name of the actor below /system, of the grant and of the settings:
	// lower case letters, digits and -, 1 to 32 of them.
	Name string
	// Doc says in a few words what it is for.
	Doc string
	// Bounds are the defaults of its grants.
	Bounds Bounds
	// AtOnce bounds the requests under way of all grants together; 0 is DefaultInAll.
	AtOnce int
	// CheckGrant and CheckSettings say what is wrong beyond single fields; nil: nothing.
	// [At] says which field it is.
	CheckGrant    func(*G) error
	CheckSettings func(*S) error
	// Open makes the provider. It is called once for each system, before any actor of /user is started.
	Open func(*Env, *S) (Provider[G], error)
}

// DefaultInAll is how many requests of all grants may be under way.
const DefaultInAll = 10_000

// Provider does the work of a service. Its methods are called by any goroutine.
type Provider[G any] interface {
	// Serve answers a request, in a goroutine of its own. The answer is encoded as
	// by fxamacker/cbor, [host.Raw] is taken as it is. An error that is no [*Error] is
	// answered as [Internal], and logged. ctx ends with the request: when its time is over,
	// when the asker has ended or does not wait any more, when the service closes. It has the
	// values of host.Config.WithContextValues. A panic is an [Internal] error.
	Serve(ctx context.Context, r *Request[G]) (answer any, err error)
	// Close is called when the system has ended and the last Serve has returned.
	Close(ctx context.Context) error
}

// Inline is a provider that answers some requests at once.
type Inline[G any] interface {
	// ServeNow is called before Serve, within the service's turn: it must not wait. If ok is
	// false, Serve is called.
	ServeNow(r *Request[G]) (answer any, err error, ok bool)
}

// Sequencer is a provider for which the order of requests matters: each Serve has a goroutine
// of its own, so requests overtake each other unless the provider prevents it.
type Sequencer[G any] interface {
	// Accepted is called within the service's turn, in the order in which requests have
	// arrived, before Serve is called with the same request, which always follows. It must not
	// wait.
	Accepted(r *Request[G])
}

// Drainer is a provider that brings work to the system.
type Drainer interface {
	// Drain is called when the system is about to close, before any actor stops: it finishes
	// what is under way and accepts nothing new, until ctx ends.
	Drain(ctx context.Context)
}

// Request is a request of an actor.
type Request[G any] struct {
	Op     string
	Args   []byte   // CBOR; nil stands for none. Not to be changed
	Sender host.Ref // as the host states it
	Grant  *G       // of the sender; not to be changed
	// Effect is the identity of the request if a durable actor has asked; nil if it has none. When the process dies before the answer
	// is in the actor's log, the same request comes again in the next one, from the same sender, with the same Key: at least once. A
	// provider that keeps the key and the answer in the transaction of what it does, and looks for them first, does it once.
	Effect *host.Effect

	frame   *frame[G]
	granted *Granted[G]
	wanted  bool
	begun   time.Time
}

// Wanted reports whether somebody waits for the answer.
func (r *Request[G]) Wanted() bool { return r.wanted }

// GrantID distinguishes the grants of one process: two requests with the same number come from actors
// with the grant of the same actor in the manifest.
func (r *Request[G]) GrantID() uint64 { return r.granted.id }

// Decode reads the arguments into a struct as by fxamacker/cbor, but unknown or repeated keys
// are errors, like everything that does not fit. No arguments are an empty map.
func (r *Request[G]) Decode(v any) error {
	args := r.Args
	if len(args) == 0 || len(args) == 1 && args[0] == 0xf6 {
		args = []byte{0xa0}
	}
	if err := strict.Unmarshal(args, v); err != nil {
		return Errorf(BadRequest, "%s: %s", r.Op, plain(err))
	}
	return nil
}

// Unknown is the error for an operation that does not exist.
func (r *Request[G]) Unknown() error {
	return Errorf(BadRequest, "there is no operation %.40q", r.Op)
}

// Spawn starts an actor below the service's, such as a stream. Any goroutine may call it.
func (r *Request[G]) Spawn(p host.Props) (host.Ref, error) {
	ref, err := r.frame.env.System.SpawnBelow(r.frame.self(), "", p)
	if err != nil {
		return host.Ref{}, Errorf(Busy, "no actor can be started for it: %w", err)
	}
	return ref, nil
}

// Hold takes bytes from the grant's bound for what the request, or what it leaves behind, holds in the
// host. It fails with [Busy]. The caller gives them back, once, with release.
func (r *Request[G]) Hold(bytes int64) (release func(), err error) {
	b := r.granted.budget
	if refused := b.hold(bytes); refused != nil {
		return nil, refused
	}
	return sync.OnceFunc(func() { b.leave(0, bytes) }), nil
}

// strict decodes arguments.
var strict = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		MaxNestedLevels: abi.MaxNesting, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// split splits a request's payload: [op, args].
func split(payload []byte) (op string, args []byte, err *Error) {
	r := abi.NewReader(payload)
	n := r.Array()
	op = r.Text()
	args = r.Raw()
	if n != 2 || r.Done() != nil {
		return "", nil, Errorf(BadRequest, "a request is an array of the name of an operation and its arguments")
	}
	return op, args, nil
}

// Granted is a grant with its bounds, for host.Props.WithGrant: see [Service.Grant].
type Granted[G any] struct {
	id     uint64
	grant  G
	budget *budget
	denied occasional
}

func (g *Granted[G]) String() string { return fmt.Sprintf("grant %d", g.id) }
