// Package keyed is an actor for each key: who sends to a key need not know whether its actor is
// there. The first message starts it, it ends when it has had nothing to do for a while, and what
// comes in between waits for the next one.
//
// [New] is the recipe of the actor that stands for all of them, their keeper. It is Go code
// that hands messages on as they are, in their senders' names; its children have the keys as
// their names, see [Name]. A message is for the key that its path says (/user/users/KEY), else
// the one that [Config] finds in it.
//
// What there is (a function that finds the key of a message, start, passivate, buffer) is what
// a keeper of a part of the keys on each of several machines needs, too.
package keyed

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/supervision"
)

// Defaults and bounds of a [Config].
const (
	DefaultIdle     = 5 * time.Minute
	DefaultMax      = 10_000
	DefaultBuffer   = 1000
	DefaultBytes    = 16 << 20
	DefaultRemember = 1000

	MinIdle     = time.Millisecond
	MaxKeys     = 1_000_000
	MaxRemember = 100_000
)

// The errors that a question ends with which cannot be handed on. It is answered at once.
var (
	// ErrNoKey says that there is no key in the message.
	ErrNoKey = errors.New("keyed: the message has no key")
	// ErrBadKey says that the key cannot be that of an actor: it is empty or too long.
	ErrBadKey = fmt.Errorf("keyed: not a key: it must have 1 byte at least, and as a name %d at most; in a path all but letters, digits, _ . - is written as ~ and two hexadecimal digits", abi.MaxName)
	// ErrFull says that there are as many actors as there may be, and none of them may end.
	ErrFull = errors.New("keyed: there are as many keys as there may be")
	// ErrShare says that the sender has begun as many keys as one sender may.
	ErrShare = errors.New("keyed: the sender has begun as many keys as one may")
	// ErrBuffer says that too many messages wait for actors to start.
	ErrBuffer = errors.New("keyed: too many messages wait")
	// ErrFailed says that the key's actor has failed for good a moment ago.
	ErrFailed = errors.New("keyed: the actor of the key has failed, and is not started again yet")
)

// AtLimit says what becomes of a message for one key more than there may be.
type AtLimit uint8

const (
	// Refuse answers with ErrFull. It is the default.
	Refuse AtLimit = iota
	// Evict ends the actor that was used least recently of those that have nothing to do. If
	// there is none it is Refuse.
	Evict
)

var atLimits = []string{"refuse", "evict"}

// AtLimits are their names in manifests.
func AtLimits() []string { return slices.Clone(atLimits) }

// ParseAtLimit finds one by its name.
func ParseAtLimit(name string) (AtLimit, bool) {
	i := slices.Index(atLimits, name)
	return AtLimit(max(i, 0)), i >= 0
}

// Config is a keeper to be. It is immutable, every With method returns a changed copy.
type Config struct {
	name      string
	worker    host.Props
	key       func(*host.Message) []byte
	header    string
	field     string
	idle      time.Duration
	max       int
	perSender int
	maxBytes  int64
	atLimit   AtLimit
	buffer    int
	bytes     int64
	remember  int
	managers  []string
	strategy  supervision.Strategy
	limits    host.Limits
}

// New is a keeper of actors that worker makes. One that fails is treated as
// [supervision.Default] says, and no other is touched.
func New(worker host.Props) Config {
	return Config{
		name: "keyed", worker: worker, header: HeaderKey, idle: DefaultIdle, max: DefaultMax, buffer: DefaultBuffer, bytes: DefaultBytes,
		remember: DefaultRemember, strategy: supervision.Default(),
	}
}

// WithName sets the type that the keeper is shown with; "keyed" unless it is set.
func (c Config) WithName(name string) Config { c.name = name; return c }

// WithKey sets a function that finds the key of a message; if its result is nil the header and the
// field are looked at. It must keep nothing of the message, and its result is used before it is
// called again. A panic of it is ErrNoKey.
func (c Config) WithKey(key func(*host.Message) []byte) Config { c.key = key; return c }

// WithHeader sets the header with the key; [HeaderKey] unless it is set. Empty: none.
func (c Config) WithHeader(name string) Config { c.header = name; return c }

// WithField sets the key of the map that a message is, whose value (a text, bytes or a whole number)
// is the key where there is no header with it.
func (c Config) WithField(name string) Config { c.field = name; return c }

// WithIdle sets how long after its last turn an actor ends that has nothing to do, see
// [host.System.Rest]; DefaultIdle unless it is set, MinIdle at least.
func (c Config) WithIdle(d time.Duration) Config { c.idle = d; return c }

// WithMax bounds the actors that are there at a time, DefaultMax unless it is set; up to
// MaxKeys.
func (c Config) WithMax(n int) Config { c.max = n; return c }

// WithMaxPerSender bounds the actors that are there because one actor has sent to them first.
// 0 is no bound. Go code has none.
func (c Config) WithMaxPerSender(n int) Config { c.perSender = n; return c }

// WithMaxBytes bounds what the host holds for the keeper and all below it: no actor is started
// that would probably exceed it. 0 is no bound.
func (c Config) WithMaxBytes(n int64) Config { c.maxBytes = n; return c }

// WithAtLimit says what becomes of messages for one key more than there may be.
func (c Config) WithAtLimit(a AtLimit) Config { c.atLimit = a; return c }

// WithBuffer bounds the messages that wait while an actor ends or is about to start, and their
// bytes, for all keys together; one key has a quarter of each at most. DefaultBuffer and
// DefaultBytes unless it is set.
func (c Config) WithBuffer(n int, bytes int64) Config { c.buffer, c.bytes = n, bytes; return c }

// WithRemember sets how many keys are remembered whose actors have ended, the last ones;
// DefaultRemember unless it is set, up to MaxRemember.
func (c Config) WithRemember(n int) Config { c.remember = n; return c }

// WithManagers lets the actors at these paths (as in [host.Capabilities]) manage it, see
// [Header]. Otherwise only its parent may, and Go code that has the system.
func (c Config) WithManagers(paths ...string) Config { c.managers = slices.Clone(paths); return c }

// WithSupervision sets how actors are treated that fail. What stops one for a failure delays its
// next start, from 100 ms to a minute. A strategy that concerns siblings, too, is refused.
func (c Config) WithSupervision(s supervision.Strategy) Config { c.strategy = s; return c }

// WithLimits sets the limits of the keeper itself: its mailbox, and with tree what it and its
// actors use together. Those of asks, stash, children and watches it sets itself.
func (c Config) WithLimits(l host.Limits) Config { c.limits = l; return c }

// Check says what is wrong with it, and nil if nothing is.
func (c Config) Check() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("keyed: "+format, args...)) }
	switch {
	case c.max < 1 || c.max > MaxKeys:
		add("%d keys, from 1 to %d", c.max, MaxKeys)
	case c.perSender < 0 || c.maxBytes < 0:
		add("%d keys a sender and %d bytes, 0 at least", c.perSender, c.maxBytes)
	}
	if c.idle < MinIdle {
		add("idle after %v, %v at least", c.idle, MinIdle)
	}
	if c.buffer < 1 || c.bytes < 1 {
		add("a buffer of %d messages and %d bytes, 1 at least", c.buffer, c.bytes)
	}
	if c.remember < 0 || c.remember > MaxRemember {
		add("%d keys to remember, from 0 to %d", c.remember, MaxRemember)
	}
	if len(c.header) > abi.MaxHeaderKey {
		add("a header's name of %d bytes, at most %d", len(c.header), abi.MaxHeaderKey)
	}
	if c.strategy.Kind() != supervision.OneForOne {
		add("a failure of one key must touch no other: the strategy must be one-for-one")
	}
	return errors.Join(errs...)
}

// asksOpen is how many actors may be asked to end at a time.
const asksOpen = 1000

// Props is the recipe of the keeper. If [Config.Check] finds something wrong with it, its start
// fails, and says so.
func (c Config) Props() host.Props {
	managers := glob.CompilePaths(c.managers)
	l := c.limits
	n := min(max(c.max, 1), MaxKeys)
	l.Children, l.Watches, l.Asks, l.Timers = n+1, n+1, asksOpen, 1
	l.Stash = min(max(c.buffer, 1), 1<<24)
	l.Held = max(l.Held, host.DefaultHeld+max(c.bytes, 0)+int64(n)*256)
	if c.maxBytes > 0 && l.Tree.Memory == 0 {
		l.Tree.Memory = c.maxBytes
	}
	return host.Behave(c.name, func() host.Behaviour {
		return &head{Config: c, managed: managers, past: newPast(c.remember)}
	}).WithLimits(l).WithSupervision(c.strategy).WithKeeping()
}
