//go:build !unix

package sandbox

import (
	"os"
	"syscall"
	"time"
)

func processAttributes() *syscall.SysProcAttr { return nil }

func ownPath() (string, error) { return os.Executable() }

func closeInherited() {}

func limitProcess(compileLimits) {}

// processorTime is the time since the start: processor time is not measured here.
func processorTime() time.Duration { return time.Since(processStart) }

func processorTimeSpent(*os.ProcessState, compileLimits) bool { return false }

// processStart is about when this process began.
var processStart = time.Now()
