package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module makes a guest's module with one file.
func module(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const sdk = "github.com/wasmactors/wasmactors/"
	write(t, dir, "go.mod", "module guest\n\ngo 1.23\n\nrequire (\n"+sdk+"abi v0.1.0\n"+sdk+"guest-sdk v0.1.0\n)\n\nreplace (\n"+
		sdk+"abi => "+here+"/abi\n"+sdk+"guest-sdk => "+here+"/guest-sdk\n)\n")
	write(t, dir, "types.go", "package main\n\n"+body)
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// protocolOf is a protocol T with these methods, a message M, and more.
func protocolOf(methods string, more ...string) string {
	return "import \"github.com/wasmactors/wasmactors/guest-sdk/actor\"\n\n//wasmactors:protocol\ntype T interface {\n\t" + methods +
		"\n}\n\n//wasmactors:message\ntype M struct{}\n\n" + strings.Join(more, "\n")
}

func TestWhatIsRefused(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"unknown", "type U struct{}", "there is no type T in package main"},
		{"not a struct", "type T int", "T is not a struct"},
		{"alias", "type U struct{}\ntype T = U", "T is not a type of its own"},
		{"type parameters", "type T[P any] struct{ A P }", "T has type parameters"},
		{"interface", "type T struct{ A any }", "T.A: any is an interface: use actor.Raw for any CBOR"},
		{"channel", "type T struct{ A []chan int }", "T.A: chan int cannot be written as CBOR"},
		{"complex", "type T struct{ A complex128 }", "T.A: complex128 cannot be written as CBOR"},
		{"keys", "type T struct{ A map[bool]int }", "T.A: the keys of a map must be texts or integers, not bool"},
		{"pointers", "type T struct{ A **int }", "T.A: **int is a pointer to a pointer"},
		{"anonymous", "type T struct{ A struct{ B int } }", "T.A: a struct without a name"},
		{"foreign", "import \"go/token\"\ntype T struct{ A token.Position }", "T.A: token.Position belongs to another package and lacks MarshalCBOR"},
		{"embedded pointer", "type U struct{}\ntype T struct{ *U }", "T.U: an embedded pointer"},
		{"endless", "type L []L\ntype T struct{ A L }", "T.A: main.L contains itself: put a struct in between"},
		{"small numbers", "type C uint8\ntype T struct{ A []C }", "T.A: a list of main.C"},
		{"misspelt", "type T struct{ A Strin }", "T.A: the type is not known"},
		{"same key", "type T struct{ A int `cbor:\"b\"`; B int `cbor:\"b\"` }", "T.A and T.B have the same key b"},
		{"same number", "type U struct { C int `cbor:\"1,keyasint\"` }\ntype V struct{ D int `cbor:\"1,keyasint\"` }\ntype T struct{ U; V }", "T.U.C and T.V.D have the same key 1"},
		{"not a number", "type T struct{ A int `cbor:\"a,keyasint\"` }", `T.A: "a" is not an integer`},
		{"option", "type T struct{ A int `cbor:\"a,toarray\"` }", `T.A: the option "toarray" of the tag cbor is not supported`},
		{"both options", "type T struct{ A int `cbor:\"a,omitempty,required\"` }", "T.A: omitempty and required exclude each other"},
		{"empty struct", "type U struct{}\ntype T struct{ A U `cbor:\",omitempty\"` }", "T.A: a struct is never empty"},
		{"not exported", "type T struct{ a int `cbor:\"a\"` }", "T.a has a tag and is not exported"},
		{"method", "type T struct{}\nfunc (t *T) MarshalCBOR() {}", "T has a method MarshalCBOR already, at "},
		{"half", "import \"github.com/wasmactors/wasmactors/abi\"\ntype H int\nfunc (h H) MarshalCBOR(w *abi.Writer) {}\ntype T struct{ A H }", "T.A: main.H has MarshalCBOR, but lacks UnmarshalCBOR"},
		{"within", "type U struct{ B func() }\ntype T struct{ A *U }", "U.B: func() cannot be written as CBOR"},
		{"syntax", "type T struct{", "types.go:"},

		{"directive", "//wasmactors:mesage\ntype T struct{}", "types.go:3:1: //wasmactors:mesage has no meaning here: valid are //wasmactors:message, "},
		{"option", "//wasmactors:message named=x\ntype T struct{}", "types.go:3:1: //wasmactors:message: \"named=x\" is not one of answer=, name=, version=, once"},
		{"option twice", "//wasmactors:message name=x name=y\ntype T struct{}", "\"name=y\" is not one of"},
		{"directive twice", "//wasmactors:message\n//wasmactors:message\ntype T struct{}", "types.go:4:1: //wasmactors:message comes twice"},
		{"name", "//wasmactors:message name=x@y\ntype T struct{}", "name=x@y is not 1 to 96 of"},
		{"reserved name", "//wasmactors:message name=x.sent\ntype T struct{}", "ends as the rules of CDDL do that belong to other messages"},
		{"version", "//wasmactors:message version=0\ntype T struct{}", "version=0 is not a number from 1 to 65535"},
		{"answer", "//wasmactors:message answer=a.b\ntype T struct{}", "answer=a.b is not the name of a type"},
		{"no answer", "//wasmactors:message answer=R\ntype T struct{}", "types.go:3:1: the answer of T is R, and there is no such type in package main"},
		{"same version", "//wasmactors:message name=m\ntype T struct{}\n\n//wasmactors:message name=m\ntype U struct{}", "types.go:6:1: U and T, at "},
		{"gap", "//wasmactors:message name=m version=3\ntype T struct{}\n\n//wasmactors:message name=m\ntype U struct{}", "types.go:3:1: T is version 3 of the message m, and the one before is version 1 (U, at "},
		{"no adapter", "//wasmactors:message name=m version=2\ntype T struct{}\n\n//wasmactors:message name=m\ntype U struct{}", "types.go:7:6: nothing turns version 1 of the message m into version 2: write func (old *U) Upcast(next *T)"},
		{"adapter of another", "//wasmactors:message name=m version=2\ntype T struct{}\n\n//wasmactors:message name=m\ntype U struct{}\nfunc (u *U) Upcast(n *U) {}", "types.go:7:6: nothing turns version 1"},
		{"unknown keys", "//wasmactors:unknown drop\ntype T struct{}", "types.go:3:1: //wasmactors:unknown must say, once, skip, keep or refuse"},
		{"nowhere to keep", "//wasmactors:unknown keep\ntype T struct{}", "types.go:3:1: T has no place for unknown keys: add a field of the type actor.Unknown"},
		{"kept and refused", "import \"github.com/wasmactors/wasmactors/abi\"\n//wasmactors:unknown refuse\ntype T struct{ U abi.Unknown }", "types.go:5:16: T.U keeps unknown keys, and the directive at "},
		{"kept twice", "import \"github.com/wasmactors/wasmactors/abi\"\ntype T struct{ U, V abi.Unknown }", "T keeps unknown keys twice, also in U"},
		{"kept by what is embedded", "import \"github.com/wasmactors/wasmactors/abi\"\ntype E struct{ V abi.Unknown }\ntype T struct{ E }", "T.E.V: unknown keys are kept by the struct itself"},

		{"no methods", "//wasmactors:protocol\ntype T interface{}", "types.go:4:6: the protocol T has no methods"},
		{"timeout", "//wasmactors:protocol timeout=5\ntype T interface{}", "timeout=5 is not a duration from 1ms to 24h"},
		{"parameters", "//wasmactors:protocol\ntype T interface{ A(int) }", "types.go:4:19: T.A: it must take (ctx *actor.Context, m *T)"},
		{"no message", protocolOf("A(ctx *actor.Context, m *U)", "type U struct{}"), "types.go:7:2: T.A: *main.U is not a pointer to a message of this package"},
		{"no pattern", protocolOf("A(ctx *actor.Context, m *actor.Message)"), "T.A: what messages is it for? Say //wasmactors:bind and a pattern"},
		{"pattern", protocolOf("//wasmactors:bind a*b\n\tA(ctx *actor.Context, m *actor.Message)"), "types.go:7:2: //wasmactors:bind must name"},
		{"pattern of a type", protocolOf("//wasmactors:bind a.*\n\tA(ctx *actor.Context, m *M)"), "types.go:7:2: T.A is bound to its type of message"},
		{"ambiguous types", protocolOf("A(ctx *actor.Context, m *M)\n\tB(ctx *actor.Context, m *M)"), "types.go:8:2: T.B and A, at "},
		{"ambiguous patterns", protocolOf("//wasmactors:bind a.*\n\tA(ctx *actor.Context, m *actor.Message)\n\t//wasmactors:bind a.*\n\tB(ctx *actor.Context, m *actor.Message)"), "types.go:10:2: T.B and A, at "},
		{"answers", protocolOf("A(ctx *actor.Context, m *M) *M"), "makes of the message M one with answer=M, and the directive here says otherwise (\"\")"},
		{"says an answer", protocolOf("A(ctx *actor.Context, m *N)", "//wasmactors:message answer=M\ntype N struct{}"), "makes of the message N one with no answer"},
		{"results", protocolOf("A(ctx *actor.Context, m *M) (int, error)"), "it must return nothing, an error, *R, or *R and an error"},
		{"answers any", protocolOf("//wasmactors:bind a.*\n\tA(ctx *actor.Context, m *actor.Message) *M"), "a method that takes any message answers with ctx.Reply"},
		{"method of the stub", protocolOf("Ref(ctx *actor.Context, m *M)"), "types.go:7:2: T.Ref: the stub has a method of this name"},
		{"taken name", protocolOf("A(ctx *actor.Context, m *M)", "type TRef int"), "types.go:13:6: TRef is what the generator makes for the protocol T"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := generate(module(t, c.body), "types_cbor.go", []string{"T"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// The first run finds a package that does not compile for want of the methods, the
// next ones the file of the run before: all write the same.
func TestRunAgain(t *testing.T) {
	t.Setenv("GOFILE", "types.go")
	dir := module(t, `import "github.com/wasmactors/wasmactors/guest-sdk/actor"

type Order struct {
	Lines []Line
	Note  actor.Raw
	From  actor.Ref
}

type Line struct{ Price int64 }

func answer(ctx *actor.Context, o *Order) error { return ctx.Reply(o) }

func main() { _ = answer }
`)
	var had string
	for range 2 {
		if err := run(dir, " Order ", "", ""); err != nil {
			t.Fatal(err)
		}
		now, err := os.ReadFile(filepath.Join(dir, "types_cbor.go"))
		if err != nil {
			t.Fatal(err)
		}
		if had != "" && string(now) != had {
			t.Errorf("%s\nthen\n%s", had, now)
		}
		had = string(now)
	}
	for _, want := range []string{"func (m *Order) UnmarshalCBOR(", "func (m *Line) MarshalCBOR(", "m.Note.MarshalCBOR(w)", "m.From = actor.Ref(r.Uint())"} {
		if !strings.Contains(had, want) {
			t.Errorf("%q is missing in\n%s", want, had)
		}
	}
	if err := run(dir, "", "", ""); err == nil {
		t.Error("no types were asked for")
	}
}

// A type that another file has methods for is used, not written again.
func TestTwoFiles(t *testing.T) {
	dir := module(t, "type A struct{ C C }\ntype B struct{ C C }\ntype C struct{}\n")
	for _, name := range []string{"A", "B", "A"} {
		if err := run(dir, name, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "b_cbor.go"))
	if err != nil || strings.Contains(string(b), "func (m *C)") {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestNamesThatAreTaken(t *testing.T) {
	dir := module(t, "import clock \"time\"\nvar time int\ntype T struct{ D clock.Duration }\n")
	text, err := generate(dir, "t_cbor.go", []string{"T"})
	if err != nil || !strings.Contains(string(text), `time2 "time"`) || !strings.Contains(string(text), "time2.Duration(r.Int())") {
		t.Errorf("%v\n%s", err, text)
	}
}

// What depends on the compiler is said when the code is generated.
func TestNotesAboutInt(t *testing.T) {
	dir := module(t, "type N int\ntype U struct{ X uint }\ntype T struct{ A int; B int64; C []N; D map[string]*uint; E U; F map[int]bool; G int32 `cbor:\"g\"`; H []byte }\n")
	_, structs, _, err := read(dir, "t_cbor.go", []string{"T"})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(narrow(structs), "\n")
	for _, want := range []string{"T.A: int has 32 bits", "T.C: int has", "T.D: uint has", "T.F: int has", "U.X: uint has 32 bits with TinyGo, and larger numbers are refused there: use uint64 or uint32"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is missing in\n%s", want, notes)
		}
	}
	if n := strings.Count(notes, "\n") + 1; n != 5 {
		t.Errorf("%d notes:\n%s", n, notes)
	}
}
