package main

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// The help of each flag names its argument by what it is.
func TestHelpNamesArguments(t *testing.T) {
	var look func(path string, flags []cli.Flag, subs []*cli.Command)
	look = func(path string, flags []cli.Flag, subs []*cli.Command) {
		for _, f := range flags {
			if text := f.String(); strings.Contains(text, f.Names()[0]+" value") {
				t.Errorf("%s: %s", path, strings.Fields(text))
			}
		}
		for _, c := range subs {
			look(path+" "+c.Name, c.Flags, c.Subcommands)
		}
	}
	app := newApp(&environment{})
	look(app.Name, app.Flags, app.Commands)
}
