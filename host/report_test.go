package host

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// A crash report has all that a person needs, of a guest and of an actor in Go.
func TestReport(t *testing.T) {
	sys, _ := manual(t, nil)
	sub := sys.Subscribe(16, func(e *Event) bool { return e.Kind == EventFailed })
	guest := must(sys.Spawn("g", echo(t, newEngine(t))))(t)
	native := must(sys.Spawn("n", Func(func(_ *Context, m Message) error { panic("no \x1b[31mluck") })))(t)
	for _, r := range []Ref{guest, native} {
		if err := sys.TellFrom(native, r, 0); err != nil {
			t.Fatal(err)
		}
	}
	sys.RunUntilIdle(1000)
	for _, want := range [][]string{
		{"/user/g (echo) has failed: trap: unreachable", "incarnation 0, turn 1, failure 1", "message, 1 bytes, from ", ": 0\n", "0 messages", "64 KiB", "units", "stack ", "then       restart"},
		{"/user/n (native) has failed: native_panic", "no \x1b[31mluck", "trace ", "then       restart"},
	} {
		e := <-sub.C()
		got := e.Report()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("without %q:\n%s", w, got)
			}
		}
	}
	if (&Event{Kind: EventStarted}).Report() != "" {
		t.Error("a report of no failure")
	}
}

// A turn that ends with an error has spent fuel, too.
func TestFuelOfAnError(t *testing.T) {
	l := newStage(t, nil)
	l.say(l.spawn("g", puppet(t)), script(now(abi.AppendFail(nil, "sorry"))))
	e := l.raw(EventFailed)
	if len(e) != 1 || e[0].Failure.Kind != abi.FailureGuestError || e[0].Failure.Fuel == 0 {
		t.Errorf("%+v", e)
	}
}
