package buncher

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
)

// guest builds the buncher of guest/ with standard Go.
func guest(t *testing.T) host.Props {
	t.Helper()
	file := filepath.Join(t.TempDir(), "buncher.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", file, ".")
	cmd.Dir = "guest"
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := runtime.New(t.Context(), runtime.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	image, err := engine.Load(t.Context(), code, runtime.ImageConfig{Name: "buncher"})
	if err != nil {
		t.Fatal(err)
	}
	d := image.Description().Diagrams
	if len(d) != 1 || d[0].Type != "buncher" || d[0].Text != Buncher.Mermaid() {
		t.Errorf("the guest's diagram is %+v", d)
	}
	return host.Guest(image, "buncher")
}

// TestG12_Buncher: two numbers come together after a second, one at once with a flush, and the next
// alone after another second.
func TestG12_Buncher(t *testing.T) {
	for _, c := range []struct {
		name  string
		props func(*testing.T) host.Props
	}{{"Go", func(*testing.T) host.Props { return Buncher.Props() }}, {"guest", guest}} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "guest" && testing.Short() {
				t.Skip("a Go guest takes minutes to compile under the race detector")
			}
			clock := host.NewVirtualClock(time.Unix(1_700_000_000, 0))
			s, err := host.New(host.NewConfig("test").WithManual().WithClock(clock))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close(context.Background()) })
			var got [][]int64
			target, err := s.Spawn("target", host.Func(func(_ *host.Context, m host.Message) error {
				var batch []int64
				if err := m.Decode(&batch); err != nil {
					return err
				}
				got = append(got, batch)
				return nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			machine, err := s.Spawn("buncher", c.props(t))
			if err != nil {
				t.Fatal(err)
			}
			say := func(vs ...any) {
				for _, v := range vs {
					if err := s.TellFrom(target, machine, v); err != nil {
						t.Fatal(err)
					}
				}
				s.RunUntilIdle(1000)
			}
			wants := func(want ...[]int64) {
				t.Helper()
				if !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("got %v, want %v", got, want)
				}
				got = nil
			}
			pass := func(d time.Duration) {
				clock.Advance(d)
				s.RunUntilIdle(1000)
			}
			say("target", 42, 43)
			pass(999 * time.Millisecond)
			wants()
			pass(time.Millisecond)
			wants([]int64{42, 43})
			say(44, "flush", 45)
			wants([]int64{44})
			pass(time.Second)
			wants([]int64{45})
			pass(time.Hour)
			wants()
		})
	}
}
