// Package keyed is an actor for each key. Senders need not know whether a key's actor is running: the first message starts
// it. An actor that has been idle for a while is passivated (stopped). Messages that come while it stops wait for the next
// one.
//
// [New] configures their parent, the keeper. It is Go code that forwards messages unchanged, with their senders. Its
// children have the keys as their names, see [Name]. A message is for the key in its path (/user/users/KEY), or else for the
// key that [Config] finds in it.
//
// Finding the key of a message, starting, passivating and buffering would work in the same way for keepers on several
// machines, each with a part of the keys.
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

// The errors of messages that are not forwarded. A question ends with them at once, and the message becomes a dead letter. A
// message without a key is unhandled.
var (
	// ErrNoKey says that there is no key in the message.
	ErrNoKey = errors.New("keyed: the message has no key")
	// ErrBadKey says that no actor can have the key: it is empty or too long.
	ErrBadKey error = &refusal{
		text: fmt.Sprintf("keyed: not a key: it must have 1 byte at least, and as a name %d at most; in a path all but letters, digits, _ . - is written as ~ and two hexadecimal digits", abi.MaxName),
		is:   host.ErrBadName,
	}
	// ErrFull says that the bound of actors is reached, and none of them may end. It wraps
	// host.ErrLimit.
	ErrFull error = &refusal{text: "keyed: the limit of keys is reached", key: "keyed.max", is: host.ErrLimit}
	// ErrShare says that the sender has begun as many keys as one sender may begin. It wraps
	// host.ErrLimit.
	ErrShare error = &refusal{text: "keyed: the sender's limit of keys is reached", key: "keyed.max-per-sender", is: host.ErrLimit}
	// ErrBuffer says that too many messages wait for actors to start. It wraps
	// host.ErrMailboxFull.
	ErrBuffer error = &refusal{text: "keyed: too many messages wait", key: "keyed.buffer", is: host.ErrMailboxFull}
	// ErrFailed says that the key's actor was stopped for a failure a moment ago. It wraps
	// host.ErrRestarting.
	ErrFailed error = &refusal{text: "keyed: the actor of the key has failed, and is not started again yet", is: host.ErrRestarting}

	errBytes = &refusal{text: ErrFull.Error(), key: "keyed.max-bytes", is: ErrFull}
)

// refusal is why a message is not passed on.
type refusal struct {
	text, key string // the manifest's key for the bound that was met
	is        error
}

func (r *refusal) Error() string       { return r.text }
func (r *refusal) Unwrap() error       { return r.is }
func (r *refusal) ManifestKey() string { return r.key }

// AtLimit says what happens to a message for a new key when the bound of actors is reached.
type AtLimit uint8

const (
	// Refuse answers with ErrFull. It is the default.
	Refuse AtLimit = iota
	// Evict ends the idle actor that was used least recently. If
	// there is none it is Refuse.
	Evict
)

var atLimits = []string{"refuse", "evict"}

// AtLimits are their names in manifests.
func AtLimits() []string { return slices.Clone(atLimits) }

// ParseAtLimit finds an AtLimit by its name.
func ParseAtLimit(name string) (AtLimit, bool) {
	i := slices.Index(atLimits, name)
	return AtLimit(max(i, 0)), i >= 0
}

// Config configures a keeper. It is immutable, every With method returns a changed copy.
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

// New configures a keeper of actors made by worker. A failed one is treated as
// [supervision.Default] says, without effect on the others.
func New(worker host.Props) Config {
	return Config{
		name: "keyed", worker: worker, header: HeaderKey, idle: DefaultIdle, max: DefaultMax, buffer: DefaultBuffer, bytes: DefaultBytes,
		remember: DefaultRemember, strategy: supervision.Default(),
	}
}

// WithName sets the type of the keeper as it is shown; the default is "keyed".
func (c Config) WithName(name string) Config { c.name = name; return c }

// WithKey sets a function that finds the key of a message; if it returns nil the header and the
// field are tried. It must retain nothing of the message, and its result is used before it is
// called again. If it panics the error is ErrNoKey.
func (c Config) WithKey(key func(*host.Message) []byte) Config { c.key = key; return c }

// WithHeader sets the header with the key; the default is [HeaderKey]. Empty: none.
func (c Config) WithHeader(name string) Config { c.header = name; return c }

// WithField sets the field of messages that are maps: its value (a text, bytes or a whole number)
// is the key if no header has it.
func (c Config) WithField(name string) Config { c.field = name; return c }

// WithIdle sets how long after its last turn an idle actor ends, see
// [host.System.Rest]; the default is DefaultIdle, the least MinIdle.
func (c Config) WithIdle(d time.Duration) Config { c.idle = d; return c }

// WithMax bounds the number of actors; the default is DefaultMax, the most
// MaxKeys.
func (c Config) WithMax(n int) Config { c.max = n; return c }

// WithMaxPerSender bounds the living actors that one actor has begun by sending to them first,
// together with the keys that wait for a place because of it. 0 is no bound. Go code has none.
func (c Config) WithMaxPerSender(n int) Config { c.perSender = n; return c }

// WithMaxBytes bounds what the host holds for the keeper and all below it: no actor is started
// that would probably exceed the bound. 0 is no bound.
func (c Config) WithMaxBytes(n int64) Config { c.maxBytes = n; return c }

// WithAtLimit says what happens to messages for a new key when the bound of actors is reached.
func (c Config) WithAtLimit(a AtLimit) Config { c.atLimit = a; return c }

// WithBuffer bounds the messages that wait while an actor ends or is about to start, and their
// bytes, for all keys together; one key has a quarter of each at most. The defaults are DefaultBuffer and
// DefaultBytes.
func (c Config) WithBuffer(n int, bytes int64) Config { c.buffer, c.bytes = n, bytes; return c }

// WithRemember sets how many of the last keys are remembered whose actors have ended; the
// default is DefaultRemember, the most MaxRemember.
func (c Config) WithRemember(n int) Config { c.remember = n; return c }

// WithManagers lets the actors at these paths (as in [host.Capabilities]) manage the keeper, see
// [Header]. Otherwise only its parent may, and Go code that has the system.
func (c Config) WithManagers(paths ...string) Config { c.managers = slices.Clone(paths); return c }

// WithSupervision sets how failed actors are treated. When an actor is stopped for a failure, its
// next start is delayed, from 100 ms to a minute. A strategy that also concerns siblings is refused.
func (c Config) WithSupervision(s supervision.Strategy) Config { c.strategy = s; return c }

// WithLimits sets the limits of the keeper itself: its mailbox, and with tree what it and its
// actors use together. It sets those of asks, stash, children and watches itself.
func (c Config) WithLimits(l host.Limits) Config { c.limits = l; return c }

// Check says what is wrong with the configuration, nil if nothing is.
func (c Config) Check() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("keyed: "+format, args...)) }
	switch {
	case c.max < 1 || c.max > MaxKeys:
		add("%d keys, must be from 1 to %d", c.max, MaxKeys)
	case c.perSender < 0 || c.maxBytes < 0:
		add("%d keys per sender and %d bytes, both must be at least 0", c.perSender, c.maxBytes)
	}
	if c.idle < MinIdle {
		add("idle after %v, must be at least %v", c.idle, MinIdle)
	}
	if c.buffer < 1 || c.bytes < 1 {
		add("a buffer of %d messages and %d bytes, both must be at least 1", c.buffer, c.bytes)
	}
	if c.remember < 0 || c.remember > MaxRemember {
		add("%d keys to remember, must be from 0 to %d", c.remember, MaxRemember)
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

// Props makes the props of the keeper. If [Config.Check] finds something wrong it cannot be spawned.
func (c Config) Props() host.Props {
	managers := glob.CompilePaths(c.managers)
	return c.props(func() host.Behaviour { return &head{Config: c, managed: managers, past: newPast(c.remember)} })
}

// Around makes the props of a keeper whose behaviour is another one around it, which make makes for each incarnation. That one
// may have one timer more, with a key that is not 1, and more watches.
func (c Config) Around(make func(*Keeper) host.Behaviour, watches int) host.Props {
	managers := glob.CompilePaths(c.managers)
	return c.around(2, watches, func() host.Behaviour {
		return make(&Keeper{head{Config: c, managed: managers, past: newPast(c.remember)}})
	})
}

// props are the props of a keeper whose heads are made so.
func (c Config) props(head func() host.Behaviour) host.Props { return c.around(1, 0, head) }

func (c Config) around(timers, watches int, head func() host.Behaviour) host.Props {
	l := c.limits
	n := min(max(c.max, 1), MaxKeys)
	l.Children, l.Watches, l.Asks, l.Timers = n+1, n+1+watches, asksOpen, timers
	l.Stash = min(max(c.buffer, 1), 1<<24)
	if timers > 1 { // the behaviour around it has as many wait
		l.Stash *= 2
	}
	l.Held = max(l.Held, host.DefaultHeld+max(c.bytes, 0)+int64(n)*256)
	if c.maxBytes > 0 && l.Tree.Memory == 0 {
		l.Tree.Memory = c.maxBytes
	}
	return host.Behave(c.name, head).WithLimits(l).WithSupervision(c.strategy).WithKeeping().WithError(c.Check())
}
