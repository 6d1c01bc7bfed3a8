package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// FileName is the manifest's name in its folder.
const FileName = "bundle.yaml"

// maxManifest bounds the size of a manifest, in bytes.
const maxManifest = 4 << 20

// Load reads the manifest of a bundle: path is the folder, or the manifest
// itself. What is wrong with its contents comes back as Diagnostics.
func Load(path string) (*Manifest, error) { return LoadWith(path, nil) }

// LoadWith is Load with the values of variables; nil: there are none. kinds are the services
// that the manifest may grant.
func LoadWith(path string, vars Variables, kinds ...service.Kind) (*Manifest, error) {
	return Words{}.Load(path, vars, kinds...)
}

// readManifest finds and reads the file.
func readManifest(path string) (file string, data []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", nil, fmt.Errorf("%s: there is no such bundle: %w", path, errors.Unwrap(err))
	}
	if info.IsDir() {
		path = filepath.Join(path, FileName)
		if _, err = os.Stat(path); err != nil {
			return "", nil, fmt.Errorf("%s: the folder holds no %s; `wasmactors new` makes one", filepath.Dir(path), FileName)
		}
	}
	data, err = regular.Read(context.Background(), path, maxManifest)
	switch {
	case errors.Is(err, regular.ErrSize):
		return "", nil, fmt.Errorf("%s: the manifest is larger than 4 MiB", path)
	case err != nil:
		return "", nil, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	return path, data, nil
}

// Parse is Load for a manifest that was read already; file is its name, and its
// folder what paths are relative to.
func Parse(file string, data []byte) (*Manifest, error) { return ParseWith(file, data, nil) }

// ParseWith is Parse with the values of variables; nil: there are none. kinds are the services
// that the manifest may grant.
func ParseWith(file string, data []byte, vars Variables, kinds ...service.Kind) (*Manifest, error) {
	return Words{}.Parse(file, data, vars, kinds...)
}

func (c *checker) parse(data []byte) (*Manifest, error) {
	for _, k := range c.kinds {
		if key := cmp.Or(service.Undeclared(k.SettingsShape()), service.Undeclared(k.GrantShape())); key != "" {
			return nil, fmt.Errorf("the service %s does not declare what its key %q reaches outside of a bundle, so no manifest can use it; see service.Reach", k.Name(), key)
		}
	}
	if c.shape = plain; len(c.kinds) > 0 {
		c.shape, _ = grammarOf(c.kinds)
	}
	const what = "the manifest"
	root := c.Document(data, what, func(root *yaml.Node) {
		c.expand(root)
		c.Check(root, c.shape, what)
	})
	c.root = root
	if len(c.Found) > 0 {
		return nil, c.Found
	}
	m := c.manifest(view{root, c.shape, c})
	m.named, m.words = append(c.namedIn(root, c.shape, ""), c.spread...), c.words
	if len(c.Found) > 0 {
		return nil, c.Found
	}
	return m, nil
}
