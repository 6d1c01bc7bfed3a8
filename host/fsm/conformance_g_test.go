package fsm_test

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/fsm"
)

const begun = "any A->A in A 1->1"

// States and data; several handlers of a state are asked in order; a state that is not declared, or a
// transition that is not, is a failure, and so is a handler that returns nothing.
func TestG01_StatesAndHandlers(t *testing.T) {
	both(t, func(w *world) {
		w.wants(begun)
		w.say("nothing", "data;stay") // although it has said where to go
		w.wants("ends in A with 1: 1", begun, "A has 1")
		w.say("goto B using 2", "data;stay", "goto A using 3", "chained", "data;stay")
		w.wants("first A->B in A 1->2", "any A->B in A 1->2", "B has 2", "any B->A in B 2->3", "second handler of A", "A has 3")
		had := "3"
		for _, wrong := range []string{"goto X", "goto B", "nothing"} { // of C only A is declared
			w.say("goto C")
			w.heard = nil
			before := must(w.View().Info(w.machine))(t).Crashes
			w.say(wrong, "data;stay")
			w.wants("ends in C with "+had+": 1", begun, "A has 1")
			had = "1"
			if n := must(w.View().Info(w.machine))(t).Crashes - before; n != 1 {
				t.Errorf("%s: %d failures", wrong, n)
			}
		}
	})
}

// The beginning is a transition into the initial state, and its timeout begins.
func TestG02_Initialize(t *testing.T) {
	both(t, func(w *world) {
		w.wants(begun)
		w.pass(499 * time.Millisecond)
		w.wants()
		w.pass(time.Millisecond)
		w.wants("A state timeout")
		w.pass(time.Hour) // A has no timeout of its own
		w.wants()
	})
}

// Modifiers of steps; data change only by using.
func TestG03_Modifiers(t *testing.T) {
	both(t, func(w *world) {
		w.heard = nil
		p := must(w.Request(w.machine, "goto B using 7 reply ok"))(t)
		w.run()
		if s := textOf(<-p.Answer()); s != "ok" {
			t.Errorf("the answer is %q", s)
		}
		w.wants("first A->B in A 1->7", "any A->B in A 1->7")
		w.say("stay", "data;stay using 8", "data;stay", "fail", "data;stay")
		w.wants("B has 7", "B has 8", "ends in B with 8: 1", begun, "A has 1") // the failure restarts it
		w.say("goto B max 3000")
		w.heard = nil
		w.pass(2999 * time.Millisecond)
		w.wants()
		w.pass(time.Millisecond)
		w.wants("B state timeout")
	})
}

// A state's timeout begins with every step into the state, staying included; whatever comes takes it
// back, also one that waits in the mailbox; Forever does for a step, and it can be changed at run time.
func TestG04_StateTimeout(t *testing.T) {
	both(t, func(w *world) {
		w.say("goto B")
		w.heard = nil
		w.pass(999 * time.Millisecond)
		w.say("stay")
		w.pass(999 * time.Millisecond)
		w.wants()
		w.pass(time.Millisecond)
		w.wants("B state timeout")
		w.pass(time.Second)
		w.wants("B state timeout")
		w.say("stay max -1")
		w.pass(time.Hour)
		w.wants()
		w.say("timeout B 50;stay")
		w.pass(50 * time.Millisecond)
		w.wants("B state timeout")
		w.say("goto A")
		w.heard = nil
		before := must(w.View().Info(w.machine))(t).Turns
		w.pass(time.Hour)
		w.wants()
		if n := must(w.View().Info(w.machine))(t).Turns - before; n != 0 {
			t.Errorf("a timeout that was taken back costs %d turns", n)
		}
		// The timeout and a message wait, the message first: it takes the timeout back.
		w.say("timeout B 1000;goto B")
		w.heard = nil
		probe := must(w.Lookup("/user/probe"))(t)
		for _, s := range []string{"data;stay", "data;stay"} {
			if err := w.TellFrom(probe, w.machine, s); err != nil {
				t.Fatal(err)
			}
		}
		w.clock.Advance(time.Second) // rings, behind the messages
		w.run()
		w.wants("B has 1", "B has 1")
		w.pass(time.Second)
		w.wants("B state timeout")
	})
}

// What no handler of the state takes goes to the last Unhandled; what that leaves is unhandled, and the
// machine goes on.
func TestG05_Unhandled(t *testing.T) {
	both(t, func(w *world) {
		events := w.Subscribe(100, func(e *host.Event) bool { return e.Kind == host.EventUnhandled })
		w.say("goto B")
		w.heard = nil
		w.say("odd", "what", "data;stay")
		w.wants("odd in B", "B has 1")
		select {
		case e := <-events.C():
			if e.Ref != w.machine {
				t.Error(e)
			}
		default:
			t.Error("nothing was unhandled")
		}
		if n := len(events.C()); n != 0 {
			t.Errorf("%d more were unhandled", n)
		}
		if i := must(w.View().Info(w.machine))(t); i.Crashes != 0 {
			t.Error("it has failed")
		}
	})
}

// All observers that match are called in their order, with the old data and the new.
func TestG06_OnTransition(t *testing.T) {
	both(t, func(w *world) {
		w.say("goto B using 2", "goto A", "goto C using 3")
		w.wants(begun, "first A->B in A 1->2", "any A->B in A 1->2", "any B->A in B 2->2", "any A->C in A 2->3")
	})
}

// Going to the present state is a transition, staying is not.
func TestG07_SameState(t *testing.T) {
	both(t, func(w *world) {
		w.say("goto A using 4", "stay using 5", "data;stay")
		w.wants(begun, "any A->A in A 1->4", "A has 5")
	})
}

// A subscriber gets the state at once, and every transition until it unsubscribes.
func TestG08_Subscribers(t *testing.T) {
	both(t, func(w *world) {
		w.heard = nil
		w.say("subscribe;stay", "subscribe;stay", "goto C", "stay", "unsubscribe;stay", "goto A")
		w.wants("fsm.state A", "fsm.state A", "any A->C in A 1->1", "fsm.transition A C", "any C->A in C 1->1")
	})
}

// There is a bound of subscribers; who is one already has its place.
func TestG08_SubscribersAreBounded(t *testing.T) {
	both(t, func(w *world) {
		nobody := func(*host.Context, host.Message) error { return nil }
		var refs []host.Ref
		for range fsm.MaxSubscribers + 1 {
			refs = append(refs, must(w.Spawn("", host.Func(nobody)))(t))
		}
		w.heard = nil
		for _, ref := range append(refs, refs[0]) {
			if err := w.TellFrom(ref, w.machine, "subscribe;stay"); err != nil {
				t.Fatal(err)
			}
			w.run()
		}
		w.wants("full")
	})
}

// Named timers: once or again and again, replaced by name, taken back although they wait, and not touched
// by other messages.
func TestG09_NamedTimers(t *testing.T) {
	both(t, func(w *world) {
		w.say("set x 100 one;stay", "set x 200 two;stay", "active x;active y;stay")
		w.wants(begun, "x active: true", "y active: false")
		w.pass(150 * time.Millisecond)
		w.say("stay")
		w.wants()
		w.pass(50 * time.Millisecond)
		w.wants("A timer x two")
		w.say("active x;set y 10 tick repeat;set z 10 z;stay")
		w.wants("x active: false")
		w.pass(10 * time.Millisecond)
		w.wants("A timer y tick", "A timer z z")
		w.pass(10 * time.Millisecond)
		w.say("active y;stay")
		w.wants("A timer y tick", "y active: true")
		probe := must(w.Lookup("/user/probe"))(t)
		if err := w.TellFrom(probe, w.machine, "cancel y;stay"); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(10 * time.Millisecond) // it waits behind the cancel
		w.run()
		before := must(w.View().Info(w.machine))(t).Turns
		w.pass(time.Second)
		w.wants()
		if n := must(w.View().Info(w.machine))(t).Turns - before; n != 0 {
			t.Errorf("a timer that was taken back costs %d turns", n)
		}
		w.say("set y 5 y;set q 5 q;cancel q;stay") // the second one, and not the first
		before = must(w.View().Info(w.machine))(t).Turns
		w.pass(time.Second)
		w.wants("A timer y y")
		if n := must(w.View().Info(w.machine))(t).Turns - before; n != 1 {
			t.Errorf("one timer rings in %d turns", n)
		}
	})
}

// A machine stops with a reason, which the last OnTermination hears, once; from outside it is a shutdown.
func TestG10_Stop(t *testing.T) {
	both(t, func(w *world) {
		w.say("goto C using 5")
		w.heard = nil
		ended := must(w.Ended(w.machine))(t)
		w.say("stop failure using 6", "data;stay")
		w.wants("ends in C with 6: 2bad")
		select {
		case <-ended:
		default:
			t.Error("it lives")
		}
	})
	both(t, func(w *world) {
		w.heard = nil
		w.Stop(w.machine)
		w.run()
		w.wants("ends in A with 1: 1")
	})
	both(t, func(w *world) {
		w.heard = nil
		w.say("stop normal")
		w.wants("ends in A with 1: 0")
	})
}

// The log has the last events, the oldest first, with the states in which they came.
func TestG11_Log(t *testing.T) {
	both(t, func(w *world) {
		w.say("log;stay")
		w.wants(begun, "log A received")
		w.say("goto B", "stay", "stay")
		w.heard = nil
		w.pass(time.Second)
		w.say("log;stay")
		w.wants("B state timeout", "log B received", "log B state timeout", "log B received")
		w.say("goto A", "goto C")
		w.heard = nil
		w.say("log;stay")
		w.wants("log B received", "log A received", "log C received")
	})
	both(t, func(w *world) {
		w.say("goto C", "data;log;stay")
		w.wants(begun, "any A->C in A 1->1", "C has 1", "log A received", "log C received")
		w.say("goto A", "goto C")
		w.heard = nil
		w.say("log;stay")
		w.wants("log C received", "log A received", "log C received")
	})
}

// Messages of one entry are handled one after the other, and what is behind a failing one waits for the
// next incarnation.
func TestMachineInABatch(t *testing.T) {
	both(t, func(w *world) {
		w.heard = nil
		w.say("goto B using 2", "set x 5 x;stay", "goto A using 3", "goto C", "goto X", "data;stay", "goto B")
		w.wants("first A->B in A 1->2", "any A->B in A 1->2", "any B->A in B 2->3", "any A->C in A 3->3", "ends in C with 3: 1", begun, "A has 1",
			"first A->B in A 1->1", "any A->B in A 1->1")
		w.pass(5 * time.Millisecond) // the timer was the last incarnation's
		w.wants()
	})
}
