package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/internal/regular"
)

// FileName is the manifest's name in its folder.
const FileName = "bundle.yaml"

// maxManifest bounds the size of a manifest, in bytes.
const maxManifest = 4 << 20

// Load reads the manifest of a bundle: path is the folder, or the manifest
// itself. What is wrong with its contents comes back as Diagnostics.
func Load(path string) (*Manifest, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: there is no such bundle: %w", path, errors.Unwrap(err))
	}
	if info.IsDir() {
		path = filepath.Join(path, FileName)
		if _, err = os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s: the folder holds no %s; `wasmactors new` makes one", filepath.Dir(path), FileName)
		}
	}
	data, err := regular.Read(context.Background(), path, maxManifest)
	switch {
	case errors.Is(err, regular.ErrSize):
		return nil, fmt.Errorf("%s: the manifest is larger than 4 MiB", path)
	case errors.Is(err, regular.ErrKind):
		return nil, fmt.Errorf("the manifest cannot be read: %w", err)
	case err != nil:
		return nil, err
	}
	return Parse(path, data)
}

// Parse is Load for a manifest that was read already; file is its name, and its
// folder what paths are relative to.
func Parse(file string, data []byte) (*Manifest, error) {
	c := &checker{file: file}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, Diagnostics{syntaxError(file, err)}
	}
	if len(doc.Content) == 0 {
		return nil, Diagnostics{{file, 1, 1, "the manifest is empty"}}
	}
	root := doc.Content[0]
	if c.structure(root, 0) {
		c.check(root, grammar, "the manifest")
	}
	if len(c.found) > 0 {
		return nil, c.found
	}
	m := c.manifest(root)
	if len(c.found) > 0 {
		return nil, c.found
	}
	return m, nil
}

// syntaxError finds the line in the message of the YAML library.
func syntaxError(file string, err error) Diagnostic {
	d := Diagnostic{file, 1, 1, "not YAML: " + err.Error()}
	var line int
	var rest string
	if n, _ := fmt.Sscanf(err.Error(), "yaml: line %d: ", &line); n == 1 && line > 0 {
		if _, after, ok := cutAfterLine(err.Error()); ok {
			rest = after
		}
		d.Line = line
		d.Message = "not YAML: " + rest
	}
	return d
}

func cutAfterLine(s string) (before, after string, ok bool) {
	for i, colons := 0, 0; i < len(s); i++ {
		if s[i] == ':' {
			if colons++; colons == 2 && i+2 <= len(s) {
				return s[:i], s[i+2:], true
			}
		}
	}
	return "", "", false
}
