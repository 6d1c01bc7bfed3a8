package durable

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/host"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Starting is a system whose durable actors are about to come back. Actors that are spawned now begin when they have.
type Starting struct {
	store  *Store
	built  *rebuild.Rebuilt
	left   []record.Record
	gone   []*record.Record // the beginnings of actors below /user that are forgotten
	props  Props
	system *host.System

	released bool
}

// Props are the props of the durable actors below /user, by name. They must have Props.WithDurable.
type Props map[string]host.Props

// Prepare makes a system with the store. It is called once. The config's clock must not be behind what was recorded. The
// system must be closed before the store.
func (s *Store) Prepare(cfg host.Config, props Props) (*Starting, error) {
	x := &Starting{store: s, props: props}
	if err := x.read(); err != nil {
		return nil, err
	}
	built, err := rebuild.Open(cfg.WithStore(s).WithSecret(s.secret).WithEpoch(s.log.Epoch()), func(l *record.Life) (*host.Props, error) {
		_, path, _ := strings.Cut(strings.TrimPrefix(l.Path, ref.Scheme), "/")
		name, top := strings.CutPrefix(path, "user/")
		p, ok := props[name]
		if !top || !ok {
			return nil, fmt.Errorf("the store has the state of /%s, which is no durable actor now: %w", path, ErrForgotten)
		}
		return &p, nil
	})
	if err != nil {
		return nil, err
	}
	x.built, x.system = built, built.System()
	return x, nil
}

// ErrForgotten says that an actor must be made durable again, or its state forgotten (Store.Forget, `wasmactors store forget`).
var ErrForgotten = errors.New("bring it back, or have the store forget it")

// read reads the log.
func (x *Starting) read() error {
	gone := map[string]int{}
	for r, err := range x.store.log.Read(0) {
		if err != nil {
			return err
		}
		v, err := decode(r.Data)
		if err != nil {
			return fmt.Errorf("position %d: %w", r.At, err)
		}
		switch v := v.(type) {
		case *record.Record:
			x.left = append(x.left, *v)
		case *forgotten:
			gone[v.Path] = len(x.left)
		}
	}
	if len(gone) > 0 {
		x.left, x.gone = without(x.left, gone)
	}
	return nil
}

// without leaves out the records of actors, and of all below them, up to a place.
func without(all []record.Record, gone map[string]int) (left []record.Record, begun []*record.Record) {
	refs := map[uint64]int{} // up to which place the actor's records are left out
	for i := range all {
		r := &all[i]
		if r.Kind == record.Began {
			until, ok := gone[r.Life.Path]
			if ok && i < until {
				begun = append(begun, r)
			}
			if !ok {
				until, ok = refs[uint64(r.Life.Parent)]
			}
			if ok && i < until {
				refs[uint64(r.Actor)] = until
			}
		}
		if until, ok := refs[uint64(r.Actor)]; ok && i < until {
			continue
		}
		left = append(left, *r)
	}
	return left, begun
}

// System is the system.
func (x *Starting) System() *host.System { return x.system }

// Recover brings the durable actors back. It returns the names of those that are there again; others can be spawned now.
// After an error the system can only be abandoned.
func (x *Starting) Recover() (back map[string]bool, err error) {
	defer func() { x.left, x.gone = nil, nil }()
	for _, r := range x.gone {
		if err := x.built.Forget(r.Life.Path, r.Actor); err != nil {
			return nil, err
		}
	}
	if err := x.built.Repeat(x.left); err != nil {
		return nil, err
	}
	x.store.mu.Lock()
	x.store.failed = x.fail
	err = x.store.err
	x.store.mu.Unlock()
	back = map[string]bool{}
	for name := range x.props {
		if _, gone := x.system.Lookup("/user/" + name); gone == nil {
			back[name] = true
		}
	}
	return back, err
}

// Release lets the system go on. It is called once.
func (x *Starting) Release() {
	x.released = true
	x.built.Release()
}

// Abandon is for a system that cannot go on: it can be closed afterwards, and nothing of its end is recorded. After Release
// it does nothing.
func (x *Starting) Abandon() {
	if !x.released {
		port.Freeze(x.system)
		x.Release()
	}
}

// fail stops the durable actors: nothing of what they do can be recorded.
func (x *Starting) fail(error) {
	port.Freeze(x.system)
	for name := range x.props {
		if ref, err := x.system.Lookup("/user/" + name); err == nil {
			x.system.Stop(ref)
		}
	}
}

// keyID tells keys apart.
func keyID(key []byte) uint32 {
	sum := sha256.Sum256(append([]byte("wasmactors store key\x00"), key...))
	return max(1, binary.LittleEndian.Uint32(sum[:]))
}
