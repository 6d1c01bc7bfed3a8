package bundle

import (
	"context"
	"errors"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Check reports all that is wrong with a bundle at once. It checks the manifest, and builds
// and loads every module whose entry in it is valid, and compares the messages of its actors. The manifest is nil if it has mistakes
// itself. The error joins Diagnostics and ModuleErrors.
func Check(ctx context.Context, path string, vars Variables, o Options) (*Manifest, error) {
	file, data, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	c, err := o.Words.checker(file, vars, o.Services)
	if err != nil {
		return nil, err
	}
	m, err := c.parse(data)
	if err == nil {
		o.LoadOnly = true
		apart := m.CheckMessages()
		b, err := Open(ctx, m, o)
		if err != nil {
			return m, errors.Join(apart, err)
		}
		return m, errors.Join(apart, b.Close(ctx))
	}
	if c.root == nil {
		return nil, err
	}
	o.LoadOnly = true
	b, openErr := Open(ctx, c.modulesOnly(c.root), o)
	if openErr == nil {
		openErr = b.Close(ctx)
	}
	return nil, errors.Join(err, openErr)
}

// modulesOnly are the valid modules of a manifest that has mistakes.
func (c *checker) modulesOnly(root *yaml.Node) *Manifest {
	m := c.empty()
	modules := view{root, plain, nil}.get("modules")
	if !modules.given() || modules.n.Kind != yaml.MappingNode {
		return m
	}
	twice := func(name string) bool {
		return slices.ContainsFunc(m.Modules, func(x Module) bool { return x.Name == name })
	}
	modules.pairs(func(k *yaml.Node, v view) {
		own := checkerOf(c.File, Words{})
		own.Check(v.n, moduleShape, "module")
		if len(own.Found) > 0 || twice(k.Value) {
			return
		}
		v.c = own
		if mod := own.module(m, k, v); len(own.Found) == 0 {
			m.Modules = append(m.Modules, mod)
			m.named = append(m.named, own.namedIn(v.n, moduleShape, below("modules", k.Value))...)
		}
	})
	return m
}
