// A meter that uses every kind of timer, as a guest: see docs/guide/timers.md.
package main

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// The keys of the meter's timers.
const (
	measure = iota + 1
	flush
	giveUp
)

// meter counts what its timers tell it.
type meter struct {
	measured, flushed int
	gone              bool
}

func (m *meter) Started(ctx *actor.Context) error {
	ctx.AtRate(measure, 100*time.Millisecond, nil) // at 100 ms, 200 ms and so on
	ctx.Every(flush, 100*time.Millisecond, nil)    // 100 ms after the turn before has begun
	ctx.After(giveUp, time.Second, nil)            // once
	return nil
}

func (m *meter) Receive(ctx *actor.Context, msg *actor.Message) error {
	if msg.Kind() == actor.KindTimer {
		switch msg.Correlation() {
		case measure:
			m.measured++
		case flush:
			m.flushed++
		case giveUp:
			m.gone = true
		}
		return nil
	}
	switch msg.Text() {
	case "later":
		ctx.After(giveUp, time.Second, nil) // the same key: instead of the one before
	case "stop":
		ctx.Cancel(measure) // also if its message waits already
		ctx.Cancel(flush)
		ctx.Cancel(giveUp)
	}
	return ctx.Reply(actor.Text(strconv.Itoa(m.measured) + " " + strconv.Itoa(m.flushed) + " " + strconv.FormatBool(m.gone)))
}

func init() {
	actor.Register("meter", func() actor.Actor { return &meter{} })
}

func main() {}
