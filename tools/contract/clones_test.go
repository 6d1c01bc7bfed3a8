package contract

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// buildClones builds the guest of testdata/clones.
func buildClones(t *testing.T, tags string) []byte {
	t.Helper()
	source, err := os.ReadFile("testdata/clones/main.go")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkshop(t)
	w.write("main.go", string(source))
	w.run("wasm", "build", "-tags", tags, "-buildmode=c-shared", "-o", "guest.wasm", ".")
	code, err := os.ReadFile(filepath.Join(w.dir, "guest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// drawn is what an actor's sources of randomness give in one turn, by their names.
func drawn(t *testing.T, s *host.System, ref host.Ref) map[string]string {
	t.Helper()
	var text string
	ask(t, s, ref, "draw", &text)
	m := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		for _, name := range []string{"a package's ", "the type of ", "map ", ""} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				what, value, _ := strings.Cut(rest, " ")
				m[name+what] = value
				break
			}
		}
	}
	return m
}

// What two actors of one image share, and two incarnations of one. docs/guests.md says it.
// TinyGo is not needed for its part: what the SDK does for it is ordinary Go, behind a tag.
func TestClones(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	own := []string{"crypto/rand.Read", "crypto/rand.Reader", "Context.Rand"}
	copied := []string{"math/rand", "math/rand/v2", "maphash", "map order", "a package's token", "a package's maphash"}
	for _, c := range []struct {
		name, tags     string
		ours, noFreeze bool
	}{
		{"standard Go", "", false, false},
		{"what TinyGo gets", "tinygo", true, false},
		{"not frozen", "", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			e, err := sandbox.New(ctx, sandbox.NewConfig())
			if err != nil {
				t.Fatal(err)
			}
			image, err := e.Load(ctx, buildClones(t, c.tags), sandbox.ImageConfig{Name: "clones", NoFreeze: c.noFreeze})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close(ctx) })
			s := system(t)
			restarted := s.Subscribe(10, func(e *host.Event) bool { return e.Kind == host.EventRestarted })
			var draws []map[string]string
			var refs []host.Ref
			for _, name := range []string{"a", "b"} {
				ref, err := s.Spawn(name, host.Guest(image, "clone"))
				if err != nil {
					t.Fatal(err)
				}
				refs = append(refs, ref)
				draws = append(draws, drawn(t, s, ref))
			}
			tell(t, s, refs[0], "fail")
			event(t, restarted)
			draws = append(draws, drawn(t, s, refs[0]))

			if got := draws[0]["the type of crypto/rand.Reader"]; (got == "actor.turnRandom") != c.ours {
				t.Errorf("crypto/rand.Reader is %s", got)
			}
			if got := draws[0]["a package's time"]; got != "2000-01-01 00:00:00 +0000 UTC" {
				t.Errorf("the clock of the initialisation: %s", got)
			}
			for i, other := range []string{1: "another actor", 2: "the next incarnation"} {
				if i == 0 {
					continue
				}
				for _, source := range own {
					if draws[0][source] == "" || draws[0][source] == draws[i][source] {
						t.Errorf("%s: %s draws the same: %s", source, other, draws[i][source])
					}
				}
				for _, source := range copied {
					if draws[0][source] == "" || (draws[0][source] == draws[i][source]) == c.noFreeze {
						t.Errorf("%s: %s draws %s, the first one %s", source, other, draws[i][source], draws[0][source])
					}
				}
			}
		})
	}
}
