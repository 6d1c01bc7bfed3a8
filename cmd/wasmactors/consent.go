package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service"
)

func kindsOfReach() string {
	var names []string
	for _, r := range service.Reaches() {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// permissions are what --allow gives.
func permissions(c *cli.Context) (out []bundle.Permission, err error) {
	for _, text := range c.StringSlice("allow") {
		p, err := bundle.ParsePermission(text)
		if err != nil {
			return nil, usage("--allow: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// consent decides about what a bundle reaches outside of its own folder: by --allow, or by asking at the
// terminal. What is allowed is printed as well.
type consent struct {
	env   *environment
	given []bundle.Permission
	quiet bool
	busy  bool // standard input is used for the bundle's input, or nobody waits at it
	mu    sync.Mutex
	shown map[string]bool
}

func (c *consent) ask(found []bundle.Reach) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := bundle.Uncovered(found, c.given)
	if len(missing) == 0 {
		c.show(found)
		return nil
	}
	outside := &bundle.OutsideError{Reaches: missing}
	in, isFile := c.env.stdin.(*os.File)
	if c.env.json || c.busy || !isFile || !isTerminal(in) || !isTerminal(c.env.terminal) {
		return usage("%w\n%s", outside, howToAllow(missing))
	}
	fmt.Fprintf(c.env.stderr, "%v\nAllow it? [y/N] ", outside)
	answer, err := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
	if yes := strings.ToLower(strings.TrimSpace(answer)); err != nil || yes != "y" && yes != "yes" {
		return usage("%w\n%s", outside, howToAllow(missing))
	}
	for _, r := range missing {
		c.given = append(c.given, r.Permission())
		c.note(r)
	}
	c.show(found)
	return nil
}

// note remembers that a reach was shown, and reports whether it was before.
func (c *consent) note(r bundle.Reach) (before bool) {
	if c.shown == nil {
		c.shown = map[string]bool{}
	}
	before = c.shown[r.String()]
	c.shown[r.String()] = true
	return before
}

// show prints what was allowed, once.
func (c *consent) show(found []bundle.Reach) {
	news := slices.DeleteFunc(slices.Clone(found), c.note)
	switch {
	case len(news) == 0:
	case c.env.json:
		c.env.writeJSON(map[string]any{"event": "outside", "reaches": news})
	case !c.quiet:
		fmt.Fprintln(c.env.stderr, (&bundle.OutsideError{Reaches: news}).Error())
	}
}

var plainArgument = regexp.MustCompile(`^[A-Za-z0-9_.,:/@%+=-]+$`)

// howToAllow names the flags that allow reaches.
func howToAllow(reaches []bundle.Reach) string {
	var flags []string
	for _, r := range reaches {
		value := r.Permission().String()
		if !plainArgument.MatchString(value) {
			value = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
		if flag := "--allow " + oneLine(value); !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return "this allows it: " + strings.Join(flags, " ")
}
