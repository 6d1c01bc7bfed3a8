package host

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Who has sent a question says whether it lasts: in Go by a mark, in a guest by a header of an ask,
// also if it was handed on. In Go the header alone says nothing: the host has given the question a time.
func TestLastingIsSaid(t *testing.T) { everyManner(t, lastingIsSaid) }

func lastingIsSaid(t *testing.T) {
	l := newStage(t, nil)
	var heard []bool
	end := l.spawn("end", Func(func(ctx *Context, m Message) error { heard = append(heard, ctx.Head().Lasting()); return nil }))
	on := l.spawn("on", Func(func(ctx *Context, m Message) error { return ctx.Forward(end) }))
	none := map[string]string{abi.HeaderDeadline: abi.DeadlineNone}
	last := abi.AppendHeader(nil, abi.HeaderDeadline, abi.DeadlineNone)
	guest := l.spawn("guest", puppet(t))
	l.run()
	for _, to := range []Ref{end, on} {
		for _, v := range []any{"x", Marked{Value: "x", Marks: Lasting}, Marked{Value: "x", Marks: NoInfluence}, Headed{Value: "x", Headers: none}} {
			asker := l.spawn("", Func(func(ctx *Context, m Message) error {
				if m.Kind != abi.KindMessage {
					return nil
				}
				return ctx.Ask(to, v, 1, time.Second)
			}))
			_ = l.Tell(asker, 1)
			l.run()
		}
		for i, headers := range [][]byte{nil, last, abi.AppendHeader(nil, abi.HeaderDeadline, "1")} {
			_ = l.Tell(guest, script(now(abi.AppendAsk(nil, to.UID(), "", uint64(i+1), uint64(time.Second), headers, []byte{0xf5}))))
			l.run()
		}
		if want := []bool{false, true, false, false, false, true, false}; !slices.Equal(heard, want) {
			t.Errorf("%v, want %v", heard, want)
		}
		heard = nil
		l.pass(2 * time.Second)
	}
	if (&Context{}).Head().Lasting() {
		t.Error("outside of a message")
	}
}
