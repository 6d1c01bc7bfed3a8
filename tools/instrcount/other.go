//go:build !linux || !amd64

package instrcount

import (
	"context"
	"os/exec"
)

// Begin starts a window; it does nothing unless the process is [Counting].
func Begin() {}

// End ends the window.
func End() {}

func trace(context.Context, *exec.Cmd) ([]Window, error) { return nil, ErrUnsupported }
