package contract

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../../"

// What guests are made of must compile under TinyGo, which cannot be taken for
// granted where the tests run: no reflection and no large packages on the path of
// a message, and a go line that older compilers accept.
func TestGuestCodeStaysWithinTinyGo(t *testing.T) {
	allowed := []string{"bytes", "encoding/binary", "errors", "math", "math/bits", "runtime", "strconv", "time", "unicode/utf8", "unsafe"}
	// The author of a sample may take what TinyGo compiles and the SDK is too small for.
	samples := []string{"encoding/base64", "encoding/hex", "encoding/json", "crypto/hmac", "crypto/sha256", "net/url", "slices", "strings"}
	tools := []string{root + "guest-sdk/gen", root + "guest-sdk/actortest"} // they run where the author works
	files := 0
	for _, dir := range []string{"abi", "guest-sdk", "samples/hello/guest", "samples/ledger/guest", "samples/flaky/guest", "samples/chat/guest", "samples/crawler/guest", "samples/webhooks/guest", "samples/redis/guest", "samples/accounts/guest", "bench/guests/go"} {
		mod, err := os.ReadFile(root + dir + "/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`(?m)^go 1\.(\d+)`).FindSubmatch(mod); m == nil {
			t.Errorf("%s/go.mod has no go line", dir)
		} else if minor, _ := strconv.Atoi(string(m[1])); minor > 23 {
			t.Errorf("%s/go.mod asks for go 1.%d", dir, minor)
		}
		err = filepath.WalkDir(root+dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() && slices.Contains(tools, path) {
				return fs.SkipDir
			}
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			files++
			for _, imp := range f.Imports {
				name, _ := strconv.Unquote(imp.Path.Value)
				// The SDK puts its own reader in the place of TinyGo's.
				replaced := name == "crypto/rand" && strings.HasSuffix(path, "guest-sdk/actor/random_tinygo.go")
				// Not for TinyGo, and once in a life.
				replaced = replaced || name == "reflect" && strings.HasSuffix(path, "guest-sdk/actor/plain_go.go")
				// TinyGo compiles both, and only guests with streams have them.
				replaced = replaced || (name == "strings" || name == "container/heap") && strings.HasPrefix(path, root+"abi/flow/")
				if !strings.HasPrefix(name, "github.com/wasmactors/wasmactors/") && !slices.Contains(allowed, name) && !replaced && !(strings.HasPrefix(dir, "samples/") && slices.Contains(samples, name)) {
					t.Errorf("%s imports %s", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 20 {
		t.Errorf("only %d files were looked at", files)
	}
}

// With TinyGo an int has 32 bits: what guests are made of compiles there, tests included.
func TestGuestCodeCompilesWith32Bits(t *testing.T) {
	for _, dir := range []string{"abi", "guest-sdk", "host/typed/testdata/mapped"} {
		cmd := exec.Command("go", "vet", "./...")
		cmd.Dir = root + dir
		cmd.Env = append(os.Environ(), "GOARCH=386", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", dir, err, out)
		}
	}
}

// The samples build with TinyGo, where there is one.
func TestSamplesBuildWithTinyGo(t *testing.T) {
	tinygo, err := exec.LookPath("tinygo")
	if err != nil {
		t.Skip("tinygo is not installed: the samples are built with standard Go only")
	}
	for _, dir := range []string{"samples/hello/guest", "samples/ledger/guest", "samples/flaky/guest", "samples/chat/guest", "samples/crawler/guest", "samples/webhooks/guest", "samples/redis/guest", "samples/accounts/guest"} {
		out := filepath.Join(t.TempDir(), "guest.wasm")
		cmd := exec.Command(tinygo, "build", "-target=wasip1", "-buildmode=c-shared", "-scheduler=none", "-panic=print", "-no-debug", "-o", out, ".")
		cmd.Dir = root + dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", dir, err, text)
		}
	}
}
