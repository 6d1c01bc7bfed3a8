package dictionary_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/docs/examples/dictionary"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service"
)

// Each actor is answered by its own grant.
func TestGrants(t *testing.T) {
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]map[string]string{"de": {"actor": "Schauspieler"}, "fr": {"actor": "acteur"}}
	running, err := dictionary.Service.Start(sys, nil, &dictionary.Settings{Words: words})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Wait(context.Background())
	defer sys.Close(context.Background())
	ask := func(who host.Ref, word, to string) string {
		text, err := host.AskAs[string](t.Context(), sys, who, map[string]string{"word": word, "to": to})
		if err != nil {
			return err.Error()
		}
		return text
	}
	german := spawn(t, sys, "german", dictionary.Grant{Languages: []string{"de"}})
	both := spawn(t, sys, "both", dictionary.Grant{Languages: []string{"de", "fr"}})
	for _, c := range []struct {
		who            host.Ref
		word, to, want string
	}{
		{german, "actor", "de", "Schauspieler"},
		{german, "actor", "fr", "capabilities.dictionary.languages in the manifest would allow it"},
		{both, "actor", "fr", "acteur"},
		{both, "guest", "fr", "not_found: "},
	} {
		if got := ask(c.who, c.word, c.to); !strings.Contains(got, c.want) {
			t.Errorf("%s to %s: %s", c.word, c.to, got)
		}
	}
}

// spawn is an actor that asks the dictionary what it is asked.
func spawn(t *testing.T, sys *host.System, name string, g dictionary.Grant) host.Ref {
	ref, err := sys.Spawn(name, host.Native(func() host.Actor { return &asker{} }).
		WithGrant("dictionary", dictionary.Service.Grant(g, service.Bounds{})))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

type asker struct{ reply *host.Reply }

func (a *asker) Receive(ctx *host.Context, m host.Message) error {
	ref, _ := ctx.Service("dictionary")
	if m.Sender == ref {
		if err := m.Err(); err != nil {
			return a.reply.Fail(err.Error())
		}
		return a.reply.Send(host.Raw(m.Payload))
	}
	var args map[string]string
	if err := m.Decode(&args); err != nil {
		return err
	}
	var err error
	if a.reply, err = ctx.Later(); err != nil {
		return err
	}
	return ctx.Ask(ref, []any{"translate", args}, 1, time.Minute)
}

// What a manifest says wrongly is found where it says so.
func TestManifest(t *testing.T) {
	const text = "wasmactors: 1\nname: a\nmodules: {m: {wasm: m.wasm}}\nservices: {dictionary: {words: {de: {actor: Schauspieler}}}}\n" +
		"actors: {x: {type: t, capabilities: {dictionary: {languages: [german]}}}}\n"
	_, err := bundle.ParseWith("bundle.yaml", []byte(text), nil, dictionary.Service)
	if err == nil || !strings.HasPrefix(err.Error(), "bundle.yaml:5:63: ") || !strings.Contains(err.Error(), "a language of two letters") {
		t.Error(err)
	}
	if _, err := bundle.ParseWith("bundle.yaml", []byte(strings.Replace(text, "german", "de", 1)), nil, dictionary.Service); err != nil {
		t.Error(err)
	}
}
