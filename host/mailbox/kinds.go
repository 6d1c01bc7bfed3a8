package mailbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind is the kind of a mailbox.
type Kind uint8

// The kinds. The first four differ in what a full mailbox does, the others in the order or
// the choice of messages; see [Config.WithFull] for both at once.
const (
	// Bounded refuses what does not fit: the sender in Go is told, and the message is a
	// dead letter.
	Bounded Kind = iota
	// DropNewest drops what does not fit. The sender is not told, unless it waits for an answer.
	DropNewest
	// DropOldest drops the messages that have waited longest, so that the new one fits.
	DropOldest
	// Block is Bounded, but a sender from Go may wait for room, see [host.System.Offer].
	Block
	// Priority yields the most urgent message first, and of equally urgent ones the
	// one that has come first.
	Priority
	// ControlAware is Priority with two levels: control messages, and the others.
	ControlAware
	// Deduplicating takes a message with a key only if it remembers no earlier message of the same sender
	// with that key.
	Deduplicating
	// Custom is an embedder's own, see [Own].
	Custom
)

// particulars are all that is particular to a kind. A kind is added by a constant and an entry in [table]; manifests, their
// schema, the checks and the conformance suite find it there.
type particulars struct {
	name string
	// full and order are for the table in docs/guide/mailboxes.md.
	full, order string
	// takes are the keys of a manifest's mailbox that go with the kind, besides messages and bytes.
	takes []string
	// levels are how many there are unless the configuration says otherwise.
	levels int
	// header is read unless the configuration names another one.
	header string
	// check says what is wrong with a configuration of the kind; nil: nothing can be.
	check func(c *Config) error
	// build adds to a box of one level what the kind needs; nil: nothing. The configuration may be one that check refuses,
	// header is the one that is read.
	build func(c *Config, b *box, header string)
}

const inOrder = "first in, first out"

// table has an entry for each kind but Custom.
var table = [...]particulars{
	Bounded: {
		name: "bounded", levels: 1, order: inOrder,
		full: "refuses: a dead letter (`mailbox full`); a sender in Go gets `ErrMailboxFull`",
	},
	DropNewest: {
		name: "drop-newest", levels: 1, order: inOrder,
		full: "drops the message: a dead letter (`dropped`); the sender gets no error",
	},
	DropOldest: {
		name: "drop-oldest", levels: 1, order: inOrder,
		full: "drops the messages that have waited longest",
	},
	Block: {
		name: "block", levels: 1, order: inOrder, takes: []string{"wait"},
		full: "refuses, but `System.Offer` and `System.Ask` wait for room",
	},
	Priority: {
		name: "priority", levels: DefaultLevels, header: DefaultPriorityHeader,
		full: "as `full` says, default as `bounded`", order: "by level, 0 first; within a level first in, first out",
		takes: []string{"full", "header", "types", "levels", "otherwise", "overtake"},
		check: func(c *Config) error {
			if c.levels < 2 || c.levels > MaxLevels {
				return fmt.Errorf("levels must be 2 to %d", MaxLevels)
			}
			return checkLevels(c)
		},
		build: func(c *Config, b *box, header string) { b.rank(c, header, min(max(c.levels, 2), MaxLevels), false) },
	},
	ControlAware: {
		name: "control-aware", levels: 2, header: DefaultControlHeader,
		full: "as `priority`", order: "control messages, then the others",
		takes: []string{"full", "header", "types", "otherwise", "overtake"},
		check: checkLevels,
		build: func(c *Config, b *box, header string) { b.rank(c, header, 2, true) },
	},
	Deduplicating: {
		name: "deduplicating", levels: 1, header: DefaultKeyHeader,
		full: "as `priority`", order: "first in, first out; a message with a key that was seen before is a dead letter (`duplicate`)",
		takes: []string{"full", "header", "keys"},
		check: func(c *Config) error {
			if c.keys < 1 || c.keys > MaxKeys {
				return fmt.Errorf("keys must be 1 to %d", MaxKeys)
			}
			return nil
		},
		build: func(c *Config, b *box, header string) { b.keys = newKeys(min(max(c.keys, 1), MaxKeys), header) },
	},
}

func checkLevels(c *Config) error {
	if c.otherwise >= c.levels {
		return fmt.Errorf("otherwise must be a level from 0 to %d", c.levels-1)
	}
	return nil
}

// rank gives the box levels. If presence is set, a message with the header has level 0 whatever the header says.
func (b *box) rank(c *Config, header string, levels int, presence bool) {
	last := levels - 1
	b.levels = make([]level, levels)
	b.ranker = ranker{header: header, types: c.types, last: last, otherwise: last, presence: presence}
	if c.otherwise >= 0 {
		b.ranker.otherwise = min(c.otherwise, last)
	}
}

// of are the particulars of the kind; empty ones of Custom, and of what is no kind.
func (k Kind) of() *particulars {
	if int(k) < len(table) {
		return &table[k]
	}
	return &particulars{levels: 1}
}

// setsFull reports whether the kind's name says what a full mailbox does.
func (k Kind) setsFull() bool { return k <= Block }

// Kinds are the names of all kinds but Custom.
func Kinds() []string { return namesOf(func(Kind, *particulars) bool { return true }) }

// KindsForFull are the names of the kinds that [Config.WithFull] takes.
func KindsForFull() []string {
	return namesOf(func(k Kind, _ *particulars) bool { return k.setsFull() })
}

// KindsThatTake are the names of the kinds that a key of a manifest's mailbox goes with; of messages and bytes,
// which go with all kinds, there are none.
func KindsThatTake(key string) []string {
	return namesOf(func(_ Kind, e *particulars) bool { return slices.Contains(e.takes, key) })
}

func namesOf(which func(Kind, *particulars) bool) (names []string) {
	for k := range table {
		if which(Kind(k), &table[k]) {
			names = append(names, table[k].name)
		}
	}
	return names
}

// String is the kind's name.
func (k Kind) String() string {
	switch {
	case int(k) < len(table):
		return table[k].name
	case k == Custom:
		return "custom"
	}
	return "unknown"
}

// ParseKind finds a kind by its name.
func ParseKind(name string) (Kind, bool) {
	k := slices.Index(Kinds(), name)
	return Kind(max(k, 0)), k >= 0
}

// Check says what is wrong with the configuration.
func (c Config) Check() error {
	switch {
	case c.own != nil:
		return nil
	case int(c.kind) >= len(table):
		return errors.New("there is no such kind of mailbox")
	case !c.full.setsFull():
		return fmt.Errorf("full: the kind %s does not say what a full mailbox does", c.full)
	case c.kind.setsFull() && c.full != c.kind:
		return fmt.Errorf("full needs %s; %s already states what a full mailbox does", either(KindsThatTake("full")), c.kind)
	}
	if err := c.checkHeader(); err != nil {
		return err
	}
	if check := c.kind.of().check; check != nil {
		if err := check(&c); err != nil {
			return err
		}
	}
	switch {
	case c.overtake < 0:
		return errors.New("overtake must be 0 or more")
	case c.full == Block && c.wait <= 0:
		return errors.New("wait must be more than 0")
	}
	return c.checkTypes()
}

// either lists two or more words.
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
