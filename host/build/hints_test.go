//go:build unix

package build

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// What TinyGo does not build because it needs standard Go is said, with its place, whatever the compiler says.
func TestHintsOfStandardGo(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"a goroutine":     {"package main\n\nfunc main() {\n\tgo main()\n}\n", "main.go:4:2: this starts a goroutine"},
		"a select":        {"package main\n\nfunc main() {\n\tselect {}\n}\n", "main.go:4:2: this waits for channels"},
		"a package":       {"package main\n\nimport _ \"net/http\"\n\nfunc main() {}\n", "main.go:3:8: this imports net/http"},
		"nothing special": {"package main\n\nfunc main() {}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeTinyGo(t)
			script(t, f.dir+"/tinygo", `case "$1" in version) echo tinygo version 0.41.0 ;; env) echo `+f.dir+`/root ;; *) exit 1 ;; esac`)
			dir := t.TempDir()
			write(t, dir, map[string]string{"go.mod": "module guest\n\ngo 1.23\n", "main.go": c.source, "main_test.go": "package main\n\nfunc x() { go x() }\n"})
			for _, compiler := range []string{"auto", "tinygo"} {
				_, err := Guest(context.Background(), dir, Options{Compiler: compiler})
				if err == nil || c.want != "" && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "write compiler: go at the module")) ||
					c.want == "" && strings.Contains(err.Error(), "compiler: go") {
					t.Errorf("%s: %v", compiler, err)
				}
				if auto := strings.Contains(err.Error(), "compiler: auto has taken it"); c.want != "" && auto != (compiler == "auto") {
					t.Errorf("%s: %v", compiler, err)
				}
			}
		})
	}
}

// Optional methods that nobody calls are told.
func TestHintsOfUncalledMethods(t *testing.T) {
	f := newFakeTinyGo(t)
	_ = f
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module guest\n\ngo 1.23\n",
		"main.go": `package main

func main() {}

type old struct{}

func (o *old) Receive(ctx *actor.Context, msg *actor.Message) error { return nil }
func (o *old) Start(ctx *actor.Context) error                        { return nil }
func (o *old) Stop(ctx *actor.Context)                               {}

type wrong struct{}

func (wrong) Receive(ctx *actor.Context, msg *actor.Message) error { return nil }
func (wrong) Started(*actor.Context)                              {}
func (wrong) Stopped(*actor.Context) error                        { return nil }

type right struct{}

func (*right) Receive(ctx *actor.Context, msg *actor.Message) error                      { return nil }
func (*right) Started(ctx *actor.Context) error                                          { return nil }
func (*right) Stopped(ctx *actor.Context)                                                {}
func (*right) PreRestart(ctx *actor.Context, reason string)                              {}
func (*right) Decide(ctx *actor.Context, child actor.Ref, f *abi.Failure) actor.Directive { return 0 }
func (*right) Start(ctx *actor.Context) error                                            { return nil } // its own

type timer struct{} // no actor

func (timer) Start(ctx *actor.Context) error { return nil }
`,
	})
	want := []string{
		"main.go:8:15: Start of the actor old is never called: the SDK calls Started(*Context) error",
		"main.go:9:15: Stop of the actor old is never called: the SDK calls Stopped(*Context)",
		"main.go:14:14: Started of the actor wrong is never called: its signature is Started(*Context), and the SDK calls Started(*Context) error",
		"main.go:15:14: Stopped of the actor wrong is never called: its signature is Stopped(*Context) error, and the SDK calls Stopped(*Context)",
	}
	if got := uncalled(context.Background(), dir); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var progress []string
	if _, err := Guest(context.Background(), dir, Options{Compiler: "tinygo", Progress: func(text string) { progress = append(progress, text) }}); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(progress, "hint: "+want[0]) {
		t.Errorf("%q", progress)
	}
}
