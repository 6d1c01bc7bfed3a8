package browsertest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/dashboard"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/rerun"
	"github.com/wasmactors/wasmactors/runtime"
)

// recorded serves the recording of two guests that have echoed messages: the second one begins later.
func recorded(t *testing.T) *world {
	t.Helper()
	ctx := context.Background()
	code, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "echo.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	engine, err := runtime.New(ctx, runtime.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(ctx) })
	image, err := engine.Load(ctx, code, runtime.ImageConfig{Name: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.wrec")
	r, err := recorder.Open(recorder.Config{Path: path, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	sys, err := host.New(host.NewConfig("shop").WithRecording(r))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"early", "late"} {
		ref, err := sys.Spawn(name, host.Guest(image, "echo"))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			if _, err := sys.Ask(ctx, ref, n+40); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Millisecond) // a slider has a step a millisecond
	}
	if err := sys.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	of, err := recorder.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	show, err := rerun.OpenShow(ctx, engine, of, rerun.Options{Modules: [][]byte{code}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(show.Close)
	w := &world{t: t, full: admin.NewToken(), read: admin.NewToken()}
	srv, err := admin.ServeRecording(ctx, show, "run.wrec", admin.NewConfig().WithTCP("127.0.0.1:0").WithToken(w.full).WithReadToken(w.read).WithDashboard(dashboard.Handler()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	w.url = "http://" + srv.Addr().String() + "/"
	return w
}

// A recording has a slider for time, and nothing that cannot be done with it.
func TestRecording(t *testing.T) {
	w := recorded(t)
	p := w.enter(1280, 800, w.full, "actors")
	p.until("both are there", row("/user/late")+" && "+row("/user/early"))
	if got := p.text(`[...document.querySelectorAll(".places a")].filter((a) => a.checkVisibility()).map((a) => a.textContent).join()`); got != "Overview,Actors" {
		t.Errorf("the navigation leads to %s", got)
	}
	move := func(script string) {
		p.eval(`(() => { const s = document.querySelector("[name=replay]"); s.value = `+script+`; s.dispatchEvent(new Event("input")); s.dispatchEvent(new Event("change")); })()`, nil)
	}
	move(`10`)
	p.until("the second one has gone", `!(`+row("/user/late")+`) && `+row("/user/early"))
	p.until("the slider is free again", `!document.querySelector("[name=replay]").disabled`)
	move(`s.max - 8`)
	p.until("it is there again", row("/user/late"))
	p.visit("")
	p.says("Actors by state")
	move(`0`)
	p.visit("actor?path=/user/early")
	p.says("Messages in and out")
	p.click("[data-trace]")
	p.says("42")
	for _, gone := range []string{"Stop", "Restart", "Kill"} {
		if p.text(`[...document.querySelectorAll("main button")].some((b) => b.textContent === `+quote(gone)+`)`) != "false" {
			t.Errorf("there is a button %s", gone)
		}
	}
	p.visit("events") // a bookmark of a view that recordings do not have
	p.until("the overview", `location.hash === "#/events" && document.querySelector("main h1").textContent === "Overview"`)

	q := w.enter(1280, 800, w.read, "actors")
	q.until("it is there for a reader, who cannot move it", `document.querySelector("[name=replay]")?.disabled`)
}
