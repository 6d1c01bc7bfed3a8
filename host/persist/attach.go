package persist

import (
	"errors"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/host"
)

// attached is the journal of a system, for the services that ask for it.
var attached = host.NewExtension("persist", func(*host.System) (*atomic.Pointer[Journal], error) {
	return new(atomic.Pointer[Journal]), nil
}, nil)

// Attach says which journal the actors of a system have, for [Of]. It is called once, before services are started; a second
// journal is an error.
func Attach(sys *host.System, j *Journal) error {
	p, err := attached.Get(sys)
	if err == nil && !p.CompareAndSwap(nil, j) && p.Load() != j {
		err = errors.New("persist: the system has a journal")
	}
	return err
}

// Of is the journal that was attached to a system, nil if there is none. Any goroutine may call it.
func Of(sys *host.System) *Journal {
	p, err := attached.Get(sys)
	if err != nil {
		return nil
	}
	return p.Load()
}
