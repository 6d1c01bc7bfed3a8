package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/wasmactors/wasmactors/host/bundle"
)

// The dashboard is opened once, and every system is let go of before the next one.
func TestDevOpensTheDashboard(t *testing.T) {
	var opened []string
	before := openBrowser
	defer func() { openBrowser = before }()
	openBrowser = func(url string) error {
		opened = append(opened, url)
		return errors.New("no browser here")
	}
	set := flag.NewFlagSet("dev", flag.ContinueOnError)
	set.Bool("open", true, "")
	attached, detached := 0, 0
	var said bytes.Buffer
	env := &environment{stderr: &said, terminal: &said, attach: func(*cli.Context, bundle.DevEvent, *telemetry) (string, func(), error) {
		attached++
		return "http://127.0.0.1:7777/", func() { detached++ }, nil
	}}
	d := &devSession{c: cli.NewContext(nil, set, nil), env: env, console: newConsole(env, false, false, 1, "first")}
	m := &bundle.Manifest{Name: "b"}
	for range 3 {
		d.tell(bundle.DevEvent{Kind: bundle.DevUp, Manifest: m})
	}
	d.tell(bundle.DevEvent{Kind: bundle.DevReplaced, Manifest: m})
	if attached != 3 || detached != 2 || len(opened) != 1 || opened[0] != "http://127.0.0.1:7777/" {
		t.Errorf("attached %d times, detached %d times, opened %q", attached, detached, opened)
	}
	if !strings.Contains(said.String(), "the browser cannot be opened (no browser here); the dashboard is at http://127.0.0.1:7777/") {
		t.Errorf("%s", &said)
	}
}

// What a step of dev is to a person.
func TestDevIsShown(t *testing.T) {
	var said bytes.Buffer
	env := &environment{stderr: &said, terminal: &said}
	d := &devSession{env: env, console: newConsole(env, false, false, 1, "first")}
	for want, e := range map[string]bundle.DevEvent{
		"WARN the manifest is gone; it is waited for":                                  {Kind: bundle.DevWaiting, Err: bundle.ErrNoManifest},
		"ERRO the bundle has failed why=boom then=\"the next change starts it again\"": {Kind: bundle.DevEnded, Err: errors.New("boom")},
		"nothing is replaced":                                                           {Kind: bundle.DevUnchanged},
		"INFO changed file=/a/b.go more=2":                                              {Kind: bundle.DevChanged, Files: []string{"/a/b.go", "/c", "/d"}},
		"then=\"nothing runs until it is mended\"":                                      {Kind: bundle.DevFailed, Err: errors.New("x")},
		"INFO \"loaded with other limits\" module=m runs=h actors=0":                    {Kind: bundle.DevReplaced, Modules: []bundle.ModuleChange{{Name: "m", Before: "h", Now: "h"}}},
		"INFO loaded module=n runs=h":                                                   {Kind: bundle.DevReplaced, Modules: []bundle.ModuleChange{{Name: "n", Now: "h"}}},
		"INFO replaced actor=/user/a why=supervision":                                   {Kind: bundle.DevReplaced, Actors: []bundle.ActorChange{{Path: "/user/a", Did: "replaced", Why: "supervision"}}},
		"ERRO \"not started\" actor=/user/a why=\"it is new in the manifest\" error=no": {Kind: bundle.DevReplaced, Actors: []bundle.ActorChange{{Path: "/user/a", Did: "started", Why: "it is new in the manifest", Err: errors.New("no")}}},
	} {
		said.Reset()
		d.human(e)
		if got := said.String(); !strings.Contains(strings.ReplaceAll(got, `"`, ""), strings.ReplaceAll(want, `"`, "")) {
			t.Errorf("%q, want %s", got, want)
		}
	}
}
