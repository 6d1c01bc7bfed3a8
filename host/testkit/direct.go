package testkit

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// direct are messages whose failures are left to the test, not to the supervisor.
type direct struct {
	mu     sync.Mutex
	failed *abi.Failure
}

// guardian wraps a strategy so that it ignores those failures.
func (d *direct) guardian(s supervision.Strategy) supervision.Strategy {
	decide := s.Decide
	return s.WithRules().WithDecider(func(typ string, f *abi.Failure) supervision.Directive {
		d.mu.Lock()
		ours := d.failed == f
		d.mu.Unlock()
		if ours {
			return supervision.Resume
		}
		return decide(typ, f)
	})
}

// Receive makes an actor that the test has started with [Kit.Spawn] handle a message at once, bypassing
// its supervisor: if the turn fails, the failure is returned, nothing is counted, and the actor goes on as it was before the
// turn. (An actor in Go that has panicked is made again; one that has returned an error keeps what it has
// changed.) answer is what the actor has answered within its turn, else the zero value. Virtual time does not pass.
func (k *Kit) Receive(ref host.Ref, v any) (answer host.Message, err error) {
	k.t.Helper()
	if k.virtual == nil {
		k.t.Fatal("testkit: Receive is for virtual time")
	}
	if info, known := k.sys.View().Info(ref); known != nil || info.Parent.Path() != "/user" {
		k.t.Fatalf("testkit: Receive: %v was not started by the test%s", ref, k.waits())
	}
	k.Run() // messages that wait come first, with the supervisor in charge
	var failure *abi.Failure
	stop, err := k.sys.View().Tap(ref, 0, func(t *host.Tapped) {
		if t.Failure != nil && failure == nil {
			k.direct.mu.Lock()
			failure, k.direct.failed = t.Failure, t.Failure
			k.direct.mu.Unlock()
		}
	}, nil)
	if err != nil {
		k.t.Fatalf("testkit: Receive: %v: %v", ref, err)
	}
	defer stop()
	p, err := k.sys.Request(ref, v)
	if err != nil {
		return host.Message{}, err
	}
	k.Run()
	if failure != nil {
		p.Cancel()
		return host.Message{}, failure
	}
	select {
	case answer = <-p.Answer():
	default:
		p.Cancel()
	}
	return answer, nil
}

// Underlying makes props of an actor in Go whose present incarnation the test can look at: now
// returns what the factory has made last, the zero value before that.
func Underlying[T host.Actor](factory func() T) (p host.Props, now func() T) {
	var mu sync.Mutex
	var last T
	p = host.Native(func() host.Actor {
		mu.Lock()
		defer mu.Unlock()
		last = factory()
		return last
	})
	return p, func() T {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}
