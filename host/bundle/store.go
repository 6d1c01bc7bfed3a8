package bundle

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/regular"
	"github.com/wasmactors/wasmactors/supervision"
)

// Store is where the durable actors of a bundle are kept.
type Store struct {
	Path     string // of its folder, absolute
	Size     int64  // bytes
	Sync     durable.Sync
	Interval time.Duration // of durable.Interval
	Recovery time.Duration
	Lazy     bool          // actors return when something comes for them
	Keep     time.Duration // how long what is not needed any more is kept; 0: not at all
	KeyEnv   string        // the variable that has the key; "" for none
	KeyFile  string        // the file that has it, absolute; "" for none
	// KeyCommand is the program that prints it, with its arguments; nil for none. It runs in the manifest's folder.
	KeyCommand []string

	dir string // of the manifest

	text string // see canonical
}

const (
	leastDurable = 4 << 10
	durableKey   = "durable"
	eventsValue  = "events"
	syncWhat     = "always, never, or how much time a power failure may take, such as 10ms"
)

var storeShape = object("where durable actors are kept",
	required("path", text(service.ReachWrite, "the folder of the store, relative to the manifest; it is made if it is missing")),
	optional("size", sizeIn("bytes of its files; default: 10GiB", durable.MinSize, 1<<50)),
	optional("sync", pattern(none, "what a turn waits for before it takes effect: "+syncWhat+"; default: always", syncWhat, `^(always|never|[0-9].*)$`)),
	optional("recovery", duration("how long it may take to repeat what came after the last checkpoint; default: 1s")),
	optional("return", enum("when durable actors return: at the start, or late, when something comes for them; default: start", "start", "late")),
	optional("keep", duration("how long the store can be copied as it was, see wasmactors store fork --at; default: 0, not at all")),
	optional("key", object("encrypts the log; 32 bytes in hexadecimal or base64: either env, file or command",
		optional("env", pattern(service.ReachEnv, "the variable of the environment that has the key", "a variable's name", `^[A-Za-z_][A-Za-z0-9_]*$`)),
		optional("file", text(service.ReachRead, "the file that has the key, relative to the manifest")),
		optional("command", command("the program that prints the key, with its arguments; it is started in the folder of the manifest")),
	)),
)

// store reads the key store.
func (c *checker) store(m *Manifest, v view) *Store {
	if !v.given() {
		return nil
	}
	s := &Store{Path: m.within(v.text("path")), Size: int64(v.size("size", durable.DefaultSize)), text: canonical(v.n), dir: m.Dir}
	if path := v.text("path"); path == "" || strings.ContainsRune(path, 0) {
		c.At(v.get("path").n, "store.path must name a folder, such as ./state")
	}
	switch x := v.text("sync"); x {
	case "", "always":
	case "never":
		s.Sync = durable.Never
	default:
		d, err := grammar.ParseDuration(x)
		if err != nil || d < time.Millisecond || d > time.Minute {
			c.At(v.get("sync").n, "store.sync must be %s, between 1ms and 1m", syncWhat)
		}
		s.Sync, s.Interval = durable.Interval, d
	}
	if s.Recovery = v.duration("recovery", durable.DefaultRecovery); s.Recovery < durable.MinRecovery || s.Recovery > time.Hour {
		c.At(v.get("recovery").n, "store.recovery must be between %v and 1h", durable.MinRecovery)
	}
	s.Lazy = v.text("return") == "late"
	if s.Keep = v.duration("keep", 0); s.Keep != 0 && (s.Keep < durable.MinKeep || s.Keep > durable.MaxKeep) {
		c.At(v.get("keep").n, "store.keep must be 0, or between %v and ten years", durable.MinKeep)
	}
	if k := v.object("key"); k.given() {
		env, file, given := k.text("env"), k.text("file"), 0
		s.KeyCommand = k.texts("command")
		for _, is := range []bool{env != "", file != "", len(s.KeyCommand) > 0} {
			if is {
				given++
			}
		}
		if given != 1 {
			c.At(k.n, "store.key: either env, file or command is needed, and only one of them")
		}
		if s.KeyEnv = env; file != "" {
			s.KeyFile = m.within(file)
		}
	}
	return s
}

// within is a path of the manifest as an absolute one.
func (m *Manifest) within(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(m.Dir, path)
}

// durable checks the keys durable of a manifest, which has been read otherwise.
func (c *checker) durable(m *Manifest, actors view) {
	i, some := -1, false
	actors.pairs(func(_ *yaml.Node, v view) {
		i++
		a := &m.Actors[i]
		c.notBelow(v, a)
		c.events(m, v, a)
		if a.Durable = v.flag(durableKey, false); !a.Durable {
			c.limitOfNothing(v, a)
			return
		}
		some = true
		at := v.get(durableKey).n
		mod, _ := m.Module(a.Module)
		with := ""
		switch {
		case a.spread():
			c.At(at, "actor %s: durable: true repeats what an actor was sent, from the store of one machine, and this one moves between nodes: write durable: events, and keep its state, or events, by guest-sdk/persist", a.Name)
		case m.Store == nil:
			c.At(at, "actor %s: durable needs the key store, which says where its state is kept", a.Name)
		case a.Routing != nil:
			with = "to"
		case a.Keyed != nil:
			with = "keyed"
		case a.Resend != nil:
			with = "resend"
		case !a.Mailbox.IsUsual():
			with = "mailbox.kind: " + a.Mailbox.Name()
		case a.Dispatcher != (host.Dispatcher{}):
			with = "dispatcher"
		case !mod.Freeze:
			c.At(at, "actor %s: durable needs an image that is frozen, and the module %s has freeze: false", a.Name, a.Module)
		case len(mod.Dirs) > 0:
			c.At(at, "actor %s: durable cannot be combined with dirs of the module %s: files change beside the store", a.Name, a.Module)
		}
		if with != "" {
			c.At(at, "actor %s: durable cannot be combined with %s yet", a.Name, with)
		}
		for k := range a.Children {
			c.plainBelow(at, a.Name+"/"+a.Children[k].Name, &a.Children[k])
		}
	})
	if some && m.Supervision.Kind() != supervision.OneForOne {
		c.At(c.root, "supervision.strategy of the bundle must be one-for-one if an actor is durable: the failure of an actor that is not kept would otherwise restart one that is")
	}
}

// limitOfNothing refuses limits.durable of an actor that is not kept, and of those below it.
func (c *checker) limitOfNothing(v view, a *Actor) {
	if x := v.object("limits").get("durable"); x.given() && !a.Events {
		c.At(x.n, "actor %s: limits.durable bounds what is kept of an actor, and nothing is kept of this one: write durable: true or durable: events, or remove it", a.Name)
	}
	i := -1
	v.mapping("children").pairs(func(_ *yaml.Node, child view) {
		i++
		c.limitOfNothing(child, &a.Children[i])
	})
}

// notBelow refuses durable for children: those of a durable actor are durable, and no others can be.
func (c *checker) notBelow(v view, a *Actor) {
	i := -1
	v.mapping("children").pairs(func(_ *yaml.Node, child view) {
		i++
		if x := child.get(durableKey); x.given() && x.n.Value != eventsValue {
			c.At(x.n, "actor %s: durable is for actors at the top: all below a durable actor are durable, and a durable actor cannot be below one that is not", a.Children[i].Name)
		}
		c.notBelow(child, &a.Children[i])
	})
}

// plainBelow refuses what a child of a durable actor cannot be.
func (c *checker) plainBelow(at *yaml.Node, path string, a *Actor) {
	if a.Events {
		c.At(at, "actor %s is durable as all below a durable actor, and cannot keep events", path)
	}
	if a.Routing != nil || a.Keyed != nil || a.Resend != nil || !a.Mailbox.IsUsual() || a.Dispatcher != (host.Dispatcher{}) {
		c.At(at, "actor %s is durable as all below a durable actor, and to, keyed, resend, mailbox.kind and dispatcher cannot be combined with that yet", path)
	}
	for k := range a.Children {
		c.plainBelow(at, path+"/"+a.Children[k].Name, &a.Children[k])
	}
}

// key reads the key of the store; nil if it has none.
func (s *Store) key() ([]byte, error) {
	var of, value string
	switch {
	case s.KeyEnv != "":
		of, value = "the variable "+s.KeyEnv, os.Getenv(s.KeyEnv)
	case s.KeyFile != "":
		b, err := regular.ReadFile(s.KeyFile, 1024)
		if err != nil {
			return nil, fmt.Errorf("store.key: %w", err)
		}
		of, value = s.KeyFile, string(b)
	case len(s.KeyCommand) > 0:
		b, err := s.printed()
		if err != nil {
			return nil, fmt.Errorf("store.key: %w", err)
		}
		of, value = "what "+s.KeyCommand[0]+" prints", string(b)
	default:
		return nil, nil
	}
	value = strings.TrimSpace(value)
	for _, read := range []func(string) ([]byte, error){hex.DecodeString, base64.StdEncoding.DecodeString} {
		if b, err := read(value); err == nil && len(b) == 32 {
			return b, nil
		}
	}
	return nil, fmt.Errorf("store.key: %s does not have 32 bytes in hexadecimal or base64; openssl rand -hex 32 makes some", of)
}

// Bounds of a command that prints a key.
const (
	keyTime  = 30 * time.Second
	keyBytes = 1024
)

// printed is what the command of the key prints.
func (s *Store) printed() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keyTime)
	defer cancel()
	var out, complaint printout
	c := exec.CommandContext(ctx, s.KeyCommand[0], s.KeyCommand[1:]...)
	c.Dir, c.Stdout, c.Stderr, c.WaitDelay = s.dir, &out, &complaint, time.Second
	err := c.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s has taken more than %v", s.KeyCommand[0], keyTime)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %.200q", s.KeyCommand[0], err, complaint.b)
	case out.over:
		return nil, fmt.Errorf("%s has printed more than %d bytes", s.KeyCommand[0], keyBytes)
	}
	return out.b, nil
}

// printout keeps the first bytes that are written to it.
type printout struct {
	b    []byte
	over bool
}

// Write implements io.Writer.
func (w *printout) Write(p []byte) (int, error) {
	room := min(len(p), keyBytes-len(w.b))
	w.b, w.over = append(w.b, p[:room]...), w.over || room < len(p)
	return len(p), nil
}

// Options are those that the store is opened with.
func (s *Store) Options() (durable.Options, error) {
	key, err := s.key()
	return durable.Options{Dir: s.Path, Size: s.Size, Sync: s.Sync, Interval: s.Interval, Recovery: s.Recovery, Lazy: s.Lazy, Keep: s.Keep, Key: key}, err
}

// Open opens the store.
func (s *Store) Open() (*durable.Store, error) {
	o, err := s.Options()
	if err != nil {
		return nil, err
	}
	return s.openWith(o)
}

func (s *Store) openWith(o durable.Options) (*durable.Store, error) {
	x, err := durable.Open(o)
	if err != nil {
		return nil, fmt.Errorf("the store %s: %w", s.Path, err)
	}
	return x, nil
}

// storeOf says how to open the store of a manifest; false if there is none.
func (b *Bundle) storeOf(m *Manifest) (o durable.Options, there bool, err error) {
	if m.Store == nil || b.noStore {
		return o, false, nil
	}
	if f := b.adjustStore; f != nil {
		if _, there = f(o); !there { // its key is not asked for then
			return o, false, nil
		}
	}
	if o, err = m.Store.Options(); err == nil && b.adjustStore != nil {
		o, _ = b.adjustStore(o)
	}
	return o, true, err
}

// starting is a system whose actors are about to come.
type starting interface {
	// Recover brings durable actors back, and says which.
	Recover() (map[string]bool, error)
	// Release lets all begin. Abandon is for a system that is closed before.
	Release()
	Abandon()
}

// volatile is a system without a store.
type volatile struct{}

func (volatile) Recover() (map[string]bool, error) { return nil, nil }
func (volatile) Release()                          {}
func (volatile) Abandon()                          {}

// newSystem makes the system, and opens the store if there is one.
func (b *Bundle) newSystem(cfg host.Config) (sys *host.System, starting starting, err error) {
	b.endProbation()
	if err := b.closeStore(); err != nil && b.adjustStore == nil {
		b.log.Error("the store of the last start", "error", err)
	}
	if cfg, err = b.recorded(cfg); err != nil {
		return nil, nil, err
	}
	m := b.Manifest
	o, there, err := b.storeOf(m)
	if err != nil {
		return nil, nil, err
	}
	b.volatile = !there
	if !there && b.node != nil && (b.spreadEvents() || b.spreadKeys()) {
		if cfg, err = b.keepSpread(cfg); err != nil {
			return nil, nil, err
		}
	} else if !there && keepsEvents(m) {
		if b.memory, err = persist.NewMemory(); err != nil {
			return nil, nil, err
		}
		b.journal, cfg = b.memory.Journal, cfg.WithStore(b.memory)
	}
	if !there {
		sys, err := host.New(cfg)
		return sys, volatile{}, err
	}
	o.Code = b.loadKept
	if b.store, err = m.Store.openWith(o); err != nil {
		return nil, nil, err
	}
	b.opened.Store(b.store)
	for _, mod := range m.Modules {
		if err := b.keepCode(context.Background(), m, mod.Name, b.loaded[mod.Name]); err != nil {
			return nil, nil, errOf(err, b.closeStore())
		}
	}
	if keepsEvents(m) {
		if b.journal, err = b.store.Events(); err != nil {
			return nil, nil, errOf(fmt.Errorf("the store %s: %w", m.Store.Path, err), b.closeStore())
		}
	}
	props := durable.Props{}
	for i := range m.Actors {
		if a := &m.Actors[i]; a.Durable {
			props[a.Name] = b.props(a)
		}
	}
	x, err := b.store.Prepare(cfg, props)
	if err != nil {
		return nil, nil, errOf(fmt.Errorf("the store %s: %w", m.Store.Path, err), b.closeStore())
	}
	if err := b.findProbation(x.System()); err != nil {
		x.Abandon()
		return nil, nil, errOf(err, errors.Join(x.System().Close(context.Background()), b.closeStore()))
	}
	return x.System(), x, nil
}

// closeStore closes the store of a system that has ended.
func (b *Bundle) closeStore() error {
	if b.memory != nil {
		err := b.memory.Close()
		if b.memory, b.journal = nil, nil; err != nil {
			return err
		}
	}
	b.journal = nil
	if b.spreadLog != nil {
		err := b.spreadLog.Close()
		b.spreadLog = nil
		return err
	}
	if b.store == nil {
		return nil
	}
	b.opened.Store(nil)
	err := b.store.Close()
	b.store = nil
	return err
}

// Store is what keeps the durable actors of the system that runs; nil if nothing does. Any goroutine may call it.
func (b *Bundle) Store() *durable.Store { return b.opened.Load() }

// StoreFailure is why the store of the system that was started last has failed; nil if it has not, or if there is none.
func (b *Bundle) StoreFailure() error {
	if b.store == nil {
		return nil
	}
	return b.store.Err()
}

// textOf is what a manifest says of its store.
func textOf(s *Store) string {
	if s == nil {
		return ""
	}
	return s.text
}

// durableWith is a durable actor that a module is needed for; "" if there is none.
func durableWith(m *Manifest, module string) (name string) {
	m.Walk(func(path string, a *Actor) {
		top := find(m.Actors, strings.Split(path, "/")[2])
		if top.Durable && a.Module == module {
			name = top.Name
		}
	})
	return name
}
