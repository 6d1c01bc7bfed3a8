package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
)

type lampSettings struct {
	Volts int               `manifest:"volts" doc:"of the mains" min:"1" max:"400"`
	Rooms map[string]string `manifest:"rooms" doc:"their colours" key:"^[a-z]+$" what:"a room" reach:"none" keyreach:"none"`
}

type lampGrant struct {
	Rooms []string      `manifest:"rooms,required" doc:"which" pattern:"^[a-z]+$" what:"a room" reach:"none"`
	Mode  string        `manifest:"mode" doc:"what for" enum:"on,off"`
	Dim   float64       `manifest:"dim" doc:"how much" min:"0" max:"1"`
	Size  service.Size  `manifest:"size" doc:"how large" min:"1024"`
	Fade  time.Duration `manifest:"fade" doc:"how slowly"`
	Deep  struct {
		On bool `manifest:"on" doc:"whether"`
	} `manifest:"deep" doc:"nested"`
}

// lamp answers with what it was granted.
type lamp struct {
	settings lampSettings
	dir      string
}

func (l *lamp) Serve(_ context.Context, r *service.Request[lampGrant]) (any, error) {
	if r.Op != "show" {
		return nil, service.Deny("rooms", "no %s", r.Op)
	}
	return fmt.Sprintf("%d %s %v", l.settings.Volts, r.Sender.Path(), r.Grant.Rooms), nil
}
func (l *lamp) Close(context.Context) error { return nil }

func lampKind(made *[]*lamp) service.Kind {
	return service.Define(service.Definition[lampSettings, lampGrant]{
		Name: "lamp", Doc: "lights",
		CheckGrant: func(g *lampGrant) error {
			for i, r := range g.Rooms {
				if r == "cellar" {
					return service.At(fmt.Sprintf("rooms[%d]", i), errors.New("there is none"))
				}
			}
			return nil
		},
		CheckSettings: func(s *lampSettings) error {
			if s.Rooms["attic"] == "red" {
				return service.At("rooms.attic", errors.New("not red"))
			}
			return nil
		},
		Open: func(env *service.Env, s *lampSettings) (service.Provider[lampGrant], error) {
			dir, err := env.StateDir()
			if err != nil && !errors.Is(err, service.ErrNoState) {
				return nil, err
			}
			l := &lamp{*s, dir}
			*made = append(*made, l)
			return l, nil
		},
	})
}

const lampManifest = `wasmactors: 1
name: house
modules:
  code: {wasm: code.wasm}
services:
  lamp: {volts: 230, rooms: {attic: blue}}
actors:
  a:
    type: services
    capabilities:
      lamp: {rooms: [hall, attic], mode: off, dim: 0.5, size: 2MiB, fade: 1s, deep: {on: true}, at-once: 3, bytes: 1MiB, rate: 5, burst: 7, timeout: 2s, tree: true}
    children:
      b: {type: services}
      c:
        type: services
        capabilities:
          lamp: {rooms: [hall]}
  d: {type: services}
`

// What services say about grants and settings is what a manifest can say.
func TestServicesInManifest(t *testing.T) {
	var made []*lamp
	kind := lampKind(&made)
	m, err := ParseWith("bundle.yaml", []byte(lampManifest), nil, kind)
	if err != nil {
		t.Fatal(err)
	}
	s := m.Services[0].Settings.(*lampSettings)
	if s.Volts != 230 || s.Rooms["attic"] != "blue" {
		t.Errorf("%+v", s)
	}
	a := &m.Actors[0]
	want := lampGrant{Rooms: []string{"hall", "attic"}, Mode: "off", Dim: 0.5, Size: 2 << 20, Fade: time.Second}
	want.Deep.On = true
	if g := a.Grants[0]; fmt.Sprint(*g.Value.(*lampGrant)) != fmt.Sprint(want) ||
		g.Bounds != (service.Bounds{AtOnce: 3, Bytes: 1 << 20, Rate: 5, Burst: 7, Timeout: 2 * time.Second}) {
		t.Errorf("%+v %+v", g.Value, g.Bounds)
	}
	if b, c := &a.Children[0], &a.Children[1]; b.Grants[0] != a.Grants[0] || c.Grants[0] == a.Grants[0] || len(m.Actors[1].Grants) != 0 {
		t.Error("the grant of a tree is not that of its children without one")
	}
	for _, c := range []struct{ old, now, want string }{
		{"volts: 230", "volts: 500", "bundle.yaml:6:17: services.lamp.volts must be at most 400"},
		{"attic: blue", "attic: red", "bundle.yaml:6:37: services.lamp.rooms.attic: not red"},
		{"attic: blue", "ATTIC: blue", "bundle.yaml:6:30: "},
		{"rooms: [hall, attic]", "rooms: [hall, cellar]", "bundle.yaml:11:28: capabilities.lamp.rooms[1]: there is none"},
		{"rooms: [hall, attic], ", "", "bundle.yaml:11:13: "},
		{"mode: off", "mode: dim", "bundle.yaml:11:42: "},
		{"size: 2MiB", "size: 2", "bundle.yaml:11:"},
		{"at-once: 3", "at-once: 0", "bundle.yaml:11:"},
		{"deep: {on: true}", "deep: {no: true}", "bundle.yaml:11:"},
		{"  lamp: {volts", "  lmap: {volts", "bundle.yaml:6:3: "},
	} {
		if !strings.Contains(lampManifest, c.old) {
			t.Fatal(c.old)
		}
		_, err := ParseWith("bundle.yaml", []byte(strings.Replace(lampManifest, c.old, c.now, 1)), nil, kind)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.now, err, c.want)
		}
	}
	if _, err := Parse("bundle.yaml", []byte(lampManifest)); err == nil {
		t.Error("a service that nobody has registered is known")
	}
	if text := string(Schema(kind)); !strings.Contains(text, `"lamp"`) || !strings.Contains(text, `"at-once"`) {
		t.Error("the schema does not know it")
	}
}

// What changes of services means for a bundle that runs under dev.
func TestServicesChange(t *testing.T) {
	var made []*lamp
	kind := lampKind(&made)
	parse := func(text string) *Manifest {
		m, err := ParseWith("bundle.yaml", []byte(text), nil, kind)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	old := parse(lampManifest)
	for _, c := range []struct{ old, now, want string }{
		{"volts: 230", "volts: 231", "[services has changed, which concerns the whole bundle] []"},
		{"dim: 0.5", "dim: 0.6", "[] [{a 1 capabilities, children.b (capabilities)}]"},
		{"lamp: {rooms: [hall]}", "lamp: {rooms: [attic]}", "[] [{a 1 children.c (capabilities)}]"},
		{"rooms: [hall]", "rooms: [ 'hall' ]", "[] []"},
	} {
		p := planOf(old, parse(strings.Replace(lampManifest, c.old, c.now, 1)))
		if got := fmt.Sprint(p.whole, p.steps); got != c.want {
			t.Errorf("%s: %s", c.now, got)
		}
	}
}

// A bundle with a service: who has the grant is answered, the state is kept where it is said,
// and nobody else's.
func TestServicesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	dir := t.TempDir()
	guest, err := filepath.Abs("../service/testdata/guest")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("{wasm: code.wasm}", "{go: "+guest+"}", "type: services", "type: service-asker").Replace(lampManifest)
	file := filepath.Join(dir, "bundle.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var made []*lamp
	kind := lampKind(&made)
	m, err := LoadWith(file, nil, kind)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "state")
	options := Options{CacheDir: servicetest.CacheDir(), Compiler: guesttest.Compiler(), Allow: func([]Reach) error { return nil }, StateDir: func(*Manifest) (string, error) { return folder, nil }}
	b, err := Open(t.Context(), m, options)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	ask := func(sys *host.System, path, op string) string {
		ref, err := sys.Lookup(path)
		for err != nil && t.Context().Err() == nil { // children start after their parent
			time.Sleep(time.Millisecond)
			ref, err = sys.Lookup(path)
		}
		answer, err := host.AskAs[any](t.Context(), sys, ref, []any{"lamp", op, nil})
		return fmt.Sprint(answer, err)
	}
	for range 2 { // twice: the second system waits for the services of the first
		sys, err := b.Start(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			"/user/a":   "230 /user/a [hall attic]",
			"/user/a/b": "230 /user/a/b [hall attic]",
			"/user/a/c": "230 /user/a/c [hall]",
			"/user/d":   "denied",
		} {
			if got := ask(sys, path, "show"); !strings.Contains(got, want) {
				t.Errorf("%s: %s", path, got)
			}
		}
		if got := ask(sys, "/user/a", "dance"); !strings.Contains(got, "denied") || !strings.Contains(got, "capabilities.lamp.rooms") {
			t.Error(got)
		}
		if err := sys.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(made) != 2 || made[0].dir != filepath.Join(folder, "lamp") {
		t.Errorf("%d %+v", len(made), made[0])
	}
}
