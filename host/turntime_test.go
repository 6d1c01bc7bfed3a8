package host

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/turn"
)

// Timers, asks and receive timeouts of a guest are due from the time of its turn, however long it takes until
// they take effect: a repetition of the turn sets the same times.
func TestDueFromTheTurnsTime(t *testing.T) {
	var l *stage
	l = newStage(t, func(c Config) Config {
		partsOf(&c).Commit = func(t *turn.Turn) {
			if strings.HasSuffix(t.Path, "/g") && t.First == 1 {
				l.clock.Advance(2 * time.Second) // as long as it takes to record it
			}
			t.Answer(nil)
		}
		return c
	})
	silent := l.spawn("silent", Func(func(*Context, Message) error { return nil }))
	g := l.spawn("g", puppet(t, on(abi.KindTimer, toProbe("timer")), on(abi.KindAskTimeout, toProbe("timeout")), on(abi.KindReceiveTimeout, toProbe("quiet"))))
	l.say(g, script(now(
		abi.AppendTimer(nil, 3, uint64(3*time.Second), 0, nil), abi.AppendAsk(nil, silent.UID(), "", 9, uint64(4*time.Second), nil, encoded("?")),
		abi.AppendReceiveTimeout(nil, uint64(10*time.Second)),
	)))
	l.wants()
	l.pass(time.Second)
	l.wants("message timer")
	l.pass(time.Second)
	l.wants("message timeout")
	l.pass(10 * time.Second)
	l.wants("message quiet")
}
