// Package dictionary is an example of docs/extending.md: a service that guests reach by a
// grant, in a page.
package dictionary

import (
	"context"
	"errors"
	"slices"

	"github.com/wasmactors/wasmactors/host/service"
)

// Settings are services.dictionary of a manifest.
type Settings struct {
	Words map[string]map[string]string `manifest:"words,required" doc:"translations by language, then by word" reach:"none" keyreach:"none"`
}

// Grant is capabilities.dictionary of an actor.
type Grant struct {
	Languages []string `manifest:"languages,required" doc:"which it may ask for" pattern:"^[a-z]{2}$" what:"a language of two letters" reach:"none"`
}

// Service answers ["translate", {"word": w, "to": language}] with a text.
var Service = service.Define(service.Definition[Settings, Grant]{
	Name: "dictionary",
	Doc:  "translates words",
	CheckGrant: func(g *Grant) error {
		if len(g.Languages) == 0 {
			return service.At("languages", errors.New("one at least"))
		}
		return nil
	},
	Open: func(_ *service.Env, s *Settings) (service.Provider[Grant], error) { return provider{s.Words}, nil },
})

type provider struct{ words map[string]map[string]string }

// Serve implements service.Provider.
func (p provider) Serve(_ context.Context, r *service.Request[Grant]) (any, error) {
	if r.Op != "translate" {
		return nil, r.Unknown()
	}
	var in struct {
		Word string `cbor:"word"`
		To   string `cbor:"to"`
	}
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if !slices.Contains(r.Grant.Languages, in.To) {
		return nil, service.Deny("languages", "words of %.20q", in.To)
	}
	text, ok := p.words[in.To][in.Word]
	if !ok {
		return nil, service.Errorf(service.NotFound, "there is no %.80q", in.Word)
	}
	return text, nil
}

// Close implements service.Provider.
func (provider) Close(context.Context) error { return nil }
