package bundle

import (
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/mailbox"
)

var mailboxShape = object("where the actor's messages wait",
	optional("kind", enumWith((*Words).mailboxes, "what a full one does, which message comes next, or which ones are taken; default: bounded", mailbox.Kinds()...)),
	optional("messages", count("messages that may wait; default: limits.mailbox", 1<<24)),
	optional("bytes", size("bytes of messages that may wait; default: limits.mailbox-bytes")),
	optional("full", enum("priority, control-aware and deduplicating: what a full one does, as the kind of that name; default: bounded, which refuses", fullKinds()...)),
	optional("header", pattern(none, "which header has the level, the mark of a control message or the key; default: priority, control or idempotency-key", "a header's name: 1 to 64 visible ASCII characters", `^[!-~]{1,64}$`)),
	optional("types", mapping("priority and control-aware: levels by the type of a message, 0 is the most urgent", "", "", integer("a level", 0, mailbox.MaxLevels-1))),
	optional("levels", integer("priority: how many levels there are; default: 4", 2, mailbox.MaxLevels)),
	optional("otherwise", integer("priority and control-aware: level of messages that state none; default: the last one", 0, mailbox.MaxLevels-1)),
	optional("overtake", integer("priority and control-aware: how many messages in a row may overtake the one that has waited longest; 0: any number; default: 100", 0, 1_000_000)),
	optional("keys", count("deduplicating: how many keys are remembered, 128 bytes each; default: 1000", mailbox.MaxKeys)),
	optional("wait", duration("block: how long a sender from Go waits at most; default: 10s")),
)

// fullKinds are the kinds that say what a full mailbox does.
func fullKinds() []string { return mailbox.Kinds()[:mailbox.Block+1] }

// mailboxKeys are the keys that go with some kinds only.
var mailboxKeys = map[string][]mailbox.Kind{
	"full":      {mailbox.Priority, mailbox.ControlAware, mailbox.Deduplicating},
	"header":    {mailbox.Priority, mailbox.ControlAware, mailbox.Deduplicating},
	"types":     {mailbox.Priority, mailbox.ControlAware},
	"levels":    {mailbox.Priority},
	"otherwise": {mailbox.Priority, mailbox.ControlAware},
	"overtake":  {mailbox.Priority, mailbox.ControlAware},
	"keys":      {mailbox.Deduplicating},
	"wait":      {mailbox.Block},
}

// mailbox reads an actor's mailbox, and its bounds into the limits. limits may be a view of nothing.
func (c *checker) mailbox(v, limits view, l *limits) mailbox.Config {
	k, _ := mailbox.ParseKind(v.text("kind"))
	m, name := mailbox.New(k), k.String()
	if own := c.words.Mailboxes[v.text("kind")]; own != nil {
		name = v.text("kind")
		m = mailbox.Own(name, own)
		k = m.Kind()
	}
	full := mailbox.New(k)
	if name := v.text("full"); name != "" {
		f, _ := mailbox.ParseKind(name)
		m = m.WithFull(f)
		full = mailbox.New(f)
	}
	for _, key := range []string{"full", "header", "types", "levels", "otherwise", "overtake", "keys", "wait"} {
		x := v.get(key)
		waits := key == "wait" && full.Kind() == mailbox.Block
		if x.given() && !slices.Contains(mailboxKeys[key], k) && !waits {
			c.at(x.n, "mailbox.%s has no meaning for the kind %s", key, name)
			return m
		}
	}
	for _, same := range [][2]string{{"messages", "mailbox"}, {"bytes", "mailbox-bytes"}} {
		if x := v.get(same[0]); x.given() && limits.has(same[1]) {
			c.at(x.n, "mailbox.%s and limits.%s are the same; write one of them", same[0], same[1])
		}
	}
	l.Mailbox = int(v.count("messages", uint64(l.Mailbox)))
	l.MailboxBytes = int64(v.size("bytes", uint64(l.MailboxBytes)))
	m = m.WithHeader(v.text("header"))
	if v.has("levels") {
		m = m.WithLevels(v.whole("levels", mailbox.DefaultLevels))
	}
	m = m.WithOtherwise(v.whole("otherwise", -1)).WithOvertake(v.whole("overtake", mailbox.DefaultOvertake))
	m = m.WithKeys(int(v.count("keys", mailbox.DefaultKeys))).WithWait(v.duration("wait", mailbox.DefaultWait))
	types := map[string]int{}
	v.mapping("types").pairs(func(key *yaml.Node, value view) {
		n, err := levelOf(value.n)
		if err == nil {
			types[key.Value] = n
			err = m.WithTypes(map[string]int{key.Value: n}).Check()
		}
		if err != nil {
			c.at(value.n, "mailbox.%v", err)
		}
	})
	m = m.WithTypes(types)
	if err := m.WithTypes(nil).Check(); err != nil {
		n := v.n
		for _, key := range []string{"otherwise", "wait"} {
			if x := v.get(key); x.given() {
				n = x.n
			}
		}
		c.at(n, "mailbox.%v", err)
	} else if len(types) > mailbox.MaxTypes {
		c.at(v.get("types").n, "mailbox.%v", m.Check())
	}
	return m
}

// levelOf reads a number that was checked against the grammar.
func levelOf(n *yaml.Node) (int, error) {
	var level int
	if n.Decode(&level) != nil {
		return 0, errors.New("types: a level is a whole number")
	}
	return level, nil
}
