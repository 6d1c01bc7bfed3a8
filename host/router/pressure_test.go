package router_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/supervision"
)

// F09: one queue; a routee gets the next message when it is done with the one before, and one
// that handles nothing gets nothing.
func TestF09_Balancing(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(3, w.worker, router.Balancing))
		for range 30 {
			w.post(r, "x")
		}
		w.run()
		if len(w.heard) != 30 {
			t.Errorf("%d of 30 messages", len(w.heard))
		}
		w.heard = nil
		if got := w.ask(r, "who"); !strings.Contains(got, " ") {
			t.Errorf("answered %q", got)
		}
		// Whoever is paused leaves the work to the others, and what waits is in one queue.
		for _, k := range []string{"0", "1"} {
			if err := w.Operate().Pause(must(w.Lookup("/user/router/"+k))(t), false); err != nil {
				t.Fatal(err)
			}
		}
		w.run()
		for range 10 {
			w.post(r, "y")
		}
		w.run()
		if n := slices.IndexFunc(w.heard, func(s string) bool { return s != "2:y" }); n >= 0 || len(w.heard) != 10 {
			t.Errorf("heard %q", w.heard)
		}
		w.heard = nil
		if err := w.Operate().Pause(must(w.Lookup("/user/router/2"))(t), false); err != nil {
			t.Fatal(err)
		}
		w.run()
		w.post(r, "z", "z", "z")
		w.run()
		if i := must(w.View().Info(r))(t); i.Mailbox != 3 || len(w.heard) != 0 {
			t.Errorf("%d wait at the router, heard %q", i.Mailbox, w.heard)
		}
		if got := w.ask(r, headed("routees", nil)); got == "" {
			t.Error("what is for the router waits for a routee")
		}
		if err := w.Operate().Unpause(must(w.Lookup("/user/router/1"))(t), false); err != nil {
			t.Fatal(err)
		}
		w.run()
		w.wants("1:z", "1:z", "1:z")
	})
	each(t, func(w *world) { // a crash and a restart lose no place
		r := w.start(router.Pool(1, w.worker, router.Balancing).WithSupervision(supervision.Default().WithOtherwise(supervision.Restart)))
		w.post(r, "a", "crash", "b")
		w.run()
		w.wants("0:a", "0:b")
		if err := w.Operate().Kill(r); err != nil {
			t.Fatal(err)
		}
		w.run()
		w.tell(r, "c")
		w.wants("0:c")
		w.tell(r, "stop")
		if _, err := w.View().Info(r); err == nil {
			t.Error("the pool lives on without routees")
		}
	})
	// The last routee stops while questions wait: they are answered.
	each(t, func(w *world) {
		r := w.start(router.Pool(1, w.worker, router.Balancing))
		w.post(r, "stop")
		p := must(w.Request(r, "who"))(t)
		w.run()
		if len(p.Answer()) != 1 {
			t.Error("nobody answers")
		}
	})
	if err := router.Group(router.Balancing, "/user/a").Check(); err == nil {
		t.Error("a group balances")
	}
}

// F10: idle and empty, then empty, then the fewest; suspended ones are left out.
func TestF10_SmallestMailbox(t *testing.T) {
	each(t, func(w *world) {
		r := w.start(router.Pool(3, w.worker, router.SmallestMailbox))
		ref := func(k string) host.Ref { return must(w.Lookup("/user/router/" + k))(t) }
		// All idle: the first. What it has waiting makes the next the smallest.
		w.post(r, "a", "a", "a", "a")
		w.run()
		if len(w.heard) != 4 {
			t.Fatal(w.heard)
		}
		w.heard = nil
		pause := func(k string) {
			if err := w.Operate().Pause(ref(k), false); err != nil {
				t.Fatal(err)
			}
			w.run()
		}
		pause("0")
		pause("1")
		w.tell(r, "b")
		w.wants("2:b")
		pause("2")
		w.post(ref("0"), "x", "x", "x")
		w.post(ref("2"), "x", "x")
		w.tell(r, "c", "c", "c", "c") // all are shut: the fewest
		for k, want := range map[string]int{"0": 3, "1": 3, "2": 3} {
			if n := must(w.View().Info(ref(k)))(t).Mailbox; n != want {
				t.Errorf("%s has %d waiting, want %d", k, n, want)
			}
		}
	})
	for _, c := range []struct {
		less, more host.Load
	}{
		{host.Load{Open: true}, host.Load{Open: true, Running: true}},
		{host.Load{Open: true, Running: true}, host.Load{Open: true, Waiting: 1}},
		{host.Load{Open: true, Waiting: 1, Running: true}, host.Load{Open: true, Waiting: 2}},
		{host.Load{Open: true, Waiting: 1 << 24}, host.Load{}},
	} {
		if router.Score(c.less, true) >= router.Score(c.more, true) || router.Score(c.more, true) >= router.Score(c.less, false) {
			t.Errorf("%+v, %+v", c.less, c.more)
		}
	}
}

// F21: the figures of the source, and every parameter.
func TestF21_Resizer(t *testing.T) {
	d := router.DefaultResizer()
	with := func(f func(*router.Resizer)) router.Resizer {
		r := d
		f(&r)
		return r
	}
	wide := with(func(r *router.Resizer) { r.Upper = 1000 })
	for _, c := range []struct {
		what       string
		r          router.Resizer
		pressed, n int
		want       int
	}{
		{"6 busy of 6", d, 6, 6, 2},
		{"5 busy of 6", d, 5, 6, 0},
		{"2 of 10 shrinks", d, 2, 10, -1},
		{"3 of 10 does not", d, 3, 10, 0},
		{"a tenth of 9", d, 0, 9, -1},
		{"a tenth of 25, rounded up", wide, 0, 25, -3},
		{"upper", d, 10, 10, 0},
		{"upper, nearly", d, 9, 9, 1},
		{"lower", d, 0, 1, 0},
		{"below lower", with(func(r *router.Resizer) { r.Lower = 5 }), 0, 2, 3},
		{"above upper", d, 20, 20, -10},
		{"none", d, 0, 0, 1},
		{"ramp-up of 1", with(func(r *router.Resizer) { r.RampUp = 1 }), 4, 4, 4},
		{"no ramp-up", with(func(r *router.Resizer) { r.RampUp = 0 }), 4, 4, 0},
		{"threshold of 0.6", with(func(r *router.Resizer) { r.BackoffThreshold = 0.6 }), 5, 10, -1},
		{"threshold of 0", with(func(r *router.Resizer) { r.BackoffThreshold = 0 }), 0, 10, 0},
		{"rate of 0.5", with(func(r *router.Resizer) { r.BackoffRate = 0.5 }), 0, 10, -5},
		{"rate of 0", with(func(r *router.Resizer) { r.BackoffRate = 0 }), 0, 10, 0},
	} {
		if got := c.r.Change(c.pressed, c.n); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
	for _, c := range []struct {
		pressure int
		load     host.Load
		want     bool
	}{
		{0, host.Load{Open: true}, false},
		{0, host.Load{Open: true, Running: true}, true},
		{0, host.Load{Open: true, Waiting: 1}, true},
		{1, host.Load{Open: true, Running: true}, false},
		{1, host.Load{Open: true, Running: true, Waiting: 1}, true},
		{5, host.Load{Open: true, Waiting: 4}, false},
		{5, host.Load{Open: true, Waiting: 5}, true},
		{0, host.Load{Waiting: 5}, false},
	} {
		if got := with(func(r *router.Resizer) { r.Pressure = c.pressure }).Presses(c.load); got != c.want {
			t.Errorf("pressure %d, %+v: %v", c.pressure, c.load, got)
		}
	}
	for _, f := range []func(*router.Resizer){
		func(r *router.Resizer) { r.Lower = 0 }, func(r *router.Resizer) { r.Lower = 11 }, func(r *router.Resizer) { r.Upper = router.MaxRoutees + 1 },
		func(r *router.Resizer) { r.Pressure = -1 }, func(r *router.Resizer) { r.RampUp = -1 }, func(r *router.Resizer) { r.BackoffThreshold = 1.1 },
		func(r *router.Resizer) { r.BackoffRate = -0.1 }, func(r *router.Resizer) { r.Every = 0 },
	} {
		if with(f).Check() == nil {
			t.Errorf("%+v", with(f))
		}
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
}

// F23: a message has the resizer asked, which does not help that message; those that are let go
// handle what waits for them.
func TestF23_ResizeIsAsynchronous(t *testing.T) {
	each(t, func(w *world) {
		d := router.DefaultResizer()
		d.Upper, d.Every, d.RampUp = 4, 3, 1
		r := w.start(router.Pool(1, w.worker, router.RoundRobin).WithResizer(d))
		if err := w.Operate().Pause(must(w.Lookup("/user/router/0"))(t), false); err != nil {
			t.Fatal(err)
		}
		w.run()
		w.tell(r, "a", "a", "a") // the first asks the resizer: a routee that is shut is not under pressure
		if n := w.children(r); n != 1 {
			t.Errorf("%d routees", n)
		}
		if err := w.Operate().Unpause(must(w.Lookup("/user/router/0"))(t), false); err != nil {
			t.Fatal(err)
		}
		w.post(r, "b", "b", "b", "b")
		w.run()
		if n := w.children(r); n != 4 && n != 2 {
			t.Errorf("%d routees under pressure", n)
		}
		if len(w.heard) != 7 {
			t.Errorf("heard %q", w.heard)
		}
		w.heard = nil
		for range 40 {
			w.tell(r, "c")
		}
		if n := w.children(r); n > 2 { // the message that asks is pressure on one of two
			t.Errorf("%d routees without pressure", n)
		}
		if len(w.heard) != 40 {
			t.Errorf("%d of 40 were handled", len(w.heard))
		}
		// With a resizer a pool outlives its routees.
		w.tell(r, "stop", "stop")
		if n := w.children(r); n < 1 {
			t.Errorf("%d routees after a stop", n)
		}
	})
}

// F25: ours differs: there is no dispatcher for each; what holds for the router and what holds
// for its routees is said apart all the same.
func TestF25_HeadAndRoutees(t *testing.T) {
	w := inGo(t)
	worker := w.worker.WithLimits(host.Limits{Mailbox: 3})
	r := w.start(router.Pool(1, worker, router.RoundRobin).WithLimits(host.Limits{Mailbox: 5}))
	probe := must(w.Lookup("/user/probe"))(t)
	accepted := 0
	for range 10 {
		if w.TellFrom(probe, r, "x") == nil {
			accepted++
		}
	}
	w.run()
	if accepted != 5 || len(w.heard) > 5 || len(w.heard) < 3 {
		t.Errorf("the router has accepted %d, its routee has handled %d", accepted, len(w.heard))
	}
}
