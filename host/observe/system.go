package observe

import (
	"cmp"
	"os"
	"runtime"
	"slices"

	"github.com/wasmactors/wasmactors/host"
)

// System is the system as a whole.
func (o *Observer) System() System {
	t := o.sys.View().Totals()
	s := System{
		Version: Version, Name: o.sys.Name(), Bundle: o.o.bundle, Dir: o.o.dir, PID: os.Getpid(), Started: o.o.started.UTC(), Ready: true,
		Crashes: t.Crashes, Restarts: t.Restarts, DeadLetters: t.DeadLetters, DeadReasons: t.DeadReasons, Held: t.Held, HeldLimit: t.HeldLimit, ActorLimit: t.ActorLimit,
		Goroutines: runtime.NumGoroutine(), Workers: t.Workers, States: map[State]int{}, Types: []Type{}, Codes: []Code{},
	}
	if o.o.codes != nil {
		s.Codes = append(s.Codes, o.o.codes()...)
	}
	o.view(func(v *snapshot) { v.sum(&s) })
	if o.o.services != nil {
		for _, r := range o.o.services() {
			if x, down := r.Outage(); down {
				s.Ready = false
				s.Down = append(s.Down, Outage{x.Service, x.Since.UTC(), line(x.Why)})
			}
		}
	}
	o.store(&s)
	slices.SortFunc(s.Down, func(a, b Outage) int { return cmp.Compare(a.Service, b.Service) })
	select {
	case <-o.sys.Terminated():
		s.Ready, s.Ended = false, "it was asked to end"
	default:
	}
	if err := o.sys.Cause(); err != nil {
		s.Ready, s.Ended = false, line(err.Error())
	}
	return s
}

// sum adds what the actors have come to, those that have ended included.
func (s *snapshot) sum(sys *System) {
	types := map[string]*Type{}
	of := func(name string) *Type {
		x := types[name]
		if x == nil {
			x = &Type{Name: name}
			types[name] = x
		}
		return x
	}
	for name, e := range s.ended {
		x := of(name)
		x.Turns, x.Crashes, x.Restarts, x.Fuel = e.Turns, e.Crashes, e.Restarts, e.Fuel
	}
	sys.Now = s.now.UTC()
	var states [host.StateStopping + 1]int
	var last *Type
	for at := range s.infos {
		i := &s.infos[at]
		if i.Parent.IsZero() {
			if i.State == host.StateStopping || i.Failed {
				sys.Ready = false
			}
			continue
		}
		if topLevel(i) && (i.State == host.StateStarting || ofHost(i) && (i.Failed || i.State == host.StateDelayed)) {
			sys.Ready = false
		}
		if last == nil || last.Name != i.Type {
			last = of(i.Type)
		}
		last.add(i)
		states[i.State]++
		sys.Actors++
		sys.Mailbox += i.Mailbox
		sys.MailboxBytes += i.MailboxBytes
		sys.OldestNS = max(sys.OldestNS, s.oldest[at])
	}
	sys.Asleep = states[host.StateAsleep]
	for state, n := range states {
		if n > 0 {
			sys.States[stateOf(host.ActorState(state))] = n
		}
	}
	for _, x := range types {
		sys.Turns += x.Turns
		sys.Fuel += x.Fuel
		sys.Types = append(sys.Types, *x)
	}
	slices.SortFunc(sys.Types, func(a, b Type) int { return cmp.Compare(a.Name, b.Name) })
}

// topLevel reports whether the actor is a child of /user or /system.
func topLevel(i *host.Info) bool {
	p := i.Parent.Path()
	return p == "/user" || p == "/system"
}

func (t *Type) add(i *host.Info) {
	t.Actors++
	if i.State == host.StateAsleep {
		t.Asleep++
	}
	t.Turns += i.Turns
	t.Crashes += i.Crashes
	t.Restarts += i.Restarts
	t.Fuel += i.Fuel
	t.Mailbox += i.Mailbox
	t.Held += i.Held
}
