package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
		"WARN the manifest is missing; waiting for it":                                 {Kind: bundle.DevWaiting, Err: bundle.ErrNoManifest},
		"ERRO the bundle has failed why=boom then=\"the next change starts it again\"": {Kind: bundle.DevEnded, Err: errors.New("boom")},
		"nothing is replaced":                                                           {Kind: bundle.DevUnchanged},
		"INFO changed file=/a/b.go more=2":                                              {Kind: bundle.DevChanged, Files: []string{"/a/b.go", "/c", "/d"}},
		"then=\"nothing runs until this is fixed\"":                                     {Kind: bundle.DevFailed, Err: errors.New("x")},
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

// --open leads a browser to the dashboard by a page of the user's alone, which logs in there.
func TestDevOpensAPageThatLogsIn(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	code, err := os.ReadFile("../../host/testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	manifest := "wasmactors: 1\nname: b\nmodules:\n  m: {wasm: ./m.wasm}\nactors:\n  a: {type: m/echo}\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "m.wasm"), code, 0o600), os.WriteFile(filepath.Join(dir, "bundle.yaml"), []byte(manifest), 0o600)); err != nil {
		t.Fatal(err)
	}
	before := openBrowser
	defer func() { openBrowser = before }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var page string
	openBrowser = func(address string) error {
		defer cancel()
		page = strings.TrimPrefix(address, "file://")
		info, err := os.Stat(page)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
			return nil
		}
		text, _ := os.ReadFile(page)
		m := regexp.MustCompile(`url=(http://127\.0\.0\.1:\d+)/#token=([^"]+)`).FindSubmatch(text)
		if m == nil {
			t.Errorf("%s", text)
			return nil
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, string(m[1])+"/v1/system", nil)
		if err != nil {
			t.Error(err)
			return nil
		}
		r.Header.Set("Authorization", "Bearer "+string(m[2]))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return nil
		}
		defer answer.Body.Close()
		if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"name":"b"`)) {
			t.Errorf("%s: %s", answer.Status, body)
		}
		return nil
	}
	var out, errs bytes.Buffer
	run(ctx, nil, []string{"wasmactors", "dev", "--open", dir}, nil, &out, &errs)
	if page == "" {
		t.Fatalf("nothing was opened: %s", &errs)
	}
	if _, err := os.Stat(page); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the page is left: %v", err)
	}
}
