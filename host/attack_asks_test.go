package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Asks without number whose answers never come, or come and are not read, take what limits.asks lets their asker have: what is beyond it is refused, on
// the asker's account, and others are answered meanwhile. When the asks are over nothing of them is left.
func TestAsksWithoutNumber(t *testing.T) {
	const inTurn, most = 200, 300
	turns := 500 // 10^5 asks
	if testing.Short() {
		turns = 50
	}
	for name, to := range map[string]Props{
		"mute":   Func(func(*Context, Message) error { return nil }),
		"prompt": Func(func(ctx *Context, m Message) error { return ctx.Reply(strings.Repeat("x", 1000)) }),
	} {
		t.Run(name, func(t *testing.T) {
			l := newStage(t, nil)
			target := l.spawn("target", to)
			other := l.spawn("other", Func(func(ctx *Context, m Message) error { return ctx.Reply("here") }))
			g := l.spawn("guest", puppet(t).WithLimits(Limits{Asks: most}))
			alone := must(l.View().Held(g))(t).Total()
			held, asks := int64(0), int64(0)
			for n := range uint64(turns) {
				var out [][]byte
				for c := range uint64(inTurn) {
					out = append(out, abi.AppendAsk(nil, target.UID(), "", n*inTurn+c+1, uint64(time.Hour), nil, encoded("question")))
				}
				l.post(g, script(now(slices.Concat(out...))))
				if n%10 == 0 {
					p, err := l.Request(other, "are you there?")
					if err != nil {
						t.Fatal(err)
					}
					l.run()
					select {
					case m := <-p.Answer():
						if m.Err() != nil {
							t.Fatal(m.Err())
						}
					default:
						t.Fatal("another one is not answered")
					}
				}
				l.run()
				h := must(l.View().Held(g))(t)
				held, asks = max(held, h.Total()), max(asks, h.Asks)
			}
			l.pass(time.Hour)
			l.run()
			h := must(l.View().Held(g))(t)
			t.Logf("at the most %d bytes, of asks %d; at the end %+v", held, asks, h)
			if held-alone > 2<<20 || h.Asks != 0 || h.Total() > alone+64<<10 || name == "mute" && asks == 0 {
				t.Errorf("at the most %d bytes, of asks %d, alone %d; at the end %+v", held, asks, alone, h)
			}
			for _, k := range l.failures() {
				if k == abi.FailureHost {
					t.Error("a failure of the host")
				}
			}
		})
	}
}

// Whatever a guest writes into its outbox is never a failure of the host, which escalates: each command with each number of arguments, of each kind.
func TestNoCommandIsAFailureOfTheHost(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		w := abi.NewWriter(nil)
		fills := []func(){
			w.Null, func() { w.Uint(0) }, func() { w.Uint(1<<64 - 1) }, func() { w.Int(-1) }, func() { w.Text("../..") }, func() { w.Text("/user/\x00\n\x1b[2J") },
			func() { w.Text(strings.Repeat("x", abi.MaxPath+1)) }, func() { w.ByteString(make([]byte, 1000)) }, func() { w.Array(0) }, func() { w.Map(0) },
			func() { w.Raw([]byte{0x61, 0xff}) }, func() { w.Raw([]byte{0xff}) }, func() { w.Raw([]byte{0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}) },
		}
		if testing.Short() {
			fills = fills[4:9]
		}
		g := l.spawn("guest", puppet(t))
		kinds := map[abi.FailureKind]int{}
		for op := range uint64(abi.OpPersist) + 3 {
			for n := range 9 {
				for i, fill := range fills {
					w.Reset(nil)
					w.Array(n + 1)
					w.Uint(op)
					for range n {
						fill()
					}
					if w.Len() > 12<<10 { // more than the puppet's inbox
						continue
					}
					if !l.has(g.Path()) { // a command of its own has ended it
						g = l.spawn("", puppet(t))
					}
					l.post(g, script(rec(recNow, 0, slices.Clone(w.Bytes()))))
					l.run()
					for _, k := range l.failures() {
						if kinds[k]++; k == abi.FailureHost {
							t.Errorf("command %d with %d of %d", op, n, i)
						}
					}
				}
			}
		}
		if kinds[abi.FailureABIViolation] < 100 || l.Cause() != nil {
			t.Errorf("%v, %v", kinds, l.Cause())
		}
		t.Log(fmt.Sprint(kinds))
	})
}
