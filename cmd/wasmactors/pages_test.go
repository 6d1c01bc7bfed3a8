package main

import (
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

var (
	codeLine   = regexp.MustCompile(`(?m)(?:^|[ (/=])wasmactors ((?:[a-z][a-z-]*)[^\n]*)`)
	inlineCode = regexp.MustCompile("`([^`\n]+)`")
	longFlag   = regexp.MustCompile(`^--[a-z][a-z-]*`)
)

// Every command and flag that a page shows exists: "wasmactors COMMAND --flag", in code.
func TestPagesNameCommandsThatExist(t *testing.T) {
	app := newApp(&environment{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard})
	n := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "samples/*/*.md"} {
		pages, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			for _, line := range commandsIn(mustRead(t, page)) {
				n++
				if err := known(app, line); err != "" {
					t.Errorf("%s: wasmactors %s: %s", strings.TrimPrefix(page, "../../"), line, err)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d commands were found", n)
	}
}

// commandsIn are the command lines in the code of a page, without the name of the program.
func commandsIn(page string) (lines []string) {
	for i, part := range strings.Split(page, "\n```") {
		if i%2 == 1 {
			for _, m := range codeLine.FindAllStringSubmatch(part, -1) {
				lines = append(lines, m[1])
			}
			continue
		}
		for _, m := range inlineCode.FindAllStringSubmatch(part, -1) {
			if command, ok := strings.CutPrefix(m[1], "wasmactors "); ok {
				lines = append(lines, command)
			}
		}
		for line := range strings.Lines(part) {
			if code, ok := strings.CutPrefix(line, "    "); ok {
				for _, m := range codeLine.FindAllStringSubmatch(code, -1) {
					lines = append(lines, m[1])
				}
			}
		}
	}
	return lines
}

// known says what is wrong with a command line; "" if nothing is.
func known(app *cli.App, line string) string {
	words := strings.Fields(strings.Split(line, "#")[0])
	c := app.Command(words[0])
	switch {
	case words[0] == "COMMAND" || strings.HasPrefix(words[0], "__"): // any of them; internal ones
		return ""
	case c == nil:
		return "there is no such command"
	}
	for len(words) > 1 {
		i := slices.IndexFunc(c.Subcommands, func(s *cli.Command) bool { return s.HasName(words[1]) })
		if i < 0 {
			break
		}
		c, words = c.Subcommands[i], words[1:]
	}
	for _, w := range words[1:] {
		if w == "|" || w == "&&" || w == ";" || strings.HasPrefix(w, "$(") {
			break // another program
		}
		name := strings.TrimPrefix(longFlag.FindString(w), "--")
		if name == "" || name == "help" {
			continue
		}
		if !slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
			return "there is no flag --" + name
		}
	}
	return ""
}
