package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/internal/cddl"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Messages is what a manifest says about the messages that an actor takes and sends. It has no effect on the running
// bundle: CheckMessages compares it with what the other actors say.
type Messages struct {
	File    string   // with the CDDL of them, relative to the manifest
	Accepts []string // names, with a version or for all that the file has
	Sends   []Sends  // in the order of the file

	node     *yaml.Node
	accepted []*yaml.Node // of Accepts
}

// Sends is what an actor sends to the actors whose path matches.
type Sends struct {
	To       string
	Messages []string

	nodes []*yaml.Node // of Messages
}

const (
	messageRule = `^[A-Za-z_][A-Za-z0-9_.-]*(@[1-9][0-9]{0,4})?$`
	messageWhat = "a type of message such as bank.payment, or bank.payment@2 for one version"
)

var messagesShape = object("which messages it takes and sends; `wasmactors check` compares both ends",
	required("file", pattern(none, "the messages as CDDL, as guest-sdk/gen -cddl writes them, in the folder of the manifest or below", "a path of a file", `^[^/].*$`)),
	optional("accepts", list("types of messages that it handles", pattern(none, "a type", messageWhat, messageRule))),
	optional("sends", mapping("types of messages that it sends, by the path of the receivers", pathWhat, pathRule,
		list("types of messages", pattern(none, "a type", messageWhat, messageRule)))),
)

// messages reads the key of an actor.
func (c *checker) messages(v view) *Messages {
	if !v.given() {
		return nil
	}
	m := &Messages{File: v.text("file"), Accepts: v.texts("accepts"), node: v.get("file").n}
	for _, x := range v.items("accepts") {
		m.accepted = append(m.accepted, x.n)
	}
	if !filepath.IsLocal(m.File) {
		c.At(m.node, "messages.file: %q is not in the folder of the manifest or below", m.File)
	}
	v.mapping("sends").pairs(func(k *yaml.Node, list view) {
		s := Sends{To: k.Value}
		for _, n := range list.n.Content {
			s.Messages, s.nodes = append(s.Messages, n.Value), append(s.nodes, n)
		}
		m.Sends = append(m.Sends, s)
	})
	return m
}

// danglingReceivers reports paths in messages.sends that match no actor.
func (c *checker) danglingReceivers(actor view, paths []string, spawners map[string]bool) {
	actor.object("messages").mapping("sends").pairs(func(k *yaml.Node, _ view) {
		c.danglingAt(k, "messages.sends", paths, spawners)
	})
}

// CheckMessages compares what actors send with what their receivers accept, as far as the manifest states both: each
// message's newest version, or the one that is named, and its answer. The error is Diagnostics, at the
// place of the sender's, with the place of the receiver's in the text.
func (m *Manifest) CheckMessages() error {
	c := &messageCheck{m: m, files: map[string]*cddl.File{}}
	type party struct {
		path string
		*Messages
		file *cddl.File
	}
	var all []party
	m.Walk(func(path string, a *Actor) {
		if a.Messages == nil {
			return
		}
		f := c.file(a.Messages)
		if f == nil {
			return
		}
		c.own(a.Messages, f)
		all = append(all, party{path, a.Messages, f})
	})
	for _, from := range all {
		for _, s := range from.Sends {
			to := glob.CompilePaths([]string{s.To})
			for _, other := range all {
				if !glob.MatchAnyPath(to, strings.Split(other.path[1:], "/")) {
					continue
				}
				for i, name := range s.Messages {
					c.compare(s.nodes[i], name, from.file, other.path, other.Messages, other.file)
				}
			}
		}
	}
	if len(c.found) == 0 {
		return nil
	}
	return c.found
}

type messageCheck struct {
	m     *Manifest
	files map[string]*cddl.File // nil: it cannot be read, which was reported
	found Diagnostics
}

func (c *messageCheck) at(n *yaml.Node, format string, args ...any) {
	c.found = append(c.found, Diagnostic{File: c.m.File, Line: max(n.Line, 1), Column: max(n.Column, 1), Message: fmt.Sprintf(format, args...)})
}

// file reads a file of messages once.
func (c *messageCheck) file(m *Messages) *cddl.File {
	if f, had := c.files[m.File]; had {
		return f
	}
	c.files[m.File] = nil
	text, err := readWithin(c.m.Dir, m.File)
	if err != nil {
		c.at(m.node, "messages.file: %s cannot be read: %v; guest-sdk/gen -cddl writes it", m.File, err)
		return nil
	}
	f, err := cddl.Parse(filepath.Join(filepath.Dir(c.m.File), m.File), text)
	var bad *cddl.Error
	if errors.As(err, &bad) {
		c.found = append(c.found, Diagnostic{File: bad.At.File, Line: bad.At.Line, Column: bad.At.Column, Message: bad.What})
		return nil
	}
	c.files[m.File] = f
	return f
}

// readWithin reads a regular file in a folder or below; no link leads out of it.
func readWithin(dir, name string) ([]byte, error) {
	root, err := regular.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := regular.ReadIn(root, name, cddl.MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such file")
	case errors.Is(err, regular.ErrKind):
		return nil, errors.New("it is not a file")
	}
	return text, err
}

// own compares what an actor says with its own file.
func (c *messageCheck) own(m *Messages, f *cddl.File) {
	for i, name := range m.Accepts {
		if len(versionsOf(f, name)) == 0 {
			c.at(m.accepted[i], "messages.accepts: %s does not define %s%s", m.File, name, grammar.Suggest(name, messageNames(f)))
		}
	}
	for _, s := range m.Sends {
		for i, name := range s.Messages {
			if len(versionsOf(f, name)) == 0 {
				c.at(s.nodes[i], "messages.sends: %s does not define %s%s", m.File, name, grammar.Suggest(name, messageNames(f)))
			}
		}
	}
}

// messageNames are the names of rules that are messages, without versions.
func messageNames(f *cddl.File) []string {
	var names []string
	for _, rule := range f.Names() {
		if _, ok := f.At(rule + ".sent"); ok {
			base, _, _ := strings.Cut(rule, "@")
			names = append(names, base)
		}
	}
	return slices.Compact(names)
}

// versionsOf are the rules of a message, the newest first: those of all versions, or the one that is named.
func versionsOf(f *cddl.File, name string) []string {
	var rules []string
	for _, rule := range f.Names() {
		if _, ok := f.At(rule + ".sent"); !ok {
			continue
		}
		if base, _, _ := strings.Cut(rule, "@"); rule == name || base == name {
			rules = append(rules, rule)
		}
	}
	slices.SortFunc(rules, func(a, b string) int { return versionOf(b) - versionOf(a) })
	return rules
}

func versionOf(rule string) int {
	_, v, _ := strings.Cut(rule, "@")
	n, _ := strconv.Atoi(v)
	return n
}

// compare compares a message that is sent with what its receiver accepts, and the answers.
func (c *messageCheck) compare(at *yaml.Node, name string, from *cddl.File, path string, to *Messages, accepts *cddl.File) {
	sent := versionsOf(from, name)
	if len(sent) == 0 {
		return // which was reported
	}
	rule := sent[0]
	defined, _ := from.At(rule)
	base, _, _ := strings.Cut(rule, "@")
	var known []string
	for _, a := range to.Accepts {
		if b, _, _ := strings.Cut(a, "@"); b == base {
			known = append(known, versionsOf(accepts, a)...)
		}
	}
	if len(known) == 0 {
		var names []string
		for _, a := range to.Accepts {
			b, _, _ := strings.Cut(a, "@")
			names = append(names, b)
		}
		c.at(at, "%s (%s) is sent to %s, which does not accept it: %s says what it accepts%s; add it there, and handle it, or do not send it",
			rule, defined, path, c.place(to.node), grammar.Suggest(base, names))
		return
	}
	if !slices.Contains(known, rule) {
		read, _ := accepts.At(known[0])
		what := "give it an adapter from that version on"
		if versionOf(rule) > versionOf(known[0]) {
			what = "bring it up to date first, or send an older version"
		}
		c.at(at, "%s (%s) is sent to %s, which reads %s (%s): %s", rule, defined, path, strings.Join(known, ", "), read, what)
		return
	}
	c.mismatches(at, "", path, cddl.Compare(from, rule+".sent", accepts, rule))

	asks, answers := from.Alias(rule+".answer"), accepts.Alias(rule+".answer")
	switch {
	case asks == "":
	case answers == "":
		read, _ := accepts.At(rule)
		c.at(at, "%s (%s) is a question, and %s does not answer it (%s): say answer=... there, or tell it instead", rule, defined, path, read)
	default:
		if b, _, _ := strings.Cut(asks, "@"); b != strings.SplitN(answers, "@", 2)[0] || !slices.Contains(versionsOf(from, b), answers) {
			want, _ := from.At(asks)
			got, _ := accepts.At(answers)
			c.at(at, "%s: %s answers with %s (%s), and %s (%s) is what is read: use one type, or give the asker an adapter", rule, path, answers, got, asks, want)
			return
		}
		c.mismatches(at, "the answer of "+path+": ", "the asker", cddl.Compare(accepts, answers+".sent", from, answers))
	}
}

func (c *messageCheck) mismatches(at *yaml.Node, before, to string, list []cddl.Mismatch) {
	for _, x := range list {
		c.at(at, "%s%s: %s; what %s accepts is at %s: %s", before, x.Sent, x.What, to, x.Accepted, x.Do)
	}
}

func (c *messageCheck) place(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", c.m.File, n.Line, n.Column)
}
