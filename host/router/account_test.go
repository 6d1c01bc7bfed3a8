package router_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
)

// What a router may have to send again is on its account until it need not be, and bounded by it.
func TestQuestionsAreOnTheAccount(t *testing.T) {
	w := inGo(t)
	tail := router.TailChopping(time.Minute, time.Hour)
	r := w.start(router.Pool(2, w.worker, tail).WithLimits(host.Limits{Held: 32 << 10}))
	before := must(w.View().Held(r))(t).Stash
	mute := strings.Repeat("y", 8<<10)
	first := must(w.Request(r, mute))(t)
	w.run()
	if n := must(w.View().Held(r))(t).Stash - before; n < 8<<10 {
		t.Errorf("%d bytes are on the account", n)
	}
	must(w.Request(r, mute))(t)
	w.run()
	if got := w.ask(r, strings.Repeat("x", 24<<10)); !strings.HasSuffix(got, "limits.held raises it") { // it does not fit beside the two
		t.Errorf("answered %q", got)
	}
	if err := w.Operate().Restart(r); err != nil {
		t.Fatal(err)
	}
	w.run()
	wantAnswer(t, first, "router: the router was restarted")
	if n := must(w.View().Held(r))(t).Stash; n != before {
		t.Errorf("%d bytes are left on the account after a restart", n-before)
	}
	again := must(w.Request(r, mute))(t)
	w.run()
	w.pass(2 * time.Minute)
	<-again.Answer()
	if n := must(w.View().Held(r))(t).Stash; n != before {
		t.Errorf("%d bytes are left on the account, nothing is asked", n-before)
	}
}
