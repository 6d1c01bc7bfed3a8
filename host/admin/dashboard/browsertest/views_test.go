package browsertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// talking is a world with so many actors more, of which some talk.
func talking(t *testing.T, n int) *world {
	w := newWorld(t, map[string]host.Props{"crowd": parent(n, host.Func(steady)), "fails": host.Func(fragile).WithChildren()})
	spawn := func(name string, p host.Props) host.Ref {
		ref, err := w.sys.Spawn(name, p)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	pass := func(to ...host.Ref) host.Props {
		return host.Func(func(c *host.Context, m host.Message) error {
			for _, ref := range to {
				if err := c.Tell(ref, m.Payload); err != nil {
					return err
				}
			}
			return nil
		})
	}
	quiet := host.Func(func(*host.Context, host.Message) error { return nil })
	db, mail := spawn("database", quiet), spawn("mail", quiet)
	shop, audit := spawn("shop", pass(db, mail)), spawn("audit", pass(db))
	for i := range 5 {
		spawn(fmt.Sprint("client-", i), pass(shop, audit))
	}
	return w
}

// talk sends messages to the clients until the test ends.
func (w *world) talk() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				for range 20 {
					_ = w.sys.TellPath(fmt.Sprint("/user/client-", i%5), i)
				}
				orders.Observe(time.Duration(1+i%40) * time.Millisecond)
			}
		}
	}()
	w.t.Cleanup(func() { close(stop); <-done })
}

// The flow is a picture with an arrow for each way, and links to the actors; the table says the same.
func TestFlowIsAPicture(t *testing.T) {
	w := talking(t, 100)
	w.talk()
	p := w.enter(1280, 800, w.full, "flow")
	p.until("the page", `[...document.querySelectorAll("button")].some((b) => b.textContent === "Sample the flow")`)
	p.eval(`[...document.querySelectorAll("button")].find((b) => b.textContent === "Sample the flow").click()`, nil)
	p.until("a node for each actor that talks", `document.querySelectorAll(".graph .node").length === 10`)
	p.until("arrows", `document.querySelectorAll(".graph .arrow").length === 18`)
	p.until("those that send are left of those they send to", `(() => {
		const x = (name) => Number([...document.querySelectorAll(".graph .node")].find((n) => n.textContent.startsWith(name)).querySelector("rect").getAttribute("x"));
		return x("client-0") < x("shop") && x("shop") < x("database");
	})()`)
	p.eval(`[...document.querySelectorAll(".graph a")].find((a) => a.textContent.startsWith("shop")).dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }))`, nil)
	p.until("a node leads to its actor", `location.hash === "#/actor?path=%2Fuser%2Fshop"`)
}

// The overview has quantiles of what was timed, and what the server has recorded before the page was opened.
func TestOverviewHasQuantilesAndHistory(t *testing.T) {
	w := talking(t, 100)
	w.talk()
	p := w.enter(1280, 800, w.full, "")
	for _, text := range []string{"Requests from outside", "GET /orders/{id}", "Requests of services", "kv get", "Turns (a sample)", "native"} {
		p.says(text)
	}
	p.until("a median", `[...document.querySelectorAll(".times tr")].some((r) => r.cells[0].textContent === "GET /orders/{id}" && / ms$/.test(r.cells[2].textContent))`)
	p.until("times of day below the charts", `[...document.querySelectorAll(".axis span")].some((s) => /^\d\d:\d\d:\d\d$/.test(s.textContent))`)
	p.until("the scale's label covers no line", `[...document.querySelectorAll(".chart")].every((c) => c.querySelector(".most").getBoundingClientRect().bottom <= c.querySelector(".spark").getBoundingClientRect().top + 1)`)
	p.eval(`(() => { const s = document.querySelector("select[name=range]"); s.value = "3600"; s.dispatchEvent(new Event("change")); })()`, nil)
	p.until("the address has the range", `location.hash === "#/?range=3600"`)
	p.until("the history is drawn", `[...document.querySelectorAll(".chart")].find((c) => c.innerText.includes("Actors")).querySelector(".line").getAttribute("d")?.length > 5`)
}

// Lines of logs have a page of their own, with filters.
func TestLogsHaveAPage(t *testing.T) {
	w := runBundle(t, "hello", nil)
	w.tell("/user/greeter", "Ada")
	w.tell("/user/greeter", "Grace")
	p := w.enter(1280, 800, w.full, "logs")
	p.until("both lines", `document.querySelectorAll(".logs .event:not([hidden])").length === 2`)
	p.click("input[name=text]")
	p.eval(`(() => { const f = document.querySelector("input[name=text]"); f.value = "grace"; f.dispatchEvent(new Event("input")); })()`, nil)
	p.until("the line with the text", `document.querySelectorAll(".logs .event:not([hidden])").length === 1`)
	p.visit("logs?not-path=%2Fuser%2Fgreeter")
	p.says("Following; 0 lines")
	p.visit("logs?level=error")
	p.says("Following; 0 lines")
}
