package browsertest

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/wasmactors/wasmactors/host"
)

var pictures = flag.Bool("pictures", false, "write docs/pictures again")

// shot writes what is in view as a picture of the docs: in 256 colours, which is all that a
// page of text and a few lines needs.
func (p *page) shot(name string) {
	p.t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	few := image.NewPaletted(full.Bounds(), mostFrequent(full, 256))
	draw.Draw(few, few.Bounds(), full, full.Bounds().Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few); err != nil {
		p.t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "..", "..", "docs", "pictures")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), out.Bytes(), 0o644); err != nil {
		p.t.Fatal(err)
	}
	p.t.Logf("%s: %d KiB", name, out.Len()>>10)
}

// mostFrequent are the colours that most pixels have: a page has areas and lines of few
// colours, and what lies between two of them at the edges of letters can be the nearest one.
func mostFrequent(m image.Image, n int) color.Palette {
	seen := map[color.Color]int{}
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			seen[color.RGBAModel.Convert(m.At(x, y))]++
		}
	}
	all := slices.SortedFunc(maps.Keys(seen), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return all[:min(n, len(all))]
}

// TestPictures makes the pictures of the docs, of a real bundle that crashes and of a shop
// beside it whose restarts take longer.
func TestPictures(t *testing.T) {
	if !*pictures {
		t.Skip("pictures are written with -pictures only")
	}
	if _, file, _, _ := runtime.Caller(0); filepath.IsAbs(file) {
		t.Fatal("stacks would show folders of this machine: build with -trimpath, as make pictures does")
	}
	one := func(name string, p host.Props) host.Child { return host.Child{Name: name, Props: p} }
	w := runBundle(t, "flaky", map[string]host.Props{
		"depot":   host.Func(steady).WithSupervision(delays(4*time.Second, 10*time.Minute)).WithChildren(one("shelf", host.Func(fragile)), one("counter", host.Func(steady)), one("gate", host.Func(steady))),
		"bank":    host.Func(steady).WithSupervision(undecided).WithChildren(one("safe", host.Func(fragile))),
		"workers": parent(20_000, host.Func(steady)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	fed := make(chan struct{})
	go func() { defer close(fed); w.feed(ctx, "flaky", 1500*time.Millisecond) }()
	defer func() { cancel(); <-fed }()
	for range 4 { // 4, 8, 16 and 32 seconds
		w.tell("/user/depot/shelf", "crash")
	}
	w.tell("/user/bank/safe", "the safe is open")
	_ = w.sys.TellPath("/user/nobody", map[string]any{"order": 17})

	p := w.enter(1280, 860, w.full, "")
	p.prefer("prefers-color-scheme", "light")
	p.eval(`import("/dashboard/ui/live.js").then((m) => m.configure({ every: 1000 }))`, nil)
	for _, samples := range []string{"15", "34"} {
		p.until("some time has gone by", `[...document.querySelectorAll(".spark .line")].some((l) => l.getAttribute("d").split("L").length > `+samples+`)`)
	}
	p.shot("dashboard-overview")
	p.visit("supervision?path=/user/depot/shelf")
	p.until("the curve", `document.querySelector(".curve .now") && document.querySelector(".side .due")`)
	p.shot("dashboard-supervision")
	p.visit("actors")
	p.until("the tree", row("/user/akka"))
	for _, name := range []string{"/user/akka", "/user/depot", "/user/bank", "/user/workers"} {
		p.eval(row(name)+`.querySelector(".twisty").click()`, nil)
		p.until(name+" is open", row(name+"/")+` || `+row(name)+`.getAttribute("aria-expanded") === "true"`)
	}
	p.until("all is loaded", `document.querySelectorAll(".rows-body .row.waiting").length === 0`)
	p.shot("dashboard-actors")
	p.prefer("prefers-color-scheme", "dark")
	p.visit("actor?path=/user/depot/shelf")
	p.until("the failure", `document.querySelector(".curve") && document.body.innerText.includes("the shelf has fallen down")`)
	p.shot("dashboard-actor-dark")
	p.run(chromedp.EmulateViewport(360, 700, chromedp.EmulateMobile))
	p.visit("actors")
	p.until("the tree", row("/user/akka"))
	p.shot("dashboard-phone")
}
