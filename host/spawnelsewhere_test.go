package host

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// missed stands for a child that cannot be started.
type missed struct{}

func (missed) Started(ctx *Context) error {
	ctx.Head().NotSpawned("t", errors.New("there is no node"))
	return nil
}

func (missed) Receive(*Context, Message) error { return nil }

// A guest that spawns on other nodes faster than it takes the news that there are none fails in the end: its mailbox does not grow
// without a bound.
func TestSpawnsElsewhereThatFailAreBounded(t *testing.T) {
	l := newStage(t, func(c Config) Config {
		return c.WithSpawnOptions(func([]byte) (SpawnOptions, error) {
			return SpawnOptions{Elsewhere: &Elsewhere{
				May:   func([]string, string) bool { return true },
				Props: func(Spawning) (Props, error) { return Native(func() Actor { return missed{} }), nil },
			}}, nil
		})
	})
	const mailbox, messages, spawns = 20, 15, 20
	g := l.spawn("g", puppet(t).WithLimits(Limits{Mailbox: mailbox}).WithDispatcher(Dispatcher{}.WithThroughput(1)))
	a := l.table.Get(g.UID())
	for i := range messages {
		var orders [][]byte
		for n := range spawns {
			orders = append(orders, abi.AppendSpawn(nil, abi.ChildRef(childKeyOf(guestOf(a)), 0, uint64(i*spawns+n)), "t", fmt.Sprint("c", i, "-", n), nullPayload, []byte{0xa0}))
		}
		l.post(g, script(now(orders...)))
	}
	most := 0
	for l.RunUntilIdle(1) > 0 && a.Incarnation() == 0 {
		most = max(most, a.box.Len())
	}
	if a.Incarnation() == 0 || most <= mailbox || most > 2*mailbox+2*spawns {
		t.Errorf("%d messages have waited, in incarnation %d", most, a.Incarnation())
	}
}
