package host

import (
	"github.com/wasmactors/wasmactors/host/internal/look"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
)

// lookAt calls read where the actor's own run would, now or later.
func (a *actor) lookAt(read func()) *look.Visit {
	l := look.NewLook(read)
	if a.place.Visit(func() { l.At() }) {
		return l
	}
	if !a.post(nil, sysmail.Msg{Kind: sysmail.Look, Own: sysmail.Own{Look: l}}) {
		l.Gone()
	}
	return l
}
