package feed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/events"
	"github.com/wasmactors/wasmactors/host/service/internal/feed"
	"github.com/wasmactors/wasmactors/host/service/pubsub"
)

// Who replaces a subscription faster than actors start is refused: the grant holds bytes for each feed
// that has not begun, and has them back when it has.
func TestGrantHoldsWhatHasNotBegun(t *testing.T) {
	const room = 5 // feeds
	bounds := service.Bounds{Bytes: room*feed.StartBytes + 512, AtOnce: 100}
	for name, c := range map[string]struct {
		start func(*host.System) (*service.Running, error)
		grant any
		args  string
	}{
		"events": {
			func(sys *host.System) (*service.Running, error) { return events.Service.Start(sys, nil, nil) },
			events.Service.Grant(events.Grant{Lifecycle: []string{"/**"}}, bounds), "channel",
		},
		"pubsub": {
			func(sys *host.System) (*service.Running, error) { return pubsub.Service.Start(sys, nil, nil) },
			pubsub.Service.Grant(pubsub.Grant{Subscribe: []string{">"}}, bounds), "pattern",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// The service handles all requests in one run, so none of their feeds has begun.
			sys, err := host.New(host.NewConfig("test").WithManual().WithSeed(1).WithThroughput(1000))
			if err != nil {
				t.Fatal(err)
			}
			running, err := c.start(sys)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = sys.Close(context.Background())
				_ = running.Wait(context.Background())
			}()
			const asked = 20
			taken, busy := 0, 0
			subscriber, err := sys.Spawn("subscriber", host.Func(func(ctx *host.Context, m host.Message) error {
				switch m.Kind {
				case abi.KindMessage:
					for i := range asked {
						if err := ctx.Ask(running.Ref(), []any{"subscribe", map[string]any{c.args: "lifecycle.started"}}, uint64(i)+1, time.Hour); err != nil {
							return err
						}
					}
				case abi.KindReply:
					taken++
				default:
					if !strings.HasPrefix(fmt.Sprint(m.Err()), "host: the actor replied with an error: busy: ") {
						t.Error(m.Kind, m.Err())
					}
					busy++
				}
				return nil
			}).WithGrant(running.Name(), c.grant))
			if err != nil {
				t.Fatal(err)
			}
			for round := 1; round <= 3; round++ {
				if err := sys.Tell(subscriber, "go"); err != nil {
					t.Fatal(err)
				}
				sys.RunUntilIdle(10_000)
				if taken != round*room || busy != round*(asked-room) {
					t.Fatalf("round %d: %d were taken and %d refused", round, taken, busy)
				}
			}
		})
	}
}
