package account

import (
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/view"
)

// Failed is the last failure of an actor, shortened, for whoever asks later. It is on the actor's account. Any goroutine may
// load it.
type Failed struct {
	atomic.Pointer[view.LastFailure]
}

// Note keeps a failure, which shows no secrets, in place of the one before.
func (l *Failed) Note(acc *Account, at time.Time, f *abi.Failure) {
	now := view.Shortened(at, f)
	before := l.Swap(now).Weight()
	if more := now.Weight() - before; more != 0 {
		acc.Note(Base, acc.Of(Base)+more)
	}
}
