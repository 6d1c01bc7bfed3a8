// Package mailbox has the kinds of mailboxes that an actor may choose instead of the usual
// one: what they do when they are full, which message comes next, and which messages they
// have seen before.
//
//	host.Native(newBank).WithMailbox(mailbox.New(mailbox.Priority).WithTypes(map[string]int{"stop": 0}).Make)
//
// All of them are bounded in messages and in bytes. What waits in them is on the actor's
// account. A push never waits; only [host.System.Offer] and
// [host.System.Ask] wait, and only with [Block]. docs/guide/mailboxes.md says what each is
// for, and what its hazards are.
package mailbox

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Defaults and bounds of [Config].
const (
	DefaultPriorityHeader = "priority"
	DefaultControlHeader  = "control"
	DefaultKeyHeader      = "idempotency-key"
	DefaultLevels         = 4
	MaxLevels             = 16
	DefaultOvertake       = 100
	DefaultKeys           = 1000
	MaxKeys               = 1_000_000
	DefaultWait           = 10 * time.Second
	MaxTypes              = 1000 // types with a level of their own
	MaxTypeName           = 128  // longest name of a type that is recognised, in bytes
	MaxWaiters            = 1024 // senders that wait for one mailbox

	// KeyBytes is what a key takes on the actor's account, in bytes, however long it is.
	KeyBytes = 128
)

// Config configures a mailbox. It is immutable: every With method returns a changed
// copy. Begin with [New].
type Config struct {
	kind, full Kind
	header     string
	types      map[string]int
	levels     int
	otherwise  int
	overtake   int
	keys       int
	wait       time.Duration
	own        *own // Custom
}

// own is an embedder's mailbox.
type own struct {
	name string
	make func(host.MailboxLimits) host.Mailbox
}

// Own configures a mailbox that make makes. The name is for people; see bundle.Words for those that a manifest may name.
// Settings of the other kinds have no meaning for it.
func Own(name string, make func(host.MailboxLimits) host.Mailbox) Config {
	c := New(Custom)
	c.own = &own{name, make}
	return c
}

// New configures a mailbox of a kind, with the defaults.
func New(k Kind) Config {
	c := Config{kind: k, otherwise: -1, levels: k.of().levels, wait: DefaultWait, overtake: DefaultOvertake, keys: DefaultKeys}
	if k.setsFull() {
		c.full = k
	}
	return c
}

// Kind is the kind that was given to New.
func (c Config) Kind() Kind { return c.kind }

// Name is what a manifest says of the kind.
func (c Config) Name() string {
	if c.own != nil {
		return c.own.name
	}
	return c.kind.String()
}

// WithFull sets what happens when the mailbox is full: the same as in a mailbox of kind k,
// which is one of Bounded, DropNewest, DropOldest and Block.
func (c Config) WithFull(k Kind) Config { c.full = k; return c }

// WithHeader sets the header from which the level, the mark of a control message or the key is read. A level is a decimal
// number, 0 is the most urgent. A control message has the header, with any value. The default is the kind's; with types
// there is no default.
func (c Config) WithHeader(name string) Config { c.header = name; return c }

// WithTypes sets the levels of messages by their types, for those whose header states none.
// The type of a message is its payload if that is a text, or the first element of an
// array if that is a text. Other messages have no type.
func (c Config) WithTypes(levels map[string]int) Config {
	if c.types = nil; len(levels) > 0 {
		c.types = maps.Clone(levels)
	}
	return c
}

// WithLevels sets the number of levels of [Priority], 2 to MaxLevels.
func (c Config) WithLevels(n int) Config { c.levels = n; return c }

// WithOtherwise sets the level of messages that state none, or none that is valid;
// by default it is the last one, the least urgent.
func (c Config) WithOtherwise(level int) Config { c.otherwise = level; return c }

// WithOvertake sets how many messages in a row may overtake the one that has waited longest; then
// that one is next, so that no message waits endlessly. 0: no limit.
func (c Config) WithOvertake(n int) Config { c.overtake = n; return c }

// WithKeys sets how many keys [Deduplicating] remembers, 1 to MaxKeys; each takes KeyBytes. If the account's limit does not
// allow n keys, it remembers fewer.
func (c Config) WithKeys(n int) Config { c.keys = n; return c }

// WithWait sets how long a sender from Go waits for room at most, by the system's clock.
func (c Config) WithWait(d time.Duration) Config { c.wait = d; return c }

// Waits is how long a sender from Go waits for room at most; 0 if none waits.
func (c Config) Waits() time.Duration {
	if c.full != Block {
		return 0
	}
	return c.wait
}

// Header is the header that is read, "" for none.
func (c Config) Header() string {
	switch {
	case c.header != "":
		return c.header
	case len(c.types) > 0 && c.Takes("types"):
		return ""
	}
	return c.kind.of().header
}

// Takes reports whether a key of a manifest's mailbox has a meaning for this one.
func (c Config) Takes(key string) bool {
	return key == "messages" || key == "bytes" || slices.Contains(c.kind.of().takes, key) || key == "wait" && c.full == Block
}

// IsUsual reports whether the mailbox works as the one that an actor has unless [host.Props.WithMailbox] gives it another:
// the one that can be kept in a store, and that is fastest.
func (c Config) IsUsual() bool { return c.kind == Bounded }

// IsHosted reports whether Make makes a [host.HostedMailbox], which others may wrap to keep events or to apply faults.
// It is false for an embedder's own.
func (c Config) IsHosted() bool { return c.own == nil }

// String describes the mailbox for a person.
func (c Config) String() string {
	if c.own != nil {
		return c.own.name
	}
	text := c.kind.String()
	if name := c.Header(); name != "" {
		text += " by the header " + strconv.Quote(name)
	}
	if len(c.types) > 0 {
		text += fmt.Sprintf(" by %d types", len(c.types))
	}
	if !c.kind.setsFull() {
		text += ", full: " + c.full.String()
	}
	if c.full == Block {
		text += fmt.Sprintf(" (senders in Go wait up to %v)", c.wait)
	}
	return text
}

func (c Config) checkHeader() error {
	if len(c.header) > abi.MaxHeaderKey {
		return fmt.Errorf("a header's name has at most %d bytes", abi.MaxHeaderKey)
	}
	return nil
}

func (c Config) checkTypes() error {
	if len(c.types) > MaxTypes {
		return fmt.Errorf("types: at most %d", MaxTypes)
	}
	for _, name := range slices.Sorted(maps.Keys(c.types)) {
		if level := c.types[name]; level < 0 || level >= c.levels {
			return fmt.Errorf("types: the level of %q must be 0 to %d", name, c.levels-1)
		}
		if len(name) > MaxTypeName {
			return fmt.Errorf("types: a name has at most %d bytes", MaxTypeName)
		}
	}
	return nil
}

// Make makes the mailbox of one actor. Values that Check refuses are replaced by the nearest valid ones.
func (c Config) Make(l host.MailboxLimits) host.Mailbox {
	if c.own != nil {
		return c.own.make(l)
	}
	b := &box{limits: limitsOf(l), full: c.full, wait: c.wait, overtake: max(c.overtake, 0), levels: make([]level, 1)}
	if !c.full.setsFull() {
		b.full = Bounded
	}
	if build := c.kind.of().build; build != nil {
		build(&c, b, c.Header())
	}
	if b.full == Block {
		return waitingBox{b}
	}
	return b
}
