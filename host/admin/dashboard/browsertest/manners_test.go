package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/wasmactors/wasmactors/host/admin/dashboard"
)

// call gives the browser an order of its protocol.
func call[P, R any](p *page, c cdp.Command[P, R], params P) {
	p.t.Helper()
	p.run(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	}))
}

// prefer sets what a media query of the reader's says.
func (p *page) prefer(feature, value string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
}

// Everything can be reached and done with the keyboard alone, and it is seen where one is.
func TestKeyboardAlone(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "")
	focused := `document.activeElement`
	p.press("2")
	p.until("the actors", `location.hash === "#/actors"`)
	p.until("they are there", row("/user/hasty"))

	// Tab leads into the list, to one row of it.
	p.until("only one row can be reached by Tab", `document.querySelectorAll(".rows-body [tabindex='0']").length === 1`)
	for range 40 {
		p.press(kb.Tab)
		var in bool
		p.eval(focused+`.classList.contains("row")`, &in)
		if in {
			break
		}
		var seen bool
		p.eval(`(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1; })()`, &seen)
		if !seen {
			t.Error("the focus cannot be seen on ", p.text(focused+`.outerHTML.slice(0, 80)`))
		}
	}
	at := func(path string) {
		t.Helper()
		p.until("the focus is on "+path, focused+`.item?.path === `+quote(path))
	}
	at("/user")
	p.press(kb.ArrowDown, kb.ArrowDown)
	at("/user/hasty")
	p.press(kb.ArrowRight)
	p.until("it is open", focused+`.getAttribute("aria-expanded") === "true"`)
	p.until("the child is there", row("/user/hasty/till"))
	p.press(kb.ArrowRight)
	at("/user/hasty/till")
	p.until("levels are told", focused+`.getAttribute("aria-level") === "3"`)
	p.press(kb.ArrowLeft)
	at("/user/hasty")
	p.press(kb.ArrowLeft)
	p.until("it is closed", focused+`.getAttribute("aria-expanded") === "false"`)
	p.press(kb.End)
	at("/user/undecided")
	p.press(kb.ArrowUp, kb.ArrowUp)
	at("/user/patient") // the pool stands between them
	p.press(kb.ArrowDown, kb.ArrowRight)
	at("/user/pool")
	p.until("the pool is open", row("/user/pool/w-000000"))
	p.press(kb.End, kb.ArrowUp)
	at("/user/pool/w-000449")
	p.press(kb.PageUp, kb.PageDown)
	at("/user/pool/w-000449")

	// Who reads a row keeps it, and where it is on the screen, when one before it goes.
	p.press(kb.PageUp, kb.PageUp, kb.PageUp)
	middle := p.text(`document.activeElement.item.path`)
	echo, err := w.sys.Lookup("/user/echo")
	if err != nil {
		t.Fatal(err)
	}
	var before, after float64
	rows := p.text(`document.querySelector("[role=treegrid]").getAttribute("aria-rowcount")`)
	p.eval(`document.activeElement.getBoundingClientRect().top`, &before)
	w.sys.StopNow(echo)
	p.until("one row less", `document.querySelector("[role=treegrid]").getAttribute("aria-rowcount") !== `+quote(rows))
	at(middle)
	p.eval(`document.activeElement.getBoundingClientRect().top`, &after)
	if before != after {
		t.Errorf("the row has moved from %v to %v", before, after)
	}
	p.press(kb.Home)
	at("/user")

	// Search by "/", open by Enter, act by Tab and Enter, leave by Escape.
	p.press("/")
	p.until("the search has the focus", focused+`.name === "q"`)
	p.press("till" + kb.Enter)
	p.until("it is found", `document.querySelectorAll(".rows-body .row").length === 1`)
	p.eval(`document.querySelector(".rows-body .row").focus()`, nil)
	p.press(kb.Enter)
	p.until("its page", `location.hash.startsWith("#/actor?path=")`)
	p.until("its verbs", `document.querySelector(".actor [data-verb=stop]")`) // the list has some, too
	p.press("m")
	for range 30 {
		p.press(kb.Tab)
		if p.text(focused+`.dataset.verb`) == "stop" {
			break
		}
	}
	p.until("the focus is on the verb", focused+`.dataset.verb === "stop"`)
	p.press(kb.Enter)
	p.until("the question, ready to be confirmed", focused+`.closest("dialog") && document.activeElement.type === "submit"`)
	p.press(kb.Escape)
	p.until("back at the button", focused+`.dataset.verb === "stop"`)
	p.press(kb.Enter)
	p.until("ready again", focused+`.closest("dialog") && document.activeElement.type === "submit"`)
	p.press(kb.Enter)
	p.expect("404")
	p.until("it is gone", `document.querySelector(".actor.gone")`)

	// The list of keys, and the way to do without single keys.
	p.press("?")
	p.says("Single keys do something")
	p.eval(`document.querySelector("dialog input[type=checkbox]").click()`, nil)
	p.press(kb.Escape)
	p.until("closed", `!document.querySelector("dialog")`)
	p.press("3")
	p.eval(`new Promise((r) => requestAnimationFrame(r))`, nil)
	if got := p.text(`location.hash`); !strings.HasPrefix(got, "#/actor?") {
		t.Error("a single key did something: ", got)
	}
}

// Names, roles and states are there for who does not see the page.
func TestRoles(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "")
	for _, place := range []string{"", "actors", "supervision", "crashes", "dead-letters", "events", "logs", "flow", "actor?path=/user/echo"} {
		p.visit(place)
		p.until("it is shown", `document.querySelector("main h1") && document.querySelector(".top").dataset.state === "live"`)
		var bad []string
		p.eval(`[...document.querySelectorAll("button, a, input, select, textarea, [role=img], [role=region], [role=treegrid], nav")].filter((e) => {
			const name = e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || e.closest("label")?.textContent.trim();
			return e.checkVisibility() && !name && !(e.closest(".row"));
		}).map((e) => e.outerHTML.slice(0, 120))`, &bad)
		if len(bad) > 0 {
			t.Errorf("%s: without a name: %v", place, bad)
		}
		var headings int
		p.eval(`document.querySelectorAll("h1").length`, &headings)
		if headings != 1 {
			t.Errorf("%s: %d headings of the first level", place, headings)
		}
	}
	p.visit("actors")
	p.until("a grid with its size", `document.querySelector("[role=treegrid]")?.getAttribute("aria-rowcount") > 5`)
	p.until("the present view is told", `document.querySelector(".places [aria-current=page]").textContent === "Actors"`)
}

// On a phone nothing is cut off at the side, and what is pressed is large enough.
func TestPhone(t *testing.T) {
	w := shop(t)
	w.tell("/user/patient/shelf", "crash")
	w.tell("/user/undecided/safe", strings.Repeat("a long reason ", 40))
	_ = w.sys.TellPath("/user/nobody-of-a-long-name-that-does-not-fit-on-any-phone-at-all", 1)
	p := w.enter(360, 640, w.full, "")
	p.run(chromedp.EmulateViewport(360, 640, chromedp.EmulateMobile))
	for _, place := range []string{"", "actors", "supervision", "crashes", "dead-letters", "events", "logs", "flow", "actor?path=/user/patient/shelf"} {
		p.visit(place)
		p.until("it is shown", `document.querySelector("main h1") && document.querySelector(".top").dataset.state === "live"`)
		if place == "actors" {
			p.until("rows", row("/user/hasty"))
		}
		if place == "crashes" {
			p.until("a report", `document.querySelector(".report")`)
			p.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
		}
		var wide []string
		p.eval(`document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .chips, pre")).map((e) => e.outerHTML.slice(0, 100))`, &wide)
		var width int
		p.eval(`document.documentElement.scrollWidth`, &width)
		if width > 360 {
			t.Errorf("%s is %d pixels wide: %v", place, width, wide)
		}
		var small []string
		p.eval(`[...document.querySelectorAll("button, select")].filter((e) => e.checkVisibility() && !e.classList.contains("sort") && !e.classList.contains("pick") && e.getBoundingClientRect().height < 32).map((e) => e.outerHTML.slice(0, 80))`, &small)
		if len(small) > 0 {
			t.Errorf("%s: too small for a finger: %v", place, small)
		}
	}
	// A row can be opened, and an actor reached.
	p.visit("actors")
	p.until("rows", row("/user/hasty"))
	p.eval(row("/user/hasty")+`.querySelector(".twisty").click()`, nil)
	p.until("the child", row("/user/hasty/till"))
	p.eval(row("/user/hasty/till")+`.querySelector("a").click()`, nil)
	p.until("its page", `document.querySelector(".actor [data-verb]")?.checkVisibility()`)
}

// contrast computes the contrast of texts with what is behind them, by WCAG's formula
// (https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio), and gives those below 4.5.
const contrast = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
	const rgb = (c, under) => { canvas.fillStyle = under ?? "#fff"; canvas.fillRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
	const css = (c) => "rgb(" + c.slice(0, 3).join(" ") + ")";
	const ground = (e) => { const all = []; for (let k = e; k; k = k.parentElement) all.unshift(getComputedStyle(k).backgroundColor); return all.reduce((under, c) => css(rgb(c, under)), "#fff"); };
	const bad = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (!e.checkVisibility() || e.disabled || e.closest(".zero, .gone, svg, .unseen, .skip") || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
		const under = ground(e), a = light(rgb(getComputedStyle(e).color, under)), b = light(rgb(under));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) bad.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
	}
	return [...bad];
})()`

func TestDarkAndLight(t *testing.T) {
	w := shop(t)
	w.tell("/user/patient/shelf", "crash")
	w.tell("/user/undecided/safe", "the safe is open")
	p := w.enter(1280, 800, w.full, "")
	ground := func() (lightness float64) {
		t.Helper()
		p.eval(`(() => { const m = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number); return (m[0] + m[1] + m[2]) / 3; })()`, &lightness)
		return lightness
	}
	for _, scheme := range []string{"light", "dark"} {
		p.prefer("prefers-color-scheme", scheme)
		if dark := ground() < 128; dark != (scheme == "dark") {
			t.Errorf("who prefers %s sees a ground of %v", scheme, ground())
		}
		for _, place := range []string{"", "actors", "supervision", "crashes", "events", "actor?path=/user/undecided/safe"} {
			p.visit(place)
			p.until("it is shown", `document.querySelector("main h1") && document.querySelector(".top").dataset.state === "live"`)
			p.until("what it is about is there", `document.querySelectorAll(".state, .report, .event").length > 0`)
			var bad []string
			p.eval(contrast, &bad)
			if len(bad) > 0 {
				t.Errorf("%s, %s: hard to read: %v", place, scheme, bad)
			}
		}
	}
	// The switch goes from the system's to the other one, and is remembered.
	p.press("t")
	if ground() < 128 {
		t.Error("the switch did not go from dark to light")
	}
	p.run(chromedp.Reload())
	p.until("live again", `document.querySelector(".top")?.dataset.state === "live"`)
	if ground() < 128 {
		t.Error("what was chosen is forgotten")
	}
	p.press("t", "t")
	if ground() > 128 {
		t.Error("the system's theme is not back")
	}
}

func TestReducedMotion(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "actors")
	p.until("rows", row("/user/hasty"))
	moves := `[...document.querySelectorAll("*")].filter((e) => getComputedStyle(e).transitionDuration.split(",").some((d) => parseFloat(d) > 0) || getComputedStyle(e).animationName !== "none").length`
	p.prefer("prefers-reduced-motion", "no-preference")
	p.until("something moves", moves+` > 0`)
	p.prefer("prefers-reduced-motion", "reduce")
	p.until("nothing moves", moves+` === 0`)
}

// watchRequests counts, in the page, what it asks the server for.
const watchRequests = `(() => {
	const real = window.fetch;
	window.asked = [];
	window.fetch = (url, init) => { asked.push({ url: String(url), signal: init?.signal }); return real(url, init); };
})()`

// Who does not look costs nothing: no request while the tab is hidden, paused or left alone,
// and no open stream.
func TestAsleep(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "")
	p.eval(watchRequests, nil)
	p.visit("events")
	p.says("Following;")
	p.until("it polls", `asked.filter((a) => a.url.includes("/system")).length > 2`)
	ways := []struct{ name, begin, end, says string }{
		{"hidden", `Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true }), document.dispatchEvent(new Event("visibilitychange"))`,
			`delete document.visibilityState, document.dispatchEvent(new Event("visibilitychange"))`, "asleep"},
		{"paused", `document.querySelector(".tools [aria-pressed]").click()`, `document.querySelector(".tools [aria-pressed]").click()`, "paused"},
		{"idle", `import("/dashboard/ui/live.js").then((m) => m.configure({ every: 200, idleAfter: 300 }))`,
			`import("/dashboard/ui/live.js").then((m) => (m.configure({ every: 200, idleAfter: 60000 }), dispatchEvent(new Event("pointerdown"))))`, "nobody has touched"},
	}
	for _, way := range ways {
		p.eval(way.begin, nil)
		p.until("it sleeps: "+way.name, `document.querySelector(".top").dataset.state === "asleep" && document.querySelector(".status").textContent.includes(`+quote(way.says)+`)`)
		p.says("Not following while nobody looks.")
		var more, open int
		p.eval(`new Promise((done) => { const n = asked.length; setTimeout(() => done(asked.length - n), 1000); })`, &more)
		p.eval(`asked.filter((a) => a.url.includes("/events") && !a.signal.aborted).length`, &open)
		if more != 0 || open != 0 {
			t.Errorf("%s: %d requests in a second, %d streams open", way.name, more, open)
		}
		w.tell("/user/hasty/till", "while it was "+way.name)
		p.eval(way.end, nil)
		p.until("it goes on: "+way.name, `document.querySelector(".top").dataset.state === "live"`)
		p.says("while it was " + way.name)
	}
	for _, way := range ways { // each event once, although the stream was opened several times
		var times int
		p.eval(`[...document.querySelectorAll(".event-failed summary")].filter((e) => e.textContent.includes(`+quote("while it was "+way.name)+`)).length`, &times)
		if times != 1 {
			t.Errorf("what happened while it was %s is shown %d times", way.name, times)
		}
	}
}

// A connection that breaks is said, and comes back by itself.
func TestReconnect(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "events")
	p.expect("ERR_INTERNET_DISCONNECTED")
	p.says("Following;")
	offline := func(on bool) {
		t.Helper()
		call(p, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: on, DownloadThroughput: -1, UploadThroughput: -1}},
		})
	}
	offline(true)
	p.says("not connected, trying again in")
	w.tell("/user/hasty/till", "in the meantime")
	offline(false)
	p.until("it is live again", `document.querySelector(".top").dataset.state === "live"`)
	p.says("in the meantime")
	p.says("Following;")
}

// A session that has ended asks for a token again, and does not go on asking.
func TestSessionEnds(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "")
	p.expect("401")
	p.eval(`import("/dashboard/ui/api.js").then((m) => fetch(m.address("session"), { method: "DELETE", headers: { "X-Session-Key": m.session.key } })).then(() => null)`, nil)
	p.says("The session has ended")
	p.eval(watchRequests, nil)
	var more int
	p.eval(`new Promise((done) => setTimeout(() => done(asked.length), 1000))`, &more)
	if more != 0 {
		t.Errorf("%d requests without a session", more)
	}
	p.run(chromedp.KeyEvent(w.full.Reveal()), chromedp.KeyEvent(kb.Enter))
	p.until("it is live", `document.querySelector(".top")?.dataset.state === "live"`)
}

func TestEventsAreFiltered(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "events")
	p.until("the history", `document.querySelectorAll(".event-started").length > 400`)
	p.click(`[data-kind="failed"]`)
	p.until("only failures", `document.querySelectorAll(".event").length === 0`)
	for i := range 3 {
		w.tell("/user/hasty/till", fmt.Sprint("reason ", i))
	}
	p.until("they come live, the newest first", `[...document.querySelectorAll(".event .why")].map((e) => e.textContent).join("|") === "guest_error: reason 2|guest_error: reason 1|guest_error: reason 0"`)
	p.fill("input[name=path]", "/user/patient/**"+kb.Enter)
	p.until("only below a path", `document.querySelectorAll(".event").length === 0`)
	w.tell("/user/hasty/till", "elsewhere")
	w.tell("/user/patient/shelf", "here")
	p.until("what is meant comes", `document.querySelectorAll(".event").length === 1 && document.body.innerText.includes("guest_error: here")`)
	if got := p.text(`location.hash`); got != "#/events?path=%2Fuser%2Fpatient%2F**&kind=failed" {
		t.Error("the address is ", got)
	}
	p.fill("input[name=path]", "no path"+kb.Enter)
	p.expect("40")
	p.until("the server's error is shown", `document.querySelector("main .problem")?.textContent.includes("no path")`)
}

// A flood of events is shown as far as it can be, and neither the page nor the browser grows
// without bound.
func TestFloodOfEvents(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "events?kind=failed")
	p.says("Following;")
	for i := range 5000 {
		w.tell("/user/hasty/till", fmt.Sprint("flood ", i))
	}
	p.until("some of it is shown", `document.querySelectorAll(".event").length > 0`)
	// On a busy machine most of it is lost, so more follows until the page shows what it can.
	full := 0
	for end := time.Now().Add(30 * time.Second); full < 500 && time.Now().Before(end); p.eval(`document.querySelectorAll(".event").length`, &full) {
		for i := range 20 {
			w.tell("/user/hasty/till", fmt.Sprint("more ", i))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if full != 500 {
		t.Errorf("%d lines on the page, want 500", full)
	}
	w.tell("/user/hasty/till", "the flood is over")
	p.says("guest_error: the flood is over")
	var lines int
	p.eval(`document.querySelectorAll(".event").length`, &lines)
	if lines > 500 {
		t.Errorf("%d lines on the page", lines)
	}
	began := time.Now()
	p.visit("")
	p.until("the page is still quick", `document.querySelector("main h1").textContent === "Overview"`)
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("another view took %v", d)
	}
}

// Whatever guests or even the server say is text: markup in it does nothing.
func TestMarkupIsText(t *testing.T) {
	w := shop(t)
	const markup = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload=window.hacked=1>"'><a href="javascript:window.hacked=1">x</a>`
	w.tell("/user/patient/shelf", markup)
	_ = w.sys.TellPath("/user/nobody", markup)
	w.tell("/user/hasty/till", "turned \u202e around")
	p := w.enter(1280, 800, w.full, "crashes")
	p.until("the reports", `document.querySelectorAll(".report").length === 2`)
	p.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
	p.says(`onerror="window.hacked=1"`)
	p.says("turned ⟨202E⟩ around")
	for _, place := range []string{"dead-letters", "events", "supervision?path=/user/patient/shelf", "actor?path=/user/patient/shelf", ""} {
		p.visit(place)
		p.until(place+" has the text", `document.querySelector("main").textContent.includes("onerror=")`)
		p.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
	}
	clean(t, p)
}

func clean(t *testing.T, p *page) {
	t.Helper()
	var hacked bool
	p.eval(`window.hacked !== undefined || [...document.querySelectorAll("script")].length > 2 || !!document.querySelector("img, iframe, object, [onerror], [onload], a[href^='javascript']")`, &hacked)
	if hacked {
		t.Error("markup was taken for markup: ", p.text(`document.body.innerHTML`))
	}
}

// A server that lies in every field, names and states included, gets no further.
func TestMarkupFromALyingServer(t *testing.T) {
	const m = `<img src=x onerror=window.hacked=1>`
	actor := fmt.Sprintf(`"path":"/user/%[1]s","ref":"%[1]s","type":"%[1]s","parent":"%[1]s","state":"%[1]s","incarnation":1,"mailbox":1,"mailbox_bytes":1,"oldest_ns":1,"turns":1,"fuel":1,"crashes":1,"restarts":1,"held":1,"children":1,"since":"%[1]s","due_ns":5000000000,"failure":"%[1]s"`, m)
	event := fmt.Sprintf(`{"time":"%[1]s","event":"%[1]s","actor":"/user/%[1]s","type":"%[1]s","incarnation":1,"note":"%[1]s"}`, m)
	failed := fmt.Sprintf(`{"time":"%[1]s","event":"failed","actor":"/user/%[1]s","type":"%[1]s","incarnation":1,"directive":"%[1]s","note":"%[1]s","failure":{"kind":"%[1]s","reason":"%[1]s","message":"%[1]s","stack":["%[1]s"],"guest_stack":"%[1]s","turn":1,"fuel":1},"message":{"kind":"%[1]s","bytes":1,"payload":{"%[1]s":"%[1]s"}}}`, m)
	logged := fmt.Sprintf(`{"time":"%[1]s","event":"log","actor":"/user/%[1]s","level":"%[1]s","text":"%[1]s","incarnation":0}`, m)
	answers := map[string]string{
		"/v1/session":        `{"access":"full","key":"k"}`,
		"/v1/server":         fmt.Sprintf(`{"name":"%[1]s","version":"%[1]s","replay":"%[1]s"}`, m),
		"/v1/system":         fmt.Sprintf(`{"version":1,"name":"%[1]s","bundle":"%[1]s","dir":"%[1]s","started":"2026-01-01T00:00:00Z","now":"2026-01-01T00:00:01Z","ended":"%[1]s","actors":1,"states":{"%[1]s":1,"running":1},"types":[{"name":"%[1]s","actors":1}]}`, m),
		"/v1/actors":         `{"total":1,"actors":[{` + actor + `}]}`,
		"/v1/tree":           `{` + actor + `,"below":{"actors":2,"states":{"` + m + `":1},"mailbox":1},"nodes":[{` + actor + `,"below":{"actors":5,"states":{"` + m + `":1},"mailbox":3}}]}`,
		"/v1/actor":          `{` + actor + `,"supervisor":"` + m + `","lifetime":"` + m + `","held_parts":{"` + m + `":1},"limits":{"held":5},"capabilities":{"` + m + `":["` + m + `"]},"strategy":{"kind":"` + m + `","max_restarts":3,"exceeded":"` + m + `","backoff":{"curve":[{"attempt":1,"delay_ns":1}],"meanwhile":"` + m + `"}},"record":{"failures":1,"total":1,"restarts_in_window":1},"last_failure":{"kind":"` + m + `","reason":"` + m + `","message":"` + m + `","stack":["` + m + `"],"turn":1,"at":"` + m + `"},"counts":{"timers":1}}`,
		"/v1/latencies":      fmt.Sprintf(`{"now":"2026-01-01T00:00:01Z","bounds_ns":[1,2],"series":[{"kind":"%[1]s","name":"%[1]s","buckets":[1,2,3],"sum_ns":4}]}`, m),
		"/v1/history":        fmt.Sprintf(`{"points":[{"at":"%[1]s","actors":1},{"at":"2026-01-01T00:00:01Z","actors":1}]}`, m),
		"/v1/crashes":        fmt.Sprintf(`{"total":1,"ever":2,"lost":1,"crashes":[{"id":"%[1]s","time":"%[1]s","path":"/user/%[1]s","type":"%[1]s","kind":"%[1]s","reason":"%[1]s","cause":"%[1]s","decided":"%[1]s","delay_ns":1}],"causes":[{"type":"%[1]s","cause":"%[1]s","kept":1,"ever":1,"first":"%[1]s","last":"%[1]s","id":"%[1]s"}]}`, m),
		"/v1/crashes/report": fmt.Sprintf(`{"crash":{"id":"%[1]s","path":"/user/%[1]s","kind":"%[1]s","reason":"%[1]s"},"report":%[2]s}`, m, failed),
		"/v1/dead-letters":   fmt.Sprintf(`{"total":1,"ever":2,"letters":[{"id":1,"time":"%[1]s","reason":"%[1]s","kind":"%[1]s","from":"/%[1]s","to":"%[1]s","key":"%[1]s","size":1,"whole":true,"payload":"%[1]s"}]}`, m),
		"/v1/flow":           fmt.Sprintf(`{"edges":[{"from":"/%[1]s","to":"%[1]s","kind":"%[1]s","count":1,"bytes":1}]}`, m),
		"/v1/stop":           fmt.Sprintf(`{"total":1,"done":1,"failed":0,"changed":[{"path":"%[1]s","did":"%[1]s"}]}`, m),
		"/v1/kill":           "", // an error
	}
	mux := http.NewServeMux()
	mux.Handle("/", dashboard.Handler())
	mux.HandleFunc("/v1/", func(rw http.ResponseWriter, r *http.Request) {
		switch text, ok := answers[r.URL.Path]; {
		case r.URL.Path == "/v1/events" || r.URL.Path == "/v1/trace":
			rw.Header().Set("Content-Type", "text/event-stream")
			record := fmt.Sprintf(`{"time":"%[1]s","direction":"%[1]s","kind":"%[1]s","peer":"/%[1]s","size":1,"payload":"%[1]s","failed":"%[1]s"}`, m)
			for i, e := range []string{event, failed, logged, record} {
				if (r.URL.Path == "/v1/trace") == (i == 3) {
					fmt.Fprintf(rw, "id: %d\ndata: %s\n\n", i+1, e)
				}
			}
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
		case ok && text != "":
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprint(rw, text)
		default:
			rw.WriteHeader(http.StatusConflict)
			fmt.Fprintf(rw, `{"error":{"code":"%[1]s","message":"%[1]s","hint":"%[1]s"}}`, m)
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	p := open(t, 1280, 800)
	p.expect("409")
	p.run(chromedp.Navigate(srv.URL + "/#token=x"))
	for _, place := range []string{"", "actors", "actors?q=x", "supervision", "crashes", "crashes?id=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E", "dead-letters", "events", "logs", "flow", "actor?path=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E"} {
		p.visit(place)
		p.until("it is shown", `document.querySelector("main h1")`)
		if place == "flow" { // nothing is sampled before somebody asks
			p.click("main button[data-search]")
		}
		p.until(place+" has the text", `document.querySelector("main").textContent.includes("onerror=")`)
		p.eval(`document.querySelectorAll("details").forEach((d) => d.open = true)`, nil)
	}
	p.click("[data-trace]")
	p.until("the trace", `document.querySelector(".traced")`)
	for _, verb := range []string{"stop", "kill"} {
		p.click(`[data-verb="` + verb + `"]`)
		p.until("the answer", `document.querySelector("dialog .outcome").textContent.includes("onerror=")`)
		p.press(kb.Escape)
		p.until("closed", `!document.querySelector("dialog")`)
	}
	clean(t, p)
}
