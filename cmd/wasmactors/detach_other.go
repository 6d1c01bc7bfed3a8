//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func leave(*exec.Cmd) error {
	return usage("--detach does not work on this system; start it as a service")
}

func inherited() *os.File { return nil }
