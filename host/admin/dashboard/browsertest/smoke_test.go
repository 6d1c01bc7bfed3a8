package browsertest

import (
	"strings"
	"testing"
)

func TestSmoke(t *testing.T) {
	w := shop(t)
	p := w.enter(1280, 800, w.full, "")
	for range 5 {
		w.tell("/user/hasty/till", "the till is stuck")
	}
	w.tell("/user/patient/shelf", "crash")
	w.tell("/user/undecided/safe", "the safe is open")
	for _, place := range []string{"", "actors", "supervision", "crashes", "dead-letters", "events", "actor?path=/user/patient/shelf"} {
		p.visit(place)
		p.until("x", `document.querySelector("main h1")`)
		p.eval(`new Promise((r) => setTimeout(r, 1200))`, nil)
		p.shot("/tmp/shot-" + strings.ReplaceAll(strings.ReplaceAll(place, "?path=", ""), "/", "-") + ".png")
	}
}
