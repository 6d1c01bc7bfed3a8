package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/observe"
)

// Nodes is a system's place in a cluster, for its operator. Its methods may be called by any goroutine, and end with their contexts.
type Nodes interface {
	// Apart is why the node should get no requests from outside: it must not act, or is about to stop; "": it may have some. It must not
	// block, and everybody may know the text.
	Apart() string
	// Status is how the node of a name does; "": this one.
	Status(ctx context.Context, node string) (ClusterStatus, error)
	// Where says on which node a key of a kind is; a singleton has any key.
	Where(ctx context.Context, kind, key string) (KeyPlace, error)
	// Move has the shard of a key moved to the node of a name; "": to where its hash says.
	Move(ctx context.Context, kind, key, node string) (KeyPlace, error)
	// Journal says what the cluster's journal has of a key; a moment may be missing.
	Journal(ctx context.Context, kind, key string) (KeyJournal, error)
	// Journals lists the keys of which the journal has something, whether they live or not, in order; a moment may be missing.
	Journals(ctx context.Context, q JournalQuery) (KeyJournals, error)
	// Erase erases what the journal has of a key while its actor is not there. The node that has its shard does so.
	Erase(ctx context.Context, kind, key string) (KeyJournal, error)
	// Drain has all shards of the node of a name, or of this one, moved to others, or with false lets it have some again. It does not
	// wait for the moves.
	Drain(ctx context.Context, node string, on bool) (ClusterStatus, error)
	// All asks all nodes how they do, each for a second at most; with trees which actors they have, some thousands at most.
	All(ctx context.Context, trees bool) (ClusterNodes, error)
	// Events asks all nodes for their last events, some hundreds of each, each node for a second at most.
	Events(ctx context.Context, q NodeEvents) (ClusterNodes, error)
}

// WithNodes serves what a node of a cluster is asked below /v1/cluster. find is called for each request, by any goroutine; nil says
// that the system is in none.
func (c Config) WithNodes(find func() Nodes) Config { c.nodes = find; return c }

// ClusterStatus is how a node of a cluster does.
type ClusterStatus struct {
	Version  int           `json:"version"`
	Number   int           `json:"number"`
	Name     string        `json:"name"`
	Cluster  string        `json:"cluster"`
	ID       string        `json:"id"`                  // of the cluster
	Acting   bool          `json:"acting"`              // its lease is not over
	LeaseMS  int64         `json:"lease_ms"`            // what is left of it
	Silent   string        `json:"silent,omitempty"`    // why the directory does not answer; empty: it does
	SilentMS int64         `json:"silent_ms,omitempty"` // since when
	Stops    string        `json:"stops,omitempty"`     // what does not work until it answers, and what it needs; empty: all works
	Keepers  []string      `json:"keepers"`             // the nodes that keep the directory; none: an outside NATS does
	Members  []ClusterNode `json:"members"`
	Kinds    []ClusterKind `json:"kinds"`
	Draining bool          `json:"draining"`          // all kinds have been told to leave this node, and all nodes know it
	Code     *ClusterCode  `json:"code,omitempty"`    // of other nodes, that is kept here; nil: the bundle takes none
	Unknown  string        `json:"unknown,omitempty"` // why Kinds says nothing, such as that the node joins again; empty: it says all
	Unready  string        `json:"unready,omitempty"` // why it should get no requests from outside yet, or any more; empty: it may
}

// ClusterCode is the code of other nodes that a node keeps for their children, and its bounds.
type ClusterCode struct {
	Modules      []ClusterModule `json:"modules"`
	MostModules  int             `json:"most_modules"` // in all
	MostBytes    int64           `json:"most_bytes"`
	ShareModules int             `json:"share_modules"` // of one node
	ShareBytes   int64           `json:"share_bytes"`
}

// ClusterModule is a module of another node.
type ClusterModule struct {
	Node     int    `json:"node"`           // that gave it
	Name     string `json:"name,omitempty"` // of that node; empty: it has gone
	As       string `json:"as"`             // the module of this bundle whose limits it has
	SHA256   string `json:"sha256"`
	Bytes    int64  `json:"bytes"`
	Children int    `json:"children"` // that run it here
}

// ClusterNode is a node that is there, as this one sees it.
type ClusterNode struct {
	Number  int      `json:"number"`
	Name    string   `json:"name"`
	Roles   []string `json:"roles"`
	Zone    string   `json:"zone,omitempty"`
	Waiting int64    `json:"waiting"` // bytes that wait for it here
}

// ClusterKind is a kind whose keys are spread over the nodes, as this node sees it.
type ClusterKind struct {
	Kind    string `json:"kind"`
	Shards  int    `json:"shards"`  // in all
	Owned   int    `json:"owned"`   // that are here
	Moving  int    `json:"moving"`  // in all
	Waiting int    `json:"waiting"` // messages that wait here for shards
	Keys    int    `json:"keys"`    // that have an actor here
	Wrong   string `json:"wrong,omitempty"`

	Starting  int    `json:"starting,omitempty"`  // keys that are remembered, and wait for their start here
	Unstarted string `json:"unstarted,omitempty"` // why they wait longer than for their turn

	In      uint64 `json:"in"`       // shards that this node has begun
	Out     uint64 `json:"out"`      // that it has handed over
	GivenUp uint64 `json:"given_up"` // that it could not hand over, since their keys did not rest
	Stolen  uint64 `json:"stolen"`   // that a table has given to others without this node, which kept them
}

// KeyPlace says where a key is.
type KeyPlace struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	Key     string `json:"key"`
	Shard   int    `json:"shard"`
	Epoch   uint64 `json:"epoch"`
	Node    int    `json:"node"` // 0: none
	Name    string `json:"name"`
	From    int    `json:"from,omitempty"`   // that still has it and hands it over
	Pinned  bool   `json:"pinned,omitempty"` // it was moved there by hand
}

// MoveKey is a key to be moved.
type MoveKey struct {
	Kind string `json:"kind"`
	Key  string `json:"key"`
	Node string `json:"node"` // its name; "": where its hash says
}

// KeyJournal is what the journal has of a key, without what its events say.
type KeyJournal struct {
	Version   int    `json:"version"`
	Kind      string `json:"kind"`
	Key       string `json:"key"`
	Last      uint64 `json:"last"`      // number of the last event
	Events    int    `json:"events"`    // that are not deleted
	Snapshots int    `json:"snapshots"` // of the key's state
	Records   int    `json:"records"`   // in the journal
	Bytes     int64  `json:"bytes"`     // of them
}

// JournalQuery says which keys are listed.
type JournalQuery struct {
	Kind   string // "": all kinds, also those that the bundle has no more
	Prefix string // of the keys
	After  string // the Next of the page before; "": from the first one on
	Limit  int    // 0: the default; at most MostJournals
}

// MostJournals is how many keys a page lists at most, which is the default, too.
const MostJournals = 256

// KeyJournals are keys of which the journal has something.
type KeyJournals struct {
	Version int         `json:"version"`
	Keys    []ListedKey `json:"keys"`
	Next    string      `json:"next,omitempty"` // for the parameter after, to get those behind them; empty: there are no more
}

// ListedKey is one of them.
type ListedKey struct {
	Kind    string    `json:"kind"`
	Key     string    `json:"key"`
	Bytes   int64     `json:"bytes"`
	Records int       `json:"records"`
	Last    time.Time `json:"last"`            // when the last record was written, by the clock of a keeper
	Shard   int       `json:"shard"`           // -1: the bundle has no such kind here
	Epoch   uint64    `json:"epoch,omitempty"` // of the shard
	Node    int       `json:"node"`            // that has the shard; 0: none, or that is not known
	Name    string    `json:"name"`            // of the node
}

// KeyName names a key.
type KeyName struct {
	Kind string `json:"kind"`
	Key  string `json:"key"`
}

// DrainNode is whether a node is to have no shards.
type DrainNode struct {
	On   bool   `json:"on"`
	Node string `json:"node,omitempty"` // its name; "": this one
}

// ClusterNodes are all nodes, and what they have said.
type ClusterNodes struct {
	Version int          `json:"version"`
	Nodes   []NodeReport `json:"nodes"`
}

// NodeReport is what a node has said, or why it has not.
type NodeReport struct {
	Number      int         `json:"number"`
	Name        string      `json:"name"`
	Error       string      `json:"error,omitempty"` // it did not answer
	Bundle      string      `json:"bundle,omitempty"`
	UpSeconds   int64       `json:"up_seconds,omitempty"`
	Actors      int         `json:"actors,omitempty"`
	Crashes     uint64      `json:"crashes,omitempty"`
	DeadLetters uint64      `json:"dead_letters,omitempty"`
	Tree        []NodeActor `json:"tree,omitempty"`
	Left        int         `json:"left,omitempty"` // actors that Tree leaves out, or events that the node has had before Events

	Events []json.RawMessage `json:"events,omitempty"` // as in /v1/events, oldest first, without stacks
	Next   uint64            `json:"next,omitempty"`   // the number of the last event that the node has had, for the parameter after
}

// NodeEvents says which of their last events nodes are asked for. Follow and Buffer mean nothing.
type NodeEvents struct {
	observe.EventQuery
	Behind map[int]uint64 // of the node of a number: those behind the event of this number
}

// NodeActor is an actor of another node.
type NodeActor struct {
	Path    string `json:"path"`
	Type    string `json:"type"`
	State   string `json:"state"`
	Mailbox int    `json:"mailbox"`
	Turns   uint64 `json:"turns"`
}

// clusterWait bounds a request about a cluster.
const clusterWait = 5 * time.Second

// clusterRoutes are what WithNodes serves.
func clusterRoutes() []*route {
	node := param{name: "node", about: "the name of another node"}
	kind, key := param{name: "kind", needed: true, about: "the name of a keyed actor or a singleton of the cluster"}, param{name: "key", about: "the key"}
	return []*route{
		{method: http.MethodGet, path: "/v1/cluster", needs: reader, about: "How the node, or another one, does, who the members are, and which shards it has.", answer: ClusterStatus{}, params: []param{node},
			serve: func(s *Server, c *call) error {
				return nodes(s, c, func(n Nodes, ctx context.Context) (ClusterStatus, error) { return n.Status(ctx, c.query.Get("node")) })
			}},
		{method: http.MethodGet, path: "/v1/cluster/nodes", needs: reader, about: "What all nodes say of themselves, and who does not answer within a second.", answer: ClusterNodes{},
			params: []param{{name: "trees", kind: flagParam, about: "with their actors"}},
			serve: func(s *Server, c *call) error {
				trees, err := c.flag("trees")
				if err != nil {
					return err
				}
				return nodes(s, c, func(n Nodes, ctx context.Context) (ClusterNodes, error) { return n.All(ctx, trees) })
			}},
		{method: http.MethodGet, path: "/v1/cluster/events", needs: reader, about: "The last events of all nodes, and who does not answer within a second.", answer: ClusterNodes{},
			params: params(eventParams(), []param{{name: "after", kind: textsParam, about: "NODE:EVENT: of the node of this number, those behind the event of this number, the node's next of an answer before"}}),
			serve: func(s *Server, c *call) error {
				q, err := c.nodeEvents()
				if err != nil {
					return err
				}
				return nodes(s, c, func(n Nodes, ctx context.Context) (ClusterNodes, error) { return n.Events(ctx, q) })
			}},
		{method: http.MethodGet, path: "/v1/cluster/where", needs: reader, about: "The node that has a key.", answer: KeyPlace{}, params: []param{kind, key},
			serve: func(s *Server, c *call) error {
				return nodes(s, c, func(n Nodes, ctx context.Context) (KeyPlace, error) {
					return n.Where(ctx, c.query.Get("kind"), c.query.Get("key"))
				})
			}},
		{method: http.MethodPost, path: "/v1/cluster/move", needs: full, about: "Moves the shard of a key to a node, where it stays.", body: MoveKey{}, answer: KeyPlace{},
			serve: func(s *Server, c *call) error {
				var m MoveKey
				if err := c.decode(&m); err != nil {
					return err
				}
				return nodes(s, c, func(n Nodes, ctx context.Context) (KeyPlace, error) { return n.Move(ctx, m.Kind, m.Key, m.Node) })
			}},
		{method: http.MethodGet, path: "/v1/cluster/journal", needs: reader, about: "What the cluster's journal has of a key.", answer: KeyJournal{}, params: []param{kind, key},
			serve: func(s *Server, c *call) error {
				return nodes(s, c, func(n Nodes, ctx context.Context) (KeyJournal, error) {
					return n.Journal(ctx, c.query.Get("kind"), c.query.Get("key"))
				})
			}},
		{method: http.MethodGet, path: "/v1/cluster/journals", needs: reader, about: "The keys of which the cluster's journal has something, whether their actors are there or not, in pages.", answer: KeyJournals{},
			params: []param{{name: "kind", about: "the name of a keyed actor or a singleton; all if it is missing"}, {name: "prefix", about: "what the keys begin with"}, {name: "after", about: "next of the page before"}, {name: "limit", kind: countParam, about: "at most this many, up to 256; 0: as many"}},
			serve: func(s *Server, c *call) error {
				n, err := c.count("limit", MostJournals)
				if err != nil {
					return err
				}
				return nodes(s, c, func(of Nodes, ctx context.Context) (KeyJournals, error) {
					return of.Journals(ctx, JournalQuery{Kind: c.query.Get("kind"), Prefix: c.query.Get("prefix"), After: c.query.Get("after"), Limit: n})
				})
			}},
		{method: http.MethodPost, path: "/v1/cluster/journal/delete", needs: full, about: "Deletes what the cluster's journal has of a key while its actor is not there. The node that has its shard does so. It cannot be undone.", body: KeyName{}, answer: KeyJournal{},
			serve: func(s *Server, c *call) error {
				var k KeyName
				if err := c.decode(&k); err != nil {
					return err
				}
				return nodes(s, c, func(n Nodes, ctx context.Context) (KeyJournal, error) { return n.Erase(ctx, k.Kind, k.Key) })
			}},
		{method: http.MethodPost, path: "/v1/cluster/drain", needs: full, about: "Moves all shards of the node, or of another one, to others, or lets it have some again.", body: DrainNode{}, answer: ClusterStatus{},
			serve: func(s *Server, c *call) error {
				var d DrainNode
				if err := c.decode(&d); err != nil {
					return err
				}
				return nodes(s, c, func(n Nodes, ctx context.Context) (ClusterStatus, error) { return n.Drain(ctx, d.Node, d.On) })
			}},
	}
}

// nodeEvents reads which events of nodes are asked for.
func (c *call) nodeEvents() (q NodeEvents, err error) {
	if q.EventQuery, err = c.eventQuery(); err != nil {
		return q, err
	}
	if _, err := q.Matcher(); err != nil {
		return q, err
	}
	after, err := c.texts("after")
	if err != nil {
		return q, err
	}
	q.Behind = map[int]uint64{}
	for _, text := range after {
		node, number, _ := strings.Cut(text, ":")
		k, err1 := strconv.Atoi(node)
		n, err2 := strconv.ParseUint(number, 10, 64)
		if err1 != nil || err2 != nil || k < 1 || k > abi.MaxNode {
			return q, bad("bad_query", "after is the number of a node and of an event, such as 3:117, not "+strconv.Quote(text), "")
		}
		q.Behind[k] = n
	}
	return q, nil
}

// nodes answers a request about the cluster.
func nodes[T any](s *Server, c *call, ask func(Nodes, context.Context) (T, error)) error {
	var of Nodes
	if s.cfg.nodes != nil {
		of = s.cfg.nodes()
	}
	if of == nil {
		return &Problem{http.StatusConflict, "no_cluster", "this bundle is no node of a cluster", "wasmactors run BUNDLE --join DIR makes it one"}
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), clusterWait)
	defer cancel()
	v, err := ask(of, ctx)
	if err != nil {
		return err
	}
	return c.json(v)
}
