package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
)

// Actors that are alike share props that are found by name: at the start once for each, and again for who returns late.
func TestPropsAreFoundByName(t *testing.T) {
	const n = 8
	w := mustOpen(t, t.TempDir(), alike(t, n))
	for i := range n {
		for range i {
			w.tell(fmt.Sprint("a", i), add)
		}
		w.report(fmt.Sprint("a", i))
	}
	w.checkpoint()
	w.close()
	for _, late := range []bool{true, false} {
		s, err := Open(Options{Dir: w.dir, Lazy: late})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		asked := map[string]int{}
		same := w.props["a0"]
		x, err := s.PrepareBy(config(), func(name string) *host.Props {
			mu.Lock()
			defer mu.Unlock()
			if asked[strings.Clone(name)]++; strings.HasPrefix(name, "a") {
				return &same
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		again := &world{System: x.System(), t: t, store: s, dir: w.dir, props: w.props}
		if _, err := again.Spawn("volatile", host.Func(func(*host.Context, host.Message) error { return nil })); err != nil {
			t.Fatal(err)
		}
		back, err := x.Recover()
		if err != nil {
			t.Fatal(err)
		}
		if want := slices.Sorted(maps.Keys(w.props)); !slices.Equal(slices.Sorted(maps.Keys(back)), want) || x.Back("b") || !x.Back("a3") {
			t.Errorf("late %v: %v are back, want %v", late, back, want)
		}
		if late != (s.away.Len() == n) {
			t.Errorf("late %v: %d are away", late, s.away.Len())
		}
		x.Release()
		before := asked["a3"]
		for i := range n {
			if got := again.report(fmt.Sprint("a", i)); int(got) != i {
				t.Errorf("late %v: a%d has counted %d", late, i, got)
			}
		}
		if mu.Lock(); late != (asked["a3"] == before+1) || before == 0 {
			t.Errorf("late %v: the props of a3 were found %d times, and then %d", late, before, asked["a3"])
		}
		mu.Unlock()
		_ = s.fail(errors.New("a test"))
		eventually(t, func() bool {
			_, gone := again.Lookup("/user/a3")
			_, there := again.Lookup("/user/volatile")
			return gone != nil && there == nil
		})
		_ = again.Close(context.Background())
		_ = s.Close()
	}
}

// alike are actors with the same props.
func alike(t testing.TB, n int) Props {
	p, props := puppet(puppetImage(t)), Props{}
	for i := range n {
		props[fmt.Sprint("a", i)] = p
	}
	return props
}

// What cannot come back is found at the start, with the same error in each way, and nothing is lost by it.
func TestWhatCannotComeBackIsFoundAtTheStart(t *testing.T) {
	image := puppetImage(t)
	w := mustOpen(t, t.TempDir(), alike(t, 4), eagerly)
	for name := range w.props {
		w.tell(name, add)
		w.report(name)
	}
	w.checkpoint()
	w.close()
	for _, c := range []struct {
		what   string
		change func(Props)
		config func(host.Config) host.Config
		want   error
		text   string
		away   int // of those that return late, if nothing is wrong
	}{
		{"nothing", func(Props) {}, nil, nil, "", 4},
		{"not in the manifest any more", func(p Props) { delete(p, "a2") }, nil, ErrForgotten, "/user/a2", 0},
		{"another type", func(p Props) { p["a2"] = host.Guest(image, "other").WithDurable() }, nil, port.ErrCode, "w/user/a2: the checkpoint: it is a other, and was a puppet", 0},
		{"a limit below its state", func(p Props) { p["a2"] = p["a2"].WithLimits(host.Limits{Durable: 100}) }, nil, nil, "", 3},
		{"fewer actors than there are", func(Props) {}, func(c host.Config) host.Config { return c.WithMaxActors(3) }, nil, "", 4}, // none is refused, and no other begins
	} {
		var texts []string
		for _, late := range []bool{true, false} {
			for _, by := range []bool{true, false} {
				how := fmt.Sprintf("%s, late %v, by name %v", c.what, late, by)
				props, cfg := maps.Clone(w.props), config()
				if c.change(props); c.config != nil {
					cfg = c.config(cfg)
				}
				dir := t.TempDir()
				if err := copyBackward(dir, w.dir); err != nil {
					t.Fatal(err)
				}
				s, err := Open(Options{Dir: dir, Lazy: late})
				if err != nil {
					t.Fatal(err)
				}
				var x *Starting
				if by {
					x, err = s.PrepareBy(cfg, finds(props))
				} else {
					x, err = s.Prepare(cfg, props)
				}
				if err != nil {
					t.Fatal(err)
				}
				back, err := x.Recover()
				if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
					t.Errorf("%s: %v, want %v with %q", how, err, c.want, c.text)
				} else if err == nil && (len(back) != 4 || late && s.away.Len() != c.away) {
					t.Errorf("%s: %v are back, %d away", how, back, s.away.Len())
				}
				if late {
					texts = append(texts, fmt.Sprint(err))
				}
				x.Abandon()
				_ = x.System().Close(t.Context())
				_ = s.Close()
				again := mustOpen(t, dir, w.props)
				for name := range w.props {
					if n := again.report(name); n != 1 {
						t.Errorf("%s: then %s has counted %d", how, name, n)
					}
				}
				again.close()
			}
		}
		if len(texts) != 2 || texts[0] != texts[1] {
			t.Errorf("%s: %q", c.what, texts)
		}
	}
}
