package browsertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/wasmactors/wasmactors/host"
)

// row is an expression for the row of the list whose path ends so, or undefined.
func row(name string) string {
	return `[...document.querySelectorAll(".rows-body .row")].find((e) => e.item?.path?.endsWith(` + quote(name) + `))`
}

func TestLogin(t *testing.T) {
	w := shop(t)
	p := open(t, 1280, 800)
	p.expect("401")
	p.run(chromedp.Navigate(w.url))
	p.until("a token is asked for", `document.activeElement?.name === "token"`)
	p.until("at the dashboard's own address", `location.pathname === "/dashboard/"`)
	p.run(chromedp.KeyEvent("no token of this server's"), chromedp.KeyEvent(kb.Enter))
	p.says("does not know this token")
	p.run(chromedp.KeyEvent(w.full.Reveal()), chromedp.KeyEvent(kb.Enter))
	p.until("it is live", `document.querySelector(".top")?.dataset.state === "live"`)
	p.says("shop")

	// Neither the address nor what scripts can read has the token.
	if got := p.text(`location.href + document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)`); contains(got, w.full.Reveal()) || contains(got, "wasmactors_") {
		t.Error("the page keeps the token, or can read the cookie: ", got)
	}
	p.run(chromedp.Reload())
	p.until("a session outlives a reload", `document.querySelector(".top")?.dataset.state === "live"`)
	p.click(".tools button:last-child")
	p.until("after the log-out a token is asked for", `document.activeElement?.name === "token"`)
	p.run(chromedp.Reload())
	p.until("the session has ended for good", `document.activeElement?.name === "token"`)
}

func TestReadOnlyTokenShowsNoButtons(t *testing.T) {
	w := shop(t)
	w.tell("/user/undecided/safe", "the safe is open")
	p := w.enter(1280, 800, w.read, "actor?path=/user/undecided/safe")
	p.says("read only")
	p.says("the safe is open")
	p.until("no verbs", `document.querySelectorAll("[data-verb]").length === 0`)
	p.visit("supervision")
	p.says("Decided about by")
	p.until("no verbs", `document.querySelectorAll("[data-verb]").length === 0`)
	p.visit("dead-letters")
	p.until("nothing to deliver again", `![...document.querySelectorAll("button")].some((b) => b.textContent.includes("Deliver"))`)

	// The buttons are a courtesy: the server is what refuses.
	p.expect("403")
	var status int
	p.eval(`import("/dashboard/ui/api.js").then((m) => m.post("kill", { select: { paths: ["/user/echo"] } })).then(() => 200, (e) => e.status)`, &status)
	if status != 403 {
		t.Errorf("a token that only reads could kill: %d", status)
	}
}

// While an actor crashes again and again, its row says so.
func TestTreeFollowsCrashes(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "actors")
	p.until("the top of the tree", row("/user/hasty"))
	p.eval(row("/user/hasty")+`.querySelector(".twisty").click()`, nil)
	p.until("the child", row("/user/hasty/till"))
	for n := 1; n <= 4; n++ {
		for range 5 {
			w.tell("/user/hasty/till", "the till is stuck")
		}
		p.until(fmt.Sprint(5*n, " restarts are shown"), row("/user/hasty/till")+`?.querySelector(".cell-restarts").textContent === "`+fmt.Sprint(5*n)+`"`)
	}
	// The parent's row sums up what is below it.
	w.tell("/user/undecided/safe", "the safe is open")
	p.until("what is below is summed up", row("/user/undecided")+`?.querySelector(".trouble").textContent === "1 suspended"`)
	p.until("also at the top", row("/user")+`?.querySelector(".stack").getAttribute("aria-label").includes("1 suspended")`)

	// Who looks for a state finds those in it, and nothing else.
	p.click(`[data-state="suspended"]`)
	p.until("one is found", row("/user/undecided/safe"))
	p.until("and nobody else", `document.querySelectorAll(".rows-body .row").length === 1 && document.querySelector("#found").textContent === "1 actor found"`)
	if got := p.text(`location.hash`); got != "#/actors?q=state%3Asuspended" {
		t.Error("the address is ", got)
	}
	p.fill("input[name=q]", "state:nonsense"+kb.Enter)
	p.says("no state is called nonsense")
	p.fill("input[name=q]", "path:/user/pool/w-00001?"+kb.Enter)
	p.until("ten of the pool", `document.querySelector("#found").textContent === "10 actors found"`)
	p.click(`.cell-path .sort`)
	p.until("sorted the other way", `document.querySelector(".rows-body .row[aria-rowindex='2']")?.item?.path === "/user/pool/w-000019"`)
}

func TestDelayCountsDown(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "actors?q=state:delayed")
	w.tell("/user/patient/shelf", "crash") // waits for three seconds
	due := row("/user/patient/shelf") + `?.querySelector(".due").textContent`
	p.until("the delay is shown", `/^[0-3]\.\d s$/.test(`+due+`)`)
	var texts []string
	p.eval(`new Promise((done) => { const all = []; const look = () => { const s = `+due+`; if (s && s !== all.at(-1)) all.push(s); all.length >= 6 ? done(all) : requestAnimationFrame(look); }; look(); })`, &texts)
	for i := 1; i < len(texts); i++ {
		if texts[i] >= texts[i-1] {
			t.Errorf("the time left does not fall: %v", texts)
		}
	}
	p.until("it is over", `document.querySelector("#found").textContent === "0 actors found"`)
}

func TestSupervision(t *testing.T) {
	w := shop(t)
	for range 2 {
		w.tell("/user/patient/shelf", "crash") // 3 s, and when it is over 6 s
	}
	p := w.enter(1280, 800, w.full, "supervision")
	p.until("the second delay", `document.querySelector(".side .due")?.textContent.startsWith("5.")`)
	p.says("/user/patient/shelf")
	p.says("Decided about by /user/patient")
	p.says("2 of 20 within 1 h")
	p.says("attempt 2: 6 s")
	var on bool
	p.eval(`(() => { const n = document.querySelector(".curve .now"), all = [...document.querySelectorAll(".curve .point")]; return all.length > 5 && n.getAttribute("cx") === all[1].getAttribute("cx") && n.getAttribute("cy") === all[1].getAttribute("cy"); })()`, &on)
	if !on {
		t.Error("the present point is not on the curve at its attempt")
	}

	// Who is suspended waits for a decision, which can be made here.
	w.tell("/user/undecided/safe", "the safe is open")
	p.until("it is listed", `[...document.querySelectorAll(".pick")].some((b) => b.textContent === "/user/undecided/safe")`)
	p.eval(`[...document.querySelectorAll(".pick")].find((b) => b.textContent === "/user/undecided/safe").click()`, nil)
	p.says("Left for an operator")
	p.click(`[data-verb="decide"]`)
	p.until("what it would do", `document.querySelector("dialog .did")`)
	p.eval(`(() => { const s = document.querySelector("dialog select"); s.value = "restart"; s.dispatchEvent(new Event("change")); })()`, nil)
	p.until("it can be confirmed", `document.querySelector("dialog button[type=submit]:not(:disabled)")`)
	p.click(`dialog button[type=submit]`)
	p.says("Decide: done")
	p.until("it runs again", `![...document.querySelectorAll(".stacked table")][0].innerText.includes("/user/undecided/safe")`)
	p.says("running")
}

func TestCrashReportHasStack(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "crashes")
	w.tell("/user/patient/shelf", "crash")
	p.until("the report", `document.querySelector(".report")`)
	p.click(".report summary")
	p.says("the shelf has fallen down")
	p.until("with a stack", `document.querySelector(".report pre") && document.querySelector(".report-body").innerText.includes("browsertest.fragile")`)
	p.until("and with the message", `document.querySelector(".report-body").innerText.includes("\"crash\"")`)
}

func TestVerbs(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "actor?path=/user/echo")
	confirm := func(verb string) {
		t.Helper()
		p.click(`[data-verb="` + verb + `"]`)
		p.until("what it would do", `document.querySelector("dialog .changes")?.innerText.includes("/user/echo")`)
		p.click(`dialog button[type=submit]`)
		p.until("the dialog is gone", `!document.querySelector("dialog")`)
	}
	state := func(want string) {
		t.Helper()
		p.until("it is "+want, `document.querySelector(".actor-name .state").textContent === `+quote(want))
	}
	state("running")

	// Nothing happens to who only looks at what would happen.
	p.click(`[data-verb="stop"]`)
	p.until("what it would do", `document.querySelector("dialog .changes")`)
	p.press(kb.Escape)
	p.until("the dialog is gone", `!document.querySelector("dialog")`)
	state("running")

	confirm("pause")
	state("paused")
	p.until("it can only be unpaused", `document.querySelector("[data-verb=pause]").hidden && !document.querySelector("[data-verb=unpause]").hidden`)
	w.tell("/user/echo", 1)
	p.says("1 message,")
	confirm("unpause")
	state("running")

	p.click(`[data-verb="ask"]`)
	p.fill("dialog textarea", `{"n": 18446744073709551615`)
	p.click("dialog button[type=submit]")
	p.says("That is not JSON")
	p.fill("dialog textarea", `{"n": 18446744073709551615}`)
	p.click("dialog button[type=submit]")
	p.says("18446744073709551615") // to the last digit, both ways
	p.says("9223372036854775809")
	p.press(kb.Escape)
	p.until("the dialog is gone", `!document.querySelector("dialog")`)
	p.click(`[data-verb="send"]`)
	p.fill("dialog textarea", `"hello"`)
	p.click("dialog button[type=submit]")
	p.says("Sent to /user/echo")

	confirm("crash")
	p.says("asked for in the dashboard")
	p.until("a restart", `document.querySelector(".facts").innerText.match(/Restarts\s+1/)`)
	confirm("restart")
	confirm("kill")
	p.until("it is gone, and the page says so", `document.querySelector(".actor.gone") && document.querySelector("main .problem")`)
	p.expect("404")

	// Many at a time, found by a filter.
	p.visit("actors?q=" + "path%3A%2Fuser%2Fpool%2Fw-00001%3F")
	p.until("ten of the pool", `document.querySelector("#found").textContent === "10 actors found"`)
	p.click(".bulk summary")
	p.click(`.bulk [data-verb="pause"]`)
	p.says("That would concern 10 actors:")
	p.click(`dialog button[type=submit]`)
	p.says("Pause: done, 10 actors")
	p.until("all are paused", `[...document.querySelectorAll(".rows-body .row .cell-state")].filter((e) => e.innerText.trim() === "paused").length === 10`)
}

func TestDeadLettersAreDeliveredAgain(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "dead-letters")
	p.says("There are none.")
	for i := range 3 {
		_ = w.sys.TellPath("/user/late", fmt.Sprintf("letter %d", i))
	}
	p.says("3 dead letters are kept")
	p.eval(`document.querySelector("tbody summary").click()`, nil)
	p.says(`"letter 2"`)
	p.until("an opened letter stays open over a refresh", `performance.getEntriesByName("refreshed").length > 5 && document.querySelector("tbody details").open`)

	// Nobody is there yet: the question says so, and nothing can be confirmed.
	p.click("tbody tr:last-child input")
	p.click(".bar .strong")
	p.until("the error is shown", `document.querySelector("dialog .changes .problem")`)
	p.until("nothing to confirm", `document.querySelector("dialog button[type=submit]").disabled`)
	p.press(kb.Escape)

	got := make(chan string, 10)
	if _, err := w.sys.Spawn("late", host.Func(func(_ *host.Context, m host.Message) error {
		var text string
		if err := m.Decode(&text); err != nil {
			return err
		}
		got <- text
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	p.until("it is still chosen", `document.querySelector(".bar .strong").textContent === "Deliver 1 again…"`)
	p.click(".bar .strong")
	p.click("dialog button[type=submit]")
	p.says("1 letter delivered again")
	select {
	case text := <-got:
		if text != "letter 0" {
			t.Errorf("%q came", text)
		}
	case <-time.After(patience):
		t.Fatal("the letter never came")
	}
	p.says("2 dead letters are kept")
	p.click("thead input")
	p.click(".bar .strong")
	p.click("dialog button[type=submit]")
	p.says("There are none.")
	for range 2 {
		<-got
	}
}
