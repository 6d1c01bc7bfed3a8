package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A report is found by its id, by its cause and from its actor, after a thousand events that came later.
func TestCrashReportsAreFound(t *testing.T) {
	w := shop(t)
	w.tell("/user/undecided/safe", "the safe is open")
	p := w.enter(1280, 800, w.full, "crashes")
	p.until("the report", `document.querySelector(".report")`)
	id := p.text(`document.querySelector(".report").dataset.id`)
	for i := range 1100 {
		w.tell("/user/hasty/till", fmt.Sprintf("order %d is stuck", i))
	}
	p.until("the causes of both", `[...document.querySelectorAll(".causes .why")].map((e) => e.textContent).join() .includes("order # is stuck") && document.querySelector("main").innerText.includes("the safe is open")`)

	p.visit("events")
	p.until("the event is gone", `document.querySelectorAll(".event").length === 500 && !document.querySelector("main").innerText.includes("the safe is open")`)
	p.visit("crashes?id=" + id)
	p.until("the report by its id", `document.querySelector("details[open] .report-body")?.innerText.includes("/user/undecided/safe")`)

	p.visit("crashes")
	p.until("the causes", `document.querySelector(".causes a")`)
	p.eval(`[...document.querySelectorAll(".causes a")].find((a) => a.textContent.includes("the safe is open")).click()`, nil)
	p.until("the report of the cause alone", `document.querySelectorAll(".feed .report").length === 1 && document.querySelector(".feed .report").dataset.id === `+quote(id))

	p.visit("actor?path=/user/undecided/safe")
	p.until("a link from its actor", `document.querySelector("a[href^='#/crashes?path=']")`)
	p.eval(`document.querySelector("a[href^='#/crashes?path=']").click()`, nil)
	p.until("its reports", `document.querySelectorAll(".feed .report").length === 1`)

	p.expect("404")
	p.visit("crashes?id=0000000000000000")
	p.says("no such crash report")
}

// A kind of event that is pressed twice is left out, and so is a path.
func TestEventsAreLeftOut(t *testing.T) {
	w := shop(t)
	w.tell("/user/undecided/safe", "the safe is open")
	w.tell("/user/hasty/till", "the till is stuck")
	p := w.enter(1280, 800, w.full, "events")
	p.until("both failures", `document.querySelectorAll(".event-failed").length === 2`)
	p.click(`[data-kind="started"]`)
	p.until("only starts", `document.querySelectorAll(".event-started").length > 0 && document.querySelectorAll(".event-failed").length === 0`)
	p.click(`[data-kind="started"]`)
	p.until("all but starts", `document.querySelectorAll(".event-started").length === 0 && document.querySelectorAll(".event-failed").length === 2`)
	p.until("the chip says so", `document.querySelector('[data-kind="started"]').textContent === "not started"`)
	p.click("input[name=not-path]")
	p.run(chromedp.KeyEvent("/user/hasty/**"), chromedp.KeyEvent(kb.Enter))
	p.until("the path is left out", `document.querySelectorAll(".event-failed").length === 1`)
	p.until("the address has it", `location.hash.includes("not-kind=started") && location.hash.includes("not-path=")`)
	p.run(chromedp.Reload())
	p.until("and keeps it", `document.querySelectorAll(".event-failed").length === 1 && document.querySelectorAll(".event-started").length === 0`)
}
