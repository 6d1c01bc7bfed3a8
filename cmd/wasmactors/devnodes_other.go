//go:build !unix

package main

import "os/exec"

// aside does nothing here: the process ends at Ctrl-C by itself, as dev does.
func aside(*exec.Cmd) {}
