//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// leave has a process begin a session of its own: neither Ctrl-C at the terminal nor its hang-up reaches it.
func leave(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}

// inherited is the first of exec.Cmd.ExtraFiles, and stays with this process: compilers do not get it.
func inherited() *os.File {
	syscall.CloseOnExec(3)
	return os.NewFile(3, "detached")
}
