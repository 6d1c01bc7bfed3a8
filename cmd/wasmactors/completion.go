package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
	"github.com/wasmactors/wasmactors/host/observe"
)

func completionCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a script that makes a shell complete commands, flags, running bundles and their actors", ArgsUsage: "bash|zsh|fish",
		Description: "Examples:\n\n" +
			"   source <(wasmactors completion bash)                        in ~/.bashrc\n" +
			"   source <(wasmactors completion zsh)                         in ~/.zshrc, after compinit\n" +
			"   wasmactors completion fish > ~/.config/fish/completions/wasmactors.fish",
		Action: func(c *cli.Context) error {
			shell, err := oneArg(c, "a shell: bash, zsh or fish", "")
			if err != nil {
				return err
			}
			script, ok := completionScripts[shell]
			if !ok {
				return usage("completion is for bash, zsh and fish, not for %q", shell)
			}
			return write(env.stdout, script)
		},
	}
}

// The scripts pass the words up to the cursor to a hidden command, which prints a candidate
// a line.
var completionScripts = map[string]string{
	"bash": `_wasmactors() {
	local IFS=$'\n'
	local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
	COMPREPLY=($(COMP_LINE= wasmactors __complete "${words[@]}" 2>/dev/null))
	if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == :files ]]; then
		compopt -o default
		COMPREPLY=()
	fi
	if [[ ${COMP_WORDS[COMP_CWORD]} == *:* ]] && declare -F __ltrim_colon_completions >/dev/null; then
		__ltrim_colon_completions "${COMP_WORDS[COMP_CWORD]}"
	fi
}
complete -F _wasmactors wasmactors
`,
	"zsh": `#compdef wasmactors
_wasmactors() {
	local -a found
	found=("${(@f)$(wasmactors __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ "${found[1]}" == ":files" ]]; then
		_files
	elif [[ -n "${found[1]}" ]]; then
		compadd -Q -- "${found[@]}"
	fi
}
compdef _wasmactors wasmactors
`,
	"fish": `function __wasmactors_complete
	set -l words (commandline -opc) (commandline -ct)
	set -l found (wasmactors __complete $words[2..-1] 2>/dev/null)
	if test "$found[1]" = ":files"
		__fish_complete_path (commandline -ct)
	else
		printf '%s\n' $found
	end
end
complete -c wasmactors -f -a '(__wasmactors_complete)'
`,
}

// completing is the name of the hidden command.
const completing = "__complete"

// files tells the script to have the shell complete names of files.
const files = ":files"

// completeTime bounds requests to a bundle, so that the shell does not hang.
const completeTime = 300 * time.Millisecond

// complete prints the candidates for the last of the words.
func complete(ctx context.Context, env *environment, app *cli.App, words []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	for _, candidate := range candidates(ctx, app, words) {
		fmt.Fprintln(env.stdout, candidate)
	}
}

func candidates(ctx context.Context, app *cli.App, words []string) []string {
	last := words[len(words)-1]
	if len(words) == 1 {
		var names []string
		for _, c := range app.Commands {
			if !c.Hidden {
				names = append(names, c.Name)
			}
		}
		return begin(names, last)
	}
	cmd := app.Command(words[0])
	if cmd == nil {
		return nil
	}
	before := words[:len(words)-1]
	if flag, ok := takesValue(cmd, before[len(before)-1]); ok {
		return begin(flagValues(ctx, cmd, flag, before), last)
	}
	if strings.HasPrefix(last, "-") {
		var names []string
		for _, f := range cmd.Flags {
			for _, n := range f.Names() {
				if len(n) > 1 {
					names = append(names, "--"+n)
				}
			}
		}
		return begin(names, last)
	}
	return begin(arguments(ctx, app, cmd, before, last), last)
}

// begin returns the names that begin with a text.
func begin(names []string, with string) []string {
	if len(names) == 1 && names[0] == files {
		return names
	}
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, with) })
	slices.Sort(names)
	return slices.Compact(names)
}

// takesValue is the flag that waits for its value.
func takesValue(cmd *cli.Command, word string) (string, bool) {
	if !strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
		return "", false
	}
	name := strings.TrimLeft(word, "-")
	for _, f := range cmd.Flags {
		if _, flag := f.(*cli.BoolFlag); !flag && slices.Contains(f.Names(), name) {
			return f.Names()[0], true
		}
	}
	return "", false
}

// reaches reports whether a command talks to a running bundle.
func reaches(cmd *cli.Command) bool {
	return slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return f.Names()[0] == "bundle" })
}

// flagValues are candidates for the value of a flag.
func flagValues(ctx context.Context, cmd *cli.Command, flag string, before []string) []string {
	switch flag {
	case "bundle":
		return bundles(ctx)
	case "path", "to", "from":
		if reaches(cmd) {
			return actors(ctx, before, "/")
		}
	case "type":
		return types(ctx, before)
	case "state":
		return states()
	case "sort":
		return observe.Sorts()
	case "kind":
		if cmd.Name == "events" {
			return observe.EventKinds()
		}
		return nil
	case "level", "log":
		return host.LevelNames()
	case "admin":
		return []string{"unix", "off", "tcp:127.0.0.1:"}
	case "compiler":
		return []string{"auto", "go", "tinygo"}
	case "input", "output", "token-file", "admin-token-file", "admin-read-token-file", "cache-dir", "cache-key":
		return []string{files}
	}
	return nil
}

// arguments are candidates for a command's argument.
func arguments(ctx context.Context, app *cli.App, cmd *cli.Command, before []string, last string) []string {
	args := 0
	for i := 1; i < len(before); i++ {
		if _, ok := takesValue(cmd, before[i]); ok {
			i++
		} else if !strings.HasPrefix(before[i], "-") {
			args++
		}
	}
	switch cmd.Name {
	case "help":
		var names []string
		for _, c := range app.Commands {
			names = append(names, c.Name)
		}
		return names
	case "completion":
		return []string{"bash", "fish", "zsh"}
	case "dead-letters":
		return []string{"list", "redeliver"}
	case "crashes":
		if args == 0 {
			return append(actors(ctx, before, last), "show")
		}
	case "kv":
		if args == 0 {
			return []string{"ls", "get", "put", "del"}
		}
		return nil
	case "reload", "upgrade":
		return bundles(ctx)
	case "ps", "cache", "version":
		return nil
	case "send", "ask":
		if args > 0 {
			return nil // the message
		}
	case "decide":
		return append(actors(ctx, before, last), "resume", "restart", "stop")
	}
	if reaches(cmd) {
		return actors(ctx, before, last)
	}
	return []string{files}
}

// bundles are the names of the running bundles, NAME@NODE of those that are nodes of a cluster. One that does not say so in time is named all
// the same.
func bundles(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	running, _ := client.Running(ctx)
	for _, r := range running {
		names = append(names, endpoint.Name(r.Bundle, r.Node))
	}
	return names
}

// meant connects to the bundle that the words before the cursor name.
func meant(before []string) (*client.Client, bool) {
	which := ""
	for i, w := range before {
		if (w == "--bundle" || w == "-b") && i+1 < len(before) {
			which = before[i+1]
		} else if v, ok := strings.CutPrefix(w, "--bundle="); ok {
			which = v
		}
	}
	p, err := client.Find(which)
	if err != nil {
		return nil, false
	}
	return client.Dial(p.Path), true
}

// mostCandidates bounds the candidates for a shell.
const mostCandidates = 200

// actors are the paths of actors, or the names of top-level actors.
func actors(ctx context.Context, before []string, last string) []string {
	c, ok := meant(before)
	if !ok {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	glob := "/user/*"
	if i := strings.LastIndexByte(last, '/'); i > 0 && strings.HasPrefix(last, "/") {
		glob = last[:i] + "/*"
	}
	page, err := client.Get[observe.Page](ctx, c, "/v1/actors", url.Values{"path": {glob}, "limit": {fmt.Sprint(mostCandidates)}, "search": {last[strings.LastIndexByte(last, '/')+1:]}})
	if err != nil {
		return nil
	}
	var names []string
	for _, a := range page.Actors {
		name := a.Path
		if !strings.HasPrefix(last, "/") {
			name = strings.TrimPrefix(name, "/user/")
		}
		names = append(names, name)
		if a.Children > 0 && strings.HasPrefix(last, "/") {
			names = append(names, name+"/")
		}
	}
	return names
}

// types are those of the bundle's actors.
func types(ctx context.Context, before []string) (names []string) {
	c, ok := meant(before)
	if !ok {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	sys, err := client.Get[observe.System](ctx, c, "/v1/system", nil)
	if err != nil {
		return nil
	}
	for _, t := range sys.Types {
		names = append(names, t.Name)
	}
	return names
}
