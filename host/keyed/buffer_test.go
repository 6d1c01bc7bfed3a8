package keyed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// Messages that wait are bounded in number and bytes, for a key and for all; what is too much is refused, and costs
// nobody else anything.
func TestBufferIsBounded(t *testing.T) {
	const most = 4000
	head := len(keyed.HeaderKey) + len("a") + 3                         // of a message, encoded
	text := func(n int) string { return strings.Repeat("x", n-head-3) } // a message of n bytes
	for _, c := range []struct {
		name   string
		buffer int
		send   []string // key and bytes
		want   string   // which are taken
	}{
		{"a quarter of the bytes", 100, []string{"a 500", "a 500", "a 1", "b 100"}, "++-+"},
		{"one more than a quarter", 100, []string{"a 500", "a 501", "b 100"}, "+-+"},
		{"the first may be larger", 100, []string{"a 3000", "a 100", "b 1000", "c 1"}, "+-+-"},
		{"but not than all", 100, []string{"a 4001", "a 4000", "b 1"}, "-+-"},
		{"all bytes", 100, []string{"a 1000", "b 1000", "c 1000", "d 1000", "e 1"}, "++++-"},
		{"one byte more", 100, []string{"a 1000", "b 1000", "c 1000", "d 999", "e 100"}, "++++-"},
		{"a quarter of the number", 8, []string{"a 100", "a 100", "a 100", "b 100"}, "++-+"},
		{"at least one of a key", 3, []string{"a 100", "a 100", "b 100", "c 100", "d 100"}, "+-++-"},
		{"all of the number", 4, []string{"a 100", "b 100", "c 100", "d 100", "e 100"}, "++++-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.start(keyed.New(w.worker()).WithIdle(time.Hour).WithBuffer(c.buffer, most))
			keys := []string{"a", "b", "c", "d", "e"}
			for _, key := range keys { // all are asked to end, and none comes to it
				w.tell(r, key, "0")
				must(0, w.Operate().Pause(must(w.Lookup("/user/users/"+key))(t), false))(t)
				w.run()
				w.post(r, order("passivate", key))
				w.run()
			}
			got := ""
			for _, s := range c.send {
				var key string
				var n int
				if _, err := fmt.Sscan(s, &key, &n); err != nil {
					t.Fatal(err)
				}
				p := must(w.Request(r, keyed.For(key, text(max(n, head+3)))))(t)
				w.run()
				select {
				case m := <-p.Answer():
					if answerOf(m) != keyed.ErrBuffer.Error() {
						t.Fatal(answerOf(m))
					}
					got += "-"
				default:
					defer p.Cancel()
					got += "+"
				}
			}
			if got != c.want {
				t.Errorf("%q: %s, not %s", c.send, got, c.want)
			}
		})
	}
}

// A message that cannot wait takes no place that was freed for its key: another one gets it.
func TestPlaceOfWhatCannotWait(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(1).WithAtLimit(keyed.Evict).WithBuffer(100, 1000))
	w.tell(r, "a", "0")
	w.asks(r, keyed.For("b", strings.Repeat("x", 2000)), keyed.ErrBuffer.Error())
	w.there()
	if got := w.show(r, keyed.Page{}); got != "" {
		t.Errorf("there is %q", got)
	}
	w.asks(r, keyed.For("c", "who"), "c 1")
}

// A key whose actor cannot be started is forgotten, and who asks is told.
func TestWorkerThatCannotBeStarted(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker().WithArgs(strings.Repeat("x", 50<<10))).WithMax(2).WithLimits(host.Limits{Tree: host.TreeLimits{Memory: 20 << 10}}))
	for range 3 {
		if got := w.ask(r, keyed.For("a", "who")); !strings.Contains(got, "limit") {
			t.Errorf("%q", got)
		}
	}
	if got := w.show(r, keyed.Page{}); got != "" {
		t.Errorf("there is %q", got)
	}
}

// Nor does such a key count for its sender.
func TestWorkerThatCannotBeStartedIsNobodysShare(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker().WithArgs(strings.Repeat("x", 50<<10))).WithMaxPerSender(1).WithLimits(host.Limits{Tree: host.TreeLimits{Memory: 20 << 10}}))
	one := must(w.Spawn("one", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			w.heard = append(w.heard, answerOf(m))
			return nil
		}
		return ctx.Ask(r, keyed.For("a", "who"), 1, time.Second)
	})))(t)
	for range 3 {
		must(0, w.Tell(one, 1))(t)
		w.run()
	}
	if len(w.heard) != 3 || w.heard[0] == keyed.ErrShare.Error() || w.heard[1] != w.heard[0] || w.heard[2] != w.heard[0] {
		t.Errorf("%q", w.heard)
	}
	w.heard = nil
}

// A message without a key, which is no question, is unhandled.
func TestMessagesWithoutAKeyAreUnhandled(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	w.post(r, "without a key")
	w.run()
	for {
		select {
		case e := <-w.log.C():
			if e.Kind == host.EventUnhandled && e.Ref == r {
				return
			}
			continue
		default:
		}
		t.Fatal("nobody is told")
	}
}
