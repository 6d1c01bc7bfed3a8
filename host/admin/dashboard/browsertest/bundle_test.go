package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/observe"
)

// sample is the folder of a sample bundle.
func sample(name string) string {
	return filepath.Join("..", "..", "..", "..", "samples", name)
}

// runBundle serves a sample, and actors in Go beside its own.
func runBundle(t *testing.T, name string, beside map[string]host.Props) *world {
	t.Helper()
	ctx := context.Background()
	m, err := bundle.Load(sample(name))
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(ctx, m, bundle.Options{CacheDir: t.TempDir(), Allow: func([]bundle.Reach) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(ctx) })
	var obs *observe.Observer
	sys, err := b.Start(nil, func(sys *host.System) { obs = observe.New(sys, observe.Options{}.WithBundle(m.Name, "")) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		within, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if err := sys.Close(within); err != nil {
			t.Error(err)
		}
		obs.Close()
	})
	for name, props := range beside {
		if _, err := sys.Spawn(name, props); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() bool { return obs.System().Ready && obs.System().States[observe.Starting] == 0 })
	return serve(t, sys, obs)
}

// feed gives a sample its input, again and again until ctx ends. It waits for nothing.
func (w *world) feed(ctx context.Context, name string, pause time.Duration) {
	input, err := os.ReadFile(filepath.Join(sample(name), "input.ndjson"))
	if err != nil {
		w.t.Error(err)
		return
	}
	for {
		for line := range strings.Lines(string(input)) {
			var m struct {
				To      string
				Message json.RawMessage
			}
			if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
				continue
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				w.t.Error(err)
				return
			}
			if m.To == "" {
				continue
			}
			raw, err := bundle.FromJSON(m.Message)
			if err == nil {
				err = w.sys.TellPath("/user/"+m.To, raw)
			}
			if err != nil && !errors.Is(err, host.ErrUnknown) { // some give up in the end
				w.t.Error(err)
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// A real bundle, whose guests crash as its input says: its types, its failures with the
// stack of the guest, its fuel, and who talks to whom.
func TestRealBundle(t *testing.T) {
	w := runBundle(t, "flaky", nil)
	ctx, cancel := context.WithCancel(context.Background())
	fed := make(chan struct{})
	go func() { defer close(fed); w.feed(ctx, "flaky", 50*time.Millisecond) }()
	defer func() { cancel(); <-fed }()

	p := w.enter(1280, 800, w.full, "")
	p.until("the types of the bundle", `["client", "service", "supervisor"].every((x) => document.querySelector(".types").innerText.includes(x))`)
	p.until("failures of late", `document.querySelectorAll(".feed .line").length === 6`)
	p.until("the charts have lines", `[...document.querySelectorAll(".spark .line")].filter((l) => l.getAttribute("d")?.length > 20).length === 8`)
	fuel := `[...document.querySelectorAll(".chart")].find((c) => c.innerText.includes("Fuel")).querySelector(".value").textContent`
	p.until("fuel is spent", `!/^(–|0\/s)$/.test(`+fuel+`)`)

	p.until("times of turns", `document.querySelectorAll(".times td").length > 4`)

	p.visit("flow")
	sampled := false
	for deadline := time.Now().Add(patience); !sampled && time.Now().Before(deadline); { // the feed pauses now and then
		p.eval(`[...document.querySelectorAll("button")].find((b) => b.textContent === "Sample the flow").click()`, nil)
		p.until("a sample was taken", `!document.body.innerText.includes("Sampling for")`)
		p.eval(`document.querySelector(".flow")?.innerText.includes("service") ?? false`, &sampled)
	}
	if !sampled {
		t.Error("nobody talks to anybody")
	}
	p.until("a picture of it", `document.querySelectorAll(".graph .node").length > 2 && document.querySelectorAll(".graph .arrow").length > 1`)

	p.visit("actor?path=/user/service")
	p.click("[data-trace]")
	p.until("messages in and out", `document.querySelector(".traced-in") && document.querySelector(".traced-out")`)
	p.until("with what is in them", `document.querySelector(".trace code, .trace pre")`)
	p.click("[data-trace]")
	p.until("stopped", `document.querySelector("[data-trace]").getAttribute("aria-pressed") === "false"`)

	p.visit("crashes")
	stack := `[...document.querySelectorAll(".report")].find((r) => r.querySelector(".frames, .report-body pre"))`
	p.until("reports", `document.querySelectorAll(".report").length > 3`)
	p.eval(`document.querySelectorAll(".report").forEach((d) => d.open = true)`, nil)
	p.until("a report with what it was about", stack)

	var size int
	p.eval(`import("/dashboard/ui/api.js").then((m) => fetch(m.address("profile", { seconds: 1 }), { headers: { "X-Session-Key": m.session.key } })).then((r) => r.blob()).then((b) => b.size)`, &size)
	if size < 100 {
		t.Errorf("a profile of %d bytes", size)
	}
}
