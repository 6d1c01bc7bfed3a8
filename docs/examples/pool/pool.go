// Package pool has routers in Go.
package pool

import (
	"context"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
)

// Counters are 2 to 32 counters behind one name: as many as it takes for one in three to have
// something waiting.
func Counters(counter host.Props) host.Props {
	size := router.DefaultResizer()
	size.Lower, size.Upper = 2, 32
	return router.Pool(4, counter, router.SmallestMailbox).WithResizer(size).Props()
}

// Replicas asks those at the paths for the same thing, and takes what comes first.
func Replicas(paths ...string) host.Props {
	return router.Group(router.ScatterGather(0), paths...).Props()
}

// Sticky sends all messages of a sender to the same routee, as long as it is there.
func Sticky(uint64) router.Logic { return sticky{} }

type sticky struct{}

// Pick implements router.Logic.
func (sticky) Pick(picked []int, m *host.Message, routees []router.Routee) ([]int, error) {
	return append(picked, int(uint64(m.Sender.UID())%uint64(len(routees)))), nil
}

// Reset tells every routee, and makes one more.
func Reset(ctx context.Context, sys *host.System, counters host.Ref) error {
	if err := sys.Tell(counters, router.ToAll("reset")); err != nil {
		return err
	}
	return router.Adjust(ctx, sys, counters, 1)
}
