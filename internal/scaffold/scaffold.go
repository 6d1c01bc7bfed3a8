// Package scaffold makes new bundles that build without a network: the guest SDK
// and the ABI go into the guest's vendor folder.
package scaffold

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
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

// modules are those whose packages are vendored, all of them.
var modules = []string{"abi", "guest-sdk"}

// Pack collects the sources under root, the repository, as a JSON object of
// contents by path.
func Pack(root string) ([]byte, error) {
	files := map[string]string{}
	for _, mod := range modules {
		err := filepath.WalkDir(filepath.Join(root, mod), func(p string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && e.Name() == "testdata":
				return fs.SkipDir
			case e.IsDir() || !strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, ".s") || strings.HasSuffix(p, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, p)
			files[filepath.ToSlash(rel)] = string(text)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return json.MarshalIndent(files, "", " ")
}

// templates are the files of new bundles besides the SDK, in a folder for each kind of bundle. NAME in them is
// the bundle's name, and go.mod.txt is go.mod, which no embedded folder can hold.
//
//go:embed all:_templates
var templates embed.FS

// Default is the template of a bundle that is asked for without one.
const Default = "counter"

// Templates are the names of the templates, sorted.
func Templates() []string {
	entries, err := templates.ReadDir("_templates")
	if err != nil {
		panic(err) // they are embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// own are the files of a template, by their paths in the bundle.
func own(template, name string) (map[string]string, error) {
	root := path.Join("_templates", template)
	files := map[string]string{}
	err := fs.WalkDir(templates, root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := templates.ReadFile(p)
		files[strings.TrimSuffix(strings.TrimPrefix(p, root+"/"), ".txt")] = strings.ReplaceAll(string(text), "NAME", name)
		return err
	})
	return files, err
}

// New makes a bundle called name in dir, which must be empty or not exist, from one of the Templates. It
// returns the paths of the files that a person would look at.
func New(dir, name, template string) ([]string, error) {
	if !slices.Contains(Templates(), template) {
		return nil, fmt.Errorf("there is no template %q: use one of %s", template, strings.Join(Templates(), ", "))
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty", dir)
	}
	var sdk map[string]string
	if err := json.Unmarshal(packed, &sdk); err != nil {
		return nil, err
	}
	files, err := own(template, name)
	if err != nil {
		return nil, err
	}
	var shown []string
	for p := range files {
		shown = append(shown, filepath.Join(dir, filepath.FromSlash(p)))
	}
	sort.Strings(shown)
	for p, text := range sdk {
		files["guest/vendor/"+module+p] = text
	}
	files["guest/vendor/modules.txt"] = modulesTxt(sdk)
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

// packages are the import paths of what is packed, sorted.
func packages(sdk map[string]string) []string {
	var out []string
	for p := range sdk {
		out = append(out, module+path.Dir(p))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// modulesTxt is what the go command expects beside vendored packages.
func modulesTxt(sdk map[string]string) string {
	var b strings.Builder
	for _, mod := range modules {
		fmt.Fprintf(&b, "# %s%s %s\n## explicit; go 1.23\n", module, mod, version)
		for _, p := range packages(sdk) {
			if p == module+mod || strings.HasPrefix(p, module+mod+"/") {
				b.WriteString(p + "\n")
			}
		}
	}
	return b.String()
}
