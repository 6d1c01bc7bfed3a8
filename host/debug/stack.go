package debug

import (
	"github.com/wasmactors/wasmactors/host/replay"
)

// Frame is a call under way.
type Frame = replay.Frame

// stack is the calls under way at the present place, innermost first.
func (d *Debugger) stack(most int) (frames []Frame) {
	globals, err := d.globals()
	if err != nil {
		globals = nil
	}
	switch v := d.endView(); {
	case v != nil && v.outcome.Failure == nil:
		return nil
	case v != nil:
		if d.lines != nil {
			frames = d.lines.Failed(v.calls, v.memory, globals)
		}
		if frames == nil {
			frames = replay.Named(v.calls)
		}
	case d.run == nil || d.run.steps == nil:
		return nil
	default:
		calls := d.run.steps.Frames(mostFrames)
		if d.lines != nil {
			frames = d.lines.Stack(calls, d.memory(), globals)
		}
		if frames == nil {
			frames = replay.Named(calls)
		}
	}
	return frames[:min(most, len(frames))]
}

// trace is what a guest of Go has written of its goroutines when it failed.
func (d *Debugger) trace() string {
	if v := d.endView(); v != nil && v.outcome.Failure != nil {
		return v.outcome.Failure.GuestStack
	}
	return ""
}
