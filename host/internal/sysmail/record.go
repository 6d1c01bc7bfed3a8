package sysmail

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/supervision"
)

// recorded are the names of system messages in records; those without a name are not recorded, because nothing of what an
// actor is follows from them.
var recorded = [...]string{
	Start: "start", Stop: "stop", Quit: "quit", Suspend: "suspend", Unsuspend: "unsuspend", Resume: "resume",
	Restart: "restart", Begin: "begin", RestartDue: "restart-due", GraceOver: "grace-over", ChildFailed: "child-failed",
	ChildEnded: "child-ended", ChildHalted: "child-halted", ChildBegun: "child-begun", ChildStopped: "child-stopped",
	Decide: "decide", Renew: "renew", AwaitRenewal: "await-renewal", Renewed: "renewed", Pause: "pause",
	Unpause: "unpause", Crash: "crash", ResetBackoff: "reset-backoff", Born: "born", Stray: "stray",
}

// Recorded is a system message as it is recorded; false if it is not. uid is the ref of a child.
func Recorded(m *Msg, uid func(child any) abi.Ref) (s record.Signal, ok bool) {
	if m.Kind == Signal {
		x := m.Signal
		return record.Signal{What: x.Kind.String(), From: x.From, Other: x.Other, Correlation: x.Correlation, Reason: x.Text()}, true
	}
	if int(m.Kind) >= len(recorded) || recorded[m.Kind] == "" {
		return s, false
	}
	s = record.Signal{
		What: recorded[m.Kind], From: m.Ref, How: uint16(m.How), Directive: uint8(m.Directive), Delay: int64(m.Delay), Reason: m.Reason, Failure: m.Failure,
	}
	switch {
	case m.Child != nil:
		s.From = uid(m.Child)
	case m.Born != nil:
		s.From = m.Born.Ref
	}
	return s, true
}

// signalKinds finds a kind by its name.
var signalKinds = func() map[string]signal.Kind {
	m := map[string]signal.Kind{}
	for k := signal.Watch; k.String() != ""; k++ {
		m[k.String()] = k
	}
	return m
}()

// FromOutside is the inverse of Recorded, for what comes from outside: an operator, an alarm, an actor that is not
// rebuilt. It is nil for what cannot come from there. What an alarm was set for is not known.
func FromOutside(s *record.Signal) *Msg {
	if k, ok := signalKinds[s.What]; ok && s.What != "stop" {
		return &Msg{Kind: Signal, Signal: &signal.Signal{Kind: k, From: s.From, Other: s.Other, Correlation: s.Correlation, Reason: s.Reason}}
	}
	m := &Msg{Kind: Look, Kin: Kin{
		How: How(s.How), Directive: supervision.Directive(s.Directive), Ref: s.From, Failure: s.Failure, Reason: s.Reason, Delay: time.Duration(s.Delay),
	}}
	for k, name := range recorded {
		if name == s.What {
			m.Kind = Kind(k)
		}
	}
	switch m.Kind {
	case Stop, Crash, Pause, Unpause, Decide, ResetBackoff, AwaitRenewal, Renew, Stray, RestartDue, GraceOver:
		return m
	}
	return nil
}
