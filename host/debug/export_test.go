package debug

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/runtime"
)

// Spacing is how far checkpoints lie apart at least.
const Spacing = spacing

// OpenByFuel is Open with a clock that goes on by a nanosecond with each unit of fuel, so that it does not depend on the machine where
// checkpoints are. They take so many bytes at most; 0: as many as usual.
func OpenByFuel(ctx context.Context, engine *runtime.Engine, f *blackbox.File, most int) (*Debugger, error) {
	return open(ctx, engine, f, replay.Options{}, func(d *Debugger) {
		d.pace.now = func() time.Time { return time.Unix(0, int64(d.pace.spent)) }
		if most > 0 {
			d.checks.most = most
		}
	})
}

// Spent is how much fuel all runs have spent together.
func (d *Debugger) Spent() uint64 { return d.pace.spent }

// Checkpoints is how many there are, and what they take.
func (d *Debugger) Checkpoints() (n, bytes int) {
	return len(d.checks.list), d.checks.bytes + d.checks.keeper.Bytes()
}
