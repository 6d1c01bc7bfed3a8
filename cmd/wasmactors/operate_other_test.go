//go:build !unix

package main

import "github.com/rogpeppe/go-internal/testscript"

// The scripts need a shell.
var scriptCommands map[string]func(*testscript.TestScript, bool, []string)
