//go:build !linux

package sandbox

import (
	"os"
	"testing"
)

func needsKernelLimits(t *testing.T) { t.Skip("the watch alone bounds the process here") }

func withoutDeathSignal(bool) {}

func lives(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(os.Interrupt) == nil
}

func eatUnseen() {}

func unwatched() int { return 1 }

func who() int { return 1 }
