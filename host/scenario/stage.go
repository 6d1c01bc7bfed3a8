package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/blob"
	"github.com/wasmactors/wasmactors/host/service/config"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
	"github.com/wasmactors/wasmactors/host/service/kv"
	"github.com/wasmactors/wasmactors/host/service/sql"
	"github.com/wasmactors/wasmactors/host/service/tcp"
	"github.com/wasmactors/wasmactors/host/service/udp"
)

// Stage runs scenarios of a bundle, one after the other. It stands between the bundle and its
// services, so the manifest is loaded with [Stage.Kinds] and opened with [Stage.Open].
type Stage struct {
	kinds  []service.Kind
	now    *world // nil: no scenario runs
	paths  map[*bundle.Actor]string
	ended  func(*world) // of tests; called when the steps of a scenario have been carried out
	twins  []twins      // of the bundle's modules; nil: no simulation has needed them
	packed sync.Map     // what stores keep of the modules' code
}

// routes are the routes of the bundle, for a scenario that makes requests itself: they listen nowhere.
func routes(all *bundle.HTTP, w *world) *bundle.HTTP {
	if all == nil {
		return nil
	}
	h := *all
	h.Config.Listen, h.Config.Rand, h.Config.Clock = nil, w.randomness(), w.exec
	return &h
}

// NewStage is a stage for bundles that use these services. Services that it does not know are used
// unchanged; those of the product keep nothing, and reach no network.
func NewStage(kinds ...service.Kind) *Stage {
	st := &Stage{}
	for _, k := range kinds {
		st.kinds = append(st.kinds, &stagedService{k, st})
	}
	return st
}

// Kinds are the services for bundle.LoadWith.
func (st *Stage) Kinds() []service.Kind { return slices.Clone(st.kinds) }

// Open opens a bundle for scenarios. Nothing of it listens: the scenarios talk to its actors themselves.
func (st *Stage) Open(ctx context.Context, m *bundle.Manifest, o bundle.Options) (*bundle.Bundle, error) {
	deaf := *m
	st.paths = map[*bundle.Actor]string{}
	deaf.Walk(func(path string, a *bundle.Actor) { st.paths[a] = path })
	o.AdjustProps, o.StateDir, o.Store, o.NoRecorder = st.adjustProps, nil, st.store, true
	if allow := o.Allow; allow != nil {
		o.Allow = func(found []bundle.Reach) error { return allow(st.reached(found)) }
	} else {
		o.Allow = func(found []bundle.Reach) error { return bundle.Permit()(st.reached(found)) }
	}
	return bundle.Open(ctx, &deaf, o)
}

// store is the store of a scenario: in a simulation one on a simulated disk. In others durable actors begin anew, as they do
// in simulations whose steps are about the mailbox of a durable actor.
func (st *Stage) store(o durable.Options) (durable.Options, bool) {
	if st.now == nil || st.now.simulated == nil || st.now.simulated.disk == nil {
		return o, false
	}
	return st.now.simulated.disk.Options(o), true
}

// reached is what scenarios reach of what a manifest names: nothing listens, and what the services that the
// stage replaces would open is not opened.
func (st *Stage) reached(found []bundle.Reach) []bundle.Reach {
	var not []string
	for _, k := range st.kinds {
		switch k.NewSettings().(type) {
		case *config.Settings:
			not = append(not, "services.config.environment.", "services.config.secrets.")
		case *blob.Settings, *sql.Settings:
			not = append(not, "services."+k.Name()+".")
		case *httpclient.Settings:
			not = append(not, "services.http.", ".capabilities.http.")
		case *tcp.Settings:
			not = append(not, ".capabilities.tcp.connect", ".capabilities.tcp.listen", ".capabilities.tcp.private")
		case *udp.Settings:
			not = append(not, ".capabilities.udp.")
		}
	}
	return slices.DeleteFunc(slices.Clone(found), func(r bundle.Reach) bool {
		return r.Kind == service.ReachCluster || r.Kind == service.ReachCode || strings.HasPrefix(r.Key, "http.") || strings.HasPrefix(r.Key, "store.") || slices.ContainsFunc(not, func(key string) bool {
			return strings.HasPrefix(r.Key, key) || key[0] == '.' && strings.Contains(r.Key, key)
		})
	})
}

// has reports whether the manifest has an actor of a path.
func (st *Stage) has(path string) bool {
	for _, of := range st.paths {
		if of == path {
			return true
		}
	}
	return false
}

// adjustProps puts stand-ins, and mailboxes with faults, where the scenario asks for them.
func (st *Stage) adjustProps(a *bundle.Actor, p host.Props) host.Props {
	path, w := st.paths[a], st.now
	if path == "" || w == nil {
		return p // of a route
	}
	switch {
	case slices.Contains(w.scenario.standIns, path):
		return w.standIn(path).props()
	case w.scenario.hasFaults(path, a):
		return p.WithMailbox(w.faultyMailbox(path, a))
	}
	return p
}

// stagedService is a service in the form for scenarios.
type stagedService struct {
	service.Kind
	stage *Stage
}

// StartWith implements service.Kind.
func (k *stagedService) StartWith(sys *host.System, env *service.Env, settings any) (*service.Running, error) {
	w := k.stage.now
	if w == nil {
		return nil, fmt.Errorf("the service %s is for scenarios, and no scenario runs", k.Name())
	}
	own := service.Env{Clock: w.exec, Rand: w.randomness(), Getenv: w.getenv, StateDir: func() (string, error) { return "", service.ErrNoState }}
	if env != nil {
		own.Base, own.Log = env.Base, env.Log
		own.Bundle, own.Nodes, own.Shared = env.Bundle, env.Nodes, w.life.sharing()
	}
	kept := func() (string, error) {
		dir, err := w.folder()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(dir, w.name, k.Name())
		return dir, os.MkdirAll(dir, 0o700)
	}
	switch s := settings.(type) {
	case *config.Settings:
		settings = w.configured(s)
	case *kv.Settings:
		c := &kv.Settings{Store: "memory"}
		if w.cluster != nil {
			c.Scope = s.Scope
		}
		settings = c
	case *blob.Settings:
		own.StateDir = kept
		c := *s
		c.Folder = ""
		settings = &c
	case *sql.Settings:
		own.StateDir = kept
		c, err := onlyFiles(s)
		if err != nil {
			return nil, err
		}
		settings = c
	case *httpclient.Settings:
		return httpclient.New(httpclient.Options{Answer: webAt{w.web, w.place}}).StartWith(sys, &own, &httpclient.Settings{UserAgent: s.UserAgent})
	case *tcp.Settings:
		return tcp.New(tcp.Options{Deaf: true}).StartWith(sys, &own, s)
	case *udp.Settings:
		return udp.New(udp.Options{Deaf: true}).StartWith(sys, &own, s)
	}
	return k.Kind.StartWith(sys, &own, settings)
}

// onlyFiles replaces databases by files of the scenario's own.
func onlyFiles(s *sql.Settings) (*sql.Settings, error) {
	c := *s
	c.Databases = map[string]sql.DatabaseSettings{}
	for _, name := range sortedKeys(s.Databases) {
		d := s.Databases[name]
		if d.Driver != "" && d.Driver != "sqlite" {
			return nil, fmt.Errorf("services.sql.databases.%s: driver %s needs a server, and scenarios reach none: let a stand-in play the actors that use it", name, d.Driver)
		}
		d.File = ""
		c.Databases[name] = d
	}
	return &c, nil
}

// variable begins the names of the variables that stand for values of the scenario in the environment of services.
// No manifest can name them.
const variable = "WASMACTORS_SCENARIO_"

func (w *world) getenv(name string) (string, bool) {
	for _, of := range []struct {
		prefix string
		m      map[string]string
	}{{variable + "CONFIG_", w.scenario.config}, {variable + "SECRET_", w.scenario.secrets}} {
		for i, k := range sortedKeys(of.m) {
			if name == fmt.Sprintf("%s%d", of.prefix, i) {
				return of.m[k], true
			}
		}
	}
	v, ok := w.scenario.env[name]
	return v, ok
}

// configured are settings of the service config with the values that the scenario states. There are no
// other secrets.
func (w *world) configured(s *config.Settings) *config.Settings {
	c := *s
	c.Environment, c.Secrets = map[string]string{}, map[string]config.Secret{}
	for k, v := range s.Environment {
		c.Environment[k] = v
	}
	for i, k := range sortedKeys(w.scenario.config) {
		c.Environment[k] = fmt.Sprintf("%sCONFIG_%d", variable, i)
	}
	for _, k := range sortedKeys(s.Secrets) {
		name := s.Secrets[k].Env
		if name == "" {
			name = variable + "UNSTATED"
		}
		c.Secrets[k] = config.Secret{Env: name, Optional: true}
		if _, ok := w.getenv(name); !ok && w.scenario.secrets[k] == "" {
			w.note("the secret %s is not stated: actors that ask for it are told that there is none", k)
		}
	}
	for i, k := range sortedKeys(w.scenario.secrets) {
		c.Secrets[k] = config.Secret{Env: fmt.Sprintf("%sSECRET_%d", variable, i)}
	}
	c.Files = slices.Clone(s.Files)
	for i := range c.Files {
		c.Files[i].Watch = false
	}
	return &c
}
