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
var vendored = map[string][]string{"abi": {"."}, "guest-sdk": {"actor", "internal/bridge"}}

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

// own are the files of a new bundle besides the SDK.
var own = map[string]string{
	"bundle.yaml": `# What the bundle is made of. docs/bundle.md describes every key.
wasmactors: 1
name: NAME

modules:
  guest: {go: ./guest}

limits:
  memory: 32MiB
  fuel: 100M          # a turn; about an instruction each
  deadline: 1s        # a turn

supervision:          # what happens when one of the actors below fails
  strategy: one-for-one
  max-restarts: 10
  within: 1m
  backoff: {min: 50ms, max: 5s, spread: 0.2}

actors:
  counter:
    type: guest/counter
    args: {start: 100}
`,
	"input.ndjson": `{"to": "counter", "message": 1}
{"to": "counter", "message": 20}
{"to": "counter", "message": "not a number"}
{"to": "counter", "message": 300}
`,
	"README.md": "# NAME\n\nA wasmactors bundle: one actor that counts.\n\n    wasmactors run . --input input.ndjson\n\n" +
		"The guest is `guest/main.go`. Its third message makes it crash; it is restarted after a short delay and begins anew.\n\n" +
		"The SDK is vendored so that the guest builds without a network. To follow releases: remove `guest/vendor` and run `go mod tidy` in `guest`.\n",
	"guest/go.mod": "module NAME\n\ngo 1.23\n\nrequire (\n\t" + module + "abi " + version + "\n\t" + module + "guest-sdk " + version + "\n)\n",
	"guest/main.go": `// The actors of the bundle.
package main

import "github.com/wasmactors/wasmactors/guest-sdk/actor"

// counter adds up the numbers that it is sent.
type counter struct{ total int64 }

// Start reads the arguments of the manifest.
func (c *counter) Start(ctx *actor.Context) error {
	r := ctx.Args()
	for n := r.Map(); n > 0; n-- {
		if r.Text() == "start" {
			c.total = r.Int()
		} else {
			r.Skip()
		}
	}
	return r.Err()
}

func (c *counter) Receive(ctx *actor.Context, msg *actor.Message) error {
	n, ok := msg.Int()
	if !ok {
		panic("I count numbers only") // a crash: the supervisor decides
	}
	c.total += n
	return ctx.Reply(actor.Int(c.total))
}

func init() { actor.Register("counter", func() actor.Actor { return &counter{} }) }

func main() {}
`,
}
