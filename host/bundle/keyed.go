package bundle

import (
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
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

	Supervision supervision.Strategy // of the actors of the keys
}

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
	optional("remember", integer("keys that are remembered when their actors have ended; default: 1000", 0, keyed.MaxRemember)),
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
	if !d.given() {
		return nil
	}
	if x := d.get("idle"); x.given() && k.Idle < keyed.MinIdle {
		c.at(x.n, "keyed.idle must be at least %v", keyed.MinIdle)
	}
	if x := v.object("supervision").get("strategy"); x.given() && x.n.Value != "one-for-one" {
		c.at(x.n, "supervision.strategy of the keyed actor %s must be one-for-one: a failure of one key touches no other", name)
	}
	for _, x := range []struct{ key, why string }{
		{"children", "the children of a keyed actor are those of the keys, which may spawn their own"},
		{"resend", "the answers of its actors would have to be waited for"},
		{"pool", "it starts as many actors as there are keys"},
		{"to", "it makes its actors itself"},
	} {
		if n := v.get(x.key); n.given() {
			c.at(n.n, "%s has no meaning for the keyed actor %s: %s", x.key, name, x.why)
		}
	}
	if x := v.object("capabilities").get("metrics"); x.given() {
		c.at(x.n, "capabilities.metrics are for single actors, not for those of keys")
	}
	return k
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
	return c.WithField(k.Field).WithIdle(k.Idle).WithMax(k.Max).WithMaxPerSender(k.PerSender).WithMaxBytes(k.MaxBytes).WithAtLimit(k.AtLimit).
		WithBuffer(k.Buffer, k.BufferBytes).WithRemember(k.Remember).WithManagers(k.Managers...).WithLimits(limits).Props().WithSignificant(a.Significant)
}

// keyedText is what the manifest says about keys, to be compared.
func keyedText(v view) string { return canonical(v.get("keyed").n) }
