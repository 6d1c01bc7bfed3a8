package contract

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The compiler refuses a wrong message, and a wrong answer, to a typed ref: in guests and in Go.
func TestTypedRefsAreChecked(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Export", "./host", "./host/typed/testdata/mapped", "github.com/wasmactors/wasmactors/guest-sdk/actor")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	const head = `package p

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/typed/testdata/mapped"
)

var (
	_ time.Duration
	_ host.Ref
	_ mapped.Payment
)

type both interface { actor.Encoder; MessageType() string }

func f(go_ context.Context, s *host.System, ctx *actor.Context, ref actor.Ref, h host.Ref) error {
`
	for _, c := range []struct{ body, want string }{
		{"actor.To[*mapped.Payment](ref).Tell(ctx, &mapped.Payment{})", ""},
		{"actor.To[both](ref).Tell(ctx, &mapped.Receipt{})", ""},
		{"actor.AskRef(ctx, actor.To[*mapped.Payment](ref), &mapped.Payment{}, time.Second, func(*actor.Context, *mapped.Receipt, error) error { return nil })", ""},
		{"return host.To[*mapped.Payment](h).Tell(s, &mapped.Payment{})", ""},
		{"r, err := host.AskRef(go_, s, host.To[*mapped.Payment](h), &mapped.Payment{}); _ = r.Number; return err", ""},

		{"actor.To[*mapped.Payment](ref).Tell(ctx, &mapped.Receipt{})", "cannot use &mapped.Receipt{}"},
		{"actor.To[both](ref).Tell(ctx, &mapped.Kept{})", "missing method MessageType"},
		{"actor.To[int](ref)", "int does not satisfy actor.Encoder"},
		{"var r actor.RefOf[*mapped.Receipt] = actor.To[*mapped.Payment](ref); _ = r", "cannot use actor.To"},
		{"actor.AskRef(ctx, actor.To[*mapped.Payment](ref), &mapped.Payment{}, time.Second, func(*actor.Context, *mapped.Kept, error) error { return nil })", "wrong type for method Answer"},
		{"actor.AskRef(ctx, actor.To[*mapped.Receipt](ref), &mapped.Receipt{}, time.Second, func(*actor.Context, *mapped.Kept, error) error { return nil })", "missing method Answer"},
		{"return host.To[*mapped.Payment](h).Tell(s, &mapped.Receipt{})", "cannot use &mapped.Receipt{}"},
		{"_, err := host.AskRef(go_, s, host.To[*mapped.Receipt](h), &mapped.Receipt{}); return err", "missing method Answer"},
		{"r, _ := host.AskRef(go_, s, host.To[*mapped.Payment](h), &mapped.Payment{}); _ = r.Cents", "r.Cents undefined"},
	} {
		file, err := parser.ParseFile(fset, "", head+c.body+"\nreturn nil\n}\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		conf := types.Config{Importer: imports, Error: func(err error) { all = append(all, err.Error()) }}
		_, _ = conf.Check("p", fset, []*ast.File{file}, nil)
		text := strings.Join(all, "\n")
		if c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%s\n%s\nwant %q", c.body, text, c.want)
		}
	}
}
