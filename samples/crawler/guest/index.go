package main

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/pubsub"
)

// index hears of all pages and answers a word with the URLs of those that have it in their titles.
// It knows nothing of the crawler, nor that of it.
type index struct {
	topics pubsub.Topics
	words  map[string][]string
	pages  int
}

const mostIndexed = 10_000

func (x *index) Started(ctx *actor.Context) error {
	x.words = map[string][]string{}
	x.topics.Subscribe(ctx, "pages.*", pubsub.Options{}, x.page)
	return nil
}

func (x *index) page(_ *actor.Context, e pubsub.Event) error {
	var p page
	r := e.Reader()
	if p.UnmarshalCBOR(r); r.Done() != nil {
		return r.Err()
	}
	if x.pages++; x.pages > mostIndexed {
		return nil
	}
	for _, word := range strings.Fields(strings.ToLower(p.Title)) {
		x.words[word] = append(x.words[word], p.URL)
	}
	return nil
}

func (x *index) Receive(ctx *actor.Context, msg *actor.Message) error {
	if mine, err := x.topics.Receive(ctx, msg); mine {
		return err
	}
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	found := x.words[strings.ToLower(msg.Text())]
	return ctx.Reply(actor.Func(func(w *abi.Writer) {
		w.Array(len(found))
		for _, url := range found {
			w.Text(url)
		}
	}))
}
