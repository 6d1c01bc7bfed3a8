package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/supervision"
)

// Defaults of a router's bounds.
const (
	DefaultQuestions = 1000
	DefaultBytes     = 16 << 20
)

// Config configures a router: a [Pool] or a [Group] and its settings. It is immutable,
// every With method returns a changed copy.
type Config struct {
	name    string
	make    Make
	size    int
	worker  host.Props
	paths   []string
	pool    bool
	resizer *Resizer

	elsewhere Elsewhere // nil: its paths are all
	nodes     Nodes     // nil: this one
	most      int       // routees on a node; 0: any number

	managers, admitted []string
	questions          int
	bytes              int64
	strategy           supervision.Strategy
	limits             host.Limits
}

// Pool is a router with n routees of its own, made by worker: its children 0, 1, 2 and so on.
// A failed one is restarted, without effect on the others, unless WithSupervision says otherwise;
// one that has stopped gets no more messages and is not replaced. When all have stopped the
// router stops, too, unless it has a resizer.
func Pool(n int, worker host.Props, logic Make) Config {
	return Config{pool: true, size: n, worker: worker, make: logic, strategy: supervision.Default()}
}

// Group is a router whose routees are the actors at these paths, such as /user/a/b: it neither makes
// nor watches them. A path without an actor is skipped until there is one, unless a keeper
// (host/keyed) stands for it, which then starts the actor.
func Group(logic Make, paths ...string) Config {
	return Config{paths: slices.Clone(paths), make: logic, strategy: supervision.Default()}
}

// WithName sets the type of the router as it is shown; the default is "router".
func (c Config) WithName(name string) Config { c.name = name; return c }

// WithResizer lets the number of a pool's routees follow their load.
func (c Config) WithResizer(r Resizer) Config { c.resizer = &r; return c }

// WithManagers lets the actors at these paths (as in [host.Capabilities]) manage the router:
// see [Header]. Otherwise only its parent may, and Go code that has the system.
func (c Config) WithManagers(paths ...string) Config { c.managers = slices.Clone(paths); return c }

// WithAdmitted lets managers add actors at these paths as routees. Otherwise only Go code that
// has the system may: a sender to a router reaches its routees without a capability for them.
func (c Config) WithAdmitted(paths ...string) Config { c.admitted = slices.Clone(paths); return c }

// WithQuestions bounds what a router holds that itself asks its routees (scatter-gather, tail-chopping):
// the questions under way, and the bytes of those that may have to be sent again. One sender
// has a quarter of each at most. 0 means DefaultQuestions and DefaultBytes.
func (c Config) WithQuestions(n int, bytes int64) Config { c.questions, c.bytes = n, bytes; return c }

// WithSupervision sets how a pool treats its failed routees. With a strategy that escalates,
// a failure is the router's own.
func (c Config) WithSupervision(s supervision.Strategy) Config { c.strategy = s; return c }

// WithLimits sets the limits of the router itself: its mailbox, and with tree what it and its
// routees use together. It sets those of asks, timers, replies and children itself.
func (c Config) WithLimits(l host.Limits) Config { c.limits = l; return c }

// Check says what is wrong with the configuration, nil if nothing is.
func (c Config) Check() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("router: "+format, args...)) }
	if c.make == nil {
		add("there is no logic")
	}
	if c.pool {
		if c.size < 0 || c.size > MaxRoutees {
			add("%d routees, must be from 0 to %d", c.size, MaxRoutees)
		}
	} else {
		if c.resizer != nil {
			add("a group cannot have a resizer: it starts no routees")
		}
		if c.balances() {
			add("a group cannot balance: its routees have mailboxes of their own")
		}
		if len(c.paths) > MaxRoutees {
			add("%d routees, at most %d", len(c.paths), MaxRoutees)
		}
		for _, p := range c.paths {
			if !strings.HasPrefix(p, "/") || glob.HasMeta(p) {
				add("%q is not the path of one actor, such as /user/a/b", p)
			}
		}
	}
	if c.resizer != nil {
		errs = append(errs, c.resizer.Check())
	}
	if c.questions < 0 || c.bytes < 0 {
		add("%d questions and %d bytes, both must be at least 0", c.questions, c.bytes)
	}
	return errors.Join(append(errs, c.checkNodes()...)...)
}

func (c Config) balances() bool {
	if c.make == nil {
		return false
	}
	_, ok := c.make(0).(*balancing)
	return ok
}

// Props makes the props of the router. If [Config.Check] finds something wrong, or a pool's routee cannot be spawned,
// neither can the router: its restarts would change nothing.
func (c Config) Props() host.Props {
	wrong := c.Check()
	if c.pool && c.nodes == nil {
		if err := c.worker.Check(); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("router: the routee: %w", err))
		}
	}
	if c.questions == 0 {
		c.questions = DefaultQuestions
	}
	if c.bytes == 0 {
		c.bytes = DefaultBytes
	}
	if c.name == "" {
		c.name = "router"
	}
	managers, admitted := glob.CompilePaths(c.managers), glob.CompilePaths(c.admitted)
	l := c.limits
	l.Replies, l.Timers, l.Asks, l.Children, l.Watches = c.questions, c.questions+1, 10*c.questions, MaxRoutees, 2*MaxRoutees
	p := host.Behave(c.name, func() host.Behaviour {
		return &head{Config: c, size: c.size, managed: managers, admits: admitted}
	}).WithLimits(l).WithSupervision(c.strategy)
	if c.balances() {
		p = p.WithMailbox(func(l host.MailboxLimits) host.Mailbox { return newQueue(l) })
	}
	return p.WithError(wrong)
}

// failed is the failure of a start.
func failed(err error) *abi.Failure {
	return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
}
