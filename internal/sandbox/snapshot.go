package sandbox

import (
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/slots"
)

// Snapshot is the state of an instance between two turns, as the difference from its image.
// It serves to resume an actor from before a failing turn, and to let an idle actor give its
// instance back. The zero value is ready to be saved to.
type Snapshot struct {
	patch   slots.Patch
	globals []uint64
}

// Bytes is the size of the snapshot in Go's heap.
func (s *Snapshot) Bytes() int { return s.patch.Bytes() + 8*cap(s.globals) }

// Clone is a copy without spare capacity.
func (s *Snapshot) Clone() *Snapshot {
	return &Snapshot{s.patch.Clone(), slices.Clone(s.globals)}
}

// CannotSave says why instances of this image have no snapshots; empty if they do.
func CannotSave(i *Image) string {
	switch {
	case !i.frozen:
		return "the image is not frozen"
	case i.unsaved != "":
		return i.unsaved
	}
	return ""
}

// Save writes the instance's state into s and reuses its buffers. The contents of the rings
// are not part of the state. It fails with ErrNotSaved if the state has parts that cannot be
// saved: an open file, a table that was written to, a failed turn. It takes time in
// proportion to what has changed since the image, not to the size of the memory.
func (x *Instance) Save(s *Snapshot) error {
	if err := x.savable(); err != nil {
		return err
	}
	if err := x.memory.Patch(&s.patch, x.rings()...); err != nil {
		return err
	}
	return x.saveGlobals(s)
}

// savable says why the state cannot be saved now.
func (x *Instance) savable() error {
	switch why := CannotSave(x.image); {
	case why != "":
		return fmt.Errorf("%w: %s", ErrNotSaved, why)
	case x.poisoned:
		return fmt.Errorf("%w: a turn has failed", ErrNotSaved)
	case x.pending > 0:
		return fmt.Errorf("%w: envelopes are waiting in the inbox", ErrNotSaved)
	case x.files != nil && x.files.Open() > 0:
		return fmt.Errorf("%w: the guest has open files", ErrNotSaved)
	case !x.resettable():
		return fmt.Errorf("%w: the guest has written to a table or dropped a segment", ErrNotSaved)
	}
	return nil
}

// rings are the parts of the memory that do not belong to the state.
func (x *Instance) rings() []slots.Span {
	c := &x.control
	return []slots.Span{{At: c.Inbox, End: c.Inbox + c.InboxCap}, {At: c.Outbox, End: c.Outbox + c.OutboxCap}}
}

func (x *Instance) saveGlobals(s *Snapshot) error {
	s.globals = s.globals[:0]
	for g := range x.image.mutable {
		if err := x.call(rewrite.EnterGlobal, uint32(g), 0, 0); err != nil {
			return fmt.Errorf("%w: global %d: %w", ErrNotSaved, g, err)
		}
		s.globals = append(s.globals, x.stack[0])
	}
	return nil
}

// Drain is Save for an instance that is then only Put: it gives back the pages of a large
// memory as it saves them, so that they are not held twice. If it fails with ErrNotSaved, it
// has changed nothing.
func (x *Instance) Drain() (*Snapshot, error) {
	if err := x.savable(); err != nil {
		return nil, err
	}
	var s Snapshot
	if err := x.saveGlobals(&s); err != nil {
		return nil, err
	}
	x.poisoned = true
	p, err := x.memory.Drain(x.rings()...)
	if err != nil {
		return nil, err
	}
	s.patch = *p
	return &s, nil
}

// GetSaved is Get of an instance in the state of s, which must be of this image and
// is used up if that succeeds.
func GetSaved(i *Image, s *Snapshot) (*Instance, error) {
	x, err := Get(i)
	if err != nil {
		return nil, err
	}
	if err := x.patch(s, x.memory.ApplyOnce); err != nil {
		x.Put()
		return nil, err
	}
	return x, nil
}

// Restore brings the instance, whatever its state, to that of s, which must be of
// the same image. After an error the instance can only be Put.
func (x *Instance) Restore(s *Snapshot) error {
	if err := x.Reset(); err != nil {
		return err
	}
	x.poisoned = true // until this has succeeded
	if err := x.patch(s, x.memory.Apply); err != nil {
		return err
	}
	x.poisoned = false
	return nil
}

func (x *Instance) patch(s *Snapshot, apply func(*slots.Patch) error) error {
	if len(s.globals) != x.image.mutable {
		return fmt.Errorf("runtime: %s: the snapshot is of another image", x.image.cfg.Name)
	}
	if now := x.memory.Size(); s.patch.Size() > now {
		x.memory.SetLimit(max(s.patch.Size(), x.image.cfg.MemoryLimit))
		if _, ok := x.module.Memory().Grow(uint32((s.patch.Size() - now) / slots.WasmPage)); !ok {
			return fmt.Errorf("runtime: %s: the memory does not grow to the %d KiB of the snapshot", x.image.cfg.Name, s.patch.Size()>>10)
		}
	}
	if err := apply(&s.patch); err != nil {
		return err
	}
	x.patched()
	for g, v := range s.globals {
		if err := x.call(rewrite.EnterSetGlobal, uint32(g), 0, v); err != nil {
			return fmt.Errorf("runtime: %s: global %d: %w", x.image.cfg.Name, g, err)
		}
	}
	return nil
}
