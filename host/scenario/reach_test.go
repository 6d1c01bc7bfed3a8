package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/all"
)

// Nobody is asked about what a scenario replaces, and everybody about what it does not.
func TestScenariosAskAboutWhatTheyReach(t *testing.T) {
	code, err := os.ReadFile("../testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	out := filepath.Join(top, "out")
	dir := filepath.Join(top, "b")
	for name, text := range map[string]string{
		"b/m.wasm": string(code), "out/settings.yaml": "k: v\n", "b/" + bundle.FileName: `wasmactors: 1
name: b
modules: {m: {wasm: m.wasm, dirs: [{host: ../out, guest: /d}]}}
actors: {a: {type: echo, capabilities: {http: {hosts: [example.com]}, sql: {databases: {main: rw}}, blob: {namespace: n}, tcp: {connect: [example.com:1], listen: [localhost:7]}, udp: {connect: [example.com:1], listen: [localhost:7]}}}}
services:
  config: {files: [{path: ../out/settings.yaml}], environment: {e: HOME}, secrets: {s: {file: ../out/secret}}}
  sql: {databases: {main: {file: ../out/x.db}}}
  blob: {folder: ../out/objects}
  http: {roots: ../out/roots}
http: {listen: [{address: localhost:0}], routes: {"GET /": {static: {dir: ../out}}}}
`} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	st := NewStage(all.Kinds()...)
	m, err := bundle.LoadWith(dir, nil, st.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.Reaches()); n != 14 {
		t.Errorf("the manifest reaches %d: %v", n, m.Reaches())
	}
	_, err = st.Open(t.Context(), m, bundle.Options{})
	var refused *bundle.OutsideError
	if !errors.As(err, &refused) || len(refused.Reaches) != 2 || refused.Reaches[0].Key != "modules.m.dirs[0].host" || refused.Reaches[1].Key != "services.config.files[0].path" {
		t.Fatal(err)
	}
	for i, u := range m.Services { // it would be opened in a folder of the scenario's
		if u.Kind.Name() == "sql" {
			m.Services = append(m.Services[:i], m.Services[i+1:]...)
			break
		}
	}
	b, err := st.Open(t.Context(), m, bundle.Options{Allow: bundle.Permit(bundle.Permission{Kind: "read"})})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(t.Context())
	for _, r := range plays(t, st, b, "scenarios: [{name: x, steps: [{ask: a, message: 1, answer: 1}]}]\n") {
		if r.Outcome != Passed {
			t.Error(r.Failure)
		}
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) != 1 {
		t.Errorf("it has written outside: %v %v", entries, err)
	}
}
