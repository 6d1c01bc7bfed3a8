// Package config is the service that gives actors their settings and secrets: from the manifest,
// files, the environment, or a store of secrets that the embedder provides.
package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/filewatch"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Settings are the manifest's services.config. If a key is in several places, the environment
// takes precedence, then the files from the last to the first, then values.
type Settings struct {
	Values      map[string]string `manifest:"values" doc:"values by key" key:"[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*" what:"names of letters, digits, - and _, with dots between them" reach:"none" keyreach:"none"`
	Files       []File            `manifest:"files" doc:"files with values"`
	Environment map[string]string `manifest:"environment" doc:"values by key, as names of variables of the environment; one that is not set gives no value" key:"[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*" what:"names of letters, digits, - and _, with dots between them" reach:"env" keyreach:"none"`
	Secrets     map[string]Secret `manifest:"secrets" doc:"where secrets are, by key" key:"[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*" what:"names of letters, digits, - and _, with dots between them" keyreach:"none"`
}

// File is a file with values.
type File struct {
	Path     string `manifest:"path,required" doc:"the file, from the folder of the manifest on" reach:"read"`
	Format   string `manifest:"format" doc:"default: what the name ends with" enum:"yaml,json,env"`
	Prefix   string `manifest:"prefix" doc:"what its keys begin with" reach:"none"`
	Watch    bool   `manifest:"watch" doc:"it is read again when it has changed, and those are told who watch what has"`
	Optional bool   `manifest:"optional" doc:"it may be missing"`
}

// Secret says where a secret is: exactly one field is set.
type Secret struct {
	File     string `manifest:"file" doc:"in a file that only the user can read; a newline at its end does not count" reach:"read"`
	Env      string `manifest:"env" doc:"in a variable of the environment" reach:"env"`
	Provider string `manifest:"provider" doc:"with a provider that the embedder has named" reach:"secret"`
	Shared   bool   `manifest:"shared" doc:"file: others may read it, too"`
	Optional bool   `manifest:"optional" doc:"it may be missing"`
}

// Grant is the manifest's capabilities.config of an actor.
type Grant struct {
	Keys    []string `manifest:"keys" doc:"patterns of the keys that it may read: * is any run of characters, ? is one" reach:"none"`
	Secrets []string `manifest:"secrets" doc:"patterns of the secrets that it may have" reach:"none"`
}

// Provider gets secrets from elsewhere, such as a vault, a cloud's key service or a keyring. It
// is called for each request, possibly concurrently; ctx ends with the request. An error that
// wraps ErrNoSecret says that there is no such secret. The text of an error is logged and not
// sent to guests.
type Provider interface {
	Secret(ctx context.Context, key string) ([]byte, error)
}

// Bounds.
const (
	MaxKey      = 128
	MaxFile     = 1 << 20 // bytes
	MaxKeys     = 10_000
	MaxValue    = 64 << 10 // bytes of a value, as CBOR
	MaxList     = 100      // values in an answer
	MaxPatterns = 16       // of a watcher
	MaxWatchers = 100      // of a grant
	mostWatch   = 10_000   // in all
	answerBytes = 128 << 10
)

// Service gives values and secrets, without providers.
var Service = New(nil)

// New is the service with providers of secrets, by the names that settings use for them.
func New(providers map[string]Provider) *service.Service[Settings, Grant] {
	return service.Define(service.Definition[Settings, Grant]{
		Name: "config", Doc: "gives settings and secrets",
		Bounds:        service.Bounds{AtOnce: 32, Bytes: 1 << 20, Rate: 1000, Burst: 1000, Timeout: 10 * time.Second},
		CheckSettings: func(s *Settings) error { return s.check(providers) },
		CheckGrant:    checkGrant,
		Open: func(env *service.Env, s *Settings) (service.Provider[Grant], error) {
			if err := s.check(providers); err != nil {
				return nil, err
			}
			return open(env, s, providers)
		},
	})
}

func checkGrant(g *Grant) error {
	for _, list := range []struct {
		key string
		of  []string
	}{{"keys", g.Keys}, {"secrets", g.Secrets}} {
		for i, p := range list.of {
			if !validPattern(p) {
				return service.At(fmt.Sprintf("%s[%d]", list.key, i), fmt.Errorf("%.80q is not a pattern of keys, such as db.*", p))
			}
		}
	}
	return nil
}

func (s *Settings) check(providers map[string]Provider) error {
	for _, list := range []struct {
		key string
		of  []string
	}{{"values", keys(s.Values)}, {"environment", keys(s.Environment)}, {"secrets", keys(s.Secrets)}} {
		for _, key := range list.of {
			if !validKey(key) {
				return service.At(list.key, fmt.Errorf("%.80q is not a key, such as db.host", key))
			}
		}
	}
	for _, key := range keys(s.Environment) {
		if name := s.Environment[key]; !validVariable(name) {
			return service.At("environment."+key, fmt.Errorf("%.80q is not the name of a variable", name))
		}
	}
	for i, f := range s.Files {
		at := func(key string, format string, a ...any) error {
			return service.At(fmt.Sprintf("files[%d].%s", i, key), fmt.Errorf(format, a...))
		}
		switch {
		case f.Path == "" || strings.ContainsRune(f.Path, 0):
			return at("path", "the name of a file")
		case f.format() == "":
			return at("format", "the name %.80q does not say which; write format: yaml, json or env", f.Path)
		case f.Prefix != "" && !validKey(strings.TrimSuffix(f.Prefix, ".")):
			return at("prefix", "%.80q is not what a key begins with, such as db.", f.Prefix)
		}
	}
	for _, key := range keys(s.Secrets) {
		x := s.Secrets[key]
		given := 0
		for _, text := range []string{x.File, x.Env, x.Provider} {
			if text != "" {
				given++
			}
		}
		switch {
		case given != 1:
			return service.At("secrets."+key, fmt.Errorf("one of file, env and provider is needed"))
		case x.Env != "" && !validVariable(x.Env):
			return service.At("secrets."+key+".env", fmt.Errorf("%.80q is not the name of a variable", x.Env))
		case x.Provider != "" && providers[x.Provider] == nil:
			return service.At("secrets."+key+".provider", fmt.Errorf("there is no provider %.80q: the program that embeds the host names the providers, see config.New", x.Provider))
		case strings.ContainsRune(x.File, 0):
			return service.At("secrets."+key+".file", fmt.Errorf("the name of a file"))
		}
	}
	return nil
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// validKey reports whether a text consists of names of letters, digits, - and _, separated by
// dots.
func validKey(s string) bool {
	if len(s) > MaxKey {
		return false
	}
	for _, name := range strings.Split(s, ".") {
		if name == "" || strings.Trim(name, letters+"_-") != "" {
			return false
		}
	}
	return true
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func validPattern(s string) bool {
	return s != "" && len(s) <= MaxKey && strings.Trim(s, letters+"_-.*?") == ""
}

func validVariable(s string) bool {
	return s != "" && len(s) <= MaxKey && strings.Trim(s, letters+"_") == ""
}

// provider is the running service.
type provider struct {
	env       *service.Env
	settings  *Settings
	providers map[string]Provider
	log       *slog.Logger

	mu       sync.Mutex
	values   map[string]value
	sorted   []string // keys
	version  uint64
	watchers map[host.Ref]*watcher
	watch    *filewatch.Watcher // nil: no file is
	stop     chan struct{}
	done     chan struct{} // closed when files are no longer watched
}

// watcher is an actor that is notified of changes.
type watcher struct {
	patterns []string // its own
	granted  []string
	grant    uint64
}

func open(env *service.Env, s *Settings, providers map[string]Provider) (*provider, error) {
	p := &provider{env: env, settings: s, providers: providers, log: env.Log, watchers: map[host.Ref]*watcher{}, stop: make(chan struct{}), done: make(chan struct{})}
	var err error
	if p.values, err = p.read(); err != nil {
		return nil, err
	}
	p.sorted, p.version = keys(p.values), 1
	for _, key := range keys(s.Secrets) { // redacted before any actor gets one
		if x := s.Secrets[key]; x.Provider == "" {
			if _, err := p.secret(context.Background(), key, x); err != nil && (!x.Optional || service.CodeOf(err) != service.NotFound) {
				var known *service.Error
				if errors.As(err, &known) && known.Err != nil { // the operator may know why
					err = known.Err
				}
				return nil, service.At("secrets."+key, err)
			}
		}
	}
	p.watchFiles()
	return p, nil
}

// watchFiles reads changed files again.
func (p *provider) watchFiles() {
	var set filewatch.Set
	for _, f := range p.settings.Files {
		if f.Watch {
			set.Files = append(set.Files, p.path(f.Path))
		}
	}
	if len(set.Files) == 0 {
		close(p.done)
		return
	}
	p.watch = filewatch.New(filewatch.Options{Clock: p.env.Clock})
	p.watch.Watch(set)
	p.env.Go(func() {
		defer close(p.done)
		for {
			if _, which := service.Receive(p.env, p.watch.C(), p.stop); which != 0 {
				return
			}
			p.watch.Take()
			p.reread()
		}
	})
}

// reread applies changes of files, or leaves everything as it was if one of them cannot be read.
func (p *provider) reread() {
	values, err := p.read()
	if err != nil {
		p.log.Warn("the values stay as they were: a file has changed and cannot be read", "error", err)
		return
	}
	p.mu.Lock()
	var changed []string
	for _, key := range keys(values) {
		if old, ok := p.values[key]; !ok || !slices.Equal(old, values[key]) {
			changed = append(changed, key)
		}
	}
	for _, key := range p.sorted {
		if _, ok := values[key]; !ok {
			changed = append(changed, key)
		}
	}
	if len(changed) == 0 {
		p.mu.Unlock()
		return
	}
	slices.Sort(changed)
	p.values, p.sorted = values, keys(values)
	p.version++
	version := p.version
	told := map[host.Ref][]string{}
	for ref, w := range p.watchers {
		for _, key := range changed {
			if glob.MatchAny(w.patterns, key) && glob.MatchAny(w.granted, key) && len(told[ref]) < MaxList {
				told[ref] = append(told[ref], key)
			}
		}
	}
	p.mu.Unlock()
	p.log.Info("values have changed", "keys", len(changed))
	self, _ := p.env.System.Lookup("/system/config")
	for ref, list := range told {
		if err := p.env.System.TellFrom(self, ref, Changed{list, version}); err != nil {
			p.forgetEnded()
		}
	}
}

// Changed is the message to a watcher; its sender is the service.
type Changed struct {
	Keys    []string `cbor:"changed"` // sorted, at most MaxList
	Version uint64   `cbor:"version"`
}

// forgetEnded drops watchers that have ended.
func (p *provider) forgetEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ref := range p.watchers {
		if _, err := p.env.System.View().Info(ref); err != nil {
			delete(p.watchers, ref)
		}
	}
}

// Close implements service.Provider.
func (p *provider) Close(context.Context) error {
	if p.watch != nil {
		close(p.stop)
		service.Receive(p.env, p.done)
		p.watch.Close()
	}
	return nil
}

// path is the path of a file.
func (p *provider) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(p.env.Base, name)
}
