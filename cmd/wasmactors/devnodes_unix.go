//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// aside has Ctrl-C at the terminal not reach a process: dev ends it.
func aside(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
