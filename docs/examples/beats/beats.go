// Package beats uses every kind of timer: see docs/guide/timers.md.
package beats

import (
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// The keys of the meter's timers.
const (
	measure = iota + 1
	flush
	giveUp
)

// Meter counts what its timers tell it.
func Meter() host.Props { return host.Native(func() host.Actor { return &meter{} }) }

type meter struct {
	measured, flushed int
	gone              bool
}

// Started implements host.Starter.
func (m *meter) Started(ctx *host.Context) error {
	if err := ctx.AtRate(measure, 100*time.Millisecond, 100*time.Millisecond, nil); err != nil {
		return err
	}
	if err := ctx.After(flush, 100*time.Millisecond, 100*time.Millisecond, nil); err != nil {
		return err
	}
	return ctx.After(giveUp, time.Second, 0, nil)
}

// Receive implements host.Actor.
func (m *meter) Receive(ctx *host.Context, msg host.Message) error {
	if msg.Kind == abi.KindTimer {
		switch msg.Correlation {
		case measure:
			m.measured++
		case flush:
			m.flushed++
		case giveUp:
			m.gone = true
		}
		return nil
	}
	var order string
	if err := msg.Decode(&order); err != nil {
		return err
	}
	switch order {
	case "later":
		if err := ctx.After(giveUp, time.Second, 0, nil); err != nil { // instead of the one before
			return err
		}
	case "stop":
		for key := uint64(measure); key <= giveUp; key++ {
			ctx.Cancel(key)
		}
	}
	return ctx.Reply(fmt.Sprint(m.measured, " ", m.flushed, " ", m.gone))
}
