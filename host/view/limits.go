package view

import (
	"time"
)

// Limits bound what one actor may use. Zero fields mean the defaults.
type Limits struct {
	Mailbox      int           // messages waiting; default 10,000
	MailboxBytes int64         // their bytes; default 16 MiB
	Fuel         uint64        // a turn; default 1,000,000,000, about a second
	Deadline     time.Duration // a turn; default none
	Memory       uint64        // bytes; default the image's limit
	Outbox       uint64        // bytes of commands a turn; default 4 MiB
	Message      int64         // bytes of a message that it is sent, its headers included; default 1 MiB for guests, any size for others
	Children     int           // default 1,000
	Timers       int           // pending; default 1,000
	Watches      int           // default 10,000
	Asks         int           // pending; default 1,000
	Stash        int           // messages; default 1,000
	Replies      int           // handles of Context.Later that were not used; default 1,000
	Held         int64         // bytes that the host holds for it besides a guest's memory; default 64 MiB
	Durable      int64         // bytes of a durable actor's state in a checkpoint, before they are compressed; default none
	Tree         TreeLimits    // of it and all below it; default none, see Config.WithMemory
}

// TreeLimits bound an actor and all actors below it together. Zero fields are no bound.
type TreeLimits struct {
	Actors int
	Memory int64 // bytes that the host holds for them, guests' memories included
}

// Defaults of [Limits].
const (
	DefaultMailbox      = 10_000
	DefaultMailboxBytes = 16 << 20
	DefaultFuel         = 1_000_000_000
	DefaultOutbox       = 4 << 20
	DefaultMessage      = 1 << 20
	DefaultChildren     = 1000
	DefaultTimers       = 1000
	DefaultWatches      = 10_000
	DefaultAsks         = 1000
	DefaultStash        = 1000
	DefaultReplies      = 1000
	DefaultHeld         = 64 << 20
)

// SetDefaults sets what is zero to its default.
func (l *Limits) SetDefaults() {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&l.Mailbox, DefaultMailbox)
	set(&l.Children, DefaultChildren)
	set(&l.Timers, DefaultTimers)
	set(&l.Watches, DefaultWatches)
	set(&l.Asks, DefaultAsks)
	set(&l.Stash, DefaultStash)
	set(&l.Replies, DefaultReplies)
	if l.Held <= 0 {
		l.Held = DefaultHeld
	}
	if l.MailboxBytes <= 0 {
		l.MailboxBytes = DefaultMailboxBytes
	}
	if l.Fuel == 0 {
		l.Fuel = DefaultFuel
	}
	if l.Outbox == 0 {
		l.Outbox = DefaultOutbox
	}
}

// Capabilities are what a guest may do in addition to answering and sending to actors whose refs it has. The zero value
// allows nothing.
type Capabilities struct {
	// Send lists the paths that it may send to, watch or ask by path: globs for each
	// element ("*" any run of characters, "?" one), "**" at the end for everything
	// below. Its own children ("./name") need no capability.
	Send []string
	// Spawn lists the types of its own module that it may spawn, "*" for all.
	Spawn []string
	// Stop lists the paths, as in Send, of actors that it may stop, in addition to itself and its children.
	Stop []string
}

// ForChildren is the limits for children that a guest spawns itself, without those of its
// tree, which already bound all of them together.
func (l Limits) ForChildren() Limits {
	l.Tree = TreeLimits{}
	return l
}
