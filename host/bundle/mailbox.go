package bundle

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/mailbox"
)

var mailboxShape = object("where the actor's messages wait",
	optional("kind", enumWith(wordsMailboxes, "what a full one does, which message comes next, or which ones are taken; default: bounded", mailbox.Kinds()...)),
	optional("messages", count("messages that may wait; default: limits.mailbox", 1<<24)),
	optional("bytes", size("bytes of messages that may wait; default: limits.mailbox-bytes")),
	optional("full", enum(ofKinds("full", "what a full one does, as the kind of that name; default: bounded, which refuses"), mailbox.KindsForFull()...)),
	optional("header", pattern(none, "which header has the level, the mark of a control message or the key; default: priority, control or idempotency-key", "a header's name: 1 to 64 visible ASCII characters", `^[!-~]{1,64}$`)),
	optional("types", mapping(ofKinds("types", "levels by the type of a message, 0 is the most urgent"), "", "", integer("a level", 0, mailbox.MaxLevels-1))),
	optional("levels", integer(ofKinds("levels", "how many levels there are; default: 4"), 2, mailbox.MaxLevels)),
	optional("otherwise", integer(ofKinds("otherwise", "level of messages that state none; default: the last one"), 0, mailbox.MaxLevels-1)),
	optional("overtake", integer(ofKinds("overtake", "how many messages in a row may overtake the one that has waited longest; 0: any number; default: 100"), 0, 1_000_000)),
	optional("keys", count(ofKinds("keys", "how many keys are remembered, 128 bytes each; default: 1000"), mailbox.MaxKeys)),
	optional("wait", duration(ofKinds("wait", "how long a sender from Go waits at most; default: 10s"))),
)

// ofKinds is a description that begins with the kinds that a key goes with.
func ofKinds(key, doc string) string {
	names := mailbox.KindsThatTake(key)
	last := len(names) - 1
	if last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last] + ": " + doc
	}
	return names[last] + ": " + doc
}

// mailbox reads an actor's mailbox, and its bounds into the limits. limits may be a view of nothing.
func (c *checker) mailbox(v, limits view, l *limits) mailbox.Config {
	k, _ := mailbox.ParseKind(v.text("kind"))
	m := mailbox.New(k)
	if own := c.words.Mailboxes[v.text("kind")]; own != nil {
		m = mailbox.Own(v.text("kind"), own)
	}
	if name := v.text("full"); name != "" {
		f, _ := mailbox.ParseKind(name)
		m = m.WithFull(f)
	}
	for _, f := range mailboxShape.Fields {
		if x := v.get(f.Name); f.Name != "kind" && x.given() && !m.Takes(f.Name) {
			c.At(x.n, "mailbox.%s has no meaning for the kind %s", f.Name, m.Name())
			return m
		}
	}
	for _, same := range [][2]string{{"messages", "mailbox"}, {"bytes", "mailbox-bytes"}} {
		if x := v.get(same[0]); x.given() && limits.has(same[1]) {
			c.At(x.n, "mailbox.%s and limits.%s are the same; write one of them", same[0], same[1])
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
			c.At(value.n, "mailbox.%v", err)
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
		c.At(n, "mailbox.%v", err)
	} else if len(types) > mailbox.MaxTypes {
		c.At(v.get("types").n, "mailbox.%v", m.Check())
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
