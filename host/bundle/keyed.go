package bundle

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/journal"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/supervision"
)

// Keyed makes an entry of the manifest the keeper of an actor for each key.
type Keyed struct {
	Header, Field string
	Idle          time.Duration
	Max           int
	PerSender     int
	MaxBytes      int64
	AtLimit       keyed.AtLimit
	Buffer        int
	BufferBytes   int64
	Remember      int
	Managers      []string
	Scope         Scope
	Shards        int    // of ScopeCluster
	Role          string // of the nodes that have actors; empty: all
	Living        bool   // keys are remembered while they live, and started again elsewhere
	Starts        int    // of those, in a second
	Single        bool   // the entry is a singleton: one actor, whatever keys messages name

	Supervision supervision.Strategy // of the actors of the keys
}

// Scope says over what the actors of keys are spread.
type Scope string

// The scopes.
const (
	ScopeNode    Scope = "node"    // each system has its own
	ScopeCluster Scope = "cluster" // one actor for each key in the cluster, see package shard
)

var singletonShape = object("one actor of the type in the cluster, on one node at a time; messages to the name reach it from all nodes, and it is there without one",
	optional("role", pattern(none, "the role of the nodes that it may be on; default: all", nameWhat, nameRule)),
)

var keyedShape = object("the name stands for an actor of the type for each key; each is started by the first message for it",
	optional("header", pattern(none, "the header with the key; default: "+keyed.HeaderKey, "a header's name of 1 to 64 characters", `^[ -~]{1,64}$`)),
	optional("field", text(none, "the key of the map that a message is, whose value is the key of a message without the header")),
	optional("idle", duration("an actor ends so long after its last turn if it has nothing to do; default: 5m")),
	optional("max", count("actors at a time; default: 10000", keyed.MaxKeys)),
	optional("max-per-sender", count("actors that were started by messages of one sender; default: any number", keyed.MaxKeys)),
	optional("max-bytes", sizeIn("bytes that the host holds for all of them; default: any number", 64<<10, 1<<50)),
	optional("at-limit", enum("what to do with a new key at the limit: refuse it, or evict the least recently used actor that has nothing to do; default: refuse", keyed.AtLimits()...)),
	optional("buffer", count("messages that wait while actors end, of which one key has a quarter at most; default: 1000", 1<<24)),
	optional("buffer-bytes", sizeIn("bytes of those, likewise; default: 16MiB", 1, 1<<40)),
	optional("remember", integer("keys that are remembered when their actors have ended; default: 1000. Or, with scope cluster, true: keys that live are remembered, and start again when their shard has moved or its node was lost", 0, keyed.MaxRemember).OrFlag()),
	optional("starts", count("of remember true: keys that a node starts again in a second; default: 200", shard.MaxStarts)),
	optional("scope", enum("node: each system has actors of its own; cluster: the keys are spread over the nodes of the cluster, one actor for each; default: node", string(ScopeNode), string(ScopeCluster))),
	optional("shards", count("of scope cluster: parts that the keys are spread in; it cannot change while a node has the kind; default: 256", shard.MaxShards)),
	optional("role", pattern(none, "of scope cluster: the role of the nodes that have the actors; the others pass messages on; default: all", nameWhat, nameRule)),
	optional("manage", list("paths of actors that may list keys and end their actors", pattern(none, "a path", pathWhat, pathRule))),
)

// keyed reads the keys that make an entry an actor for each key; nil: it is a single actor.
func (c *checker) keyed(name string, v view) *Keyed {
	d := v.object("keyed")
	k := &Keyed{
		Header: d.text("header"), Field: d.text("field"), Idle: d.duration("idle", keyed.DefaultIdle),
		Max: int(d.count("max", keyed.DefaultMax)), PerSender: int(d.count("max-per-sender", 0)), MaxBytes: int64(d.size("max-bytes", 0)),
		Buffer: int(d.count("buffer", keyed.DefaultBuffer)), BufferBytes: int64(d.size("buffer-bytes", keyed.DefaultBytes)),
		Remember: d.whole("remember", keyed.DefaultRemember), Managers: d.texts("manage"),
	}
	k.AtLimit, _ = keyed.ParseAtLimit(d.text("at-limit"))
	k.Scope, k.Shards, k.Role = Scope(d.text("scope")), int(d.count("shards", shard.DefaultShards)), d.text("role")
	if starts := int(d.count("starts", shard.DefaultStarts)); d.flagged("remember") {
		k.Living, k.Starts = true, starts
	}
	x := v.object("singleton")
	role := x.text("role")
	if x.given() {
		if d.given() {
			c.At(x.n, "actor %s is either a singleton or keyed: a singleton has no keys", name)
		}
		*k = Keyed{Max: 1, Idle: keyed.DefaultIdle, Buffer: keyed.DefaultBuffer, BufferBytes: keyed.DefaultBytes, Scope: ScopeCluster, Shards: 1, Role: role, Single: true}
		c.apart(name, "singleton", v)
		return k
	}
	if !d.given() {
		return nil
	}
	if k.Scope != ScopeCluster {
		k.Scope, k.Shards = ScopeNode, 0
	}
	for _, key := range []string{"shards", "role"} {
		if x := d.get(key); x.given() && k.Scope != ScopeCluster {
			c.At(x.n, "keyed.%s has a meaning only with scope: cluster", key)
		}
	}
	switch x := d.get("remember"); {
	case k.Living && k.Scope != ScopeCluster:
		c.At(x.n, "keyed.remember: true has a meaning only with scope: cluster: on one node keys begin with their first message, see docs/guide/keyed.md")
	case k.Living:
		c.reachCluster(x.n, below(below(below("actors", name), "keyed"), "remember"))
	case d.has("starts"):
		c.At(d.get("starts").n, "keyed.starts has a meaning only with remember: true")
	}
	if x := d.get("idle"); x.given() && k.Idle < keyed.MinIdle {
		c.At(x.n, "keyed.idle must be at least %v", keyed.MinIdle)
	}
	c.apart(name, "keyed", v)
	if x := v.object("capabilities").get("metrics"); x.given() {
		c.At(x.n, "capabilities.metrics are for single actors, not for those of keys")
	}
	return k
}

// apart reports keys that do not go together with keyed or singleton.
func (c *checker) apart(name, kind string, v view) {
	if x := v.object("supervision").get("strategy"); x.given() && x.n.Value != "one-for-one" {
		c.At(x.n, "supervision.strategy of the keyed actor %s must be one-for-one: a failure of one key touches no other", name)
	}
	for _, x := range []struct{ key, why string }{
		{"children", "the children of a keyed actor are those of the keys, which may spawn their own"},
		{"resend", "the answers of its actors would have to be waited for"},
		{"pool", "it starts as many actors as there are keys"},
		{"to", "it makes its actors itself"},
	} {
		if n := v.get(x.key); n.given() {
			c.At(n.n, "%s has no meaning for the %s actor %s: %s", x.key, kind, name, x.why)
		}
	}
}

// clustered reports what needs a cluster in a bundle that has none, and what cannot be spread over one.
func (c *checker) clustered(root view, actors view, top bool) {
	cluster := false
	for i := 0; i+1 < len(root.n.Content); i += 2 {
		cluster = cluster || root.n.Content[i].Value == "cluster"
	}
	for _, name := range []string{"kv", "pubsub"} {
		if x := grammar.At(grammar.At(grammar.At(root.n, "services"), name), "scope"); top && !cluster && x != nil && x.Value == string(ScopeCluster) {
			c.At(x, "services.%s.scope: cluster needs the key cluster, which says what this bundle joins", name)
		}
	}
	actors.pairs(func(k *yaml.Node, v view) {
		at, what := v.object("keyed").get("scope"), "keyed.scope: cluster"
		if !at.given() || at.n.Value != string(ScopeCluster) {
			at, what = v.get("singleton"), "singleton"
		}
		for _, x := range v.object("capabilities").items("spawn") {
			if !cluster && strings.Contains(x.n.Value, "@") {
				c.At(x.n, "actor %s: capabilities.spawn: %s needs the key cluster, which says what this bundle joins", k.Value, x.n.Value)
			}
		}
		if x := v.object("routing").get("nodes"); !cluster && x.given() {
			c.At(x.n, "actor %s: routing.nodes needs the key cluster, which says what this bundle joins", k.Value)
		}
		switch {
		case !at.given():
		case !top:
			c.At(at.n, "actor %s: %s is for actors at the top of actors only: its path is the same on all nodes", k.Value, what)
		case !cluster:
			c.At(at.n, "actor %s: %s needs the key cluster, which says what this bundle joins", k.Value, what)
		}
		c.clustered(root, v.mapping("children"), false)
	})
}

// many reports whether the entry stands for several actors, which are below its path.
func (a *Actor) many() bool { return a.Keyed != nil || a.Routing != nil && a.Routing.Pool > 0 }

// superviseKeys sets how the actors of keys are supervised: as their entry says, or else as a single actor
// in its place would be, except for rules about siblings.
func superviseKeys(boss supervision.Strategy, actors []Actor) {
	for i := range actors {
		a := &actors[i]
		switch {
		case a.Keyed != nil && a.supervision != "":
			a.Keyed.Supervision = a.Supervision
		case a.Keyed != nil:
			a.Keyed.Supervision = boss.WithKind(supervision.OneForOne).WithShared(false).WithShutdown(supervision.ShutdownNever)
		}
		superviseKeys(a.Supervision, a.Children)
	}
}

// keeper makes the props of a keyed actor. What its entry says of supervision is also what the actors of the
// keys apply to their own children.
func (b *Bundle) keeper(a *Actor) host.Props {
	k, l := a.Keyed, a.Limits
	l.Tree = host.TreeLimits{}
	c := keyed.New(b.single(a).WithLimits(l).WithLifetime(a.Lifetime)).WithSupervision(k.Supervision).WithName("keyed/" + a.Module + "/" + a.Type)
	if k.Header != "" {
		c = c.WithHeader(k.Header)
	}
	limits := host.Limits{Mailbox: a.Limits.Mailbox, MailboxBytes: a.Limits.MailboxBytes, Tree: a.Limits.Tree}
	c = c.WithField(k.Field).WithIdle(k.Idle).WithMax(k.Max).WithMaxPerSender(k.PerSender).WithMaxBytes(k.MaxBytes).WithAtLimit(k.AtLimit).
		WithBuffer(k.Buffer, k.BufferBytes).WithRemember(k.Remember).WithManagers(k.Managers...).WithLimits(limits)
	if a.spread() && b.node != nil {
		if a.Events && b.spreadLog != nil {
			c = c.WithSupervision(journal.Supervised(k.Supervision))
		}
		s := shard.New(a.Name, b.node, c).WithBundle(b.Manifest.Name).WithShards(k.Shards).WithRole(k.Role).WithBuffer(k.Buffer, k.BufferBytes)
		if k.Single {
			s = s.WithSingleton(a.Name)
		}
		if a.Events && b.spreadLog != nil {
			s = s.WithJournal(b.spreadLog)
		}
		if k.Living && b.spreadLog != nil {
			s = s.WithMemory(b.spreadLog, k.Starts)
		}
		return s.Props().WithSignificant(a.Significant)
	}
	return c.Props().WithSignificant(a.Significant)
}

// keyedText is what the manifest says about keys, to be compared.
func keyedText(v view) string {
	return canonical(v.get("keyed").n) + canonical(v.get("singleton").n)
}

// joined reports actors that would be on each node of a cluster instead of on one.
func (b *Bundle) joined(sys *host.System) error {
	user, err := sys.Lookup("/user")
	if err != nil || user.UID().Node() == 0 || b.node != nil {
		return err
	}
	for i := range b.Manifest.Actors {
		if a := &b.Manifest.Actors[i]; a.spread() {
			return fmt.Errorf("actor %s is one in the cluster, and the bundle does not know which node of it this is: call Bundle.Join before Start", a.Name)
		}
	}
	return nil
}
