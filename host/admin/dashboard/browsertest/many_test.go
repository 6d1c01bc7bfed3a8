//go:build unix

package browsertest

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/wasmactors/wasmactors/host"
)

// many is how many actors the dashboard must hold.
const many = 100_000

// 10^5 actors are a list like any other: few rows are in the page, wherever it is scrolled
// to, each place is soon there, and a refresh costs little on both sides.
func TestHundredThousand(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute under the race detector")
	}
	w := newWorld(t, map[string]host.Props{
		"crowd": parent(many, host.Func(steady)),
		"hasty": host.Func(steady).WithChildren(host.Child{Name: "till", Props: host.Func(fragile)}),
	})
	p := w.enter(1280, 800, w.full, "actors")
	p.until("the crowd", row("/user/crowd"))
	p.until("summed up by its parent", row("/user/crowd")+`.querySelector(".number").textContent === "100k"`)
	p.eval(row("/user/crowd")+`.querySelector(".twisty").click()`, nil)
	p.until("its children", row("/user/crowd/w-000000"))
	rows := func() (n int) {
		t.Helper()
		p.eval(`document.querySelectorAll(".rows-body .row").length`, &n)
		return n
	}
	var high int
	p.eval(`document.querySelector(".rows-body").scrollHeight`, &high)
	if high < many*20 {
		t.Errorf("the list is %d pixels high", high)
	}

	// To places all over the list, as the scrollbar goes.
	for _, part := range []float64{0.5, 0.999, 0.1, 0.73, 0} {
		var at string
		p.eval(`(() => { const b = document.querySelector(".rows-body"); b.scrollTop = b.scrollHeight * `+text(part)+`; return String(b.scrollTop); })()`, &at)
		p.until("the rows at "+at, `(() => { const b = document.querySelector(".rows-body").getBoundingClientRect(); const r = [...document.querySelectorAll(".rows-body .row")].filter((e) => { const c = e.getBoundingClientRect(); return c.top < b.bottom && c.bottom > b.top; }); return r.length > 10 && r.every((e) => e.item.row); })()`)
		if n := rows(); n > 60 {
			t.Errorf("%d rows are in the page", n)
		}
	}
	p.eval(`document.querySelector(".rows-body .row").focus()`, nil)
	p.press(kb.End)
	p.until("the last one of all", `document.activeElement.item?.path === "/user/hasty"`)
	p.press(kb.ArrowUp)
	p.until("the last one of the crowd", `document.activeElement.item?.path === "/user/crowd/w-099999"`)

	// The row with the focus keeps it, and its place on the screen, while others come and go
	// before it.
	var before, after float64
	p.eval(`document.activeElement.getBoundingClientRect().top`, &before)
	w.tell("/user/hasty/till", "still alive")
	ref, err := w.sys.Lookup("/user/crowd/w-000001")
	if err != nil {
		t.Fatal(err)
	}
	w.sys.StopNow(ref)
	p.until("one less", `document.querySelector("[role=treegrid]").getAttribute("aria-rowcount") === "100003"`)
	p.until("the focus stays", `document.activeElement.item?.path === "/user/crowd/w-099999"`)
	p.eval(`document.activeElement.getBoundingClientRect().top`, &after)
	if d := after - before; d < -40 || d > 40 {
		t.Errorf("the row with the focus has moved by %v pixels", d)
	}

	// Scrolling in small steps, as a wheel does, takes no long frames.
	var frames []float64
	p.eval(`new Promise((done) => {
		const b = document.querySelector(".rows-body"), out = [];
		b.scrollTop = b.scrollHeight / 3;
		let last = performance.now(), n = 0;
		const step = (now) => {
			if (n > 5) out.push(now - last);
			last = now;
			b.scrollTop += 120;
			if (++n > 120) done(out); else requestAnimationFrame(step);
		};
		requestAnimationFrame(step);
	})`, &frames)
	slices.Sort(frames)
	t.Logf("scrolling: frames of %.1f ms in the middle, %.1f ms at the 95th percentile, %.1f ms at the most", frames[len(frames)/2], frames[len(frames)*95/100], frames[len(frames)-1])

	// What a refresh costs. In the browser: from the question to the page being drawn, and the
	// drawing alone, with a page of the list and the totals each time.
	p.eval(`performance.clearMeasures()`, nil)
	p.until("twenty refreshes", `performance.getEntriesByName("refreshed").length >= 20`)
	var whole, drawn, script []float64
	p.eval(`performance.getEntriesByName("refreshed").map((e) => e.duration)`, &whole)
	p.eval(`performance.getEntriesByName("refresh-drawn").map((e) => e.duration)`, &drawn)
	p.eval(`new Promise((done) => { const out = []; const o = new PerformanceObserver((l) => out.push(...l.getEntries().map((e) => e.duration))); o.observe({ type: "longtask" }); setTimeout(() => done(out), 2000); })`, &script)
	slices.Sort(whole)
	slices.Sort(drawn)
	t.Logf("a refresh as the browser sees it: %.1f ms in the middle, %.1f ms at the most; drawing the view %.1f ms; tasks longer than 50 ms in two seconds of five refreshes a second: %v", whole[len(whole)/2], whole[len(whole)-1], drawn[len(drawn)/2], script)

	// On the server: the same questions, each alone and not from what another has just seen.
	// The least of some is what they cost; the rest is what else the machine does.
	p.eval(`import("/dashboard/ui/live.js").then((m) => m.pause(true))`, nil)
	c := &client{t, w}
	const crowd = "/v1/tree?under=/user/crowd&depth=1&limit=200&sort=path&offset="
	for _, place := range []struct {
		name  string
		paths []string // at the same time, as a page asks
	}{
		{"a refresh, list at its top", []string{"/v1/system", crowd + "0", "/v1/tree?depth=1&limit=200&sort=path"}},
		{"a refresh, in the middle", []string{"/v1/system", crowd + "50000", "/v1/tree?depth=1&limit=200&sort=path"}},
		{"totals alone", []string{"/v1/system"}},
		{"children, the last", []string{crowd + "99800"}},
		{"a sorted list, its middle", []string{"/v1/actors?sort=held&desc=true&limit=200&offset=50000"}},
		{"a search", []string{"/v1/actors?search=w-0999&limit=200"}},
		{"one actor", []string{"/v1/actor?path=/user/crowd/w-050000"}},
	} {
		wall, cpu := time.Hour, time.Hour
		for range 10 {
			time.Sleep(260 * time.Millisecond) // what is shared among those who look is too old then
			before, began := processor(), time.Now()
			var all sync.WaitGroup
			for _, path := range place.paths {
				all.Go(func() { c.get(path) })
			}
			all.Wait()
			wall, cpu = min(wall, time.Since(began)), min(cpu, processor()-before)
		}
		t.Logf("server: %-28s %6.1f ms at least, %6.1f ms of a processor", place.name, ms(wall), ms(cpu))
		if wall > 50*time.Millisecond && os.Getenv("WASMACTORS_TIMED") != "" {
			t.Errorf("%s took %v", place.name, wall)
		}
	}
}

// processor is the time that the process has had of processors.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// client asks without a browser.
type client struct {
	t *testing.T
	w *world
}

func (c *client) get(path string) {
	r, err := http.NewRequest(http.MethodGet, c.w.url+path[1:], nil)
	if err != nil {
		c.t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+c.w.full.Reveal())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		c.t.Error(path, answer.Status, err)
	}
}
