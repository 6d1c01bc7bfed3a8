// Package shard spreads the keys of a keyed actor over the nodes of a cluster. Each node has an actor for the kind, its region,
// at the same path. A key belongs to a shard, by its hash, and a shard to one region at a time; which one is in a table, a single
// value of the directory that changes by compare-and-set. A region passes a message on to the region that has the shard, and
// that one to the key's actor, which is its child: a keyed actor of package keyed.
//
// At most one actor of a key acts at any time. A shard moves when its owner has ended the actors of its keys and has said so to the
// next owner, or when the directory says that the owner's node is gone, which is after its lease. Shards of a kind with a [Journal], whose
// owners are fenced, are taken from a node before that if two others hear nothing of it. Messages keep their order
// for each sender's region and key: a region sends messages of a shard only with a token that the owner has given it, and the
// owner hands nothing over before all that it has given tokens to have confirmed that they use them no more.
package shard

import (
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// Defaults of a [Config].
const (
	DefaultShards   = 256
	DefaultMoves    = 16
	DefaultPatience = 10 * time.Second
)

// Node is what regions need of a node of the cluster; *cluster.Node is one.
type Node interface {
	Self() cluster.Member
	// Acting reports whether the node may act.
	Acting() bool
	// Gone reports whether a life of a node has ended for certain.
	Gone(number uint16, born uint64) bool
	// Sure reports whether others cannot have taken yet what is fenced, and is here under the count of Passed.
	Sure() (passed uint64, ok bool)
	// Passed is how often others have agreed to take what is fenced from a life of a node.
	Passed(number uint16, born uint64) uint64
	// Members are the nodes that are there.
	Members() []cluster.Member
	// Changes has f called when members come and go.
	Changes(f func()) (stop func())
	// Common is the newest version of the protocol that all nodes understand that are there; 0 if this one does not act.
	Common() uint16
	Directory() cluster.Directory
}

// Config configures the region of a kind on a node. It is immutable, every With method returns a changed copy. All nodes
// must agree on the kind's name and shards.
type Config struct {
	kind     string
	bundle   string // "": of none
	node     Node
	keys     keyed.Config
	shards   int
	role     string
	weight   int
	moves    int
	patience time.Duration
	buffer   int
	bytes    int64
	single   string // the only key; empty: there are many
	journal  Journal
	memory   Memory
	starts   int // of keys that are remembered, in a second
	skip     guard
}

// New configures the region of a kind, whose name is the same on all nodes, on a node. keys says what an actor of a key is.
func New(kind string, node Node, keys keyed.Config) Config {
	return Config{kind: kind, node: node, keys: keys, shards: DefaultShards, weight: 1, moves: DefaultMoves, patience: DefaultPatience,
		buffer: keyed.DefaultBuffer, bytes: keyed.DefaultBytes}
}

// WithBundle says of which bundle the kind is: kinds of one name are others in other bundles. It is an actor's name. Empty, the default: it is
// of none, and the only one of its name in the cluster.
func (c Config) WithBundle(name string) Config { c.bundle = name; return c }

// WithShards sets the number of shards, 1 to MaxShards; the default is DefaultShards. It cannot change while a region of the
// kind lives: messages are refused with ErrShards then.
func (c Config) WithShards(n int) Config { c.shards = n; return c }

// WithRole gives shards only to nodes with the role; the others pass messages on. Empty, the default: to all.
func (c Config) WithRole(role string) Config { c.role = role; return c }

// WithWeight sets this node's share of the shards in proportion to those of others, 1 to MaxWeight; the default is 1.
func (c Config) WithWeight(n int) Config { c.weight = n; return c }

// WithMoves sets how many shards may move at a time, at least 1; the default is DefaultMoves.
func (c Config) WithMoves(n int) Config { c.moves = n; return c }

// WithPatience sets after which time a move is given up whose keys do not come to rest, or, on a node that is drained, they are
// stopped; at least a millisecond. The default is DefaultPatience.
func (c Config) WithPatience(d time.Duration) Config { c.patience = d; return c }

// WithBuffer bounds the messages that wait here while shards move, and their bytes; one shard has a quarter of each at most if
// there are several. A message beyond is refused with ErrBuffer. The defaults are keyed.DefaultBuffer and keyed.DefaultBytes.
func (c Config) WithBuffer(n int, bytes int64) Config { c.buffer, c.bytes = n, bytes; return c }

// WithSingleton makes the kind one actor, which all messages are for, whose name is key; one node has it at a time. It is
// started without a message, and again when it has ended by itself. The kind has one shard then.
func (c Config) WithSingleton(key string) Config { c.single, c.shards = key, 1; return c }

// The errors of messages that are not passed on; a question ends with them.
var (
	// ErrBuffer says that too many messages wait for shards that move. It wraps host.ErrMailboxFull.
	ErrBuffer error = &refusal{text: "shard: too many messages wait for a shard that moves", key: "keyed.buffer", is: host.ErrMailboxFull}
	// ErrShards says that the kind lives with another number of shards.
	ErrShards = errors.New("shard: the kind lives with another number of shards: stop it on all nodes before changing that")
	// ErrBundles says that the kind is of no bundle, and that its name is one of a bundle's kinds, or was.
	ErrBundles = errors.New("shard: the kind is of no bundle, and one of a bundle has its name, or had: give it another name, or say of which bundle it is")
	// ErrOther says that the kind's name is one of another bundle's kinds, and that the two cannot be told apart while nodes of the release before
	// are in the cluster.
	ErrOther = errors.New("shard: another bundle has a kind of this name, and while nodes of the release before are in the cluster there can be one only: replace those, or give this one another name")
	// ErrMoved says that a message came to a region that has the shard no more. It wraps host.ErrRestarting: it may be
	// sent again.
	ErrMoved error = &refusal{text: "shard: the shard has moved while the message was under way", is: host.ErrRestarting}
)

type refusal struct {
	text, key string
	is        error
}

func (r *refusal) Error() string       { return r.text }
func (r *refusal) Unwrap() error       { return r.is }
func (r *refusal) ManifestKey() string { return r.key }

// Check says what is wrong with the configuration, nil if nothing is.
func (c Config) Check() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("shard: "+format, args...)) }
	if c.kind == "" || len(c.kind) > 4*abi.MaxName {
		add("the kind's name has %d bytes, must have from 1 to %d", len(c.kind), 4*abi.MaxName)
	}
	if c.bundle != "" && !abi.ValidName([]byte(c.bundle)) {
		add("%q is no name of a bundle", c.bundle)
	}
	if c.shards < 1 || c.shards > MaxShards {
		add("%d shards, must be from 1 to %d", c.shards, MaxShards)
	}
	if c.weight < 1 || c.weight > MaxWeight {
		add("a weight of %d, must be from 1 to %d", c.weight, MaxWeight)
	}
	if c.moves < 1 || c.patience < time.Millisecond || c.buffer < 1 || c.bytes < 1 {
		add("%d moves, a patience of %v, a buffer of %d messages and %d bytes: all must be positive", c.moves, c.patience, c.buffer, c.bytes)
	}
	if c.memory != nil && (c.starts < 1 || c.starts > MaxStarts || c.single != "") {
		add("%d keys that are remembered start in a second, must be from 1 to %d, and a singleton is there in any case", c.starts, MaxStarts)
	}
	if c.node == nil {
		add("there is no node")
	}
	return errors.Join(append(errs, c.keys.Check())...)
}

// Props are the props of the region, for one actor.
func (c Config) Props() host.Props { return c.props(func(*region) {}) }

func (c Config) props(made func(*region)) host.Props {
	if err := c.Check(); err != nil {
		return host.Behave("shard", func() host.Behaviour { return nil }).WithError(err)
	}
	keys := c.keys
	if c.single != "" {
		key := []byte(c.single)
		keys = keys.WithKey(func(*host.Message) []byte { return key }).WithIdle(10 * 365 * 24 * time.Hour)
	}
	st := &store{peers: map[abi.Ref]bool{}, told: map[int]uint64{}, sent: map[string]bool{}}
	return keys.Around(func(k *keyed.Keeper) host.Behaviour {
		r := newRegion(c, k, st)
		made(r)
		return r
	}, 2*maxHosts)
}

// Key is the directory's key of the table of a kind that is of no bundle, and KeyOf that of one of a bundle. Names are in it as
// [cluster.KeyPart] writes them.
func Key(kind string) string { return "shard." + cluster.KeyPart(kind) }

// KeyOf is the directory's key of the table of a bundle's kind.
func KeyOf(bundle, kind string) string {
	return "shard." + cluster.KeyPart(bundle) + "." + cluster.KeyPart(kind)
}

// key is that of the kind's own table.
func (c *Config) key() string {
	if c.bundle == "" {
		return Key(c.kind)
	}
	return KeyOf(c.bundle, c.kind)
}

// guard is a rule that keeps what is promised. Simulations leave out one at a time, and must notice it.
type guard uint32

// The rules.
const (
	guardToken  guard = 1 << iota // a message counts only with a token that the owner has given
	guardSeals                    // nothing is handed over before all feeders have sealed
	guardEnds                     // nothing is handed over before the keys' actors have ended
	guardBegin                    // the next owner begins after the owner has said so
	guardHand                     // what waits is handed over
	guardEpoch                    // orders count for their epoch only
	guardGiveUp                   // who gives up a move does not hand over unless that is known to have failed
	guardMoving                   // what moves is not moved again
	guardReturn                   // a shard whose new owner is gone before it had it goes back to the old one
	guardBuffer                   // what waits at a feeder is bounded
	guardFailed                   // a key whose actor has failed is remembered
	guardSent                     // a key that ends since its shard moves is remembered
	guardStolen                   // a table that takes a shard from an owner that acts is not followed
	guardKnows                    // a closed table is known as one; the release before does not
	guardClosed                   // a table is closed before there is another one of the bundle
	guardAllNew                   // that happens only if all regions in it understand it
	guardFrom                     // the table of a bundle begins with what the closed one says
	guardWhose                    // regions of other bundles are found
)

func (c *Config) on(g guard) bool { return c.skip&g == 0 }
