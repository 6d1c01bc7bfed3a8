package persist

import "errors"

// Retention says when snapshots are made by themselves, and what goes then. The zero value makes none.
type Retention struct {
	Every uint64            // after so many events; 0: never because of their number
	When  func(*Event) bool // after such an event; nil: never because of one
	Keep  uint64            // so many snapshots are kept, older ones are deleted; 0: all
	Trim  bool              // events that are in the oldest kept snapshot are deleted, too
}

// ErrRecovering is the error of Persist before the recovery has ended: what Apply does must not depend on anything else.
var ErrRecovering = errors.New("persist: during the recovery, and within Apply, nothing can be stored")

// Core is how far an actor's events have come, without the actor.
type Core struct {
	Schema    *Schema
	Retention Retention

	last     uint64
	since    uint64 // events since the last snapshot
	due      bool   // a snapshot
	finished bool
	applying bool
	kept     []uint64 // numbers of snapshots that this incarnation has made or begun with, the newest last
}

// Last is the number of the last event.
func (c *Core) Last() uint64 { return c.last }

// Recovered reports whether the recovery has ended.
func (c *Core) Recovered() bool { return c.finished }

// Check checks events before one of them is stored; their numbers are set. Nothing has changed.
func (c *Core) Check(events ...*Event) error {
	if !c.finished || c.applying {
		return ErrRecovering
	}
	for i, e := range events {
		if err := c.Schema.Check(e); err != nil {
			return err
		}
		e.Number = c.last + uint64(i) + 1
	}
	return nil
}

// Stored notes an event that was checked, and applies it. An error of apply fails the turn: the state is not to be used any
// more.
func (c *Core) Stored(e *Event, apply func(*Event) error) error {
	c.last = e.Number
	c.since++
	if r := &c.Retention; r.Every > 0 && c.since >= r.Every || r.When != nil && r.When(e) {
		c.due = true
	}
	return c.apply(e, apply)
}

func (c *Core) apply(e *Event, apply func(*Event) error) error {
	c.applying = true
	err := apply(e)
	c.applying = false
	if err != nil {
		err = failed(e, err)
	}
	return err
}

// Replay is for an event of the recovery.
func (c *Core) Replay(e *Event, apply func(*Event) error) error {
	c.last = e.Number
	c.since++
	return c.Schema.Upcasted(e, func(e *Event) error { return c.apply(e, apply) })
}

// Restored notes the snapshot that the recovery begins with.
func (c *Core) Restored(s *Snapshot) {
	c.last, c.since, c.kept = s.Number, 0, append(c.kept[:0], s.Number)
}

// Finish ends the recovery. last is the number of the last event ever stored, which the recovery need not have got to.
func (c *Core) Finish(last uint64) { c.last, c.finished = last, true }

// Due reports whether a snapshot is due.
func (c *Core) Due() bool { return c.due }

// Snapshotted notes that a snapshot was made of all events so far, and returns what is deleted because of it: entries
// for the log.
func (c *Core) Snapshotted() (deletes []Entry) {
	c.since, c.due = 0, false
	if n := len(c.kept); n == 0 || c.kept[n-1] != c.last {
		c.kept = append(c.kept, c.last)
	}
	r := &c.Retention
	if r.Keep == 0 || uint64(len(c.kept)) <= r.Keep {
		if r.Keep == 0 {
			c.kept = c.kept[len(c.kept)-1:]
		}
		return nil
	}
	c.kept = append(c.kept[:0], c.kept[uint64(len(c.kept))-r.Keep:]...)
	deletes = append(deletes, Entry{Kind: EntryDeleteSnapshots, To: c.kept[0] - 1})
	if r.Trim {
		deletes = append(deletes, Entry{Kind: EntryDeleteEvents, To: c.kept[0]})
	}
	return deletes
}
