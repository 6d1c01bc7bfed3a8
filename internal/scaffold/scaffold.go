// Package scaffold makes new bundles that build without a network: the guest SDK
// and the ABI go into the guest's vendor folder.
package scaffold

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

//go:generate go run gen.go

//go:embed sdk.json
var packed []byte

const (
	module  = "github.com/wasmactors/wasmactors/"
	version = "v0.1.0"
)

// vendored are the packages that a guest needs, by module.
var vendored = map[string][]string{"abi": {"."}, "guest-sdk": {"actor", "actortest", "events", "gen", "internal/bridge", "internal/feed", "metrics", "pubsub", "service"}}

// Pack collects the sources under root, the repository, as a JSON object of
// contents by path.
func Pack(root string) ([]byte, error) {
	files := map[string]string{}
	for mod, packages := range vendored {
		for _, p := range packages {
			dir := filepath.Join(root, mod, p)
			entries, err := os.ReadDir(dir)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
					continue
				}
				text, err := os.ReadFile(filepath.Join(dir, e.Name()))
				if err != nil {
					return nil, err
				}
				files[path.Join(mod, p, e.Name())] = string(text)
			}
		}
	}
	return json.MarshalIndent(files, "", " ")
}

// New makes a bundle called name in dir, which must be empty or not exist. It
// returns the paths of the files that a person would look at.
func New(dir, name string) ([]string, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty", dir)
	}
	var sdk map[string]string
	if err := json.Unmarshal(packed, &sdk); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for p, text := range own {
		files[p] = strings.ReplaceAll(text, "NAME", name)
	}
	var shown []string
	for p := range files {
		shown = append(shown, filepath.Join(dir, filepath.FromSlash(p)))
	}
	sort.Strings(shown)
	for p, text := range sdk {
		files["guest/vendor/"+module+p] = text
	}
	files["guest/vendor/modules.txt"] = modulesTxt()
	for p, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(full, []byte(text), fs.FileMode(0o644)); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// modulesTxt is what the go command expects beside vendored packages.
func modulesTxt() string {
	var b strings.Builder
	for _, mod := range []string{"abi", "guest-sdk"} {
		fmt.Fprintf(&b, "# %s%s %s\n## explicit; go 1.23\n", module, mod, version)
		for _, p := range vendored[mod] {
			b.WriteString(path.Join(module+mod, p) + "\n")
		}
	}
	return b.String()
}
