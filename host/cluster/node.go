// Package cluster joins systems on several machines. A node holds a number under a lease in a [Directory], and its system's
// refs have that number. Messages and signals for actors of other nodes go over [Links], in order for each pair of nodes and
// once. When a node does not renew its lease it stops acting, and the others learn that it is gone.
//
// Package host imports nothing of this. The real directory and links are in packages of their own.
package cluster

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Config configures a node.
type Config struct {
	Name  string // of the node, as an actor's name
	Roles []string
	Zone  string // a name; "": none
	// Identity is what the links of other nodes know this one by, at most MaxIdentity bytes; nil if they need nothing.
	Identity []byte
	// Lease is how long a node may act without having renewed, at least MinLease. All nodes have the same.
	Lease time.Duration
	// Brief is how long a node may be sure, without having renewed, that what is fenced was not taken from it: then two others that
	// hear nothing of it may agree to take it, see Passed. 0: never before the lease is over. At most half of the lease. All nodes
	// have the same.
	Brief time.Duration
	// ID is the node's for this start: random, not 0, and of no other start.
	ID uint64
	// Over is the ID of a life of this node that has ended for certain, 0 if that is not known of any: its number is taken away at once,
	// and not when its lease is over. It must not be the ID of a life that may still act.
	Over uint64
	// Directory and Links are those of the cluster.
	Directory Directory
	Links     Links
	// Clock runs what is due; nil: the machine's.
	Clock host.Clock
	// Since is the time since any moment; it never goes back, and counts the time that the machine sleeps. nil: the
	// machine's. Clocks of nodes may differ in speed by 5 %.
	Since func() time.Duration
	// Credit is how many bytes may wait for another node; 0: DefaultCredit. A message beyond is refused with
	// host.ErrMailboxFull.
	Credit int
	// Control says whether the actors of a node may stop those of this node; nil: none may.
	Control func(Member) bool
	// Lost is called once when the node must not act any more, although nobody has stopped it: its system has to be closed.
	Lost func(error)
	// Events gets what happens; nil: nobody. It must not block, nor call the node.
	Events func(Event)
}

// MinLease is the shortest lease.
const MinLease = time.Second

// DefaultLease is the lease that suits a directory that is embedded.
const DefaultLease = 4 * time.Second

// EventKind is what has happened.
type EventKind uint8

// The events.
const (
	EventJoined  EventKind = iota + 1 // another node is there
	EventGone                         // another node has left, or was evicted
	EventGap                          // Count units have not arrived, and are asked for again
	EventBroken                       // a node has begun anew; what was under way is lost
	EventRefused                      // something of a node was not taken: Text says why
	EventEvicted                      // this node has evicted another, whose lease is over
	EventLost                         // this node must not act any more
	EventSilent                       // the directory does not answer: Text says what it needs
	EventAnswers                      // it answers again
	EventLeft                         // this node has left
	EventPassed                       // two nodes have agreed to take what is fenced from a node that is silent
)

// String is the kind in a word.
func (k EventKind) String() string {
	names := [...]string{"", "joined", "gone", "gap", "broken", "refused", "evicted", "lost", "silent", "answers", "left", "passed"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Event is one of them.
type Event struct {
	Kind  EventKind
	Node  uint16
	Count uint64
	Text  string
}

var (
	// ErrLost says that a node must not act any more: it could not renew its lease in time, or was evicted.
	ErrLost = errors.New("cluster: the node is lost")
	// ErrNoNumber says that all numbers are taken.
	ErrNoNumber = errors.New("cluster: all node numbers are taken")
	// ErrName says that another node of the same name is there.
	ErrName = errors.New("cluster: another node has this name")
	// ErrProtocol says that a node that is there speaks another version of the protocol.
	ErrProtocol = errors.New("cluster: the nodes speak another version of the protocol")
	// ErrNoMember says that no node has a number.
	ErrNoMember = errors.New("cluster: there is no such node")
)

// Node is this process as a member. Its methods may be called by any goroutine.
type Node struct {
	cfg   Config
	links Links
	since func() time.Duration
	clock host.Clock
	begun time.Time // see brisk

	mu        sync.Mutex
	state     state
	self      Member
	deadline  time.Duration
	tried     map[uint16]bool
	joined    func(Member, error)
	stop      func()
	members   map[uint16]*seen
	pairs     map[uint16]*pair
	asks      map[question]*asked
	holds     int           // bytes of what they hold, at most Credit
	swept     time.Duration // when asks were last looked at
	port      network.Port
	engine    atomic.Pointer[network.Port] // the same, without the lock
	decoder   network.Decoder
	arrivals  []network.Arrival // for the engine
	arrived   int               // bytes of packets and frames that they share; 0 without arrivals
	spare     []network.Arrival // memory for the next ones
	later     []func()          // calls to the outside, without the lock
	running   bool              // a goroutine hands them over
	envelopes mailbox.Cache     // of that goroutine
	handed    sync.Cond         // it has taken what there was

	flood   flood
	counts  Counts
	counted [EventPassed + 1]uint64

	listening map[int]func() // to changes of the members, by when they came
	listeners int            // that have ever come
}

type state uint8

const (
	joining state = iota + 1
	acting
	lost
)

// seen is a member, and when its entry was last seen to change.
type seen struct {
	Member
	at      time.Duration
	renewed bool // it was seen to renew its lease
	doubts
}

// New is a node that is not a member yet.
func New(cfg Config) (*Node, error) {
	if cfg.Credit == 0 {
		cfg.Credit = DefaultCredit
	}
	if cfg.Lease == 0 {
		cfg.Lease = DefaultLease
	}
	switch {
	case !abi.ValidName([]byte(cfg.Name)):
		return nil, fmt.Errorf("cluster: the node's name %q is not one: use 1 to %d bytes of A-Z a-z 0-9 _ . ~ -", cfg.Name, abi.MaxName)
	case cfg.Directory == nil || cfg.Links == nil || cfg.ID == 0:
		return nil, errors.New("cluster: Config.Directory, Links and ID are needed")
	case cfg.Lease < MinLease:
		return nil, fmt.Errorf("cluster: a lease of %v: at least %v", cfg.Lease, MinLease)
	case cfg.Brief < 0 || cfg.Brief > cfg.Lease/2:
		return nil, fmt.Errorf("cluster: Config.Brief is %v: at most half of the lease", cfg.Brief)
	case cfg.Links.MaxPacket() < MinPacket:
		return nil, fmt.Errorf("cluster: packets of %d bytes: links must carry %d", cfg.Links.MaxPacket(), MinPacket)
	case cfg.Zone != "" && !abi.ValidName([]byte(cfg.Zone)):
		return nil, fmt.Errorf("cluster: the zone %q is no name", cfg.Zone)
	case len(cfg.Identity) > MaxIdentity:
		return nil, fmt.Errorf("cluster: an identity of %d bytes: at most %d", len(cfg.Identity), MaxIdentity)
	case len(cfg.Roles) > MaxRoles:
		return nil, fmt.Errorf("cluster: %d roles, at most %d", len(cfg.Roles), MaxRoles)
	}
	for _, r := range cfg.Roles {
		if !abi.ValidName([]byte(r)) {
			return nil, fmt.Errorf("cluster: the role %q is no name", r)
		}
	}
	n := &Node{cfg: cfg, links: cfg.Links, since: cfg.Since, clock: cfg.Clock, members: map[uint16]*seen{}, pairs: map[uint16]*pair{}, asks: map[question]*asked{}, tried: map[uint16]bool{}, listening: map[int]func(){}}
	if n.clock == nil {
		n.clock = clock.Real()
	}
	if n.since == nil {
		n.since = sinceBoot()
	}
	n.begun = n.clock.Now()
	n.handed.L = &n.mu
	return n, nil
}

// brisk is the time since the node was made, for what happens with each message. It costs less than since, and need not count the time that
// the machine sleeps: no lease depends on it.
func (n *Node) brisk() time.Duration { return n.clock.Now().Sub(n.begun) }

func (c *Config) control(m Member) bool { return c.Control != nil && c.Control(m) }

// Attach gives the node its system, which was made with Config.WithNode of the member's number.
func (n *Node) Attach(s *host.System) error {
	p, err := network.Join(s, carrier{n})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.unlock()
	if n.state != acting || p.Node() != n.self.Number {
		return fmt.Errorf("cluster: the system is of node %d, the member is node %d", p.Node(), n.self.Number)
	}
	n.port = p
	n.engine.Store(&p)
	return nil
}

// Acting reports whether the node may act: its lease is not over.
func (n *Node) Acting() bool {
	n.mu.Lock()
	defer n.unlock()
	return n.acting()
}

func (n *Node) acting() bool { return n.state == acting && n.since() < n.deadline }

// Members are the nodes that are there, by their numbers.
func (n *Node) Members() []Member {
	n.mu.Lock()
	defer n.unlock()
	var out []Member
	for i := range uint16(abi.MaxNode) {
		if m := n.members[i+1]; m != nil && !m.Gone {
			out = append(out, m.Member)
		}
	}
	return out
}

// Status is how a node does.
type Status struct {
	Self    Member        // zero: it is no member yet
	Acting  bool          // its lease is not over
	Left    time.Duration // of the lease; not positive: it is over
	Renewed time.Duration // since the renewal that was confirmed last had begun
}

// Status is how the node does now.
func (n *Node) Status() Status {
	n.mu.Lock()
	defer n.unlock()
	s := Status{Self: n.self, Acting: n.acting()}
	if n.self.Number != 0 {
		s.Left = n.deadline - n.since()
		s.Renewed = n.cfg.Lease - s.Left
	}
	return s
}

// Waiting is how many bytes wait for another node.
func (n *Node) Waiting(number uint16) int {
	n.mu.Lock()
	defer n.unlock()
	if p := n.pairs[number]; p != nil {
		return p.bytes
	}
	return 0
}

// Owed is how many asks of this node wait for others, and how many watches there are between nodes.
func (n *Node) Owed() (asks, watches int) {
	n.mu.Lock()
	defer n.unlock()
	for _, p := range n.pairs {
		watches += len(p.watches) + len(p.watchers) + len(p.handles)
	}
	return len(n.asks), watches
}

// carrier implements network.Carrier.
type carrier struct{ *Node }

func (c carrier) Carry(to abi.Ref, m *network.Message, g *signal.Signal) error {
	n := c.Node
	var tree any
	if port := n.engine.Load(); port != nil {
		tree = treeOf(*port, m, g)
	}
	n.mu.Lock()
	defer n.unlock()
	p := n.pairs[to.Node()]
	if p == nil { // beyond the deadline it waits: a late confirmation of the lease may come before the end
		return host.ErrNodeLost
	}
	return p.carry(to, m, g, tree)
}

func (n *Node) event(e Event) {
	if int(e.Kind) < len(n.counted) {
		n.counted[e.Kind] += max(1, e.Count)
	}
	if n.cfg.Events != nil {
		n.later = append(n.later, func() { n.cfg.Events(e) })
	}
}

// receive takes a packet of another node.
func (n *Node) receive(from uint16, b []byte) {
	k, err := decodePacket(b)
	n.mu.Lock()
	defer n.unlock()
	n.patient()
	p := n.pairs[from]
	switch {
	case !n.acting() || n.port == nil:
	case err != nil:
		n.refuse(from, "a packet is malformed, or of another version")
	case p == nil:
		n.refuse(from, "the node is not known, or is gone")
	case k.born != p.peer.Born || k.receiver != n.self.Born:
		n.refuse(from, "a packet is of another life of one of the two nodes")
	default:
		before := len(n.arrivals)
		p.receive(k, len(b))
		n.pinned(len(b), before)
		n.decoder.Forget()
	}
}

// after has f called later, with the lock, while the pair is there; p may be nil.
func (n *Node) after(d time.Duration, p *pair, f func()) {
	n.clock.AfterFunc(d, func() {
		n.mu.Lock()
		defer n.unlock()
		if n.state != lost && (p == nil || n.pairs[p.peer.Number] == p) {
			f()
		}
	})
}
