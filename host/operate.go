package host

import (
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/operate"
)

// Operator is what somebody who runs a system can do to its actors, beside what programs do with them: hold them
// back, restart them, renew their code, make them fail, decide for their supervisor, and deliver dead letters again. All
// methods may be called concurrently; each is carried out by the actor or its supervisor, after the turn that runs. Package
// operate describes it.
type Operator = operate.Operator[Props, *Module]

// Operate is for operators: what an operator can do.
func (s *System) Operate() Operator { return operate.Of[Props, *Module]((*desk)(s)) }

// desk is a system as its operators see it: an operate.Engine.
type desk System

func (s *desk) here(of abi.Ref) *actor { return (*System)(s).here(of) }

// Here implements operate.Engine.
func (s *desk) Here(of abi.Ref) bool { return s.here(of) != nil }

// Child implements operate.Engine.
func (s *desk) Child(of abi.Ref) bool { a := s.here(of); return a != nil && a.parent != nil }

// Order implements operate.Engine.
func (s *desk) Order(of abi.Ref, m sysmail.Msg) error {
	if a := s.here(of); a == nil || !a.post(nil, m) {
		return ErrUnknown
	}
	return nil
}

// OrderAbove implements operate.Engine.
func (s *desk) OrderAbove(of abi.Ref, m sysmail.Msg) error {
	if a := s.here(of); a == nil || a.parent == nil || !a.parent.post(nil, m) {
		return ErrUnknown
	}
	return nil
}

// Control implements operate.Engine.
func (s *desk) Control(of abi.Ref, flag uint16) error { return (*System)(s).control(of, flag) }

// Restart implements operate.Engine.
func (s *desk) Restart(of abi.Ref, why *abi.Failure) error {
	if a := s.here(of); a == nil || a.parent == nil || !a.renew(why, nil) {
		return ErrUnknown
	}
	return nil
}

// Renew implements operate.Engine.
func (s *desk) Renew(of abi.Ref, p *Props) error {
	a := s.here(of)
	switch {
	case a == nil || a.parent == nil:
		return ErrUnknown
	case !alike(a.props, p):
		return fmt.Errorf("%w: %s is a %s of its module, and the new props are not for that type", ErrBadProps, a.path, a.props.typ)
	}
	if err := p.usable(); err != nil {
		return err
	}
	if !a.renew(renewedByHand, &renewal{p}) {
		return ErrUnknown
	}
	return nil
}

// RenewModule implements operate.Engine.
func (s *desk) RenewModule(m *Module, but []Ref) (told []Ref) {
	for _, a := range actorsOf((*System)(s), m) {
		if !a.covered(m, but) && renewCode(a) {
			told = append(told, a.ref())
		}
	}
	return told
}

// Letters implements operate.Engine.
func (s *desk) Letters() *look.Letters { return &s.audience.Letters }

// Take implements operate.Engine.
func (s *desk) Take(of abi.Ref, e *Envelope) (to Ref, there bool, err error) {
	a := s.here(of)
	if a == nil {
		return Ref{}, false, nil
	}
	_, err = a.accept(nil, e, 0)
	return a.ref(), true, err
}

// Now implements operate.Engine; see findDoor.
func (s *desk) Now(l *DeadLetter) (to abi.Ref, name string) {
	at, ok := (*System)(s).parsePath(l.Path)
	if !ok {
		return 0, ""
	}
	a, name := (*System)(s).findDoor(at.Elements)
	if a == nil || name != "" && !abi.ValidName([]byte(name)) {
		return 0, ""
	}
	return a.uid, name
}
