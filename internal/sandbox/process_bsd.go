//go:build unix && !linux

package sandbox

import (
	"os"
	"syscall"
)

// The process learns of its parent's end by the pipe alone.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func ownPath() (string, error) { return os.Executable() }

func closeInherited() {}

func limitProcess(compileLimits) {}
