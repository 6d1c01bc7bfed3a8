package main

import (
	"errors"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// The events of dev as text and as JSON.

// shortHash is the beginning of a hash, enough to compare.
func shortHash(hash string) string { return hash[:min(len(hash), 12)] }

// shownActors is how many restarted actors are listed as text.
const shownActors = 10

func (d *devSession) human(e bundle.DevEvent) {
	log := d.console.log
	took := e.Took.Round(time.Millisecond)
	switch e.Kind {
	case bundle.DevUp:
		for _, why := range e.Why {
			log.Warn("the whole bundle is restarted", "why", oneLine(why))
		}
		pairs := []any{"took", took}
		for _, m := range e.Manifest.Modules {
			pairs = append(pairs, m.Name, shortHash(e.Hashes[m.Name]))
		}
		if d.nodes != nil {
			pairs = append(pairs, "nodes", d.nodes.processes())
		}
		log.Info("bundle "+oneLine(e.Manifest.Name)+" is up", pairs...)
	case bundle.DevChanged:
		pairs := []any{"file", oneLine(near(e.Files[0]))}
		if n := len(e.Files) - 1; n > 0 {
			pairs = append(pairs, "more", n)
		}
		log.Info("changed", pairs...)
	case bundle.DevReplaced:
		d.humanReplaced(e)
	case bundle.DevUnchanged:
		log.Info("the same code and the same actors as before: nothing is replaced", "took", took)
	case bundle.DevFailed:
		for _, p := range problems(e.Err) {
			d.console.status.Write([]byte(printable.Text(printable.Clip(p.String(), 64<<10)) + "\n"))
		}
		then := "nothing runs until this is fixed"
		if e.Running {
			then = "the version before keeps running"
		}
		log.Error("not replaced", "problems", len(problems(e.Err)), "then", then, "took", took)
	case bundle.DevWaiting:
		log.Warn("the manifest is missing; waiting for it", "why", oneLine(e.Err.Error()))
	case bundle.DevEnded:
		why := "it was stopped"
		if e.Err != nil {
			why = oneLine(e.Err.Error())
		}
		log.Error("the bundle has failed", "why", why, "then", "the next change starts it again")
	}
}

func (d *devSession) humanReplaced(e bundle.DevEvent) {
	log := d.console.log
	took := e.Took.Round(time.Millisecond)
	concerned, kept, lost := map[string]int{}, map[string]int{}, map[string]string{}
	for i, a := range e.Actors {
		if a.Module != "" && a.Err == nil {
			concerned[a.Module]++
			if a.Did == upgrade.Upgraded {
				kept[a.Module]++
			} else if lost[a.Module] == "" {
				lost[a.Module] = strings.TrimLeft(a.Node+" "+a.Path+": "+a.Why, " ")
			}
			continue
		}
		pairs := []any{"actor", oneLine(a.Path), "why", oneLine(a.Why)}
		if a.Node != "" {
			pairs = append([]any{"node", a.Node}, pairs...)
		}
		switch {
		case a.Did == upgrade.Kept:
			log.Error("it keeps its code", append(pairs, "error", oneLine(a.Err.Error()))...)
		case a.Err != nil:
			log.Error("not "+a.Did, append(pairs, "error", oneLine(a.Err.Error()))...)
		case i < shownActors:
			log.Info(a.Did, append(pairs, "took", took)...)
		}
	}
	for _, m := range e.Modules {
		switch pairs := []any{"module", m.Name, "runs", shortHash(m.Now)}; {
		case m.Before == "":
			log.Info("loaded", append(pairs, "took", took)...)
		case m.Before == m.Now:
			log.Info("loaded with other limits", append(pairs, "actors", concerned[m.Name], "kept", kept[m.Name], "took", took)...)
		default:
			log.Info("replaced", append(pairs, "before", shortHash(m.Before), "actors", concerned[m.Name], "kept", kept[m.Name], "took", took)...)
		}
		if n := concerned[m.Name] - kept[m.Name]; n > 0 {
			log.Warn("restarted, and the state is lost", "module", m.Name, "actors", n, "first", oneLine(lost[m.Name]))
		}
	}
}

// jsonDev is an event of dev in JSON.
type jsonDev struct {
	Event    string            `json:"event"`
	Kind     bundle.DevKind    `json:"kind"`
	Bundle   string            `json:"bundle,omitempty"`
	Seconds  float64           `json:"seconds"`
	Files    []string          `json:"files,omitempty"`
	Hashes   map[string]string `json:"hashes,omitempty"` // of what runs, by module
	Modules  []jsonModule      `json:"modules,omitempty"`
	Actors   []jsonActor       `json:"actors,omitempty"`
	Why      []string          `json:"why,omitempty"`
	Problems []problem         `json:"problems,omitempty"`
	Nodes    map[string]int    `json:"nodes,omitempty"` // up: their processes
}

type jsonModule struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	Now    string `json:"now"`
}

type jsonActor struct {
	Node  string `json:"node,omitempty"`
	Path  string `json:"path"`
	Did   string `json:"did"`
	Why   string `json:"why,omitempty"`
	Error string `json:"error,omitempty"`
}

func eventOfDev(e bundle.DevEvent) jsonDev {
	j := jsonDev{Event: "dev", Kind: e.Kind, Seconds: e.Took.Seconds(), Files: e.Files, Hashes: e.Hashes, Why: e.Why}
	if e.Manifest != nil {
		j.Bundle = e.Manifest.Name
	}
	for _, m := range e.Modules {
		j.Modules = append(j.Modules, jsonModule{m.Name, m.Before, m.Now})
	}
	for _, a := range e.Actors {
		x := jsonActor{Node: a.Node, Path: a.Path, Did: a.Did, Why: a.Why}
		if a.Err != nil {
			x.Error = a.Err.Error()
		}
		j.Actors = append(j.Actors, x)
	}
	if e.Err != nil && !errors.Is(e.Err, bundle.ErrNoManifest) {
		j.Problems = problems(e.Err)
	}
	return j
}
