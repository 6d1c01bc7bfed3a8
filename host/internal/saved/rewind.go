package saved

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// RewindOf is what a guest of an image has to go back; nil: it keeps nothing.
func RewindOf(s *instance.States, image *sandbox.Image) (r *Rewind, err error) {
	if s == nil {
		return nil, nil
	}
	if r = (&Rewind{Why: s.Why}); s.Why != "" {
		return r, nil
	}
	if r.Guest, err = sandbox.AppendSnapshot(nil, image, &s.Snap); err != nil {
		return nil, err
	}
	for _, l := range s.Log {
		r.Log = append(r.Log, Logged{Mail: MailOf(l.Mail), Now: l.Now, Turn: l.Turn, Behind: l.Behind, Unread: l.Unread})
	}
	return r, nil
}

// States is the inverse of RewindOf.
func (r *Rewind) States(image *sandbox.Image) (*instance.States, error) {
	s := &instance.States{Why: r.Why}
	if r.Why != "" {
		return s, nil
	}
	snap, err := sandbox.DecodeSnapshot(image, r.Guest, 0)
	if err != nil {
		return nil, err
	}
	s.Snap = *snap
	for i := range r.Log {
		l := &r.Log[i]
		s.Remember(instance.Logged{Mail: l.Mail.Envelope(), Now: l.Now, Turn: l.Turn, Behind: l.Behind, Unread: l.Unread})
	}
	return s, nil
}

// LoadFamily restores what a supervisor has noted about its children, which are there.
func LoadFamily[C supervisor.Child](s *supervisor.Supervisor[C], children []Child, state *supervisor.State, ref func(C) abi.Ref) error {
	members := map[abi.Ref]*family.Member[C]{}
	for _, m := range s.Family.Members() {
		members[ref(m.Child)] = m
	}
	for i := range children {
		k := &children[i]
		m, ok := members[k.Ref], false
		if m == nil {
			return fmt.Errorf("its child %q is not there", k.Name)
		}
		if m.Record, ok = k.Record.Child(); !ok {
			return fmt.Errorf("what is noted about its child %q cannot be", k.Name)
		}
		m.Orders, m.Suspended = k.Orders, k.Suspended
	}
	if !s.Load(state, func(ref abi.Ref) *family.Member[C] { return members[ref] }) {
		return errors.New("its supervision is about children that are not there")
	}
	return nil
}
