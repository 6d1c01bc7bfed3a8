// Package kv is the key-value service for actors: bytes and counters under keys, in namespaces
// that are granted. Writes may have conditions, be atomic together, and expire; watchers of a
// prefix are told of changes.
//
// A store is a pebble database in the state folder of the bundle, or in memory if the run has no
// state folder. docs/services/kv.md has the requests and the guarantees.
package kv

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/vfs"
	"github.com/wasmactors/wasmactors/host/service"
)

// Settings are the settings of a bundle's store.
type Settings struct {
	Store      string `manifest:"store" doc:"where it is kept: disk (in the state folder), memory, or auto (disk if the run keeps state, else memory); default auto" enum:"auto,disk,memory"`
	Scope      string `manifest:"scope" doc:"node: each node has its own store; cluster: all nodes of the cluster have the same, where its directory is; default node" enum:"node,cluster" reach:"cluster"`
	Durability string `manifest:"durability" doc:"what a write has survived when it is answered, unless a grant or the request says otherwise: disk (a failure of power), os (the end of the process), memory (nothing; it is on its way within a second); default disk" enum:"disk,os,memory"`
}

// Grant is one namespace, or several.
type Grant struct {
	Namespace  string       `manifest:"namespace" doc:"where the keys are: small letters, digits, dots, - and _" pattern:"^[a-z0-9][a-z0-9._-]{0,62}$" what:"a namespace" reach:"none"`
	Mode       string       `manifest:"mode" doc:"ro (reading) or rw (writing as well); default ro" enum:"ro,rw"`
	Quota      service.Size `manifest:"quota" doc:"bytes of the namespace: keys, values, and 64 for each entry; default 64MiB, or 8MiB with scope: cluster" min:"1024"`
	Keys       int64        `manifest:"keys" doc:"entries of the namespace; default 100000" min:"1"`
	Durability string       `manifest:"durability" doc:"that of writes that do not say; default that of the settings" enum:"disk,os,memory"`
	Namespaces []Space      `manifest:"namespaces" doc:"several namespaces instead of one; requests name theirs"`
}

// Space is one of several namespaces of a grant.
type Space struct {
	Namespace  string       `manifest:"namespace,required" doc:"where the keys are: small letters, digits, dots, - and _" pattern:"^[a-z0-9][a-z0-9._-]{0,62}$" what:"a namespace" reach:"none"`
	Mode       string       `manifest:"mode" doc:"ro (reading) or rw (writing as well); default ro" enum:"ro,rw"`
	Quota      service.Size `manifest:"quota" doc:"bytes of the namespace: keys, values, and 64 for each entry; default 64MiB, or 8MiB with scope: cluster" min:"1024"`
	Keys       int64        `manifest:"keys" doc:"entries of the namespace; default 100000" min:"1"`
	Durability string       `manifest:"durability" doc:"that of writes that do not say; default that of the settings" enum:"disk,os,memory"`
}

// Defaults of a namespace.
const (
	DefaultQuota = 64 << 20
	// DefaultSharedQuota is that with scope: cluster, where all nodes have a copy of everything in memory.
	DefaultSharedQuota = 8 << 20
	DefaultKeys        = 100_000
)

// scopeCluster is the scope of a store that all nodes have.
const scopeCluster = "cluster"

// Service is kv.
var Service = service.Define(service.Definition[Settings, Grant]{
	Name:          "kv",
	Doc:           "keeps bytes and counters under keys",
	Bounds:        service.Bounds{AtOnce: 256, Bytes: 16 << 20},
	CheckGrant:    checkGrant,
	CheckSettings: checkSettings,
	Open:          open,
})

func checkSettings(s *Settings) error {
	if s.Scope == scopeCluster && (s.Store != "" || s.Durability != "") {
		return service.At("scope", errors.New("with scope: cluster the store is where the directory is: leave out store and durability"))
	}
	if _, ok := parseDurability(s.Durability, Disk); !ok {
		return service.At("durability", fmt.Errorf("%q is not one of disk, os, memory", s.Durability))
	}
	return nil
}

func checkGrant(g *Grant) error {
	if len(g.Namespaces) == 0 {
		if g.Namespace == "" {
			return errors.New("a grant names its namespace, or several namespaces")
		}
		return checkSpace("", g.all()[0])
	}
	if g.Namespace != "" || g.Mode != "" || g.Quota != 0 || g.Keys != 0 || g.Durability != "" {
		return service.At("namespaces", errors.New("with namespaces, each has its own namespace, mode, quota, keys and durability"))
	}
	seen := map[string]bool{}
	for i, s := range g.Namespaces {
		at := fmt.Sprintf("namespaces[%d]", i)
		if seen[s.Namespace] {
			return service.At(at, fmt.Errorf("namespace %s is there twice", s.Namespace))
		}
		seen[s.Namespace] = true
		if err := checkSpace(at+".", s); err != nil {
			return err
		}
	}
	return nil
}

// checkSpace also checks settings that do not come from a manifest.
func checkSpace(at string, s Space) error {
	switch _, ok := parseDurability(s.Durability, Disk); {
	case !isNamespace(s.Namespace):
		return service.At(at+"namespace", fmt.Errorf("%q is not a namespace: small letters, digits, dots, - and _, at most 63", s.Namespace))
	case s.Mode != "" && s.Mode != "ro" && s.Mode != "rw":
		return service.At(at+"mode", fmt.Errorf("%q is not ro or rw", s.Mode))
	case !ok:
		return service.At(at+"durability", fmt.Errorf("%q is not one of disk, os, memory", s.Durability))
	case s.Quota < 0:
		return service.At(at+"quota", errors.New("it is negative"))
	case s.Keys < 0:
		return service.At(at+"keys", errors.New("it is negative"))
	}
	return nil
}

// all returns the namespaces of a grant.
func (g *Grant) all() []Space {
	if len(g.Namespaces) > 0 {
		return g.Namespaces
	}
	return []Space{{g.Namespace, g.Mode, g.Quota, g.Keys, g.Durability}}
}

// quota is the quota of a namespace; bytes is that of one that does not say.
func (s *Space) quota(bytes int64) Quota {
	q := Quota{Keys: DefaultKeys, Bytes: bytes}
	if s.Quota > 0 {
		q.Bytes = int64(s.Quota)
	}
	if s.Keys > 0 {
		q.Keys = s.Keys
	}
	return q
}

// open makes the provider.
func open(env *service.Env, set *Settings) (service.Provider[Grant], error) {
	p := newProvider(env)
	p.durability, _ = parseDurability(set.Durability, Disk)
	if set.Scope == scopeCluster && env.Shared != nil {
		var err error
		p.quota = DefaultSharedQuota
		p.store, err = openShared(env)
		return p, err
	}
	dir, err := env.StateDir()
	switch {
	case set.Store == "memory" || set.Store != "disk" && errors.Is(err, service.ErrNoState):
		if set.Store != "memory" {
			env.Log.Info("no state folder: the store is in memory and lost at the end")
		}
		p.store, err = openStore(newMemory(), env.Clock, env.Log, nil)
	case err != nil:
		return nil, err
	default:
		p.store, err = openFolder(dir, env)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func openFolder(dir string, env *service.Env) (*store, error) {
	eng, err := openOnDisk(dir, vfs.Default, env.Log)
	if err != nil {
		return nil, err
	}
	s, err := openStore(eng, env.Clock, env.Log, reopenOnDisk)
	if err != nil {
		return nil, errors.Join(err, eng.close())
	}
	return s, nil
}

// Close implements service.Provider.
func (p *provider) Close(context.Context) error { return p.store.close() }
