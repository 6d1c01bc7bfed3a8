package bundle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Words are what an embedder adds to the language of manifests: names for mailboxes, ways to spread messages, and
// delays of its own, which a manifest uses as it uses ours. A name has 1 to 64 characters: lowercase letters, digits
// and hyphens, a letter first; ours cannot be replaced. The functions are called by any goroutine.
//
//	words := bundle.Words{Mailboxes: map[string]func(host.MailboxLimits) host.Mailbox{"by-deadline": newByDeadline}}
//	m, err := words.Load("shop", nil, all.Kinds()...)
//
// The zero value adds nothing.
type Words struct {
	// Mailboxes are values of mailbox.kind, in the manifest and in the options of a guest's spawn. Of the other keys of a
	// mailbox, messages and bytes go with them. They do not go with durable and resend, and faults of scenarios cannot apply
	// to messages in them.
	Mailboxes map[string]func(host.MailboxLimits) host.Mailbox
	// Logics are values of router. No key of routing goes with them but manage and admit.
	Logics map[string]router.Make
	// Curves are values of backoff.curve; they get min and max of the manifest.
	Curves map[string]func(least, most time.Duration) backoff.Curve
	// Jitters are values of backoff.jitter.
	Jitters map[string]backoff.Jitter
}

// The words of enums.
const (
	wordsMailboxes = "mailboxes"
	wordsLogics    = "logics"
	wordsCurves    = "curves"
	wordsJitters   = "jitters"
)

// named are the words as the grammar has them.
func (w *Words) named() map[string][]string {
	return map[string][]string{wordsMailboxes: w.mailboxes(), wordsLogics: w.logics(), wordsCurves: w.curves(), wordsJitters: w.jitters()}
}

// What a manifest names of each.
func (w *Words) mailboxes() []string { return slices.Sorted(maps.Keys(w.Mailboxes)) }
func (w *Words) logics() []string    { return slices.Sorted(maps.Keys(w.Logics)) }
func (w *Words) curves() []string    { return slices.Sorted(maps.Keys(w.Curves)) }
func (w *Words) jitters() []string   { return slices.Sorted(maps.Keys(w.Jitters)) }

// delays completes what the manifest says of a backoff.
func (w *Words) delays(s *backoff.Spec) {
	if curve := w.Curves[s.Curve]; curve != nil {
		s.OwnCurve = curve(s.Min, s.Max)
	}
	if jitter, ok := w.Jitters[s.Jitter]; ok {
		s.OwnJitter = &jitter
	}
}

var word = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// check reports words that cannot be used.
func (w *Words) check() error {
	for _, x := range []struct {
		what  string
		names []string
		ours  []string
		made  func(name string) bool
	}{
		{"mailbox", w.mailboxes(), mailbox.Kinds(), func(n string) bool { return w.Mailboxes[n] != nil }},
		{"router", w.logics(), logicNames(), func(n string) bool { return w.Logics[n] != nil }},
		{"curve", w.curves(), backoff.Curves(), func(n string) bool { return w.Curves[n] != nil }},
		{"jitter", w.jitters(), backoff.Jitters(), func(string) bool { return true }},
	} {
		for _, name := range x.names {
			switch {
			case !word.MatchString(name):
				return fmt.Errorf("bundle: the %s %q needs another name: 1 to 64 of a-z 0-9 -, a letter first", x.what, name)
			case slices.Contains(x.ours, name):
				return fmt.Errorf("bundle: there is a %s %q already", x.what, name)
			case !x.made(name):
				return fmt.Errorf("bundle: the %s %q is nil", x.what, name)
			}
		}
	}
	return nil
}

// Load is [LoadWith] for manifests that may use the words. It fails if they cannot be used.
func (w Words) Load(path string, vars Variables, kinds ...service.Kind) (*Manifest, error) {
	path, data, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	return w.Parse(path, data, vars, kinds...)
}

// Parse is [ParseWith] for manifests that may use the words. It fails if they cannot be used.
func (w Words) Parse(file string, data []byte, vars Variables, kinds ...service.Kind) (*Manifest, error) {
	c, err := w.checker(file, vars, kinds)
	if err != nil {
		return nil, err
	}
	return c.parse(data)
}

// checker is one for a manifest that may use the words.
func (w *Words) checker(file string, vars Variables, kinds []service.Kind) (*checker, error) {
	c := checkerOf(file, *w)
	c.vars, c.kinds = vars, kinds
	return c, w.check()
}

// Schema is [Schema] with the words.
func (w Words) Schema(kinds ...service.Kind) []byte { return schemaWith(&w, kinds) }
